#include "graph/program/validate.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Op = Program::Op;
using Step = Program::Step;
constexpr uint32_t kNone = Program::kNone;

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program),
        depth_(program.blocks.size(), 0),
        ends_(program.blocks.size()),
        is_pipelined_(program.blocks.size(), false),
        is_made_(program.block_of_name.size(), false) {
    for (const size_t size : {program.launches.size(), program.rows.size(), program.loops.size(),
                              program.cases.size()}) {
      is_placed_.emplace_back(size, false);
    }
  }

  std::optional<ProgramDefect> run() {
    check_names();
    for (const Program::Launch& launch : program_.launches) check_launch(launch);
    for (const Program::Loop& loop : program_.loops) check_loop(loop);
    for (const Program::Row& row : program_.rows) check_row(row);
    for (const Program::Case& branch : program_.cases) check_case(branch);
    if (!found_) check_makers();
    if (!found_ && !program_.blocks.empty()) check_blocks();
    if (!found_) check_placed();
    return std::move(found_);
  }

 private:
  void fail(uint32_t block, uint32_t node, std::string text) {
    if (!found_) found_ = ProgramDefect{block, node, std::move(text)};
  }

  void check_names() {
    if (program_.memory.size() != program_.block_of_name.size()) {
      fail(0, kNone, "names and their memory are not equally many");
    }
    for (const uint32_t block : program_.block_of_name) {
      if (block >= program_.blocks.size()) fail(0, kNone, "a name is of no block");
    }
    for (const Program::Memory& memory : program_.memory) check_turns(memory);
    names(program_.results, kNone);
  }
  // One place, or two that alternate with a loop that is there.
  void check_turns(const Program::Memory& memory) {
    const size_t num_places = memory.offsets_bytes.size();
    const bool alternates = memory.loop != kNone;
    const bool has_none = memory.arena == Program::Memory::kOwn;
    if (num_places != (has_none ? 0u : alternates ? 2u : 1u)) {
      fail(0, kNone, "a name has " + std::to_string(num_places) + " places");
    } else if (alternates && memory.loop >= program_.loops.size()) {
      fail(0, kNone, "a name alternates with a loop that is not there");
    }
  }
  void names(std::span<const uint32_t> list, uint32_t node) {
    const auto is_there = [&](uint32_t name) { return name < program_.block_of_name.size(); };
    if (!std::ranges::all_of(list, is_there)) fail(0, node, "a name is not there");
  }
  void names(std::span<const Program::Alias> list, uint32_t node) {
    for (const Program::Alias& alias : list) {
      names(std::span(&alias.from, 1), node);
      names(std::span(&alias.to, 1), node);
    }
  }

  void check_launch(const Program::Launch& launch) {
    for (const auto* list : {&launch.reads, &launch.writes, &launch.escapes}) {
      names(*list, launch.node);
    }
    names(launch.aliases, launch.node);
  }
  void check_loop(const Program::Loop& loop) {
    for (const auto* list : {&loop.reads, &loop.tested, &loop.rows, &loop.stacks}) {
      names(*list, loop.node);
    }
    for (const auto* list : {&loop.enter, &loop.forward, &loop.advance, &loop.leave}) {
      names(*list, loop.node);
    }
  }
  void check_row(const Program::Row& row) {
    const bool is_there =
        row.loop < program_.loops.size() && row.index < program_.loops[row.loop].rows.size();
    if (!is_there) fail(0, kNone, "a row is of no loop");
  }
  void check_case(const Program::Case& branch) {
    names(branch.reads, branch.node);
    names(branch.pass_through, branch.node);
    for (const auto& results : branch.results) names(results, branch.node);
    if (branch.results.size() != branch.blocks.size()) {
      fail(0, branch.node, "a branch lacks its results, or has too many");
    }
  }

  // A name has one maker. (Parameters have none here: what enters a block makes them.)
  void check_makers() {
    const auto make = [&](uint32_t name, uint32_t node) {
      if (is_made_[name]) fail(program_.block_of_name[name], node, "a name is made twice");
      is_made_[name] = true;
    };
    for (const Program::Launch& launch : program_.launches) {
      for (const uint32_t name : launch.writes) make(name, launch.node);
      for (const Program::Alias& alias : launch.aliases) make(alias.to, launch.node);
    }
    for (const Program::Loop& loop : program_.loops) {
      for (const Program::Alias& alias : loop.leave) make(alias.to, loop.node);
      for (const uint32_t name : loop.stacks) make(name, loop.node);
    }
    for (const Program::Case& branch : program_.cases) {
      std::vector<uint32_t> targets;  // each branch gives the same ones
      for (const auto& results : branch.results) add_targets(results, targets);
      add_targets(branch.pass_through, targets);
      std::ranges::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      for (const uint32_t name : targets) make(name, branch.node);
    }
  }
  static void add_targets(std::span<const Program::Alias> aliases, std::vector<uint32_t>& targets) {
    for (const Program::Alias& alias : aliases) targets.push_back(alias.to);
  }

  // Breadth first: an owner gives its blocks their depth before they are looked at.
  void check_blocks() {
    depth_[0] = 1;
    ends_[0] = {Op::kEnd, 0, 0};
    reached_ = {0};
    for (size_t i = 0; i < reached_.size() && !found_; ++i) check_block(reached_[i]);
    if (reached_.size() < depth_.size()) fail(0, kNone, "a block belongs to no step");
  }
  void check_block(uint32_t b) {
    const Program::Block& block = program_.blocks[b];
    const std::vector<Step>& steps = block.steps;
    EDDY_DCHECK(depth_[b] > 0) << "block " << b << " is looked at before its owner";
    if (steps.size() < 2 || steps.front().op != Op::kBegin) {
      return fail(b, kNone, "the block lacks its begin or end");
    }
    const Step& end = steps.back();
    const bool ends_well = end.op == ends_[b].op && end.operand == ends_[b].operand;
    if (!ends_well) return fail(b, kNone, "the block does not end as its owner demands");
    if (block.streams.empty() || end.stream != block.streams[0] ||
        steps.front().stream != block.streams[0]) {
      return fail(b, kNone, "the block does not begin and end on its main stream");
    }
    for (size_t i = 1; i + 1 < steps.size() && !found_; ++i) check_step(b, steps[i]);
  }
  void check_step(uint32_t b, const Step& step) {
    if (std::ranges::count(program_.blocks[b].streams, step.stream) != 1) {
      return fail(b, kNone,
                  "a step stands on stream " + std::to_string(step.stream) +
                      ", which is not one of the block's");
    }
    switch (step.op) {
      case Op::kLaunch:
      case Op::kRetain:
        place(0, b, step.operand, "a launch");
        break;
      case Op::kPushRow:
        if (!place(1, b, step.operand, "a row")) return;
        if (program_.loops[program_.rows[step.operand].loop].after != b) {
          fail(b, kNone, "a row stands outside its loop's `after`");
        }
        break;
      case Op::kLoop:
        if (place(2, b, step.operand, "a loop")) own_blocks_of_loop(b, step.operand);
        break;
      case Op::kCase:
        if (!place(3, b, step.operand, "a case")) return;
        for (const uint32_t inner : program_.cases[step.operand].blocks) {
          own(b, program_.cases[step.operand].node, inner, {Op::kEnd, 0, step.operand});
        }
        break;
      case Op::kWaitPrevious:
        if (!is_pipelined_[b]) {
          return fail(b, kNone, "a wait for the iteration before, but no pipelined loop");
        }
        [[fallthrough]];
      case Op::kRecord:
      case Op::kWait:
        if (step.operand >= program_.blocks[b].num_events) {
          fail(b, kNone, "event " + std::to_string(step.operand) + " is not one of the block's");
        }
        break;
      default:
        fail(b, kNone, "a begin or end stands in the middle of the block");
    }
  }
  void own_blocks_of_loop(uint32_t outer, uint32_t id) {
    const Program::Loop& loop = program_.loops[id];
    own(outer, loop.node, loop.before, {Op::kTest, 0, id});
    own(outer, loop.node, loop.after, {Op::kAdvance, 0, id});
    if (!found_) is_pipelined_[loop.after] = loop.is_pipelined;
  }
  void check_placed() {
    for (const std::vector<bool>& list : is_placed_) {
      if (std::ranges::find(list, false) != list.end()) fail(0, kNone, "an operand has no step");
    }
  }
  // Each operand stands in one place.
  bool place(size_t list, uint32_t b, uint32_t id, const char* what) {
    EDDY_DCHECK(list < is_placed_.size()) << what << " is of no kind";
    if (id >= is_placed_[list].size()) {
      fail(b, kNone, std::string(what) + " is not there");
      return false;
    }
    if (is_placed_[list][id]) fail(b, kNone, std::string(what) + " stands in two places");
    is_placed_[list][id] = true;
    return !found_;
  }
  // `end`: the last step of the inner block; its stream is not looked at.
  void own(uint32_t outer, uint32_t node, uint32_t inner, Step end) {
    if (inner >= depth_.size()) return fail(outer, node, "a block is not there");
    if (depth_[inner] > 0) return fail(inner, node, "the block is another's, too, or its own");
    depth_[inner] = depth_[outer] + 1;
    ends_[inner] = end;
    if (depth_[inner] > kMaxBlockDepth) return fail(inner, node, "blocks are nested too deeply");
    reached_.push_back(inner);
  }

  const Program& program_;
  std::vector<uint32_t> depth_;               // by block; 0: not reached yet
  std::vector<Step> ends_;                    // by block
  std::vector<bool> is_pipelined_;            // by block
  std::vector<bool> is_made_;                 // by name
  std::vector<uint32_t> reached_;             // blocks, owners first
  std::vector<std::vector<bool>> is_placed_;  // launches, rows, loops, cases
  std::optional<ProgramDefect> found_;
};

}  // namespace

std::optional<ProgramDefect> find_malformed(const Program& program) {
  return Validator(program).run();
}

}  // namespace eddy
