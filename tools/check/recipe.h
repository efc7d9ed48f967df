// Recipe: a random graph as plain data, before it is a graph: what the generator makes, what
// shrinking cuts down, and what build() turns into nodes.
//
// A recipe is a tree of blocks. Variables have a kind and are numbered through the whole recipe;
// a step reads variables made before it in its own block or in a block around it.
//
//   words   int64 tensor of rank 1 of a length that the data decide (0 too)
//   count   int64 scalar          floats  float[4]
//   list    sequence of words       maybe   optional of words
//
// Every recipe that generator and shrinking make builds: a failure of build() is a defect.
// Cost: O(steps).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"

namespace eddy::check {

enum class Kind : uint8_t { kWords, kCount, kFloats, kList, kMaybe };
inline constexpr int kNumKinds = 5;

enum class Form : uint8_t {
  kMix,
  kMixInPlace,
  kTwins,
  kResize,
  kRow,
  kAppend,
  kKeepLast,  // make words
  kIdentity,
  kReshape,
  kUnsqueeze,  // aliases
  kTrips,
  kSize,
  kChoose,
  kLength,  // make counts
  kAddFloats,
  kMulFloats,
  kTanh,
  kMatMul,
  kMaxFloats,
  kFloats,  // make floats
  kInsert,
  kErase,
  kFold,
  kAt,  // lists
  kSome,
  kNothing,
  kHas,
  kGetOr,  // optionals; what one holds, or else the second operand
  kWhile,
  kCase
};

using Var = uint32_t;
struct Step;

struct Block {
  std::vector<Var> parameters;
  std::vector<Step> steps;
  std::vector<Var> results;
};

// kWhile: reads = initial...; blocks = before, after; makes = forwarded..., stacked scans...
//         before: (iteration, carried...) -> forwarded...; its last node is Go on `go_reads`
//         after: (iteration, forwarded...) -> carried..., rows (words of 3 elements)
// kCase:  reads = pass-through... or none; blocks = branches; the selector is a Pick on `go_reads`.
struct Step {
  Form form = Form::kMix;
  uint64_t id = 0;
  std::vector<Var> reads = {};
  std::vector<Var> makes = {};
  std::vector<Block> blocks = {};

  std::vector<Var> go_reads = {};              // what decides
  std::vector<int64_t> choices = {};           // kTrips, kWhile: trip counts
  int64_t early = 0;                           // kWhile: leaves early one time in `early`; 0: never
  std::vector<Var> limit = {};                 // kWhile: none or one count, the trip limit
  uint32_t num_scans = 0;                      // kWhile
  int32_t default_region = -1;                 // kCase
  ElementType selector = ElementType::kInt64;  // kCase
  int64_t low = 0;                             // kCase: the selector is in low .. low + range - 1
  int64_t range = 0;
};

// The root's parameters are the inputs; its results the outputs. Names: "in0", "out0", ...
struct Recipe {
  Block root;
  std::vector<Kind> kinds;  // by variable
  uint64_t seed = 0;        // that made it; inputs are made from it
};

Result<Graph> build(const Recipe& recipe, const Library& library);

// Deterministic inputs: `variant` 0, 1, ... gives other lengths and contents.
NamedTensors make_inputs(const Recipe& recipe, uint64_t variant);

}  // namespace eddy::check
