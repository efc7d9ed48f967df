#include "runtime/execute/resolve_program.h"

#include <algorithm>
#include <deque>

#include "graph/base/check.h"
#include "runtime/execute/values/row_sink.h"

namespace eddy {
namespace {

using Op = StrandCode::Op;
using Of = Program::Op;
using What = ResolvedProgram::What;
constexpr uint32_t kNone = StrandCode::kNone;

class Resolver {
 public:
  Resolver(const Program& program, const ResolveOptions& options)
      : program_(program), options_(options), blocks_(program.blocks.size()) {}

  ResolvedProgram run() {
    EDDY_CHECK(!program_.blocks.empty()) << "a program without a root";
    const Program::Block& root = program_.blocks[0];
    code().strands.push_back({0, root.streams[0], kNone});
    main_part(0, {0, root.streams[0]});
    emit(Op::kEnd);
    for (; !further_.empty(); further_.pop_front()) further_strand(further_.front());
    for (const Program::Block& block : program_.blocks) {
      for (const uint32_t stream : block.streams) {
        code().num_streams = std::max(code().num_streams, stream + 1);
      }
    }
    EDDY_DCHECK(std::ranges::count(code().targets, kNone) == 0) << "a decision leads nowhere";
    EDDY_DCHECK(std::ranges::count(code().strands, kNone, &StrandCode::Strand::first) == 0)
        << "a strand has no commands";
    return std::move(made_);
  }

 private:
  // A strand and the machine's stream that it is on.
  struct Place {
    uint32_t strand = 0;
    uint32_t stream = 0;
  };
  struct Further {
    uint32_t block;
    uint32_t stream;  // of the block
    uint32_t strand;
  };
  struct BlockCode {
    uint32_t round = kNone;              // its main part's counter
    std::vector<uint32_t> events = {};   // by the block's, where it is used
    std::vector<uint32_t> strands = {};  // by stream; kNone where it has no steps
  };

  StrandCode& code() { return made_.code; }
  const Program::Block& block(uint32_t b) const { return program_.blocks[b]; }
  uint32_t here() const { return static_cast<uint32_t>(made_.code.commands.size()); }
  uint32_t emit(Op op, uint32_t operand = 0, uint32_t target = 0, uint8_t lag = 0) {
    code().commands.push_back({op, true, lag, operand, target});
    return here() - 1;
  }
  uint32_t add_call(What what, StepKind kind, uint32_t node, Place at, uint32_t index = 0) {
    made_.calls.push_back({what, {kind, NodeId(node), at.strand, index}, at.stream});
    return static_cast<uint32_t>(made_.calls.size()) - 1;
  }
  void call(StepKind kind, uint32_t node, Place at, uint32_t index = 0) {
    emit(Op::kCall, add_call(What::kStep, kind, node, at, index));
  }
  void call(What what, uint32_t node, Place at, uint32_t index = 0) {
    emit(Op::kCall, add_call(what, {}, node, at, index));
  }

  // --- blocks ---

  bool overlaps(uint32_t b) const { return is_pipelined(program_, block(b)); }

  // Its further streams get their strands, and its rounds are counted, where there are any.
  void begin_block(uint32_t b) {
    BlockCode& made = blocks_[b];
    const Program::Block& from = block(b);
    EDDY_DCHECK(made.strands.empty()) << "block " << b << " is resolved twice";
    made.strands.assign(from.streams.size(), kNone);
    made.events.assign(from.num_events, kNone);
    for (uint32_t s = 1; s < from.streams.size(); ++s) {
      const bool has_steps = std::ranges::any_of(
          from.steps, [&](const auto& step) { return step.stream == from.streams[s]; });
      if (!has_steps) continue;
      if (made.round == kNone) made.round = add_round(overlaps(b));
      made.strands[s] = static_cast<uint32_t>(code().strands.size());
      code().strands.push_back({kNone, from.streams[s], add_round(overlaps(b))});
      further_.push_back({b, s, made.strands[s]});
    }
    if (made.round != kNone) emit(Op::kBegin, made.round);
  }
  uint32_t add_round(bool overlaps) {
    code().rounds.push_back({overlaps});
    return static_cast<uint32_t>(code().rounds.size()) - 1;
  }
  uint32_t event(uint32_t b, uint32_t number) {
    EDDY_DCHECK(number < blocks_[b].events.size())
        << "event " << number << " of block " << b << ", which has " << blocks_[b].events.size();
    uint32_t& made = blocks_[b].events[number];
    if (made != kNone) return made;
    made = static_cast<uint32_t>(code().events.size());
    const Program::Block& from = block(b);
    const uint32_t first = from.first_machine_event + number;
    const uint32_t second = overlaps(b) ? first + from.num_machine_events / 2 : first;
    code().events.push_back({kNone, kNone, {first, second}});
    return made;
  }
  uint32_t end_event(uint32_t b, uint32_t stream) {
    return event(b, first_frame_event(block(b)) + stream);
  }
  uint32_t recorded_event(uint32_t b, uint32_t number, Place at, uint32_t round) {
    const uint32_t index = event(b, number);
    EDDY_DCHECK(code().events[index].strand == kNone || code().events[index].strand == at.strand)
        << "event " << number << " of block " << b << " is recorded on two strands";
    code().events[index].strand = at.strand;
    code().events[index].round = round;
    return index;
  }

