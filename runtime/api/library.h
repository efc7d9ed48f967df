// Library: the operators, kernels and host functions that graphs of one program may use.
//
//   Library library;                                   // everything Eddy ships
//   library.add_operator(my_def, my_bind);             // custom operator with a kernel
//   library.add_host_function("stop?", fn);            // named predicate or selector
//   GraphBuilder b(library.ops());
//
// Sessions of one library that run the same model share what is compiled of it (shared_programs.h).
//
// Must outlive the graphs built from its table and the sessions that run them; do not add to it
// once a session uses it. Errors: kInvalidArgument for a second definition of the same thing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "ops/contract/pending_call.h"
#include "ops/contract/registry.h"

namespace eddy {

// Read-only views, valid during the call, in; the decision out: a predicate's 0 or 1, a
// selector's region. Runs exactly once for each decision, iterations of one loop in order, on a
// worker, or on the thread that called run() where the whole run is done there. It must not wait
// for a run of its own session (would deadlock).
using HostFunction = std::function<Result<int64_t>(std::span<const TensorView> inputs)>;

// The answer that such a function owes (ops/contract/pending_call.h).
class PendingDecision {
 public:
  PendingDecision(std::shared_ptr<PendingCall> call, std::function<Status(int64_t)> keep)
      : call_(std::move(call)), keep_(std::move(keep)) {}
  void complete(Result<int64_t> decision) { call_->complete(kept(std::move(decision))); }
  // The run has been stopped: it waits for the answer, so complete early.
  void on_stop(std::function<void()> function) { call_->on_stop(std::move(function)); }
  // Completes with the answer of `read`, once the file can be read without waiting.
  void complete_when_readable(int file, std::function<Result<int64_t>()> read) {
    call_->complete_when_readable(file, [keep = keep_, read = std::move(read)] {
      Result<int64_t> decision = read();
      return decision.is_ok() ? keep(*decision) : decision.take_status();
    });
  }

 private:
  Status kept(Result<int64_t> decision) const {
    return decision.is_ok() ? keep_(*decision) : decision.take_status();
  }
  std::shared_ptr<PendingCall> call_;
  std::function<Status(int64_t)> keep_;
};

// Answers later, from any thread, or before it returns: what its decision waits for holds up its
// own strand and nothing else. Views are valid until then. What is dropped without an answer fails.
using AsyncHostFunction =
    std::function<void(std::span<const TensorView> inputs, PendingDecision decision)>;

struct HostFunctionOptions {
  // Promises to return within microseconds and to wait for nothing: when the host drives a loop,
  // the function then runs on the scheduler thread itself, without a hand-off. A call that takes
  // longer than 100 µs is reported to the session's log hook.
  bool is_non_blocking = false;
};

class SharedPrograms;

class Library {
 public:
  Library();
  ~Library();

  const OpTable& ops() const { return ops_; }
  const KernelRegistry& cpu_kernels() const { return cpu_kernels_; }
  // Of its sessions; has a lock of its own.
  SharedPrograms& shared_programs() const { return *shared_programs_; }
  struct NamedHostFunction {
    HostFunction function;  // or
    AsyncHostFunction async = {};
    HostFunctionOptions options = {};
  };
  const NamedHostFunction* host_function_or_null(const std::string& name) const;

  // `bind` may be empty for an operator that only shape rules and other devices know. Where the
  // shape rule, `bind` or a kernel throws, making the session or the run fails with its message.
  Status add_operator(OpDef def, BindFunction bind);
  // For nodes of operator eddy.HostPredicate with attribute name = `name`.
  Status add_host_function(std::string name, HostFunction function,
                           HostFunctionOptions options = {});
  Status add_async_host_function(std::string name, AsyncHostFunction function);

 private:
  OpTable ops_;
  KernelRegistry cpu_kernels_;
  std::map<std::string, NamedHostFunction> host_functions_;  // addresses are stable
  const std::unique_ptr<SharedPrograms> shared_programs_;
};

}  // namespace eddy
