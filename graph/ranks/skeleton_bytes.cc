#include <string>
#include <utility>

#include "graph/base/check.h"
#include "graph/ranks/skeleton.h"

namespace eddy {
namespace {

constexpr uint32_t kMagic = 0x314b5352;  // "RSK1"

// One description for both ways: each field is given to `self`, in order.
class Writer {
 public:
  void field(uint32_t& number) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::byte>(number >> shift & 0xff));
    }
  }
  // The length; how many there are, at least `unit_bytes` each.
  template <typename List>
  void size(List& list, size_t) {
    EDDY_CHECK(list.size() <= UINT32_MAX) << "a list of " << list.size();
    auto size = static_cast<uint32_t>(list.size());
    field(size);
  }
  void text(std::string& text) {
    size(text, 1);
    for (char c : text) bytes.push_back(static_cast<std::byte>(c));
  }
  std::vector<std::byte> bytes;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  void field(uint32_t& number) {
    number = 0;
    if (left_.size() < 4) {
      is_cut_ = true;
      left_ = {};
      return;
    }
    for (int i = 0; i < 4; ++i) {
      number |= std::to_integer<uint32_t>(left_[static_cast<size_t>(i)]) << (8 * i);
    }
    left_ = left_.subspan(4);
  }
  template <typename List>
  void size(List& list, size_t unit_bytes) {
    uint32_t size = 0;
    field(size);
    if (size > left_.size() / unit_bytes) {
      is_cut_ = true;
      left_ = {};
      size = 0;
    }
    list.resize(size);
  }
  void text(std::string& text) {
    size(text, 1);
    EDDY_DCHECK(text.size() <= left_.size()) << "a text longer than the bytes that are left";
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(left_[i]);
    left_ = left_.subspan(text.size());
  }
  bool is_whole() const { return !is_cut_ && left_.empty(); }

 private:
  std::span<const std::byte> left_;
  bool is_cut_ = false;
};

// Enumerators that are not known become one that the proof refuses.
static_assert(static_cast<uint32_t>(RankSkeleton::Op::kLeave) < 0xff &&
              static_cast<uint32_t>(RankSkeleton::Decision::kAgreeRoot) < 0xff &&
              static_cast<uint32_t>(RankSkeleton::ControlKind::kCase) < 0xff);
template <typename Way, typename Enum>
void choice(Way& way, Enum& value) {
  auto number = static_cast<uint32_t>(value);
  way.field(number);
  value = static_cast<Enum>(number < 0xff ? number : 0xff);
}

template <typename Way>
void ids(Way& way, std::vector<uint32_t>& list) {
  way.size(list, 4);
  for (uint32_t& id : list) way.field(id);
}

template <typename Way>
void post_fields(Way& way, RankSkeleton::Post& post) {
  way.field(post.channel);
  way.field(post.from);
  way.field(post.to);
  way.text(post.signature.kind);
  way.text(post.signature.type);
  way.text(post.signature.shape);
  way.text(post.signature.reduction);
  way.field(post.signature.root);
  way.text(post.signature.tag);
  way.text(post.path);
}

template <typename Way>
void control_fields(Way& way, RankSkeleton::Control& control) {
  choice(way, control.kind);
  choice(way, control.decision);
  way.field(control.root);
  way.field(control.agree_channel);
  uint32_t is_pipelined = control.is_pipelined;
  way.field(is_pipelined);
  control.is_pipelined = is_pipelined != 0;
  ids(way, control.regions);
  way.text(control.path);
}

template <typename Way>
void region_fields(Way& way, RankSkeleton::Region& region) {
  way.size(region.vertices, 16);
  for (RankSkeleton::Vertex& vertex : region.vertices) {
    choice(way, vertex.op);
    way.field(vertex.operand);
    ids(way, vertex.after);
    ids(way, vertex.previous);
  }
  ids(way, region.end);
}

// Smallest sizes: a channel 8 bytes, a post 40, a control 28, a region 8.
template <typename Way>
void skeleton_fields(Way& way, RankSkeleton& skeleton) {
  way.size(skeleton.channels, 8);
  for (RankSkeleton::Channel& channel : skeleton.channels) {
    ids(way, channel.group);
    way.field(channel.number);
  }
  way.size(skeleton.posts, 40);
  for (RankSkeleton::Post& post : skeleton.posts) post_fields(way, post);
  way.size(skeleton.controls, 28);
  for (RankSkeleton::Control& control : skeleton.controls) control_fields(way, control);
  way.size(skeleton.regions, 8);
  for (RankSkeleton::Region& region : skeleton.regions) region_fields(way, region);
}

}  // namespace

std::vector<std::byte> write_skeleton(const RankSkeleton& skeleton) {
  Writer writer;
  uint32_t magic = kMagic;
  writer.field(magic);
  RankSkeleton copy = skeleton;
  skeleton_fields(writer, copy);
  return std::move(writer.bytes);
}

Result<RankSkeleton> read_skeleton(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  uint32_t magic = 0;
  reader.field(magic);
  if (magic != kMagic) {
    return invalid_argument("a rank's skeleton begins with other bytes; run one version on all");
  }
  RankSkeleton skeleton;
  skeleton_fields(reader, skeleton);
  if (!reader.is_whole()) {
    return invalid_argument("a rank's skeleton of " + std::to_string(bytes.size()) +
                            " bytes is cut off or has more behind its end");
  }
  return skeleton;
}

}  // namespace eddy
