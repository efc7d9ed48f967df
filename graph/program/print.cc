#include "graph/program/print.h"

namespace eddy {
namespace {

using Op = Program::Op;
using Step = Program::Step;

class Printer {
 public:
  Printer(const Program& program, const ProgramNames& names) : program_(program), names_(names) {}

  std::string run() {
    print_block(0, "");
    return std::move(text_);
  }

 private:
  void print_block(uint32_t b, const std::string& indent) {
    const Program::Block& block = program_.blocks[b];
    text_ += indent + "streams";
    for (const uint32_t stream : block.streams) text_ += " " + std::to_string(stream);
    text_ += "\n";
    for (const Step& step : block.steps) {
      text_ += indent + std::to_string(step.stream) + "  " + step_text(program_, step, names_);
      text_ += "\n";
      if (step.op == Op::kLoop) print_loop(program_.loops[step.operand], indent);
      if (step.op == Op::kCase) print_case(program_.cases[step.operand], indent);
    }
  }
  void print_loop(const Program::Loop& loop, const std::string& indent) {
    text_ += indent + "  before\n";
    print_block(loop.before, indent + "    ");
    text_ += indent + (loop.is_pipelined ? "  after, pipelined\n" : "  after\n");
    print_block(loop.after, indent + "    ");
  }
  void print_case(const Program::Case& branches, const std::string& indent) {
    for (size_t i = 0; i < branches.blocks.size(); ++i) {
      text_ += indent + "  branch " + std::to_string(i) + "\n";
      print_block(branches.blocks[i], indent + "    ");
    }
  }

  const Program& program_;
  const ProgramNames& names_;
  std::string text_;
};

// The operand as text, by what it names.
std::string operand_text(const Program& program, const Step& step, const ProgramNames& names) {
  switch (step.op) {
    case Op::kLaunch:
      return names.node(program.launches[step.operand].node);
    case Op::kRetain: {
      std::string text;
      for (const Program::Alias& alias : program.launches[step.operand].aliases) {
        text += (text.empty() ? "" : ", ") + names.value(alias.from);
      }
      return text;
    }
    case Op::kPushRow:
      return names.value(row_name(program, program.rows[step.operand]));
    case Op::kLoop:
    case Op::kTest:
    case Op::kAdvance:
      return names.node(program.loops[step.operand].node);
    case Op::kCase:
      return names.node(program.cases[step.operand].node);
    case Op::kRecord:
    case Op::kWait:
      return "e" + std::to_string(step.operand);
    case Op::kWaitPrevious:
      return "e" + std::to_string(step.operand) + " of the iteration before";
    case Op::kBegin:
    case Op::kEnd:
      break;
  }
  return "";
}

}  // namespace

const char* op_name(Op op) {
  static constexpr const char* kNames[] = {"begin", "launch", "retain",  "push row",
                                           "loop",  "case",   "record",  "wait",
                                           "wait",  "test",   "advance", "end"};
  static_assert(std::size(kNames) == static_cast<size_t>(Op::kEnd) + 1, "one name for each op");
  return kNames[static_cast<size_t>(op)];
}

std::string step_text(const Program& program, const Step& step, const ProgramNames& names) {
  const std::string operand = operand_text(program, step, names);
  return op_name(step.op) + (operand.empty() ? "" : " " + operand);
}

std::string print_program(const Program& program, const ProgramNames& names) {
  return Printer(program, names).run();
}

}  // namespace eddy
