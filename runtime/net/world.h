// World: the ranks of one job as one of them sees them: its transport, under a lock, and what is to
// be done when transfers complete and messages come.
//
//   options.ranks.world = World::open(std::move(transport));   // of as many sessions as wanted
//
// Sessions poll it: each by its scheduler, and for a moment a thread that has just posted. Commands
// that only launch and wait need nothing else.
//
// Inside runtime/net, everything that ranks share on this side is done in a Turn: the lock, and
// calls that are made once it is released, in order, as they may go on with a run.
//
// Errors: a failure of the transport loses the world, and so does a rank that does not answer:
// health() says why, for good, and sessions end their runs with it; nothing is started or polled
// afterwards. A busy rank answers, as its scheduler polls.
// Threads: any. A Turn is one thread's; it is not nested. Cost: a Turn is a lock, 20 ns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "runtime/net/rank_message.h"
#include "runtime/net/transport.h"

namespace eddy {

struct WorldOptions {
  // How long a thread that has started an operation looks for its end before it does something
  // else; where bytes move, this core copies them while it looks, so longer (rank_run.cc). More
  // than a thread takes to wake that has left: else ranks that have left once, and are therefore
  // late, make each other leave in every turn of a loop.
  std::chrono::nanoseconds spin = std::chrono::microseconds(200);
  // While runs are under way: a rank that says nothing for so long is asked where it is, and
  std::chrono::nanoseconds ask = std::chrono::seconds(1);
  // one that then does not answer for so long is lost, and the world with it.
  std::chrono::nanoseconds stall = std::chrono::seconds(30);
};

class World {
 public:
  // Of a thread that polls again and again, for a moment.
  class Watch;
  // What the room's own parts do with what comes.
  class TransferOwner;
  class SessionEnd;
  class Turn;

