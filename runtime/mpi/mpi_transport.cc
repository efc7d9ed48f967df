#include "runtime/mpi/mpi_transport.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/mpi/mpi_library.h"

namespace eddy {
namespace {

// Below what any of MPI's carriers sends without waiting for the receiver.
constexpr size_t kFrameBytes = 2048;
constexpr uint64_t kReceiveTag = UINT64_MAX;
constexpr uint64_t kSendBit = uint64_t{1} << 63;
constexpr int32_t kMessageNumber = 32767;

// Of 8 and 16 bits Open MPI 4.1 has vector code that saturates where sums should wrap.
std::optional<MpiType> type_of(ElementType element) {
  switch (element) {
    case ElementType::kInt32:
      return MpiType::kInt32;
    case ElementType::kInt64:
      return MpiType::kInt64;
    case ElementType::kUint32:
      return MpiType::kUint32;
    case ElementType::kUint64:
      return MpiType::kUint64;
    case ElementType::kFloat:
      return MpiType::kFloat;
    case ElementType::kDouble:
      return MpiType::kDouble;
    case ElementType::kBool:
      return MpiType::kBool;
    default:
      return std::nullopt;
  }
}

std::optional<MpiReduction> reduction_of(ElementType element, RankReduction reduction) {
  const bool is_bool = element == ElementType::kBool;
  const bool is_float = element == ElementType::kFloat || element == ElementType::kDouble;
  switch (reduction) {
    case RankReduction::kSum:
      return is_bool ? std::nullopt : std::optional(MpiReduction::kSum);
    case RankReduction::kProd:
      return is_bool ? std::nullopt : std::optional(MpiReduction::kProd);
    case RankReduction::kMin:
      return is_bool || is_float ? std::nullopt : std::optional(MpiReduction::kMin);
    case RankReduction::kMax:
      return is_bool || is_float ? std::nullopt : std::optional(MpiReduction::kMax);
    case RankReduction::kAnd:
      return is_bool ? std::optional(MpiReduction::kAnd) : std::nullopt;
    case RankReduction::kOr:
      return is_bool ? std::optional(MpiReduction::kOr) : std::nullopt;
    case RankReduction::kAverage:
      return std::nullopt;
  }
  return std::nullopt;
}

// A message that is being sent: its length in eight bytes, then itself.
struct Outgoing {
  std::vector<std::byte> bytes;
  size_t num_frames = 0;  // not yet sent
};

// One that is being put together, by sender.
struct Incoming {
  std::vector<std::byte> bytes;
  size_t missing = 0;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const MpiTable& mpi) : mpi_(mpi) {}

  Status open_world(const MpiTransportOptions& options) {
    int32_t was_open = 0;
    EDDY_RETURN_IF_ERROR(mpi_status(mpi_, mpi_.open(&was_open), "MPI does not start"));
    is_own_ = was_open == 0;
    int32_t rank = 0;
    int32_t size = 1;
    mpi_.world(&rank, &size);
    rank_ = static_cast<uint32_t>(rank);
    num_ranks_ = static_cast<uint32_t>(size);
    incoming_.resize(num_ranks_);
    requests_ = mpi_.make_requests(options.max_piece_bytes);
    if (requests_ == nullptr) return resource_exhausted("out of memory for MPI's requests");
    std::vector<int32_t> all(num_ranks_);
    std::iota(all.begin(), all.end(), 0);
    EDDY_RETURN_IF_ERROR(
        mpi_status(mpi_, mpi_.make_communicator(all.data(), size, kMessageNumber, &messages_),
                   "MPI makes no communicator"));
    is_ready_ = true;
    return receive_frame();
  }

  ~MpiTransport() override {
    if (!is_ready_ || !lost_.is_ok() || !under_way_.empty() || !end_messages()) return;
    for (MpiCommunicator* const each : communicators_) {
      if (each != nullptr) mpi_.free_communicator(each);
    }
    mpi_.free_communicator(messages_);
    mpi_.free_requests(requests_);
    if (is_own_) mpi_.close();
  }

  uint32_t rank() const override { return rank_; }
  uint32_t num_ranks() const override { return num_ranks_; }

  std::string describe() const override { return mpi_library_name(mpi_); }

