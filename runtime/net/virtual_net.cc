#include "runtime/net/virtual_net.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "graph/base/check.h"
#include "ops/reference/eddy/collective.h"

namespace eddy {
namespace {

using Kind = Transfer::Kind;

bool is_message(const Transfer& transfer) {
  return transfer.kind == Kind::kSend || transfer.kind == Kind::kRecv;
}

uint64_t sent_bytes(const Transfer& transfer, size_t num_places, uint32_t place) {
  switch (transfer.kind) {
    case Kind::kAllToAll:
      return transfer.bytes * num_places;
    case Kind::kBroadcast:
      return place == transfer.root ? transfer.bytes : 0;
    case Kind::kRecv:
    case Kind::kBarrier:
      return 0;
    default:
      return transfer.bytes;
  }
}

uint64_t received_bytes(const Transfer& transfer, size_t num_places, uint32_t place) {
  switch (transfer.kind) {
    case Kind::kAllGather:
    case Kind::kAllToAll:
      return transfer.bytes * num_places;
    case Kind::kBroadcast:
      return place == transfer.root ? 0 : transfer.bytes;
    case Kind::kSend:
    case Kind::kBarrier:
      return 0;
    default:
      return transfer.bytes;
  }
}

// A broadcast's root sends from where the others receive.
const void* source(const Transfer& transfer) {
  return transfer.kind == Kind::kBroadcast ? transfer.receive : transfer.send;
}

uint64_t digest(const void* bytes, uint64_t count) {
  return std::hash<std::string_view>()({static_cast<const char*>(bytes), count});
}

std::byte spoilt_byte(uint8_t spoil, uint64_t i) {
  return static_cast<std::byte>(spoil + 31 * i + 0xa5);
}

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"gather", "swap",    "broadcast", "reduction",
                                    "send",   "receive", "shift",     "barrier"};
  static_assert(std::size(kNames) == static_cast<size_t>(Kind::kBarrier) + 1, "a name for each");
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

class VirtualNet::RankTransport final : public Transport {
 public:
  RankTransport(std::shared_ptr<VirtualNet> net, uint32_t rank)
      : net_(std::move(net)), rank_(rank) {}

  uint32_t rank() const override { return rank_; }
  uint32_t num_ranks() const override { return net_->options_.num_ranks; }
  std::string describe() const override { return "virtual"; }
  // As MPI: no 16-bit floats.
  bool can_reduce(ElementType element, RankReduction reduction,
                  size_t /*num_places*/) const override {
    const bool is_logical = reduction == RankReduction::kAnd || reduction == RankReduction::kOr;
    if (element == ElementType::kBool) return is_logical;
    return element != ElementType::kFloat16 && element != ElementType::kBfloat16 && !is_logical;
  }
  Result<uint32_t> open(std::span<const uint32_t> group, uint32_t number) override {
    const std::lock_guard lock(net_->mutex_);
    EDDY_RETURN_IF_ERROR(health());
    return net_->open(group, number);
  }
  void close(uint32_t communicator) override {
    const std::lock_guard lock(net_->mutex_);
    net_->close(rank_, communicator);
  }
  Status start(const Transfer& transfer) override {
    const std::lock_guard lock(net_->mutex_);
    EDDY_RETURN_IF_ERROR(health());
    return net_->start(rank_, transfer);
  }
  Status send_message(uint32_t to, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(net_->mutex_);
    EDDY_RETURN_IF_ERROR(health());
    net_->messages_[to][rank_].emplace_back(bytes.begin(), bytes.end());
    return Status::ok();
  }
  bool poll(Progress& progress) override {
    const std::lock_guard lock(net_->mutex_);
    if (Status status = health(); !status.is_ok()) {
      for (const UnderWay& each : net_->under_way_[rank_]) {
        const Part& part = net_->meeting(each).parts[each.place];
        progress.done.push_back({part.transfer.token, status});
      }
      net_->under_way_[rank_].clear();
      return !progress.done.empty();
    }
    return !net_->is_frozen_[rank_] && net_->poll(rank_, progress);
  }
  void abort(int /*exit_code*/) override {
    const std::lock_guard lock(net_->mutex_);
    net_->is_lost_.assign(net_->is_lost_.size(), true);
  }