  // All but its begin and end.
  void main_part(uint32_t b, Place at) {
    begin_block(b);
    if (overlaps(b)) wait_for_ends(b, 2);
    steps(b, 0, at, blocks_[b].round);
  }
  void wait_for_ends(uint32_t b, uint8_t lag) {
    for (uint32_t s = 1; s < block(b).streams.size(); ++s) {
      if (blocks_[b].strands[s] == kNone) continue;
      emit(Op::kWait, end_event(b, s), blocks_[b].round, lag);
    }
  }

  void further_strand(const Further& further) {
    StrandCode::Strand& strand = code().strands[further.strand];
    const uint32_t round = strand.round;
    const Place at{further.strand, strand.stream};
    EDDY_DCHECK(strand.first == kNone) << "strand " << further.strand << " has its commands";
    strand.first = here();
    const bool goes_on = overlaps(further.block);
    steps(further.block, further.stream, at, round);
    const StrandCode::Command& first = code().commands[code().strands[further.strand].first];
    EDDY_CHECK(first.op == Op::kWait && first.lag == 0)
        << "stream " << at.stream << " of block " << further.block << " does not begin with a wait";
    if (goes_on) {
      const uint32_t end = first_frame_event(block(further.block)) + further.stream;
      emit(Op::kRest, recorded_event(further.block, end, at, round), round);
      return;
    }
    StrandCode::Command& last = code().commands.back();
    EDDY_CHECK(last.op == Op::kRecord)
        << "stream " << at.stream << " of block " << further.block << " does not end with a record";
    last.op = Op::kRest;
    last.target = round;
  }

  // Of one of the block's streams. `round`: its counter.
  void steps(uint32_t b, uint32_t stream, Place at, uint32_t round) {
    const Program::Block& from = block(b);
    uint32_t num_retained = 0;
    bool has_begun = stream == 0 || !overlaps(b);
    for (const Program::Step& step : from.steps) {
      const uint32_t retained = num_retained;
      num_retained += step.op == Of::kRetain ? 1 : 0;
      if (step.stream != from.streams[stream] || is_frame(step.op)) continue;
      const bool is_first_work = !has_begun && !is_sync(step.op);
      if (is_first_work) {
        call(What::kBeginTail, program_.loops[from.steps.back().operand].node, at, stream);
        has_begun = true;
      }
      this->step(b, step, retained, at, round);
    }
  }

  void step(uint32_t b, const Program::Step& step, uint32_t retained, Place at, uint32_t round) {
    switch (step.op) {
      case Of::kLaunch:
        return launch(program_.launches[step.operand].node, at);
      case Of::kLoop:
        return control(program_.loops[step.operand].node, step, at);
      case Of::kCase:
        return control(program_.cases[step.operand].node, step, at);
      case Of::kRetain:
        return call(StepKind::kTake, program_.launches[step.operand].node, at, retained);
      case Of::kPushRow:
        return push_row(program_.rows[step.operand], at);
      case Of::kRecord:
        emit(Op::kRecord, recorded_event(b, step.operand, at, round));
        return;
      case Of::kWait:
        emit(Op::kWait, event(b, step.operand), round);
        return;
      case Of::kWaitPrevious:
        emit(Op::kWait, event(b, step.operand), round, 1);
        return;
      default:
        return;
    }
  }

  // Rows of loops that are not pipelined are stacked by advance.
  void push_row(const Program::Row& row, Place at) {
    const Program::Loop& loop = program_.loops[row.loop];
    const auto result = static_cast<uint32_t>(loop.advance.size()) + row.index;
    if (!loop.is_pipelined) return;
    if (options_.streams_rows) await_room(loop.node, at, result);
    call(StepKind::kRow, loop.node, at, result);
  }
  void await_room(uint32_t loop, Place at, uint32_t rows) {
    call(What::kAwaitRoom, loop, at, rows);
    code().commands.back().op = Op::kStart;
  }

  // --- nodes ---

