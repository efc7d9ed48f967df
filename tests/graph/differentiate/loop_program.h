// LoopProgram: a random program of while loops and case-of nodes nested in each other, over scalars
// and over stacks that loops leave behind.
//
//   GraphBuilder b(gradient_ops());
//   LoopProgram(b, seed).build();      // inputs a, b, c; output loss
//   run_graph(graph, random_inputs(seed));
//
// Loops have work on both sides of their check, and end by data, by a limit or without a trip;
// branches have a default or pass values through. The same seed gives the same program.
#pragma once

#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "tests/ops/gradient/graph_runner.h"

namespace eddy::testing {

class LoopProgram {
 public:
  LoopProgram(GraphBuilder& b, uint64_t seed, int depth = 3, bool has_branches = true)
      : b_(b), random_(seed), depth_(depth), has_branches_(has_branches) {}

  void build() {
    std::vector<Value> known;
    for (const char* name : {"a", "b", "c"})
      known.push_back(b_.input(name, tensor_type(ElementType::kDouble, {})));
    known = body(std::move(known), depth_, 6);
    Value loss = known.back();
    for (size_t i = known.size() - 4; i + 1 < known.size(); ++i) {
      loss = b_.op("Add", {loss, known[i]});
    }
    for (const Value stack : stacks_) loss = b_.op("Add", {loss, sum(stack)});
    b_.output("loss", loss);
  }

 private:
  int64_t below(int64_t end) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(end)));
  }
  bool happens(double probability) { return random_.uniform() < probability; }
  Value pick(const std::vector<Value>& from) {
    return from[static_cast<size_t>(below(std::ssize(from)))];
  }
  Value sum(Value stack) {
    return b_.op("Tanh", {b_.op("ReduceSum", {stack}, {{"keepdims", int64_t{0}}})});
  }

  std::vector<Value> body(std::vector<Value> known, int depth, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double kind = random_.uniform();
      if (depth > 0 && kind < 0.25) {
        for (const Value made : loop(known, depth - 1)) known.push_back(made);
      } else if (depth > 0 && has_branches_ && kind < 0.45) {
        for (const Value made : branch(known, depth - 1)) known.push_back(made);
      } else {
        known.push_back(simple(known));
      }
    }
    return known;
  }

  Value simple(const std::vector<Value>& known) {
    if (!stacks_.empty() && happens(0.15)) return sum(pick(stacks_));
    switch (below(6)) {
      case 0:
        return b_.op("Add", {pick(known), pick(known)});
      case 1:
        return b_.op("Tanh", {b_.op("Mul", {pick(known), pick(known)})});
      case 2:
        return b_.op("Sin", {pick(known)});
      case 3:
        return b_.op("Mul", {pick(known), b_.scalar(random_.uniform() - 0.5)});
      case 4:
        return b_.op("Tanh", {pick(known)});
      default:
        return b_.op("Cos", {b_.op("Sub", {pick(known), pick(known)})});
    }
  }

  std::vector<Value> several(const std::vector<Value>& known, int64_t count) {
    std::vector<Value> chosen;
    for (int64_t i = 0; i < count; ++i) chosen.push_back(pick(known));
    return chosen;
  }

  std::vector<Value> loop(const std::vector<Value>& known, int depth) {
    const int64_t num_carried = 1 + below(3), num_forwarded = 1 + below(3), num_rows = below(3);
    const bool counts = happens(0.5);
    const int64_t limit = below(5), trips = below(5);
    const double threshold = random_.uniform() * 1.6 - 0.8;
    WhileOptions options;
    options.initial = several(known, num_carried);
    if (!counts || happens(0.4)) options.trip_limit = b_.scalar(limit);
    options.num_scan_outputs = static_cast<uint32_t>(num_rows);
    const std::vector<Value> outer_stacks = stacks_;
    const int before_depth = happens(0.6) ? depth : 0, after_depth = happens(0.6) ? depth : 0;
    const auto made = b_.while_loop(
        options,
        [&](Value iteration, ValueSpan carried) {
          stacks_ = outer_stacks;  // those of inner regions are out of sight
          std::vector<Value> seen = known;
          seen.insert(seen.end(), carried.begin(), carried.end());
          seen = body(std::move(seen), before_depth, below(4));
          const Value go = counts ? b_.op("Less", {iteration, b_.scalar(trips)})
                                  : b_.op("Less", {pick(seen), b_.scalar(threshold)});
          return WhileTest{go, several(seen, num_forwarded)};
        },
        [&](Value, ValueSpan forwarded) {
          stacks_ = outer_stacks;
          std::vector<Value> seen = known;
          seen.insert(seen.end(), forwarded.begin(), forwarded.end());
          seen = body(std::move(seen), after_depth, below(5));
          return several(seen, num_carried + num_rows);
        });
    stacks_ = outer_stacks;
    const size_t first_row = static_cast<size_t>(num_forwarded);
    for (size_t s = first_row; s < made.size(); ++s) stacks_.push_back(made[s]);
    return {made.begin(), made.begin() + num_forwarded};
  }

  std::vector<Value> branch(const std::vector<Value>& known, int depth) {
    const int64_t num_branches = 1 + below(3), num_outputs = 1 + below(2);
    const Value scaled =
        b_.op("Floor", {b_.op("Mul", {b_.op("Abs", {pick(known)}), b_.scalar(7.0)})});
    const Value wide = b_.cast(scaled, ElementType::kInt64);
    const Value turned = b_.op("Mod", {wide, b_.scalar(num_branches + 2)});
    CaseOptions options;
    options.selector = b_.op("Sub", {turned, b_.scalar(int64_t{1})});
    if (happens(0.5)) {
      options.pass_through = several(known, num_outputs);
    } else {
      options.default_region = static_cast<int>(below(num_branches));
    }
    const std::vector<Value> outer_stacks = stacks_;
    std::vector<CaseBody> bodies;
    for (int64_t i = 0; i < num_branches; ++i) {
      bodies.push_back([&] {
        const std::vector<Value> seen = body(known, depth, below(4));
        stacks_ = outer_stacks;
        return several(seen, num_outputs);
      });
    }
    return b_.case_of(options, bodies);
  }

  GraphBuilder& b_;
  Random random_;
  const int depth_;
  const bool has_branches_;
  std::vector<Value> stacks_;
};

inline NamedValues random_inputs(uint64_t seed) {
  Random random(seed + 1'000'000);
  NamedValues inputs;
  for (const char* name : {"a", "b", "c"}) {
    inputs[name] = TestTensor::scalar(random.uniform() * 2.4 - 1.2);
  }
  return inputs;
}

}  // namespace eddy::testing
