// OperatorList: operators with loops and branches among them, each with lists of its own.
//
// What operators of one list read of each other is in its graph. What they read of a loop or
// branch of the list, or of a list around, is an OuterInput: it names who makes the tensor, and has
// the shape and regions (operator_graph.h) of that input. Names are unique in the whole tree.
//
// Plain values: readers of files and models make them (scenario_file.h, model_operators.h),
// make_scenarios.h says what they cost.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/simulate/scenario.h"
#include "graph/strategy/operator_graph.h"

namespace eddy {

inline constexpr int kMaxControlDepth = 64;
inline constexpr uint32_t kAnyDevice = UINT32_MAX;

struct OuterInput {
  uint32_t op = 0;   // in the list's graph
  std::string from;  // an operator, loop or branch
  Dims shape = {};   // rank 0: not known, all of it is read
  std::array<InputDim, kMaxRank> dims = {};
};

struct ControlOperator;

struct OperatorList {
  OperatorGraph graph;  // may be empty
  Strategy strategy;
  std::vector<OuterInput> outer_inputs;
  std::vector<ControlOperator> controls;

  OperatorList() = default;
  OperatorList(OperatorList&&) = default;
  OperatorList& operator=(OperatorList&&) = default;
};

// A value that a loop carries from turn to turn; operators in its lists read it by its name.
struct CarriedValue {
  std::string name;
  std::string initial;  // who makes the first one, outside; empty: it is there from the start
  // Who makes that of the next turn: of the loop's lists, of lists around, or another carried
  // value, which is then a turn late; empty: it is there.
  std::string next;
};

struct ControlOperator {
  std::string name;
  ScenarioEntry::Kind kind = ScenarioEntry::Kind::kLoop;  // or kCase
  Decision decision;                       // on kAnyDevice: where all of its lists run
  std::vector<std::string> inputs = {};    // it waits for these, whoever in it reads them
  std::vector<CarriedValue> carried = {};  // by a loop
  std::vector<OperatorList> lists = {};    // a loop's before and body; a case's branches
};

}  // namespace eddy