  static std::shared_ptr<World> open(std::unique_ptr<Transport> transport,
                                     const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t num_ranks() const { return num_ranks_; }
  const std::string& carrier() const { return carrier_; }  // "Open MPI 4.1.4"
  std::chrono::nanoseconds spin() const { return options_.spin; }
  // Transport::can_reduce.
  bool can_reduce(ElementType element, RankReduction reduction, size_t num_places) const {
    return transport_->can_reduce(element, reduction, num_places);
  }
  Status health() const;

  // Moves on what is under way. True: something came. Where another thread does, or watches, false
  // at once: a scheduler that polled beside it would take its processor and its news.
  bool poll();
  // How late poll() may come (PollSet::Slack): 0 where a transfer or an agreement is under way and
  // no thread watches, but for kBusySlack where `is_busy`, because every worker computes: nothing
  // that waits for it could go on. Nothing where there is no session. Else what may come is that
  // another rank begins a run, or stops this one: kLateWord, which doubles to kLatestWord where
  // `is_busy` and nothing comes, as each poll takes some 15 µs of a processor that computes. Wakers
  // are called when that changes to less.
  static constexpr std::chrono::nanoseconds kBusySlack = std::chrono::microseconds(100);
  static constexpr std::chrono::nanoseconds kLateWord = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds kLatestWord = std::chrono::milliseconds(8);
  std::optional<std::chrono::nanoseconds> slack(bool is_busy);
  void add_waker(const void* key, std::function<void()> waker);
  void remove_waker(const void* key);

  // Ends the job of all ranks, where these are processes. For commands.
  void abort(int exit_code);

 private:
  using Clock = std::chrono::steady_clock;

  World(std::unique_ptr<Transport> transport, const WorldOptions& options);
  bool poll_once();
  void wake();
  void lose(Turn& turn, Status status);
  void deliver(Turn& turn, const Transport::Message& message);
  void want(int change);
  void expect(int change);
  void hurry();
  void look_for_silence(Turn& turn);

  const std::unique_ptr<Transport> transport_;
  const uint32_t rank_, num_ranks_;
  const std::string carrier_;
  const WorldOptions options_;
  // slack() stores may_be_late_ before it reads the numbers, and what raises these reads it after:
  // all sequentially consistent, so that one of both sees the other.
  std::atomic<int64_t> num_wants_{0};
  std::atomic<int64_t> num_soon_{0};  // transfers, and runs that agree
  std::atomic<int64_t> num_computing_{0};
  std::atomic<bool> may_be_late_{false};
  std::atomic<uint32_t> num_quiet_{0};  // late polls since something came

  mutable std::mutex mutex_;
  // Under the mutex.
  Status health_;
  uint64_t next_token_ = 1;
  uint64_t next_session_ = 0;
  std::unordered_map<uint64_t, TransferOwner*> transfers_;  // by token
  std::map<uint64_t, SessionEnd*> sessions_;                // by number
  struct Early {
    uint32_t from = 0;
    RankMessage message;
  };
  std::map<uint64_t, std::vector<Early>> early_;  // of sessions that this rank has yet to make
  std::map<std::vector<uint32_t>, uint32_t> num_opened_;  // by group
  Transport::Progress progress_;
  // Of other ranks: when a message came last, and since when an answer is owed.
  std::vector<Clock::time_point> last_message_;
  std::vector<std::optional<Clock::time_point>> asked_;
  Clock::time_point looked_;  // for silence, last
  uint32_t num_idle_polls_ = 0;
  size_t num_runs_ = 0;  // under way

  std::mutex wakers_mutex_;
  std::map<const void*, std::function<void()>> wakers_;  // under its mutex

  // A watch orders nothing, and what polls instead is only late.
  std::atomic<int> num_watches_{0};
  std::atomic<bool> was_left_{false};  // by a watch, so that polling is urgent again
};

class World::Watch {
 public:
  explicit Watch(World& world) : world_(world) { world.num_watches_.fetch_add(1); }
  ~Watch() {
    world_.num_watches_.fetch_sub(1);
    if (has_left_) {
      world_.was_left_.store(true, std::memory_order_relaxed);
      world_.wake();
    } else {
      world_.hurry();
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool poll() { return world_.poll_once(); }
  // What this thread has waited for is for others to see; they are woken when the watch ends.
  void leave() { has_left_ = true; }

 private:
  World& world_;
  bool has_left_ = false;
};

// Whose transfer it is; stays until it is done.
class World::TransferOwner {
 public:
  // `status` not ok: the world is lost.
  virtual void on_done(Turn& turn, uint64_t token, const Status& status) = 0;

 protected:
  ~TransferOwner() = default;
};

// This rank's end of a session of the world.
class World::SessionEnd {
 public:
  virtual void on_message(Turn& turn, uint32_t from, RankMessage message) = 0;
  virtual void on_lost(Turn& turn, const Status& why) = 0;

 protected:
  ~SessionEnd() = default;
};

class World::Turn {
 public:
  explicit Turn(World& world) : world_(world), lock_(world.mutex_) {}
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  World& world() { return world_; }
  const Status& health() const { return world_.health_; }
  // Once the lock is released.
  void defer(std::function<void()> call) { calls_.push_back(std::move(call)); }

  // The transfer's token, which its owner gets when it is done. 0: the world is lost, and all
  // sessions know.
  uint64_t start(Transfer transfer, TransferOwner& owner);
  void send(uint32_t to, const RankMessage& message);
  // The next number of a session; it gets messages from now on, those that came early at once.
  uint64_t add_session(SessionEnd& end);
  void remove_session(uint64_t number);
  // May wait for the other ranks of the group, which open theirs in the same order.
  Result<uint32_t> open(std::span<const uint32_t> group);
  void close(uint32_t communicator);
  // The world is polled while there are more than none.
  void want(int change) { world_.want(change); }
  // How many runs await a message of another rank, and how many compute and await none: slack().
  void expect(int change) { world_.expect(change); }
  void compute(int change) { world_.num_computing_.fetch_add(change); }
  // While a run is under way, ranks that say nothing are asked where they are.
  void begin_run();
  void end_run() {
    EDDY_DCHECK(world_.num_runs_ > 0) << "more runs end than have begun";
    --world_.num_runs_;
  }

 private:
  friend class World;
  Turn(World& world, std::unique_lock<std::mutex> lock) : world_(world), lock_(std::move(lock)) {}

  World& world_;
  std::unique_lock<std::mutex> lock_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace eddy