  void launch(uint32_t node, Place at) {
    begin_span(node, at, kNode);
    call(StepKind::kExec, node, at);
    StrandCode::Command& command = code().commands.back();
    if (options_.is_cheap) command.is_cheap = options_.is_cheap(NodeId(node));
    const bool is_later = options_.may_answer_later && options_.may_answer_later(NodeId(node));
    if (is_later) {
      command.op = Op::kStart;
      command.is_cheap = false;
    }
    end_span(node, at, kNode);
    release(node, at);
  }
  void release(uint32_t node, Place at) {
    const bool has_release = options_.has_release && options_.has_release(NodeId(node));
    if (has_release) call(What::kRelease, node, at);
  }

  // By the device where that may be, else by this code.
  void control(uint32_t node, const Program::Step& step, Place at) {
    const bool may_be_driven = options_.may_be_driven && options_.may_be_driven(NodeId(node));
    if (!may_be_driven) {
      host_control(step, at);
      return release(node, at);
    }
    const uint32_t table = select(What::kChoose, node, at, ResolvedProgram::kNumDrivers);
    code().targets[table + ResolvedProgram::kByHost] = here();
    host_control(step, at);
    call(What::kHandBack, node, at);
    std::vector<uint32_t> ends = {emit(Op::kJump)};
    code().targets[table + ResolvedProgram::kByDevice] = here();
    call(What::kDrive, node, at);
    ends.push_back(emit(Op::kJump));
    code().targets[table + ResolvedProgram::kTryDevice] = here();
    call(What::kDrive, node, at);
    const uint32_t ended = select(What::kDeviceEnded, node, at, 1);
    for (uint32_t i = 0; i <= 1; ++i) code().targets[ended + i] = here();
    code().targets[table + ResolvedProgram::kNumDrivers] = here();
    for (const uint32_t end : ends) code().commands[end].target = here();
    release(node, at);
  }

  void host_control(const Program::Step& step, Place at) {
    step.op == Of::kLoop ? loop(program_.loops[step.operand], at)
                         : branch(program_.cases[step.operand], at);
  }

  // Its table in targets, for that many branches or none of them.
  uint32_t select(What what, uint32_t node, Place at, uint32_t num_branches) {
    const auto table = static_cast<uint32_t>(code().targets.size());
    emit(Op::kSelect, add_call(what, StepKind::kSelect, node, at), table);
    code().targets.resize(table + num_branches + 1, kNone);
    return table;
  }

  void loop(const Program::Loop& loop, Place at) {
    begin_span(loop.node, at, kNode);
    call(StepKind::kEnter, loop.node, at);
    const uint32_t top = here();
    begin_span(loop.node, at, kIteration);
    main_part(loop.before, at);
    const uint32_t test = emit(Op::kTest, add_call(What::kStep, StepKind::kTest, loop.node, at));
    main_part(loop.after, at);
    const bool waits = options_.streams_rows && !loop.rows.empty() && !loop.is_pipelined;
    if (waits) await_room(loop.node, at, kAllRows);
    call(StepKind::kAdvance, loop.node, at);
    end_span(loop.node, at, kIteration);
    emit(Op::kRepeat, 0, top);
    code().commands[test].target = here();
    end_span(loop.node, at, kIteration);  // of the iteration whose test was false
    if (loop.is_pipelined) wait_for_ends(loop.after, 0);
    call(StepKind::kLeave, loop.node, at);
    end_span(loop.node, at, kNode);
  }

  void branch(const Program::Case& branch, Place at) {
    const auto count = static_cast<uint32_t>(branch.blocks.size());
    const uint32_t table = select(What::kStep, branch.node, at, count);
    std::vector<uint32_t> ends;
    for (uint32_t b = 0; b < count; ++b) {
      code().targets[table + b] = here();
      begin_span(branch.node, at, kBranch + b);
      main_part(branch.blocks[b], at);
      call(StepKind::kFinishBranch, branch.node, at, b);
      end_span(branch.node, at, kBranch + b);
      ends.push_back(emit(Op::kJump));
    }
    code().targets[table + count] = here();
    for (const uint32_t end : ends) code().commands[end].target = here();
  }

  void begin_span(uint32_t node, Place at, uint32_t span) {
    if (options_.has_spans) call(What::kBeginSpan, node, at, span);
  }
  void end_span(uint32_t node, Place at, uint32_t span) {
    if (options_.has_spans) call(What::kEndSpan, node, at, span);
  }

  const Program& program_;
  const ResolveOptions& options_;
  std::vector<BlockCode> blocks_;
  std::deque<Further> further_;  // strands whose code is still to come
  ResolvedProgram made_;
};

}  // namespace

ResolvedProgram resolve_program(const Program& program, const ResolveOptions& options) {
  return Resolver(program, options).run();
}

}  // namespace eddy