 private:
  Status health() const {
    if (!net_->is_lost_[rank_]) return Status::ok();
    return device_lost("rank " + std::to_string(rank_) + " is cut off");
  }

  const std::shared_ptr<VirtualNet> net_;
  const uint32_t rank_;
};

std::shared_ptr<VirtualNet> VirtualNet::create(const Options& options) {
  return std::shared_ptr<VirtualNet>(new VirtualNet(options));
}

VirtualNet::VirtualNet(const Options& options)
    : options_(options),
      random_(options.seed),
      under_way_(options.num_ranks),
      messages_(options.num_ranks,
                std::vector<std::deque<std::vector<std::byte>>>(options.num_ranks)),
      is_lost_(options.num_ranks, false),
      is_frozen_(options.num_ranks, false) {}

std::unique_ptr<Transport> VirtualNet::transport(uint32_t rank) {
  EDDY_CHECK(rank < options_.num_ranks) << "rank " << rank << " of " << options_.num_ranks;
  return std::make_unique<RankTransport>(shared_from_this(), rank);
}

std::vector<std::string> VirtualNet::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

size_t VirtualNet::num_under_way() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& each : under_way_) count += each.size();
  return count;
}

uint64_t VirtualNet::num_transfers() const {
  const std::lock_guard lock(mutex_);
  return num_transfers_;
}

void VirtualNet::lose(uint32_t rank) {
  const std::lock_guard lock(mutex_);
  is_lost_[rank] = true;
}

void VirtualNet::freeze(uint32_t rank) {
  const std::lock_guard lock(mutex_);
  is_frozen_[rank] = true;
}

void VirtualNet::violate(std::string what) {
  if (violations_.size() < 16) violations_.push_back(std::move(what));
}

uint32_t VirtualNet::open(std::span<const uint32_t> group, uint32_t number) {
  const std::pair key(std::vector<uint32_t>(group.begin(), group.end()), number);
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  const auto id = static_cast<uint32_t>(communicators_.size());
  communicators_.push_back({key.first, {}, std::vector<uint32_t>(group.size(), 0)});
  return by_key_[key] = id;
}

void VirtualNet::close(uint32_t rank, uint32_t communicator) {
  const Communicator& closed = communicators_[communicator];
  const auto place = std::ranges::find(closed.group, rank) - closed.group.begin();
  if (closed.num_under_way[static_cast<size_t>(place)] == 0) return;
  violate("rank " + std::to_string(rank) + " closes a communicator with transfers under way");
}

VirtualNet::Meeting& VirtualNet::meeting(const UnderWay& at) {
  Lane& lane = communicators_[at.communicator].lanes[at.lane];
  EDDY_CHECK(at.index >= lane.first && at.index - lane.first < lane.meetings.size())
      << "meeting " << at.index << " is over";
  return lane.meetings[at.index - lane.first];
}

void VirtualNet::check_match(const Meeting& meeting, const Part& added) {
  const Transfer& own = added.transfer;
  for (const Part& other : meeting.parts) {
    if (!other.has_started || &other == &added) continue;
    const Transfer& its = other.transfer;
    const bool is_alike =
        own.bytes == its.bytes &&
        (is_message(own) ? own.kind != its.kind : own.kind == its.kind && own.root == its.root) &&
        (own.kind != Kind::kReduce ||
         (own.element == its.element && own.reduction == its.reduction));
    if (is_alike) continue;
    return violate("rank " + std::to_string(added.rank) + " starts a " + name_of(own.kind) +
                   " of " + std::to_string(own.bytes) + " bytes where rank " +
                   std::to_string(other.rank) + " has started a " + name_of(its.kind) + " of " +
                   std::to_string(its.bytes));
  }
}

