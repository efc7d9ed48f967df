// Nested commands: a whole plan as the lists of commands that are issued, region in region, with
// every access to memory. What the proof reads, and all that it reads.
//
// A region's commands are those of command.h, and two more: a loop and a branch, whose regions'
// commands are issued while it runs. Streams are those of the machine. The first command of a
// region, its entry, stands on the stream of its control node, and so does the last, its exit. Its
// further streams come after the one and before the other, by records and waits among the commands.
// The `after` of an open loop lacks the latter: its further streams go on, in order, into the next
// iteration, and all of them are waited for when the loop ends.
//
// A name is a value of the graph. Launches read and write names. A written name has memory: a
// block (or several, taking turns) in an arena, or memory of its own that references keep alive.
// A pass makes one name stand for whatever memory another stands for: views, loop parameters and
// results, branches' results. Passes of one list happen at once.
#pragma once

#include <cstdint>
#include <vector>

namespace eddy {

struct NestedCommand {
  enum class Kind : uint8_t {
    kEnter,
    kLaunch,
    kLoop,
    kCase,
    kRecord,
    kWait,
    kWaitPrevious,  // for the event as recorded in the iteration before; in open loops
    kExit
  };
  Kind kind = Kind::kLaunch;
  uint32_t stream = 0;
  uint32_t id = 0;  // kLaunch, kLoop, kCase: into that list; kRecord, kWait…: an event
  bool operator==(const NestedCommand&) const = default;
};

struct NestedPass {
  uint32_t to;
  uint32_t from;
};

struct NestedLaunch {
  uint32_t node = 0;  // for messages
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
  std::vector<NestedPass> passes;
  uint64_t overwritable = 0;   // bit i: writes[0] may stand exactly where reads[i] stands
  std::vector<uint32_t> kept;  // of the reads: maybe beyond the launch, so never from an arena
};

struct NestedLoop {
  uint32_t node = 0;
  uint32_t before = 0;  // regions
  uint32_t after = 0;
  std::vector<uint32_t> reads;      // the trip limit
  std::vector<NestedPass> enter;    // initial values become parameters of `before`
  std::vector<uint32_t> tested;     // the predicate, read behind `before`
  std::vector<NestedPass> forward;  // results of `before` become parameters of `after`
  std::vector<uint32_t> rows;       // read behind `after`
  std::vector<NestedPass> advance;  // results of `after` become parameters of `before`
  std::vector<NestedPass> leave;    // results of `before` become outputs
  std::vector<uint32_t> stacks;     // outputs made of the rows
  // The next iteration begins where `after` exits, while its further streams may go on. A row that
  // a command of `after` defines is then read by that command, at its end.
  bool is_open = false;
};

struct NestedCase {
  uint32_t node = 0;
  std::vector<uint32_t> reads;  // the selector
  std::vector<uint32_t> regions;
  std::vector<std::vector<NestedPass>> results;  // of each region
  std::vector<NestedPass> pass_through;          // when no region runs
  bool may_run_none = false;
};

struct NestedRegion {
  uint32_t num_events = 0;
  // The machine's events that it uses: so many, from there on. Only regions of one loop or branch
  // may share them.
  uint32_t first_machine_event = 0;
  uint32_t num_machine_events = 0;
  std::vector<NestedCommand> commands;  // issue order; the first is kEnter, the last kExit
};

struct NestedMemory {
  static constexpr uint32_t kOwn = UINT32_MAX;
  uint32_t arena = kOwn;
  uint64_t size_bytes = 0;
  std::vector<uint64_t> offsets_bytes;
  std::vector<uint32_t> holders;  // names: the writer takes the first block none of them stands at
};

struct NestedCommands {
  std::vector<NestedRegion> regions;  // 0 is the root
  std::vector<NestedLaunch> launches;
  std::vector<NestedLoop> loops;
  std::vector<NestedCase> cases;
  std::vector<NestedMemory> memory;      // by name
  std::vector<uint32_t> region_of_name;  // where it is defined
  std::vector<uint32_t> results;         // names that leave the root
  std::vector<uint64_t> arena_sizes_bytes;
  // Streams whose launches let go of references when they are issued, not when they have ended: an
  // accelerator's. A name made by a pass shares memory of its own with others, and its reader there
  // keeps nobody from writing it.
  std::vector<uint32_t> early_streams;
};

}  // namespace eddy
