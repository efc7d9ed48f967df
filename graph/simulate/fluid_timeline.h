// FluidTimeline: what a simulation by the fluid model gives, and its options (fluid_model.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace eddy {

struct FluidOptions {
  uint64_t seed = 1;
  uint64_t sample = 0;
  // Decides instead of the table's decisions, where given: which execution (from 0) of the loop or
  // case `id` this is; the number of trips or the branch.
  std::function<int64_t(bool is_case, uint32_t id, uint64_t execution)> choose = {};
  uint64_t max_rounds = UINT64_MAX;  // of one execution of a loop that are simulated one by one
  uint64_t max_steps = 50'000'000;
  bool wants_spans = false;
};

// One kernel, or one step of a control node, at work.
struct FluidSpan {
  enum class What : uint8_t { kKernel, kEnter, kTest, kAdvance, kLeave, kSelect, kFinish };
  What what = What::kKernel;
  uint32_t id = 0;    // the program's launch, loop or case
  uint32_t lane = 0;  // the machine's stream
  double start_ns = 0;
  double end_ns = 0;
};

struct FluidTimeline {
  double makespan_ns = 0;
  double host_busy_ns = 0;
  double unit_ns = 0;  // work done: units times time
  uint64_t num_steps = 0;
  std::vector<FluidSpan> spans;  // by end; empty unless wanted
};

}  // namespace eddy
