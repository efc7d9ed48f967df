// LoopProgram: a whole loop as steps over small arrays of fixed shapes, for a device that runs it
// as one kernel from the first iteration to the last.
//
//   carried := initial
//   for (count = 0;; ++count) {
//     before
//     if (stopped, count == limit or !predicate) break
//     after
//     carried := next          all at once
//   }
//   the loop gives `results`
//
// Values are numbered: inputs (arrays that exist when the loop begins and stay as they are), bools
// that the host gives when it begins, then all others. A value is made by one step, or is an input,
// a given bool, carried, or the iteration's number; or it is another one's memory with other
// dimensions.
//
// Contract: a step's arguments come before it, `before` goes before `after`; shapes are static and
// have elements. What steps do is the device's to name, as in Expression. Ownership: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/expression.h"
#include "graph/ir/types.h"

namespace eddy {

struct LoopProgram {
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Value {
    ElementType element = ElementType::kUndefined;
    Dims dims;
    uint32_t memory = 0;  // the value whose memory it is: mostly itself
  };
  struct Step {
    uint32_t result = 0;
    std::vector<uint32_t> arguments;
    // Applied to an element of each argument, broadcast to the result; of a reduction: no step.
    Expression expression;
    // The reduction of one argument, "ReduceSum", over the axes of the mask; "": elementwise.
    std::string reduction;
    uint32_t axes = 0;
  };
  struct Carried {
    uint32_t parameter = 0;
    uint32_t initial = 0;
    uint32_t next = 0;
  };

  uint32_t num_inputs = 0;
  uint32_t num_given = 0;
  uint32_t iteration = kNone;  // one int64; none: no step reads it
  std::vector<Value> values;
  std::vector<Carried> carried;
  std::vector<Step> before;
  std::vector<Step> after;
  uint32_t predicate = 0;  // one bool
  std::vector<uint32_t> results;
};

}  // namespace eddy
