// RecordedWork: which step of which node a recorded command is, by what it points to; and what a
// strand's items (code_blocks.h) are in these words.
//
// Part of recorded_commands. Threads: those of RunState. Cost: O(1) a command, after O(nodes).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/device/code_blocks.h"
#include "runtime/execute/run_state.h"

namespace eddy {

struct RecordedStep {
  enum class Kind : uint8_t {
    kExec,
    kEnter,
    kTest,
    kTake,  // index: of the kRetain in its block
    kTail,
    kRow,  // index: into the results of `after`
    kAdvance,
    kLeave,
    kSelect,
    kFinishBranch,  // index: the branch
    kChoose,        // by whom a loop is driven: branch 0 by these commands
    kHeard,         // a device's loop has ended
    kBookkeeping,   // touches nothing that nodes read or write
    kUnknown
  };
  Kind kind = Kind::kUnknown;
  NodeId node = {};
  uint32_t index = 0;
};

using CodeItems = std::vector<const CodeItem*>;
CodeItems pointers(const CodeBlock& block);

class RecordedWork {
 public:
  // Of a state whose command buffer is a CommandCode.
  explicit RecordedWork(RunState& state);

  const Graph& graph() const { return state_.graph(); }
  const CommandCode::View& view() const { return view_; }
  uint32_t stream_of(const CodeItem& fork) const { return view_.strand_streams[fork.id]; }

  // Of an item that is a launch, or a command that decides.
  RecordedStep launch(const CodeItem& item) const;
  RecordedStep decision(uint32_t command) const;
  bool is_launch(const CodeItem& item, RecordedStep::Kind kind, NodeId node = {}) const;
  bool is_bookkeeping(const CodeItem& item) const {
    return is_launch(item, RecordedStep::Kind::kBookkeeping);
  }
  // visit(item) for the strand's own records; those before a loop's first turn are the loop's.
  template <typename Visit>
  void for_each_record(const CodeItems& items, const Visit& visit) const;

  // kInternal: what was recorded for that region `what`.
  Status fail(RegionId region, const std::string& what) const;

 private:
  void add_loop(NodeId id);
  RecordedStep find(const void* context, RecordedStep::Kind kind) const;
  uint32_t row_of(const LoopState::RowPush& push, NodeId loop) const;

  RunState& state_;
  const CommandCode::View view_;
  std::unordered_map<const void*, RecordedStep>
      steps_;  // kExec, kEnter of loops, kTake, kSelect, …
};

template <typename Visit>
void RecordedWork::for_each_record(const CodeItems& items, const Visit& visit) const {
  bool is_entering = false;
  for (const CodeItem* item : items) {
    if (item->kind == CodeItem::Kind::kWhile) is_entering = false;
    if (item->kind == CodeItem::Kind::kLaunch) {
      is_entering |= launch(*item).kind == RecordedStep::Kind::kEnter;
    }
    if (item->kind == CodeItem::Kind::kRecord && !is_entering) visit(*item);
  }
}

}  // namespace eddy
