#include "tests/graph/simulate/fluid_sketch.h"

#include <utility>

namespace eddy {
namespace {

using Op = Program::Op;

class Maker {
 public:
  explicit Maker(const FluidSketch& sketch) : sketch_(sketch) {
    made_.program.blocks.resize(sketch.blocks.size());
    for (const FluidSketch::Loop& loop : sketch.loops) {
      Program::Loop& made = made_.program.loops.emplace_back();
      made.before = loop.before;
      made.after = loop.after;
      made.is_pipelined = loop.is_pipelined;
      made_.costs.loops.push_back(loop.costs);
    }
    for (const FluidSketch::Case& branch : sketch.cases) {
      Program::Case& made = made_.program.cases.emplace_back();
      made.blocks = branch.blocks;
      made.results.resize(branch.blocks.size());
      made_.costs.cases.push_back(branch.costs);
    }
  }

  PricedProgram run() {
    make_block(0, 0, Op::kEnd, 0, false);
    return std::move(made_);
  }

 private:
  void make_block(uint32_t b, uint32_t main_stream, Op end, uint32_t owner, bool is_pipelined) {
    const FluidSketch::Block& from = sketch_.blocks[b];
    Program::Block block;
    block.streams = {main_stream};
    for (uint32_t s = 0; block.streams.size() < from.num_streams; ++s) {
      if (s != main_stream) block.streams.push_back(s);
    }
    block.num_events = from.num_events + from.num_streams;
    const auto add = [&](Op op, uint32_t stream, uint32_t operand) {
      block.steps.push_back({op, block.streams[stream], operand});
    };
    add(Op::kBegin, 0, 0);
    for (const uint32_t event : from.entry_waits) add(Op::kWaitPrevious, 0, event);
    add_entry(from, block);
    for (const Program::Step& step : from.steps) {
      add(step.op, step.stream, made_operand(step, block.streams[step.stream]));
    }
    for (uint32_t s = 1; s < from.num_streams && !is_pipelined; ++s) add_exit(from, s, block);
    add(end, 0, owner);
    made_.program.blocks[b] = std::move(block);
  }

  static void add_entry(const FluidSketch::Block& from, Program::Block& block) {
    std::vector<Program::Step> waits;
    for (uint32_t s = 1; s < from.num_streams; ++s) {
      if (begins_unordered(from, s))
        waits.push_back({Op::kWait, block.streams[s], from.num_events});
    }
    if (waits.empty()) return;
    block.steps.push_back({Op::kRecord, block.streams[0], from.num_events});
    block.steps.insert(block.steps.end(), waits.begin(), waits.end());
  }
  static void add_exit(const FluidSketch::Block& from, uint32_t stream, Program::Block& block) {
    const Program::Step* last = nullptr;
    for (const Program::Step& step : from.steps) {
      if (step.stream == stream) last = &step;
    }
    if (last == nullptr) return;
    const bool is_recorded = last->op == Op::kRecord;
    const uint32_t event = is_recorded ? last->operand : from.num_events + stream;
    if (!is_recorded) block.steps.push_back({Op::kRecord, block.streams[stream], event});
    block.steps.push_back({Op::kWait, block.streams[0], event});
  }

  uint32_t made_operand(const Program::Step& step, uint32_t stream) {
    if (step.op == Op::kLaunch) {
      made_.program.launches.emplace_back();
      made_.costs.launches.push_back(sketch_.kernels[step.operand]);
      return static_cast<uint32_t>(made_.costs.launches.size()) - 1;
    }
    if (step.op == Op::kLoop) {
      const FluidSketch::Loop& loop = sketch_.loops[step.operand];
      make_block(loop.before, stream, Op::kTest, step.operand, false);
      make_block(loop.after, stream, Op::kAdvance, step.operand, loop.is_pipelined);
    }
    if (step.op == Op::kCase) {
      for (const uint32_t block : sketch_.cases[step.operand].blocks) {
        make_block(block, stream, Op::kEnd, step.operand, false);
      }
    }
    return step.operand;
  }

  const FluidSketch& sketch_;
  PricedProgram made_;
};

}  // namespace

PricedProgram sketched(const FluidSketch& sketch) { return Maker(sketch).run(); }

FluidSketch sketch_loop(const FluidDemand& kernel, Decision decision) {
  FluidSketch sketch{.kernels = {kernel}, .blocks = {3, FluidSketch::Block{}}};
  sketch.blocks[0].steps = {{Op::kLoop, 0, 0}};
  sketch.blocks[2].steps = {{Op::kLaunch, 0, 0}};
  sketch.loops.push_back({{.name = "l", .decision = std::move(decision)}, 1, 2});
  return sketch;
}

bool begins_unordered(const FluidSketch::Block& block, uint32_t stream) {
  for (const Program::Step& step : block.steps) {
    if (step.stream == stream) return step.op != Op::kWait;
  }
  return false;
}

}  // namespace eddy
