#include "runtime/net/world.h"

#include <utility>

#include "graph/base/check.h"

namespace eddy {

std::shared_ptr<World> World::open(std::unique_ptr<Transport> transport,
                                   const WorldOptions& options) {
  EDDY_CHECK(transport != nullptr) << "a world without a transport";
  return std::shared_ptr<World>(new World(std::move(transport), options));
}

World::World(std::unique_ptr<Transport> transport, const WorldOptions& options)
    : transport_(std::move(transport)),
      rank_(transport_->rank()),
      num_ranks_(transport_->num_ranks()),
      carrier_(transport_->describe()),
      options_(options),
      last_message_(num_ranks_),
      asked_(num_ranks_) {
  EDDY_CHECK(rank_ < num_ranks_) << "rank " << rank_ << " of " << num_ranks_;
}

World::~World() {
  EDDY_CHECK(sessions_.empty()) << "a world goes before its sessions";
  EDDY_DCHECK(num_soon_ == 0 && num_computing_ == 0)
      << num_soon_ << " things are awaited, " << num_computing_ << " runs compute";
}

Status World::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void World::abort(int exit_code) {
  const std::lock_guard lock(mutex_);
  transport_->abort(exit_code);
}

void World::want(int change) {
  const int64_t before = num_wants_.fetch_add(change);
  EDDY_DCHECK(before + change >= 0) << "more sessions have gone than came";
  if (before == 0) wake();
}

void World::expect(int change) {
  num_soon_.fetch_add(change);
  if (change > 0) hurry();
}

// Wakes the schedulers that slack() has let be late. A thread that watches polls in their place.
void World::hurry() {
  if (num_soon_.load() == 0 || num_watches_.load() > 0) return;
  if (may_be_late_.load() && may_be_late_.exchange(false)) wake();
}

std::optional<std::chrono::nanoseconds> World::slack(bool is_busy) {
  if (num_wants_.load() == 0) return std::nullopt;
  may_be_late_.store(true);
  if (num_watches_.load() > 0) return kLateWord;
  if (num_soon_.load() > 0) return is_busy ? kBusySlack : std::chrono::nanoseconds(0);
  if (num_computing_.load() == 0) return std::chrono::nanoseconds(0);
  if (!is_busy) return kLateWord;
  const uint32_t num_quiet = num_quiet_.fetch_add(1, std::memory_order_relaxed);
  return std::min(kLateWord * (1 << std::min(num_quiet, 16U)), kLatestWord);
}

void World::wake() {
  const std::lock_guard lock(wakers_mutex_);
  for (const auto& [key, waker] : wakers_) waker();
}

void World::add_waker(const void* key, std::function<void()> waker) {
  const std::lock_guard lock(wakers_mutex_);
  wakers_[key] = std::move(waker);
}

void World::remove_waker(const void* key) {
  const std::lock_guard lock(wakers_mutex_);
  wakers_.erase(key);
}

bool World::poll() {
  if (num_watches_.load(std::memory_order_relaxed) > 0) return false;
  const bool was_left = was_left_.load(std::memory_order_relaxed) && was_left_.exchange(false);
  return poll_once() || was_left;
}

bool World::poll_once() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !health_.is_ok()) return false;
  Turn turn(*this, std::move(lock));
  progress_.done.clear();
  progress_.messages.clear();
  if (!transport_->poll(progress_)) {
    if (++num_idle_polls_ % 32 == 0) look_for_silence(turn);
    return !health_.is_ok();
  }
  num_quiet_.store(0, std::memory_order_relaxed);
  for (Transport::Progress::Done& done : progress_.done) {
    const auto found = transfers_.find(done.token);
    if (found == transfers_.end()) {
      lose(turn, device_lost("its carrier names a transfer as done that it was not given"));
      return true;
    }
    if (!done.status.is_ok()) {
      lose(turn, std::move(done.status));
      return true;
    }
    TransferOwner* const owner = found->second;
    transfers_.erase(found);
    expect(-1);
    owner->on_done(turn, done.token, Status::ok());
    if (!health_.is_ok()) return true;
  }
  for (const Transport::Message& message : progress_.messages) {
    deliver(turn, message);
    if (!health_.is_ok()) return true;
  }
  return true;
}

