#include "runtime/net/rank_message.h"

#include "runtime/net/byte_stream.h"

namespace eddy {
namespace {

constexpr uint64_t kMagic = 0x314d52594444u;  // "DDYRM1"

void write_lane(ByteWriter& out, const LaneCount& lane) {
  out.number(lane.lane.channel);
  out.number(lane.lane.from);
  out.number(lane.lane.to);
  out.number(lane.count);
  out.number(lane.last.size());
  for (const LaneCount::Entry& entry : lane.last) {
    out.number(static_cast<uint64_t>(entry.shape.kind));
    out.number(entry.shape.bytes);
    out.number(entry.shape.root);
    out.number(static_cast<uint64_t>(entry.shape.element));
    out.number(static_cast<uint64_t>(entry.shape.reduction));
    out.number(entry.times);
  }
}

LaneCount read_lane(ByteReader& in) {
  LaneCount lane;
  lane.lane.channel = in.number_up_to(UINT32_MAX);
  lane.lane.from = in.number_up_to(UINT32_MAX);
  lane.lane.to = in.number_up_to(UINT32_MAX);
  lane.count = in.number();
  lane.last.resize(in.size(6 * 8));
  for (LaneCount::Entry& entry : lane.last) {
    entry.shape.kind = in.number_up_to(Transfer::Kind::kBarrier);
    entry.shape.bytes = in.number();
    entry.shape.root = in.number_up_to(UINT32_MAX);
    entry.shape.element = in.number_up_to(static_cast<ElementType>(UINT8_MAX));
    entry.shape.reduction = in.number_up_to(RankReduction::kAverage);
    entry.times = in.number();
  }
  return lane;
}

}  // namespace

std::vector<std::byte> write_message(const RankMessage& message) {
  ByteWriter out;
  out.number(kMagic);
  out.number(static_cast<uint64_t>(message.kind));
  out.number(message.session);
  out.number(message.run);
  out.number(static_cast<uint64_t>(message.status.code()));
  out.text(message.status.is_ok() ? "" : message.status.message());
  out.text(message.status.is_ok() ? "" : message.status.path());
  out.number(message.is_own);
  out.number(message.lanes.size());
  for (const LaneCount& lane : message.lanes) write_lane(out, lane);
  out.text(message.text);
  return out.take();
}

Result<RankMessage> read_message(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  RankMessage message;
  const bool is_ours = in.number() == kMagic;
  message.kind = in.number_up_to(RankMessage::Kind::kDone);
  message.session = in.number();
  message.run = in.number();
  const auto code = in.number_up_to(StatusCode::kInternal);
  std::string text = in.text();
  const std::string path = in.text();
  if (code != StatusCode::kOk) {
    message.status = Status(code, std::move(text));
    if (!path.empty()) message.status.prepend_path(path);
  }
  message.is_own = in.number_up_to(1u) != 0;
  message.lanes.resize(in.size(5 * 8));
  for (LaneCount& lane : message.lanes) lane = read_lane(in);
  message.text = in.text();
  if (is_ours && in.is_good() && in.is_at_end()) return message;
  return invalid_argument("a message between ranks is spoilt, or of another version of Eddy");
}

}  // namespace eddy
