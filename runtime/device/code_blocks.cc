#include "runtime/device/code_blocks.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace eddy {
namespace {

using Op = CommandCode::Op;
using Kind = CodeItem::Kind;

class BlockReader {
 public:
  explicit BlockReader(const CommandCode::View& view) : view_(view) {
    for (uint32_t at = 0; at < size(); ++at) {
      const CommandCode::Command& command = view.code[at];
      if (command.op == Op::kRepeat) repeats_[command.target].push_back(at);
      if (command.op == Op::kTest) tests_[command.target].push_back(at);
      if (command.op == Op::kSwitch) tables_.push_back(command.target);
    }
    // A table ends where the next one begins.
    tables_.push_back(static_cast<uint32_t>(view.targets.size()));
    std::ranges::sort(tables_);
  }

  Result<CodeBlock> run() {
    if (size() == 0 || view_.code.back().op != Op::kEnd) return fail(size(), "has no end");
    return block(0, size() - 1);
  }

 private:
  uint32_t size() const { return static_cast<uint32_t>(view_.code.size()); }
  static Status fail(uint32_t at, const std::string& what) {
    return internal_error("command " + std::to_string(at) + " of a command buffer " + what);
  }

  // [at, end)
  Result<CodeBlock> block(uint32_t at, uint32_t end) {
    CodeBlock made;
    while (at < end) {
      uint32_t next = at + 1;
      CodeItem item{.command = at};
      const CommandCode::Command& command = view_.code[at];
      const auto repeats = repeats_.find(at);
      if (repeats != repeats_.end() && !repeats->second.empty()) {
        EDDY_RETURN_IF_ERROR(loop(at, end, repeats->second, item, next));
      } else if (command.op == Op::kFork) {
        EDDY_RETURN_IF_ERROR(fork(at, end, item, next));
      } else if (command.op == Op::kSwitch) {
        EDDY_RETURN_IF_ERROR(branches(at, end, item, next));
      } else {
        EDDY_RETURN_IF_ERROR(simple(at, item));
      }
      made.push_back(std::move(item));
      at = next;
    }
    return made;
  }

  Status simple(uint32_t at, CodeItem& item) const {
    item.id = view_.code[at].target;
    switch (view_.code[at].op) {
      case Op::kLaunch:
        item.kind = Kind::kLaunch;
        return Status::ok();
      case Op::kReset:
        item.kind = Kind::kReset;
        break;
      case Op::kRecord:
        item.kind = Kind::kRecord;
        break;
      case Op::kWait:
        item.kind = Kind::kWait;
        break;
      default:
        return fail(at, "is a jump that belongs to no while, case or fork");
    }
    return item.id < view_.num_events ? Status::ok() : fail(at, "names an event that is not there");
  }

  // The outermost of the loops that begin here and have not been read.
  Status loop(uint32_t at, uint32_t end, std::vector<uint32_t>& repeats, CodeItem& item,
              uint32_t& next) {
    const uint32_t last = repeats.back();  // they ascend
    repeats.pop_back();
    next = last + 1;
    if (last < at || next > end) return fail(last, "repeats from inside a block what is around it");
    item.kind = Kind::kWhile;
    item.tests = tests_[next];
    uint32_t from = at;
    for (const uint32_t test : item.tests) {
      if (test < from || test > last) return fail(test, "leaves a while that it is not in");
      EDDY_ASSIGN_OR_RETURN(item.blocks.emplace_back(), block(from, test));
      from = test + 1;
    }
    if (item.tests.empty()) return fail(last, "repeats for ever");
    item.command = item.tests[0];
    EDDY_ASSIGN_OR_RETURN(item.blocks.emplace_back(), block(from, last));
    return Status::ok();
  }

  Status fork(uint32_t at, uint32_t end, CodeItem& item, uint32_t& next) {
    item.kind = Kind::kFork;
    item.id = view_.code[at].target;
    const bool is_there = at + 1 < end && view_.code[at + 1].op == Op::kJump &&
                          item.id < view_.strand_entries.size() &&
                          view_.strand_entries[item.id] == at + 2;
    next = is_there ? view_.code[at + 1].target : 0;
    if (next < at + 3 || next > end || view_.code[next - 1].op != Op::kEnd) {
      return fail(at, "forks a strand that does not stand behind it");
    }
    EDDY_ASSIGN_OR_RETURN(item.blocks.emplace_back(), block(at + 2, next - 1));
    return Status::ok();
  }

  Status branches(uint32_t at, uint32_t end, CodeItem& item, uint32_t& next) {
    item.kind = Kind::kCase;
    const uint32_t table = view_.code[at].target;
    if (table >= view_.targets.size()) return fail(at, "has no branches");
    const uint32_t behind = *std::ranges::upper_bound(tables_, table) - 1;
    if (behind == table) return fail(at, "has no branches");
    next = view_.targets[behind];
    if (next < at + 1 || next > end) return fail(at, "branches out of its block");
    for (uint32_t t = table; t < behind; ++t) {
      const bool is_last = t + 1 == behind;
      const uint32_t to = is_last ? next : view_.targets[t + 1] - 1;
      const uint32_t from = view_.targets[t];
      if (from > to || to > next || from < at + 1) return fail(at, "has branches out of order");
      const bool leaves =
          is_last || (view_.code[to].op == Op::kJump && view_.code[to].target == next);
      if (!leaves) return fail(to, "does not leave its branch");
      EDDY_ASSIGN_OR_RETURN(item.blocks.emplace_back(), block(from, to));
    }
    return Status::ok();
  }

  const CommandCode::View& view_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> repeats_;  // by target; ascending
  std::unordered_map<uint32_t, std::vector<uint32_t>> tests_;    // the same
  std::vector<uint32_t> tables_;  // of cases, ascending; then their end
};

}  // namespace

Result<CodeBlock> read_blocks(const CommandCode::View& view) { return BlockReader(view).run(); }

}  // namespace eddy
