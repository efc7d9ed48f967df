// Memory plan: where the values of fixed shape live during a run, laid out before it.
//
// A value that a node writes, whose shape is known, has a block: an offset in the arena of its
// device, a multiple of 64, and a size. A run allocates each arena once and needs no other memory
// for these values. Every other value has a reason why it has no block.
//
// What the plan promises: when a node writes a block, the value that stood there has no reader
// left, in any order of completion that the plan's streams and waits allow. It follows a value
// under all its names: views, loop parameters and results, branches' results, captures, and nodes
// that may keep their input's memory. No reference needs to be counted for it.
//
// What it asks of the runtime:
//   kBlock    the node that makes the value writes it to its block and nowhere else, whatever
//             memory the value's slot was given by moving or swapping since.
//   several   `offsets_bytes` has more than one entry for a value that a loop carries: instances of
//             several iterations are alive at once. The node writes to the first of the blocks at
//             which none of the `holders` points at that moment (one holder, two blocks: they take
//             turns). There is always one.
//   kShared   the value is some other value's memory: passed on, never written.
//   kNone     any memory outside the arenas; values that leave the graph are always there.
// A node in place has the same block as the input that it overwrites. Memory of an arena is written
// for the value it is planned for only. plan_memory (plan_memory.h) makes it; prove_plan checks it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

inline constexpr uint64_t kBlockAlignmentBytes = 64;

enum class MemoryPlace : uint8_t { kNone, kBlock, kShared };

// Why a value has no block.
enum class NoBlock : uint8_t {
  kHasBlock,
  kConstant,
  kGraphInput,  // the caller's
  kLoopCounter,
  kNotATensor,  // a sequence or an optional
  kStrings,
  kChangingShape,  // known only while running
  kEmpty,          // no elements
  kMadeByKernel,   // the operator makes its own outputs
  kScanRows,       // stacked; grows while the loop runs
  kLeavesGraph,    // an output of the graph: handed to the caller
  kKeptByReader,   // a reader may keep its memory: in a sequence, or to grow it
  kManyHolders,    // carried through more than kMaxHolders loop parameters
  kManyValues,     // smaller than the kMaxPlannedValues that are planned
};
// What the value is: "leaving the graph"; "" for kHasBlock.
std::string_view reason_text(NoBlock reason);

inline constexpr size_t kMaxHolders = 3;
inline constexpr size_t kMaxPlannedValues = 4'000;

struct ValueMemory {
  MemoryPlace place = MemoryPlace::kNone;
  NoBlock reason = NoBlock::kHasBlock;  // of kNone
  uint32_t arena = 0;                   // kBlock
  uint64_t size_bytes = 0;              // kBlock: of the value; the block reaches to the next 64
  std::vector<uint64_t> offsets_bytes;  // kBlock: one, or one more than holders
  std::vector<ValueId> holders;         // parameters of loops around the value's node
};

struct MemoryArena {
  std::string device;
  uint64_t size_bytes = 0;  // the peak
  uint64_t lower_bound_bytes = 0;
  uint32_t num_blocks = 0;
};

struct MemoryPlan {
  std::vector<ValueMemory> values;  // by ValueId; empty: nothing is planned
  std::vector<MemoryArena> arenas;

  // Null unless the value has a block.
  const ValueMemory* block_or_null(ValueId value) const {
    if (value.index() >= values.size()) return nullptr;
    const ValueMemory& memory = values[value.index()];
    return memory.place == MemoryPlace::kBlock ? &memory : nullptr;
  }
};

}  // namespace eddy
