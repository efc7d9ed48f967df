// Session: a graph made ready to run, and its runs.
//
//   Library library;
//   EDDY_ASSIGN_OR_RETURN(auto session, Session::load(library, "model.onnx", {}));
//   EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run({{"x", x}}));
//
// Creating a session plans the graph, proves the plan, chooses kernels and packs constants, once.
//   prepare    a Call (call.h): inputs and outputs bound by index, to run again and again; the
//              hottest paths: no look-ups, no allocation, results in the caller's memory.
//   run        one such run, with inputs by name, waited for. On an idle CPU session with a
//              one-stream plan it runs on the calling thread, without any hand-off.
//   run_async  the same, submitted: the callback is called exactly once, also when the run fails,
//   run_on     is cancelled or passes its deadline: on the callback thread, or on one that waits
//              for the run's handle. A session's callbacks come one after the other.
//
// Inputs may be borrowed memory; they are never written and must stay alive and unchanged until
// the run ends. Where it is not aligned to the element's size the run reads a copy. A run takes
// memory of the session's when it has its turn.
// Errors: kInvalidArgument (input missing, unknown, of wrong type or shape: which, expected,
// found), kUnsupported (operator or type without kernel, by name, when creating), kCancelled,
// kDeadlineExceeded, kResourceExhausted, kRunFailed with the node's name and iteration path. The
// session stays usable. Threads: everything may be called from any thread, host functions and
// callbacks included, except waiting there for a run of the same session, and in host functions for
// a run of a session that shares its threads (kWouldDeadlock).
// fork(): see fork_guard.h. Destruction waits for runs in flight, and cancels nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/base/fingerprint.h"
#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"
#include "runtime/api/call.h"
#include "runtime/api/library.h"
#include "runtime/api/run_handle.h"
#include "runtime/api/session_options.h"
#include "runtime/api/session_report.h"
#include "runtime/api/tensor.h"

namespace eddy {

struct SessionCore;

class Session {
 public:
  // From a graph built with library.ops().
  static Result<std::unique_ptr<Session>> create(const Library& library, Graph graph,
                                                 const SessionOptions& options);
  // Of a graph that several sessions are made of, as Graph::copy(): `given`, graph_fingerprint() of
  // it (program_fingerprint.h), stands for the constants, which are not read for it again.
  static Result<std::unique_ptr<Session>> create(const Library& library, Graph graph,
                                                 const Fingerprint& given,
                                                 const SessionOptions& options);
  // From an ONNX file or a saved plan (saved_plan.h).
  static Result<std::unique_ptr<Session>> load(const Library& library, const std::string& path,
                                               const SessionOptions& options);
  // From the bytes of one, which are copied.
  static Result<std::unique_ptr<Session>> load_bytes(const Library& library,
                                                     std::span<const std::byte> bytes,
                                                     const SessionOptions& options);
  // The graph that create() would plan: simplified, and changed as the options ask for. On the CPU
  // a session of it, with these options but without those that change graphs, runs the same
  // kernels.
  static Result<Graph> graph_to_run(const Library& library, Graph graph,
                                    const SessionOptions& options);
  // Waits for runs in flight; close() first to cancel them. In a callback of its own, which may
  // hold the last reference, it does not wait: the session goes as soon as its last run has ended,
  // before that run's handle is done. In a host function that its runs wait for it is a programmer
  // error (CHECK).
  ~Session();

  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

  Result<NamedTensors> run(const NamedTensors& inputs, const RunOptions& options = {});
  // The same by places among inputs() and outputs(), and of the outputs that are wanted alone.
  struct Given {
    size_t input = 0;
    const Tensor* value = nullptr;
  };
  // `into` has a place for each, left as it is where the run fails.
  Status run_at(std::span<const Given> inputs, std::span<const size_t> wanted,
                std::span<Tensor> into, const RunOptions& options = {});
  // The place of that name, or the error of run() for none.
  Result<size_t> find_input(std::string_view name) const;
  RunHandle run_async(NamedTensors inputs, RunCallback callback, const RunOptions& options = {});
  // As run_async, in the order of a stream of this session's device: the run starts once all that
  // was issued to the stream before has run, and what is issued afterwards runs after the run has
  // ended, however it ends. Borrowed inputs may be written by work in front. The stream belongs
  // to the caller, goes before the session, and is issued to by one thread at a time. It may go
  // once the handles of its runs have been waited for: what is still queued is waited for then.
  // To destroy it before a run has ended is a programmer error (CHECK).
  Result<std::unique_ptr<Stream>> create_stream();
  // A driver's stream of the first device beside the host's (a cudaStream_t) as one for run_on: it
  // stays the caller's and outlives what is returned, through which alone it is issued to
  // meanwhile; it is not captured before its runs have ended.
  Result<std::unique_ptr<Stream>> adopt_stream(void* native_stream);
  RunHandle run_on(Stream& stream, NamedTensors inputs, RunCallback callback,
                   const RunOptions& options = {});
  Result<std::unique_ptr<Call>> prepare(TraceRecorder* trace_or_null = nullptr);

  // Cancels every run in flight or waiting for its turn or stream. Safe in signal-handling threads,
  // not in signal handlers.
  void cancel_all();
  // Cancels, waits for the runs in flight and refuses new ones with kCancelled; the last callback
  // has returned then. Overdue runs (RunOptions::on_overdue) are not waited for. Inside a callback
  // or host function of this session, or a host function of one that shares its threads, it does
  // not wait.
  void close();

  // Gives back what is kept for runs to come: run states with their arenas, streams and recordings
  // (as many as runs were in flight at once), and memory that the device caches. Runs in flight and
  // Calls keep theirs; the next runs make theirs anew. Any thread, at any time.
  void trim();

  // Which nodes run on which device, which on the CPU and why; empty without further devices.
  std::string placement_text() const;
  // Where each run in flight stands: node, iteration path, what it waits for; one line each.
  std::string describe_runs() const;
  // Right now; none in a forked child.
  RunCounts run_counts() const;
  // Every loop and how it is driven, with the iterations of the successful run that ended last (0
  // before).
  std::vector<LoopReport> loop_reports() const;
  // Iterations of all loops in all runs that have ended, stopped ones too; of a loop that a device
  // drives inside another, those of its last time in each run.
  uint64_t num_iterations() const;
  // Of every operator of the graph as it runs, by name; without times_operators: none.
  std::vector<OperatorTime> operator_times() const;
  // Every branch beside a device that can decide, what decides it and why; iterations 0. Where the
  // device may, the host still does when no graph could be captured.
  const std::vector<LoopReport>& branch_reports() const;
  // The graph as it runs (simplified), by default without the bytes of constants that
  // kernels have packed, and its plan.
  const Graph& graph() const;
  const Plan& plan() const;
  // Tensors of all runs, held by the session and by results that callers keep.
  MemoryStatistics memory() const;
  // 32 digits for all that decides the bits of results beside the inputs: plan, constants, kernels,
  // library versions, processor (runtime/api/program_fingerprint.h). Equal fingerprints mean equal
  // bits, in every process.
  const std::string& fingerprint() const;
  // Scratch memory of one run's kernels as far as known before it: one slab for each strand.
  size_t workspace_bytes() const;
  int num_workers() const;  // of the device
  // Nanoseconds that planning (with simplification and proof) took.
  int64_t plan_ns() const;

 private:
  explicit Session(std::unique_ptr<SessionCore> core);
  std::unique_ptr<SessionCore> core_;
};

}  // namespace eddy
