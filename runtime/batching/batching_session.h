// BatchingSession: a session whose requests share runs: samples of several requests are laid behind
// each other along one dimension, run once, and each request is given its part of the outputs.
//
//   Batching batching{.dimension = "N", .max_samples = 32, .wait_limit = 200us};
//   EDDY_ASSIGN_OR_RETURN(auto session, BatchingSession::load(library, path, {}, batching));
//   EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run({{"x", x}}));   // x: float[N,64]
//
// Where a model would mix samples, decide a loop or branch by them, or call a host function, it is
// refused, with the node (graph/compile/batch_axes.h). Custom operators need a rule (OpDef::batch).
//
// Which requests share a run: those of one priority whose inputs have equal types, other sizes and,
// where they are without the dimension, bytes. All others run alone, as Session::run() would; so do
// requests for traces or streamed rows, and those with more samples than one batch may have. When:
// as soon as a batch is full, or its first request has waited for `wait_limit`, and fewer than
// max_batches_in_flight run. Until then it takes further requests.
//
// Bits: kernels divide work by shape, so a sample's floating-point results may differ within
// rounding from those of a run alone, and with the number of samples beside it.
// Failures: what fails in a batch is run again, each request alone, so that it fails for the one
// whose fault it is; custom operators may thus see a sample twice. Other endings are not repeated.
//
// Errors: those of sessions (session.h). Threads: any. fork(): as fork_guard.h says. Cost: copies
// joined inputs and parts of outputs; a request that is alone in its batch pays for none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/api/session.h"

namespace eddy {

struct Batching {
  std::string dimension = {};  // a symbol of inputs that SessionOptions::dims leaves open
  int64_t max_samples = 32;    // of one batch
  // The longest that a batch waits for others after its first request; 0: it takes those that come
  // while it waits for its turn.
  std::chrono::nanoseconds wait_limit{0};
  uint32_t max_batches_in_flight = 2;
  // Called for each run, before it begins. Any thread; must not throw.
  std::function<void(size_t num_requests, int64_t num_samples)> on_batch = {};
};

class BatchQueue;
struct BatchRequest;

// Copies refer to the same request. May outlive its session. As RunHandle (run_handle.h).
class BatchHandle {
 public:
  Status wait();
  bool wait_for(std::chrono::nanoseconds timeout);
  bool is_done() const;
  // A stop, also by a timeout: a request that waits leaves its batch and ends at once; one whose
  // batch runs ends at once, too, and the others go on; the run is stopped when no request is left.
  // One that runs alone is stopped as a session's run is.
  void cancel();

 private:
  friend class BatchingSession;
  explicit BatchHandle(std::shared_ptr<BatchRequest> request) : request_(std::move(request)) {}
  std::shared_ptr<BatchRequest> request_;
};

class BatchingSession {
 public:
  // kInvalidArgument: no such dimension, or one that is fixed; a device of make_device, whose
  // runs would need a waiting thread (kUnsupported).
  static Result<std::unique_ptr<BatchingSession>> create(const Library& library, Graph graph,
                                                         const SessionOptions& options,
                                                         const Batching& batching);
  static Result<std::unique_ptr<BatchingSession>> load(const Library& library,
                                                       const std::string& path,
                                                       const SessionOptions& options,
                                                       const Batching& batching);
  // Waits for all requests and callbacks, and cancels nothing; what gathers goes at once. Not in a
  // callback (CHECK).
  ~BatchingSession();
  BatchingSession(const BatchingSession&) = delete;
  BatchingSession& operator=(const BatchingSession&) = delete;

  // What the batches run on: its inputs, outputs, plan, memory. Its own runs stand beside batches.
  Session& session();

  // Borrowed inputs stay unchanged until the request has ended. Shared outputs are one memory for
  // all requests of a batch; joined inputs and parts of outputs are plain memory, not counted by
  // memory_limit_bytes. max_runs_waiting bounds requests that wait for a batch or their callback.
  // A sync request may run its batch, and the wait of others with it.
  Result<NamedTensors> run(const NamedTensors& inputs, const RunOptions& options = {});
  // Callbacks come one after the other, on a thread of their own, and may wait for runs, but not
  // for their own handles (kWouldDeadlock).
  BatchHandle run_async(NamedTensors inputs, RunCallback callback, const RunOptions& options = {});

  // As Session's.
  void cancel_all();
  void close();

 private:
  explicit BatchingSession(std::shared_ptr<BatchQueue> queue);
  std::shared_ptr<BatchQueue> queue_;
};

}  // namespace eddy