  bool can_reduce(ElementType element, RankReduction reduction) const override {
    return type_of(element) && reduction_of(element, reduction);
  }

  Result<uint32_t> open(std::span<const uint32_t> group, uint32_t number) override {
    if (!lost_.is_ok()) return lost_;
    const std::vector<int32_t> ranks(group.begin(), group.end());
    MpiCommunicator* made = nullptr;
    EDDY_RETURN_IF_ERROR(
        check(mpi_.make_communicator(ranks.data(), static_cast<int32_t>(ranks.size()),
                                     static_cast<int32_t>(number), &made),
              "MPI makes no communicator"));
    const auto free = std::ranges::find(communicators_, nullptr);
    const auto id = static_cast<uint32_t>(free - communicators_.begin());
    if (free == communicators_.end()) communicators_.push_back(nullptr);
    communicators_[id] = made;
    return id;
  }

  void close(uint32_t communicator) override {
    if (!lost_.is_ok()) return;
    mpi_.free_communicator(std::exchange(communicators_[communicator], nullptr));
  }

  Status start(const Transfer& transfer) override {
    if (!lost_.is_ok()) return lost_;
    EDDY_RETURN_IF_ERROR(check(post(transfer), "MPI starts no transfer"));
    under_way_.push_back(transfer.token);
    return Status::ok();
  }

  Status send_message(uint32_t to, std::span<const std::byte> bytes) override {
    if (!lost_.is_ok()) return lost_;
    const uint64_t tag = kSendBit | next_message_++;
    Outgoing& message = outgoing_[tag];
    const uint64_t length = bytes.size();
    message.bytes.resize(sizeof(length) + bytes.size());
    std::memcpy(message.bytes.data(), &length, sizeof(length));
    std::ranges::copy(bytes, message.bytes.begin() + sizeof(length));
    for (size_t first = 0; first < message.bytes.size(); first += kFrameBytes) {
      const size_t count = std::min(kFrameBytes, message.bytes.size() - first);
      EDDY_RETURN_IF_ERROR(check(mpi_.send(requests_, messages_, tag, message.bytes.data() + first,
                                           static_cast<int64_t>(count), static_cast<int32_t>(to)),
                                 "MPI sends no message"));
      ++message.num_frames;
    }
    return Status::ok();
  }

  bool poll(Progress& progress) override {
    if (!lost_.is_ok()) return false;
    const MpiCompletion* done = nullptr;
    int32_t count = 0;
    const Status status = check(mpi_.test_some(requests_, &done, &count), "MPI fails");
    if (!status.is_ok()) return give_up(progress);
    bool has_news = false;
    for (int32_t i = 0; i < count; ++i) {
      if (!check(done[i].error, "a transfer fails").is_ok()) return give_up(progress);
      if (done[i].tag == kReceiveTag) {
        has_news |= take_frame(done[i], progress);
      } else if ((done[i].tag & kSendBit) != 0) {
        take_sent(done[i].tag);
      } else {
        std::erase(under_way_, done[i].tag);
        progress.done.push_back({done[i].tag, Status::ok()});
        has_news = true;
      }
    }
    // After the loop: a post may move what test_some returned.
    if (is_frame_taken_ && !receive_frame().is_ok()) return give_up(progress);
    return has_news;
  }

  void abort(int exit_code) override { mpi_.abort(exit_code); }

 private:
  Status check(int32_t error, const char* what) {
    if (error != 0) lost_ = device_lost(mpi_status(mpi_, error, what).message());
    return error == 0 ? Status::ok() : lost_;
  }

