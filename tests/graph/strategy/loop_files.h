// Operator-graph files with loops and branches, written in a few words, and what they cost.
//
//   worst(file({op("start", 1), loop("loop", {}, 3, {op("step", 10, {"start"})})},
//              {{"start", {"x"}}, {"step", {"y"}}}))
//
// Operators make eight numbers of four bytes: 32 over a link of bandwidth 1, or 8 for a quarter of
// them. A file that is refused fails the test, except in refusal().
#pragma once

#include <string>
#include <vector>

#include "graph/strategy/files/operator_file.h"

namespace eddy::loop_files {

using Text = std::string;  // JSON
using Texts = std::vector<Text>;

Text list(const Texts& entries);
Text op(const Text& name, double time, const Texts& inputs = {});
Text loop(const Text& name, const Texts& inputs, int trips, const Texts& body,
          const Texts& before = {});
Text branching(const Text& name, int taken, const std::vector<Texts>& branches);
// A carried value of a loop, or with empty `initial` a value that exists from the start.
Text carried(const Text& name, const Text& next, const Text& initial = "");
Text carrying(const Texts& values, Text loop);

struct Placed {
  Text op;
  Texts devices;  // by part, along the first of `rank` dimensions
  int rank = 1;
};

inline constexpr char kTwoDevices[] = R"({"devices": ["x", "y"], "bandwidth": {"default": 1}})";
inline constexpr char kRing[] = R"({"devices": ["a", "b", "c", "d"], "links": [
    {"from": "a", "to": "b", "bandwidth": 2, "latency": 1},
    {"from": "b", "to": "c", "bandwidth": 2, "latency": 1},
    {"from": "c", "to": "d", "bandwidth": 2, "latency": 1},
    {"from": "d", "to": "a", "bandwidth": 2, "latency": 1}]})";

Text strategy_text(const std::vector<Placed>& strategy);
Text file(const Texts& operators, const std::vector<Placed>& strategy,
          const Text& topology = kTwoDevices);

Result<ScenarioFile> read(const Text& document);
double worst(const Text& document);
std::string refusal(const Text& document);

// Totals of the first scenario: time on devices, time on links, and the makespan.
struct Totals {
  double work = 0;
  double transfers = 0;
  double makespan = 0;
};
Totals totals(const Text& document);

// The same operators without a loop, and with one.
struct Chain {
  Text flat;
  Text looped;
};

}  // namespace eddy::loop_files