Status VirtualNet::start(uint32_t rank, const Transfer& transfer) {
  EDDY_CHECK(transfer.communicator < communicators_.size()) << "there is no such communicator";
  Communicator& communicator = communicators_[transfer.communicator];
  const size_t n = communicator.group.size();
  const auto found = std::ranges::find(communicator.group, rank);
  EDDY_CHECK(found != communicator.group.end()) << "rank " << rank << " is not in the group";
  UnderWay at{transfer.communicator, {kNone, kNone}, 0, 0};
  at.place = static_cast<uint32_t>(found - communicator.group.begin());
  if (transfer.kind == Kind::kSend) at.lane = {at.place, transfer.root};
  if (transfer.kind == Kind::kRecv) at.lane = {transfer.root, at.place};
  Lane& lane = communicator.lanes[at.lane];
  lane.num_started.resize(n, 0);
  at.index = lane.num_started[at.place]++;
  while (lane.first + lane.meetings.size() <= at.index) {
    lane.meetings.push_back({transfer.communicator, std::vector<Part>(n), 0});
  }
  Meeting& meeting = this->meeting(at);
  Part& part = meeting.parts[at.place];
  part.transfer = transfer;
  part.rank = rank;
  part.has_started = true;
  part.spoil = static_cast<uint8_t>(random_.below(256));
  check_match(meeting, part);
  part.sent_digest = digest(source(transfer), sent_bytes(transfer, n, at.place));
  auto* const receive = static_cast<std::byte*>(transfer.receive);
  const uint64_t received = received_bytes(transfer, n, at.place);
  for (uint64_t i = 0; i < received; ++i) receive[i] = spoilt_byte(part.spoil, i);
  ++communicator.num_under_way[at.place];
  ++num_transfers_;
  under_way_[rank].push_back(at);
  return Status::ok();
}

bool VirtualNet::may_complete(const UnderWay& at) {
  const Meeting& meeting = this->meeting(at);
  const Transfer& own = meeting.parts[at.place].transfer;
  switch (own.kind) {
    case Kind::kSend:
      return true;
    case Kind::kRecv:
      return meeting.parts[own.root].has_started;
    case Kind::kBroadcast:
      return meeting.parts[own.root].has_started;
    case Kind::kShift: {
      const auto n = static_cast<uint32_t>(meeting.parts.size());
      return meeting.parts[(at.place + n - own.root) % n].has_started;
    }
    default:
      return std::ranges::all_of(meeting.parts, [](const Part& part) { return part.has_started; });
  }
}

const std::byte* VirtualNet::sent(const Meeting& meeting, uint32_t place) {
  const Part& part = meeting.parts[place];
  if (part.is_complete) return part.kept.data();
  return static_cast<const std::byte*>(source(part.transfer));
}

void VirtualNet::combine(Meeting& meeting, uint32_t place) {
  const Transfer& own = meeting.parts[place].transfer;
  const auto count = static_cast<int64_t>(own.bytes / element_size_bytes(own.element));
  std::vector<TensorView> inputs;
  for (uint32_t i = 0; i < meeting.parts.size(); ++i) {
    inputs.push_back({const_cast<std::byte*>(sent(meeting, i)), &count, 1, own.element});
  }
  for (size_t i = inputs.size(); i > 1; --i) std::swap(inputs[i - 1], inputs[random_.below(i)]);
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.reduction = own.reduction;
  const TensorView output{own.receive, &count, 1, own.element};
  const Status status = run_collective(collective, {.inputs = inputs}, output);
  if (!status.is_ok()) violate(status.to_string());
}

