// GradientReport: what a gradient has made of a graph, and what of the forward pass it reads.
//
// Costs nothing when the graph runs: it is for users and tests. Cost: O(what is read).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/differentiate/kept_values.h"
#include "graph/ir/graph.h"

namespace eddy {

struct GradientOutput {
  std::string parameter;  // the input or initializer
  std::string output;     // "w.grad"
  bool is_initializer = false;
};

enum class KeptClass : uint8_t {
  kCaptured,  // read where it is, outside of all loops and branches
  kDerived,   // made again of what is there
  kRow,       // one of a tensor of rows
  kPushed,    // on a tape
  kState      // a row or pushed; other values of the iteration are made again from it
};
const char* to_string(KeptClass kind);

struct KeptReport {
  std::string path;   // of the region
  std::string value;  // its name, or its producer's, or a loop's value of another place
  std::string type;   // "float[16]"; of an iteration
  const char* how;    // "value", "shape", "trips", "iteration"
  KeptClass kind;
  // That an iteration or branch takes of memory for it; none: types don't say.
  std::optional<int64_t> bytes;
  bool is_of_inner_loop = false;  // what a loop in the region stacked of it
  std::string why;
};

struct LoopSaving {
  std::string path;
  std::string policy;  // "all", "every:100"
  std::string why;     // where another one was asked for
  // Kept of each iteration: rows and what is pushed, those of inner loops left out; with segments
  // of each iteration of one segment. Beside it the state, of each iteration or segment. None:
  // types don't say.
  std::optional<int64_t> bytes_per_iteration;
  std::optional<int64_t> state_bytes;
};

struct GradientReport {
  std::vector<GradientOutput> gradients;  // in the order of outputs
  std::vector<KeptReport> kept;           // by region; none of the root's
  std::vector<LoopSaving> loops;          // those that hand adjoints back
  size_t num_forward_nodes = 0;
  size_t num_backward_nodes = 0;
};

// Without the numbers of nodes. `wrt`: values of `graph`, the source.
GradientReport make_gradient_report(const Graph& graph, const KeptValues& kept,
                                    const Activity& activity, const std::vector<ValueId>& wrt,
                                    const std::string& suffix);

// Adds to a run's failure for want of memory what the loop around the failing node keeps, and how
// it keeps less; other failures stay as they are. Of a graph that has a gradient in it, however
// it was made: by its loops that run back. `inputs`: the shapes that the run was given, where types
// have symbols.
Status with_saving_advice(Status status, const Graph& gradient,
                          const std::map<std::string, Dims>& inputs = {});

}  // namespace eddy
