// CostTable: what operators were measured to cost, by (operator, shapes, device).
//
// `eddy measure` writes the table; planning (cost_model) and the simulator read it. The shapes key
// is the text of a node's input and output types, "float[2,3],float[3,4]->float[2,4]", with "-" for
// an omitted input (cost_key()); one measurement serves all nodes of equal keys. A cost is the
// median of `samples` batches after a warm-up; low and high bound their middle four fifths.
//
// As JSON, times in nanoseconds; unknown keys are ignored:
//
//   {"costs": [{"op": "MatMul", "shapes": "float[2,3],float[3,4]->float[2,4]", "device": "cpu",
//               "ns": 512.5, "low_ns": 498, "high_ns": 561, "samples": 15,
//               "threads": 4?, "all_ns": 140?}, ...],
//    "dispatch_ns": 40?, "decisions": {"decode": [17], "decode/gate": [0, 1, 1, ...],
//                                      "refine": {"distribution": [[4, 0.5], [9, 0.5]]}}?}
//
// Only "op", "shapes", "device" and "ns" are needed; `ns` is the time on one thread, `all_ns` that
// on `threads` of them, of an operator that falls into tiles. `dispatch_ns` is what a run costs
// beside its operators; it has been taken off every time. `decisions` are those of a run that was
// watched: by a control node's path, the trips of a loop or the branches of a case-of, in turn; or
// what they may be, each with its probability.
//
// Errors (invalid argument, one line): JSON that does not parse, with line and column; an entry
// that lacks a key or has a negative, infinite or NaN time, with its index; a second entry for
// the same key; decisions that are neither lists of integers nor distributions. Threads: const
// access from any. Cost: a look-up is one hash of the key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct MeasuredCost {
  std::string op;      // "MatMul"; with its domain in front where that is not ONNX's: "eddy.Print"
  std::string shapes;  // cost_key()
  std::string device;  // "cpu", "cuda"
  double ns = 0;       // median of a run of the operator
  double low_ns = 0;
  double high_ns = 0;
  uint32_t samples = 0;
  // With so many threads, where these were faster; 0: not, or not measured.
  uint32_t threads = 0;
  double all_ns = 0;
};

class CostTable {
 public:
  // Refuses a second entry with the same operator, shapes and device, and times that are none.
  Status add(MeasuredCost cost);
  const MeasuredCost* find_or_null(std::string_view op, std::string_view shapes,
                                   std::string_view device) const;
  const std::vector<MeasuredCost>& costs() const { return costs_; }  // in the order added

  double dispatch_ns = 0;
  std::map<std::string, std::vector<int64_t>> decisions;  // by path; none is empty
  // By path: (value, probability), which add up to 1. A path is in one of the two.
  std::map<std::string, std::vector<std::pair<int64_t, double>>> distributions;

 private:
  std::vector<MeasuredCost> costs_;
  std::unordered_map<std::string, uint32_t> places_;
};

// The operator's name as tables have it.
std::string cost_op_name(const OpDef& op);
// The types of the node's inputs and outputs; empty when one of them is not fully known (such a
// node has no entry).
std::string cost_key(const Graph& graph, const Node& node);

Result<CostTable> parse_cost_table(std::string_view json);
std::string to_json(const CostTable& table);

}  // namespace eddy