void World::deliver(Turn& turn, const Transport::Message& message) {
  Result<RankMessage> read = read_message(message.bytes);
  if (!read.is_ok() || message.from >= num_ranks_) {
    const std::string from = "rank " + std::to_string(message.from) + ": ";
    return lose(turn, device_lost(from + "a message is spoilt, or of another version of Eddy"));
  }
  last_message_[message.from] = Clock::now();
  asked_[message.from].reset();
  if (read->kind == RankMessage::Kind::kHere) return;
  if (read->kind == RankMessage::Kind::kWhere) {
    return turn.send(message.from, {.kind = RankMessage::Kind::kHere});
  }
  const uint64_t number = read->session;
  const auto found = sessions_.find(number);
  if (found != sessions_.end()) {
    found->second->on_message(turn, message.from, std::move(*read));
  } else if (number >= next_session_) {
    early_[number].push_back({message.from, std::move(*read)});
  }
}

void World::look_for_silence(Turn& turn) {
  const Clock::time_point now = Clock::now();
  if (num_runs_ == 0 || now - looked_ < options_.ask / 4) return;
  // What others have said meanwhile has yet to be read.
  const bool was_away = now - looked_ > 2 * options_.ask;
  looked_ = now;
  for (uint32_t r = 0; r < num_ranks_ && health_.is_ok(); ++r) {
    if (r == rank_) continue;
    if (was_away) last_message_[r] = now;
    if (was_away && asked_[r]) asked_[r] = now;
    if (asked_[r] && now - *asked_[r] >= options_.stall) {
      const auto s = std::chrono::duration_cast<std::chrono::milliseconds>(now - *asked_[r]);
      return lose(turn, device_lost("rank " + std::to_string(r) + " has not answered for " +
                                    std::to_string(s.count()) + " ms"));
    }
    if (asked_[r] || now - last_message_[r] < options_.ask) continue;
    asked_[r] = now;
    turn.send(r, {.kind = RankMessage::Kind::kWhere});
  }
}

void World::lose(Turn& turn, Status status) {
  if (!health_.is_ok()) return;
  health_ = device_lost("the world of ranks is lost: " + status.message());
  auto transfers = std::exchange(transfers_, {});
  for (const auto& [token, owner] : transfers) {
    expect(-1);
    owner->on_done(turn, token, health_);
  }
  for (const auto& [number, session] : sessions_) session->on_lost(turn, health_);
}

World::Turn::~Turn() {
  lock_.unlock();
  for (const std::function<void()>& call : calls_) call();
}

uint64_t World::Turn::start(Transfer transfer, TransferOwner& owner) {
  if (!world_.health_.is_ok()) return 0;
  const uint64_t token = transfer.token = world_.next_token_++;
  if (Status status = world_.transport_->start(transfer); !status.is_ok()) {
    world_.lose(*this, std::move(status));
    return 0;
  }
  world_.transfers_[token] = &owner;
  world_.expect(1);
  return token;
}

void World::Turn::send(uint32_t to, const RankMessage& message) {
  if (!world_.health_.is_ok()) return;
  EDDY_DCHECK(to < world_.num_ranks_) << "a message for rank " << to;
  Status status = world_.transport_->send_message(to, write_message(message));
  if (!status.is_ok()) world_.lose(*this, std::move(status));
}

uint64_t World::Turn::add_session(SessionEnd& end) {
  const uint64_t number = world_.next_session_++;
  world_.sessions_[number] = &end;
  auto early = world_.early_.extract(number);
  if (early.empty()) return number;
  for (Early& each : early.mapped()) end.on_message(*this, each.from, std::move(each.message));
  return number;
}

void World::Turn::begin_run() {
  if (world_.num_runs_++ > 0) return;
  world_.last_message_.assign(world_.num_ranks_, Clock::now());
  world_.asked_.assign(world_.num_ranks_, std::nullopt);
}

void World::Turn::remove_session(uint64_t number) {
  EDDY_DCHECK(world_.sessions_.contains(number)) << "session " << number << " goes twice";
  world_.sessions_.erase(number);
}

Result<uint32_t> World::Turn::open(std::span<const uint32_t> group) {
  if (!world_.health_.is_ok()) return world_.health_;
  const std::vector<uint32_t> key(group.begin(), group.end());
  Result<uint32_t> opened = world_.transport_->open(group, world_.num_opened_[key]++);
  if (!opened.is_ok()) world_.lose(*this, opened.status());
  return opened;
}

void World::Turn::close(uint32_t communicator) {
  if (world_.health_.is_ok()) world_.transport_->close(communicator);
}

}  // namespace eddy
