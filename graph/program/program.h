// Program: a graph's schedule, typed and nested: what the planner makes, the proof proves, the
// simulator predicts and the runtime runs.
//
// A program is a tree of blocks. Each block is one region of the graph: its steps in issue order,
// each on a stream of the machine. A block begins (kBegin) and ends on its main stream, the stream
// of the control step that runs it; the last step is how it ends. Its further streams are ordered
// behind its begin and before its end by records and waits among its steps, and by nothing else.
//
//   root      begin … end             a case's branch  begin … end, operand: the case
//   before    begin … test            after            begin … advance; both, operand: the loop
//
// A loop runs `before`, then its test, then `after`, and again. Where a loop is pipelined, `after`
// advances while its further streams still run: they go on, in order, into the next iteration, and
// all of them are waited for when the loop is left. kWaitPrevious waits for an event as the
// iteration before recorded it; in the first iteration it passes.
//
// Operands are ids of the lists below. Names are values: kLaunch reads and writes them. A name has
// a place in an arena (or two, which alternate with the iterations of one loop), or memory that
// references keep alive. An alias hands one name's value on to another: views, parameters and
// results; aliases of one list happen at once. It is a reference between two names without a place;
// nothing where both stand in the same place (has_same_place); else a copy of the bytes.
//
// Validity is checked by validate.h and safety by graph/proof; this is plain data and takes
// anything.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

struct Program {
  static constexpr uint32_t kNone = UINT32_MAX;

  enum class Op : uint8_t {
    kBegin,         // the first step of each block
    kLaunch,        // launches[operand]
    kRetain,        // launches[operand]: the stream takes references of its own
    kPushRow,       // rows[operand]: a row of the loop's stacked results is complete
    kLoop,          // loops[operand], from its entry until it is left
    kCase,          // cases[operand]
    kRecord,        // event `operand` happens when the stream has come this far
    kWait,          // the stream goes no further before event `operand` has happened
    kWaitPrevious,  // the same, of the iteration before; in the `after` of pipelined loops
    kTest,          // the last step of `before`
    kAdvance,       // the last step of `after`
    kEnd,           // the last step of the root and of branches
  };

  struct Step {
    Op op = Op::kLaunch;
    uint32_t stream = 0;   // of the machine
    uint32_t operand = 0;  // by op, as above; of the root's kEnd and of kBegin: 0
    bool operator==(const Step&) const = default;
  };

  struct Block {
    std::vector<uint32_t> streams = {};  // of the machine, each once; [0] is the main one
    // Events are numbered within the block: those that its nodes record, then one for its begin and
    // one for the end of each further stream, used or not.
    uint32_t num_events = 0;
    // The machine's events that it uses: so many, from there on. Only blocks of one loop or case
    // may share them.
    uint32_t first_machine_event = 0;
    uint32_t num_machine_events = 0;
    std::vector<Step> steps = {};  // issue order
  };

  struct Alias {
    uint32_t to;
    uint32_t from;
  };

  struct Launch {
    uint32_t node = 0;  // the graph's; of a kRetain: its loop
    std::vector<uint32_t> reads = {};
    std::vector<uint32_t> writes = {};
    std::vector<Alias> aliases = {};
    uint64_t overwritable = 0;  // bit i: writes[0] may stand exactly where reads[i] stands
    std::vector<uint32_t> escapes =
        {};  // of the reads: maybe beyond the launch, so never from an arena
  };

  struct Loop {
    uint32_t node = 0;
    uint32_t before = 0;  // blocks
    uint32_t after = 0;
    std::vector<uint32_t> reads = {};   // the trip limit
    std::vector<Alias> enter = {};      // initial values become parameters of `before`
    std::vector<uint32_t> tested = {};  // the predicate, read behind `before`
    std::vector<Alias> forward = {};    // results of `before` become parameters of `after`
    std::vector<uint32_t> rows = {};    // names; read by the kPushRow of each
    std::vector<Alias> advance = {};    // results of `after` become parameters of `before`
    std::vector<Alias> leave = {};      // results of `before` become outputs
    std::vector<uint32_t> stacks = {};  // outputs made of the rows
    bool is_pipelined = false;          // the next iteration may begin while this one's streams run
  };

  struct Row {
    uint32_t loop = 0;
    uint32_t index = 0;  // in Loop::rows
  };

  struct Case {
    uint32_t node = 0;
    std::vector<uint32_t> reads = {};              // the selector
    std::vector<uint32_t> blocks = {};             // one for each branch
    std::vector<std::vector<Alias>> results = {};  // of each branch
    std::vector<Alias> pass_through = {};          // when no branch runs
    bool may_run_none = false;
  };

