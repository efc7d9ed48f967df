#include "graph/simulate/fluid_code.h"

#include <algorithm>
#include <deque>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Op = FluidCode::Op;
using Of = Program::Op;

class Compiler {
 public:
  Compiler(const Program& program, FluidCode& code) : program_(program), code_(code) {
    EDDY_CHECK(!program.blocks.empty() && !program.blocks[0].streams.empty())
        << "a program without a root";
    for (const Program::Block& block : program.blocks) {
      first_event_.push_back(code.num_events);
      code.num_events += block.num_events;
    }
    code.further.resize(program.blocks.size());
    code.num_rounds = static_cast<uint32_t>(program.blocks.size());
  }

  void run() {
    add_strand(program_.blocks[0].streams[0]);
    main_part(0);
    emit(Op::kEnd);
    for (; !later_.empty(); later_.pop_front()) further_strand(later_.front());
    EDDY_DCHECK(std::ranges::all_of(code_.targets, [&](uint32_t t) { return t < here(); }))
        << "a branch leads out of the code";
    EDDY_DCHECK(std::ranges::all_of(code_.commands, [&](const auto& command) {
      return !is_jump(command.op) || command.target < here();
    })) << "a jump leads out of the code";
  }

 private:
  static bool is_jump(Op op) {
    return op == Op::kJump || op == Op::kTest || op == Op::kAdvance || op == Op::kRest;
  }

  struct Later {
    uint32_t block, stream, strand, position;
  };

  uint32_t here() const { return static_cast<uint32_t>(code_.commands.size()); }
  uint32_t emit(Op op, uint32_t operand = 0, uint32_t target = 0, uint8_t lag = 0) {
    code_.commands.push_back({op, lag, operand, target, position_});
    return here() - 1;
  }
  uint32_t add_strand(uint32_t stream) {
    code_.strands.push_back({.stream = stream, .round = code_.num_rounds++});
    return static_cast<uint32_t>(code_.strands.size()) - 1;
  }
  bool overlaps(uint32_t b) const { return is_pipelined(program_, program_.blocks[b]); }

  // A block's part on its main stream. Its further streams get their strands.
  void main_part(uint32_t b) {
    const Program::Block& block = program_.blocks[b];
    code_.further[b].first = static_cast<uint32_t>(code_.strands.size());
    for (uint32_t s = 1; s < block.streams.size(); ++s) {
      const bool has_steps = std::ranges::any_of(
          block.steps, [&](const auto& step) { return step.stream == block.streams[s]; });
      if (!has_steps) continue;
      later_.push_back({b, s, add_strand(block.streams[s]), position_});
      ++code_.further[b].count;
      code_.strands.back().end = first_event_[b] + first_frame_event(block) + s;
    }
    if (code_.further[b].count > 0) emit(Op::kBegin, b);
    if (overlaps(b)) wait_for_ends(b, 2);
    steps(b, 0, b);
  }
  void wait_for_ends(uint32_t b, uint8_t lag) {
    const FluidCode::Further further = code_.further[b];
    for (uint32_t i = 0; i < further.count; ++i) {
      emit(Op::kWait, code_.strands[further.first + i].end, b, lag);
    }
  }

  void further_strand(const Later& later) {
    const uint32_t first = code_.strands[later.strand].first = here();
    position_ = later.position;
    emit(Op::kJoin, later.block);
    steps(later.block, later.stream, code_.strands[later.strand].round);
    if (overlaps(later.block)) emit(Op::kRecord, code_.strands[later.strand].end);
    emit(Op::kRest, 0, first);
  }

  void steps(uint32_t b, uint32_t stream, uint32_t round) {
    const Program::Block& block = program_.blocks[b];
    for (uint32_t i = 0; i < block.steps.size(); ++i) {
      if (block.steps[i].stream != block.streams[stream]) continue;
      if (b == 0) position_ = i;
      step(b, block.steps[i], round);
    }
  }
  void step(uint32_t b, const Program::Step& step, uint32_t round) {
    switch (step.op) {
      case Of::kLaunch:
        emit(Op::kLaunch, step.operand);
        return;
      case Of::kRecord:
        emit(Op::kRecord, first_event_[b] + step.operand);
        return;
      case Of::kWait:
      case Of::kWaitPrevious:
        emit(Op::kWait, first_event_[b] + step.operand, round, step.op == Of::kWait ? 0 : 1);
        return;
      case Of::kLoop:
        return loop(step.operand);
      case Of::kCase:
        return branch(step.operand);
      default:
        return;
    }
  }

  void loop(uint32_t id) {
    EDDY_DCHECK(id < program_.loops.size()) << "loop " << id;
    const Program::Loop& loop = program_.loops[id];
    emit(Op::kEnter, id);
    const uint32_t top = here();
    main_part(loop.before);
    const uint32_t test = emit(Op::kTest, id);
    main_part(loop.after);
    emit(Op::kAdvance, id, top);
    code_.commands[test].target = here();
    if (loop.is_pipelined) wait_for_ends(loop.after, 0);
    emit(Op::kLeave, id);
  }
  void branch(uint32_t id) {
    EDDY_DCHECK(id < program_.cases.size()) << "case " << id;
    const std::vector<uint32_t>& blocks = program_.cases[id].blocks;
    const auto table = static_cast<uint32_t>(code_.targets.size());
    emit(Op::kSelect, id, table);
    code_.targets.resize(table + blocks.size() + 1);
    std::vector<uint32_t> ends;
    for (size_t k = 0; k < blocks.size(); ++k) {
      code_.targets[table + k] = here();
      main_part(blocks[k]);
      ends.push_back(emit(Op::kJump));
    }
    for (const uint32_t end : ends) code_.commands[end].target = here();
    code_.targets[table + blocks.size()] = here();
    emit(Op::kFinish, id);
  }

  const Program& program_;
  FluidCode& code_;
  std::vector<uint32_t> first_event_;  // by block
  std::deque<Later> later_;            // strands without code yet
  uint32_t position_ = 0;
};

}  // namespace

FluidCode::FluidCode(const Program& program) { Compiler(program, *this).run(); }

}  // namespace eddy