// What the place receives.
void VirtualNet::give(Meeting& meeting, uint32_t place) {
  const Transfer& own = meeting.parts[place].transfer;
  auto* const receive = static_cast<std::byte*>(own.receive);
  const auto copy = [&](uint32_t from, uint64_t offset, uint64_t to) {
    const Transfer& its = meeting.parts[from].transfer;
    const uint64_t has = sent_bytes(its, meeting.parts.size(), from);
    if (own.bytes == 0 || offset + own.bytes > has) return;  // they do not match: it stays spoilt
    std::memcpy(receive + to, sent(meeting, from) + offset, own.bytes);
  };
  switch (own.kind) {
    case Kind::kAllGather:
    case Kind::kAllToAll:
      for (uint32_t i = 0; i < meeting.parts.size(); ++i) {
        if (i == place && own.skips_own) continue;
        copy(i, own.kind == Kind::kAllToAll ? place * own.bytes : 0, i * own.bytes);
      }
      return;
    case Kind::kBroadcast:
      if (place != own.root) copy(own.root, 0, 0);
      return;
    case Kind::kRecv:
      return copy(own.root, 0, 0);
    case Kind::kShift: {
      const auto n = static_cast<uint32_t>(meeting.parts.size());
      return copy((place + n - own.root) % n, 0, 0);
    }
    case Kind::kReduce: {
      const auto is_alike = [&](const Part& part) {
        return part.transfer.kind == own.kind && part.transfer.bytes == own.bytes &&
               part.transfer.element == own.element;
      };
      if (std::ranges::all_of(meeting.parts, is_alike)) combine(meeting, place);
      return;
    }
    default:
      return;
  }
}

void VirtualNet::complete(const UnderWay& at) {
  Meeting& meeting = this->meeting(at);
  Part& part = meeting.parts[at.place];
  const Transfer& own = part.transfer;
  const size_t n = meeting.parts.size();
  const std::string who = "rank " + std::to_string(part.rank) + ": a " + name_of(own.kind);
  const uint64_t bytes = sent_bytes(own, n, at.place);
  if (digest(source(own), bytes) != part.sent_digest) {
    violate(who + " sends what has changed since it started");
  }
  const auto* const receive = static_cast<const std::byte*>(own.receive);
  const uint64_t received = received_bytes(own, n, at.place);
  for (uint64_t i = 0; i < received; ++i) {
    if (receive[i] == spoilt_byte(part.spoil, i)) continue;
    violate(who + " receives where something else has been written");
    break;
  }
  give(meeting, at.place);
  const auto* const first = static_cast<const std::byte*>(source(own));
  if (bytes > 0) part.kept.assign(first, first + bytes);
  part.is_complete = true;
  ++meeting.num_complete;
  Communicator& communicator = communicators_[at.communicator];
  EDDY_DCHECK(communicator.num_under_way[at.place] > 0) << who << " completes twice";
  --communicator.num_under_way[at.place];
  Lane& lane = communicator.lanes[at.lane];
  const size_t needed = at.lane.first == kNone ? n : 2;
  while (!lane.meetings.empty() && lane.meetings.front().num_complete == needed) {
    lane.meetings.pop_front();
    ++lane.first;
  }
}

bool VirtualNet::poll(uint32_t rank, Transport::Progress& progress) {
  bool has_found = false;
  while (random_.below(8) >= options_.idle_of_8) {
    std::vector<size_t> able;
    for (size_t i = 0; i < under_way_[rank].size(); ++i) {
      if (may_complete(under_way_[rank][i])) able.push_back(i);
    }
    std::vector<uint32_t> senders;
    for (uint32_t from = 0; from < options_.num_ranks; ++from) {
      if (!messages_[rank][from].empty()) senders.push_back(from);
    }
    const size_t count = able.size() + senders.size();
    if (count == 0) return has_found;
    has_found = true;
    const size_t chosen = random_.below(count);
    if (chosen < able.size()) {
      const auto at = under_way_[rank].begin() + static_cast<ptrdiff_t>(able[chosen]);
      progress.done.push_back({meeting(*at).parts[at->place].transfer.token, Status::ok()});
      complete(*at);
      under_way_[rank].erase(at);
    } else {
      auto& queue = messages_[rank][senders[chosen - able.size()]];
      progress.messages.push_back({senders[chosen - able.size()], std::move(queue.front())});
      queue.pop_front();
    }
  }
  return has_found;
}

}  // namespace eddy