  struct Memory {
    static constexpr uint32_t kOwn = UINT32_MAX;
    uint32_t arena = kOwn;
    uint64_t size_bytes = 0;
    std::vector<uint64_t> offsets_bytes = {};  // two: [i & 1] in iteration i of `loop`
    uint32_t loop = UINT32_MAX;                // the iteration that it was left in, once it is left
    bool operator==(const Memory&) const = default;
  };
  // When an alias happens: within an iteration, or where a loop is entered or advances.
  enum class Moment : uint8_t { kWithin, kEnter, kAdvance };

  std::vector<Block> blocks;  // by the graph's region; 0 is the root
  std::vector<Launch> launches;
  std::vector<Row> rows;
  std::vector<Loop> loops;
  std::vector<Case> cases;
  std::vector<Memory> memory;           // by name
  std::vector<uint32_t> block_of_name;  // where it is defined
  std::vector<uint32_t> results;        // names that leave the root
  std::vector<uint64_t> arena_sizes_bytes;
  // The streams of an accelerator: their launches release references when they are issued, not when
  // they have ended. A name made by an alias shares memory of its own with others, and its reader
  // there keeps no other stream from writing it.
  std::vector<uint32_t> asynchronous_streams;
};

static_assert(sizeof(Program::Step) == 12, "steps are walked in order; keep them dense");

// The name whose value a row is.
inline uint32_t row_name(const Program& program, const Program::Row& row) {
  EDDY_DCHECK(row.index < program.loops[row.loop].rows.size()) << "a row of another loop";
  return program.loops[row.loop].rows[row.index];
}

// A launch, loop or case: it stands for a node of the graph.
inline bool is_node(Program::Op op) {
  return op == Program::Op::kLaunch || op == Program::Op::kLoop || op == Program::Op::kCase;
}

// The first or last step of a block.
inline bool is_frame(Program::Op op) {
  using Op = Program::Op;
  return op == Op::kBegin || op == Op::kTest || op == Op::kAdvance || op == Op::kEnd;
}

// The `after` of a pipelined loop.
inline bool is_pipelined(const Program& program, const Program::Block& block) {
  EDDY_DCHECK(!block.steps.empty()) << "a block has a begin and an end";
  const Program::Step& end = block.steps.back();
  return end.op == Program::Op::kAdvance && program.loops[end.operand].is_pipelined;
}

// Which of the block's streams it is; as many as there are: none of them.
inline uint32_t local_stream(const Program::Block& block, uint32_t stream) {
  uint32_t local = 0;
  while (local < block.streams.size() && block.streams[local] != stream) ++local;
  return local;
}

// Events from there on are those of the block's begin and of its streams' ends.
inline uint32_t first_frame_event(const Program::Block& block) {
  EDDY_DCHECK(block.num_events >= block.streams.size()) << "its frame's events are not numbered";
  return block.num_events - static_cast<uint32_t>(block.streams.size());
}

inline bool has_place(const Program& program, uint32_t name) {
  return program.memory[name].arena != Program::Memory::kOwn;
}

// Whether `to` stands where `from` stands; both have places. `loop`: the one that is entered, where
// its names stand at their first place, or that advances: `to` is of the iteration behind that of
// `from`. Memory: Program's, or the planner's.
template <typename Memory, typename Loop>
bool has_same_place(const Memory& to, const Memory& from, Program::Moment moment, Loop loop) {
  if (to.arena != from.arena || to.size_bytes != from.size_bytes) return false;
  const auto turns = [&](const Memory& memory) {
    return moment != Program::Moment::kWithin && memory.offsets_bytes.size() == 2 &&
           memory.loop == loop;
  };
  if (!turns(to) && !turns(from)) {
    return to.offsets_bytes == from.offsets_bytes && to.loop == from.loop;
  }
  if (moment == Program::Moment::kEnter) {
    return from.offsets_bytes.size() == 1 && to.offsets_bytes[0] == from.offsets_bytes[0];
  }
  return turns(to) && turns(from) && to.offsets_bytes[0] == from.offsets_bytes[1] &&
         to.offsets_bytes[1] == from.offsets_bytes[0];
}

// Whether the alias copies bytes.
inline bool is_copy(const Program& program, const Program::Alias& alias,
                    Program::Moment moment = Program::Moment::kWithin,
                    uint32_t loop = Program::kNone) {
  if (!has_place(program, alias.to)) return false;
  return !has_place(program, alias.from) ||
         !has_same_place(program.memory[alias.to], program.memory[alias.from], moment, loop);
}

// A record or wait: it orders, and does nothing by itself.
inline bool is_sync(Program::Op op) {
  return op == Program::Op::kRecord || op == Program::Op::kWait || op == Program::Op::kWaitPrevious;
}

}  // namespace eddy
