// RunBase: what all parts of one run share: its executable and memory, how it is stopped, how far
// its loops and strands are, and the first failure.
//
// Errors: the first failure wins and carries the node's name and iteration path; it also stops
// the run (the runner sees the failed call).
// Threads: fail() and describe_strands() any, while the run goes on.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/device/strand_runner.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/values/loop_progress.h"

namespace eddy {

class RunBase {
 public:
  RunBase(const RunBase&) = delete;
  RunBase& operator=(const RunBase&) = delete;

  const Executable& executable() const { return executable_; }
  const Graph& graph() const { return executable_.graph(); }
  Allocator& allocator() { return allocator_; }

  // The node that a strand executes (for describe_strands()).
  std::atomic<uint32_t>& current_node(uint32_t strand);

  // Returns false, so that commands can `return run.fail(node, status)`. Nothing is noted on a
  // thread that has just refused to wait (no_waiting.h): all commands can be done again.
  bool fail(NodeId node, Status status);
  // Of a status that says where.
  bool fail(Status status);
  // The first failure: a node's, else the device's, with the node at which the strand stood.
  Status take_error();
  // A node's, while the run goes on; ok: none has failed.
  Status first_error() const;
  // A stop from outside, with the node at which it found the run: one in a loop, if there is one.
  Status found_at(Status stop) const;
  // The run has ended: it stands at no node.
  void forget_nodes();

  // The iteration of a loop that a node right inside it is at; tails may be one behind.
  int64_t iteration(NodeId loop, NodeId inner) const;
  // "decode[17]/attend/MatMul": names and current iteration numbers of the loops around a node.
  std::string iteration_path(NodeId node) const;
  // The same, of a kernel that was issued and perhaps has ended: `after` may have been counted
  // since, unless a device counts.
  std::string ended_path(NodeId node) const;
  // Nodes whose kernel or host function owes an answer that a strand waits for.
  std::vector<NodeId> owing_nodes(const StrandRunner& runner) const;
  // Where each strand is now and what it waits for, one line each.
  std::string describe_strands(const StrandRunner& runner) const;

  RunControl control;
  // What kernels that answer later see as their native stream, where the session's run has
  // something for them: communication is posted there. Set before the run is launched.
  void* answering_stream_or_null = nullptr;

 protected:
  RunBase(const Executable& executable, Allocator& allocator);
  ~RunBase() = default;

  // Each loop, before anything is asked of it.
  void watch(NodeId loop, LoopProgress& progress) { loops_[loop.index()] = &progress; }
  LoopProgress& progress(NodeId loop) const { return *loops_[loop.index()]; }
  // The node runs on a strand that counts its loop's iterations by itself.
  void set_tail(NodeId node, const LoopProgress::Tail& tail) { tails_[node.index()] = &tail; }
  void forget_errors();
  // Adds to a failure where the run is; `issued`: the node where the host stands; may be none.
  virtual void tell_where(Status& status, NodeId issued) const = 0;

 private:
  // The iteration of what a node right inside the loop was issued for last.
  int64_t issued_iteration(NodeId loop, NodeId inner) const;
  using IterationOf = int64_t (RunBase::*)(NodeId loop, NodeId inner) const;
  std::string path_of(NodeId node, IterationOf iteration_of) const;

  const Executable& executable_;
  Allocator& allocator_;
  std::vector<LoopProgress*> loops_;                               // by NodeId; null: no loop
  std::unordered_map<uint32_t, const LoopProgress::Tail*> tails_;  // by NodeId
  std::deque<std::atomic<uint32_t>> current_nodes_;
  mutable std::mutex mutex_;
  Status error_;  // under the mutex
};

}  // namespace eddy
