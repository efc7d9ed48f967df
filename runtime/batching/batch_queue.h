// BatchQueue: the requests of a BatchingSession, and the batches that they form. One mutex; each
// request is in one phase:
//
//   phase      leaves it when                                              for
//   kNew       it is submitted                                             kWaiting | kEnding
//   kWaiting   its batch has its turn                                      kRunning
//              it is stopped                                               kEnding
//   kRunning   its batch's run has ended, or it is stopped                 kEnding
//              that run has failed, and was others' too                    kWaiting, alone
//   kEnding    its callback has returned                                   kEnded
//
// A batch gathers until it is ready: full, due, or of a request that goes alone. A ready one still
// takes requests until its turn comes: by priority, then in the order of coming. What makes a turn
// free hands out the next: to a thread that waits for a request of the batch and has nothing else
// to do, which joins the inputs and helps to run it, else to itself, or from the scheduler's thread
// to a worker. Stops reach a joined batch at once; while inputs are being joined they are only
// noted, because callers' memory is read.
//
// Internal to runtime/batching. Ownership: shared by the session and its requests, so that a handle
// may ask after the session has gone; shut_down() gives back all but this. No lock is held while
// values are copied or users' functions called. Lock order: this mutex, then the scheduler's.
// Threads: any. Cost: O(1) for a request, beside its batch's run.
#pragma once

#include <array>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/api/callback_thread.h"
#include "runtime/api/deadline_timer.h"
#include "runtime/api/end_signal.h"
#include "runtime/api/fork_guard.h"
#include "runtime/api/session_runs.h"
#include "runtime/batching/batch_values.h"
#include "runtime/batching/batching_session.h"

namespace eddy {

struct Batch;
using BatchRef = std::shared_ptr<Batch>;
using RequestRef = std::shared_ptr<BatchRequest>;

struct BatchRequest {
  enum class Phase : uint8_t { kNew, kWaiting, kRunning, kEnding, kEnded };

  // Set before it is submitted.
  std::shared_ptr<BatchQueue> queue;
  NamedTensors owned;                       // a submitted request's inputs
  const NamedTensors* inputs_or_null = {};  // null: it has ended
  std::optional<SortedInputs> sorted;       // nullopt: it goes alone
  int64_t num_samples = 1;
  RunOptions options;
  RunCallback callback;
  bool has_callback = false;
  Deadline deadline;
  bool is_waited_for = false;  // a thread waits in run(), and may lead a batch
  DeadlineTimer timer;

  // Under the queue's mutex.
  Phase phase = Phase::kNew;
  StopReason stop = StopReason::kRunning;  // noted; while its batch is joined, or alone
  BatchRef batch;                          // while it waits or runs
  BatchRef to_lead;                        // by the thread that waits for it

  Result<NamedTensors> outcome = NamedTensors();  // of one without callback
  Status status;
  EndSignal signal;  // set: it has ended, or has a batch to lead
};

struct Batch {
  enum class Phase : uint8_t { kGathering, kReady, kJoining, kRunning };

  // Under the queue's mutex; with its turn, the requests stay as they are.
  Phase phase = Phase::kGathering;
  std::vector<RequestRef> requests;
  int64_t num_samples = 0;
  Priority priority = Priority::kNormal;
  std::string key;            // empty: it takes no more requests
  bool is_cancelled = false;  // with all others
  size_t num_left = 0;        // requests that have not ended
  std::optional<RunHandle> run;

  DeadlineTimer timer;  // armed under the mutex, disarmed where the batch is taken away

  bool is_alone() const { return requests.size() == 1; }
};

class BatchQueue : public std::enable_shared_from_this<BatchQueue> {
 public:
  struct Parts {
    std::shared_ptr<SharedThreads> threads;
    std::unique_ptr<Session> session;
    BatchValues values;
    Batching batching;
    uint32_t max_waiting = 0;
    std::function<void(std::string_view line)> log;
  };
  explicit BatchQueue(Parts parts);

  Session& session() { return *session_; }
  // A request of this queue, to be run or submitted once.
  RequestRef make_request(const RunOptions& options);
  Result<NamedTensors> run(const RequestRef& request);
  void submit(const RequestRef& request);
  void stop(const RequestRef& request, StopReason reason);
  void stop_all(bool is_closing);
  void close();
  // Whether this thread may wait for the request.
  Status check_wait(const BatchRequest& request);
  bool is_in_child() const { return fork_guard_->is_in_child(); }
  // Waits for all requests. Afterwards only stop() and check_wait() of ended ones are called.
  void shut_down();

 private:
  using Batches = std::vector<BatchRef>;

  Status arm(const RequestRef& request);
  Status enter(const RequestRef& request, Batches& turns);
  void add(const RequestRef& request);
  BatchRef batch_for(const RequestRef& request);
  BatchRef make_batch(const RequestRef& request, std::string key);
  void make_ready(const BatchRef& batch, bool is_first = false);
  void take_away(const BatchRef& batch);
  void take_turns(Batches& turns);
  void come_due(const std::weak_ptr<Batch>& batch);

  static RequestRef leader_or_null(const Batch& batch, const BatchRequest* own_or_null);
  void hand_out(const Batches& turns, bool may_run_here, const BatchRequest* own_or_null = nullptr);
  void run_on_worker(const BatchRef& batch);
  void run_batch(const BatchRef& batch, bool helps);
  void begin_run(const BatchRef& batch, bool helps);
  bool end_stopped(const BatchRef& batch);
  RunOptions options_of(const Batch& batch) const;
  void end_batch(const BatchRef& batch, Result<NamedTensors> outputs);
  static bool is_blamed(const Batch& batch, const Status& status);
  void finish_all(const Batch& batch, const std::vector<RequestRef>& ended,
                  const Result<NamedTensors>& outputs);
  Result<NamedTensors> part_of(const Batch& batch, int64_t begin, int64_t count,
                               const Result<NamedTensors>& outputs) const;

  void refuse(const RequestRef& request, const Status& why);
  void call_back(const RequestRef& request, Result<NamedTensors> outcome);
  void finish(const RequestRef& request, Result<NamedTensors> outcome);
  void complete(const RequestRef& request);
  void let_go();
  void wait_until_idle();
  bool may_wait() const;
  bool is_unused() const { return num_live_ == 0 && num_holds_ == 0; }

  std::shared_ptr<SharedThreads> threads_;
  const std::shared_ptr<const ForkGuard> fork_guard_;
  const BatchValues values_;
  const Batching batching_;
  const uint32_t max_waiting_;
  const std::function<void(std::string_view line)> log_;

  std::mutex mutex_;
  // Under the mutex.
  std::unordered_map<std::string, BatchRef> open_;              // that take more requests, by key
  std::array<std::list<BatchRef>, kNumPriorities> ready_ = {};  // the highest first
  std::list<BatchRef> in_flight_;
  size_t num_live_ = 0;     // requests that have not ended
  size_t num_running_ = 0;  // of these: of batches that have their turn
  size_t num_holds_ = 0;    // threads that use the queue beside requests
  bool is_closed_ = false;
  bool is_draining_ = false;
  std::condition_variable idle_;

  std::unique_ptr<SessionCallbacks> callbacks_;
  std::unique_ptr<Session> session_;
};

}  // namespace eddy