  int32_t post(const Transfer& t) {
    MpiCommunicator* const on = communicators_[t.communicator];
    const auto bytes = static_cast<int64_t>(t.bytes);
    const auto root = static_cast<int32_t>(t.root);
    switch (t.kind) {
      case Transfer::Kind::kAllGather:
        return mpi_.all_gather(requests_, on, t.token, t.send, t.receive, bytes);
      case Transfer::Kind::kAllToAll:
        return mpi_.all_to_all(requests_, on, t.token, t.send, t.receive, bytes);
      case Transfer::Kind::kBroadcast:
        return mpi_.broadcast(requests_, on, t.token, t.receive, bytes, root);
      case Transfer::Kind::kReduce:
        return mpi_.all_reduce(requests_, on, t.token, t.send, t.receive,
                               bytes / static_cast<int64_t>(element_size_bytes(t.element)),
                               *type_of(t.element), *reduction_of(t.element, t.reduction));
      case Transfer::Kind::kSend:
        return mpi_.send(requests_, on, t.token, t.send, bytes, root);
      case Transfer::Kind::kRecv:
        return mpi_.receive(requests_, on, t.token, t.receive, bytes, root);
      case Transfer::Kind::kBarrier:
        return mpi_.barrier(requests_, on, t.token);
    }
    EDDY_CHECK(false) << "a transfer that there is not";
    return 0;
  }

  // The world is lost: every transfer says so, or a message that means nothing where there is none.
  bool give_up(Progress& progress) {
    for (const uint64_t token : under_way_) progress.done.push_back({token, lost_});
    if (under_way_.empty()) progress.messages.push_back({rank_, {}});
    return true;
  }

  Status receive_frame() {
    is_frame_taken_ = false;
    return check(mpi_.receive_any(requests_, messages_, kReceiveTag, frame_.data(),
                                  static_cast<int32_t>(frame_.size())),
                 "MPI receives no message");
  }

  // True: a message is whole.
  bool take_frame(const MpiCompletion& done, Progress& progress) {
    is_frame_taken_ = true;
    Incoming& message = incoming_[static_cast<size_t>(done.source)];
    auto frame = std::span<const std::byte>(frame_).first(static_cast<size_t>(done.bytes));
    if (message.missing == 0) {
      uint64_t length = 0;
      if (frame.size() < sizeof(length)) return false;
      std::memcpy(&length, frame.data(), sizeof(length));
      frame = frame.subspan(sizeof(length));
      message.missing = length;
    }
    frame = frame.first(std::min(frame.size(), message.missing));
    message.bytes.insert(message.bytes.end(), frame.begin(), frame.end());
    message.missing -= frame.size();
    if (message.missing > 0) return false;
    progress.messages.push_back(
        {static_cast<uint32_t>(done.source), std::exchange(message.bytes, {})});
    return true;
  }

  void take_sent(uint64_t tag) {
    const auto found = outgoing_.find(tag);
    if (--found->second.num_frames == 0) outgoing_.erase(found);
  }

  // All frames that were posted are sent, and the posted receive is taken back. False: not within a
  // second, or MPI fails.
  bool end_messages() {
    if (mpi_.cancel_receives(requests_) != 0) return false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    bool is_receiving = true;
    while (is_receiving || !outgoing_.empty()) {
      const MpiCompletion* done = nullptr;
      int32_t count = 0;
      if (mpi_.test_some(requests_, &done, &count) != 0) return false;
      for (int32_t i = 0; i < count; ++i) {
        if (done[i].tag == kReceiveTag) is_receiving = false;
        if (done[i].tag != kReceiveTag) take_sent(done[i].tag);
      }
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

  const MpiTable& mpi_;
  bool is_own_ = false;
  bool is_ready_ = false;
  uint32_t rank_ = 0;
  uint32_t num_ranks_ = 1;
  Status lost_;
  MpiRequests* requests_ = nullptr;
  MpiCommunicator* messages_ = nullptr;
  std::vector<MpiCommunicator*> communicators_;  // by id; null: closed
  std::vector<uint64_t> under_way_;              // tokens
  uint64_t next_message_ = 0;
  std::unordered_map<uint64_t, Outgoing> outgoing_;  // by tag
  std::vector<Incoming> incoming_;
  std::array<std::byte, kFrameBytes> frame_{};
  bool is_frame_taken_ = false;
};

}  // namespace

Result<std::unique_ptr<Transport>> open_mpi_transport(const MpiTransportOptions& options) {
  const MpiTable* table = options.table_or_null;
  if (table == nullptr) {
    EDDY_ASSIGN_OR_RETURN(table, load_mpi());
  }
  auto transport = std::make_unique<MpiTransport>(*table);
  EDDY_RETURN_IF_ERROR(transport->open_world(options));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace eddy
