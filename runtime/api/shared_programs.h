// SharedPrograms: what the sessions of one model have in common, made once: the graph as it runs,
// its plan, its constants, and its kernels with the weights that they have packed.
//
// A library has one. make_session_core looks a program up before it compiles one, and offers what
// it has compiled. The key is program_key(): the graph as given, with its names and the bytes of
// its constants, and each option that has an influence on what is compiled. A fingerprint separates
// what differs by accident; two models that were made to have equal ones would be taken for one.
//
// Ownership: sessions own programs; this refers to them weakly, so a program goes with the last
// session that runs it. It keeps the model file of the first mapped, which must not change
// meanwhile. Threads: any. Nothing is compiled while the lock is held, and no thread waits for
// another's compilation, because that may call functions of the user: of two threads that compile
// the same at once the second takes the program of the first and drops its own. A child process
// shares nothing through an object that its parent made (fork_guard.h). Cost: O(log) a look-up;
// program_key hashes names and options, some 50 ns each.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "graph/base/fingerprint.h"
#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"
#include "runtime/api/fork_guard.h"
#include "runtime/api/session_options.h"
#include "runtime/execute/bound_kernels.h"

namespace eddy {

struct CompiledProgram {
  Graph graph;  // constants that kernels have packed have let go of their bytes
  Plan plan = {};
  Fingerprint made = {};  // of the graph, with what it was made of
  // Null: sessions can't share it (Executable::shared_kernels_or_null).
  std::shared_ptr<const BoundKernels> kernels = {};
  // Keys hold their addresses.
  std::shared_ptr<const CostTable> costs = {};
  std::shared_ptr<const FluidMachine> machine = {};
};

class SharedPrograms {
 public:
  std::shared_ptr<const CompiledProgram> find_or_null(const std::string& key);
  // The program that sessions of this key share from now on: this one, or an earlier one.
  std::shared_ptr<const CompiledProgram> offer(const std::string& key,
                                               std::shared_ptr<const CompiledProgram> program);
  // That a session still runs.
  size_t size();

 private:
  const ForkGuard fork_guard_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const CompiledProgram>> programs_;  // under the mutex
};

// `given`, which is graph_fingerprint(graph), with the graph's names.
Fingerprint named_fingerprint(const Fingerprint& given, const Graph& graph);
// `named`: that. `num_workers`: of the host, for which plans are made.
std::string program_key(const Fingerprint& named, const SessionOptions& options, int num_workers);

}  // namespace eddy
