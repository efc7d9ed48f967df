// Memory plan: where the values of fixed shape live during a run, laid out before it.
//
// A planned name (storages.h says which) has a block: an offset in the arena of its device, a
// multiple of 64, and a size. A run allocates each arena once and needs no other memory for these
// values. Everything else says why it has no block.
//
// The plan promises: when a block is written, no step reads the value that stood there any more, in
// any order of completion that the plan's streams and waits allow. So no reference is counted.
//
// The plan asks of the runtime:
//   one offset    the name stands there in every run and iteration
//   two offsets   in iteration i of `loop` (the last one, once it is left) the name stands at
//                 offset i & 1
//   handing on    where a loop or case hands a value to a name that does not stand where the value
//                 stands at that moment, its bytes are copied, all of one hand-over at once
//   kBlock        a name that is made by a node, loop or case
//   kShared       a further name (of a view, of a parameter of `after`), with offsets where what
//                 it names is planned; or a name that references move
//   kNone         any memory outside the arenas
// A node in place has the same block as the input that it overwrites. Values that leave the graph
// are never in an arena, so no caller keeps one alive.
//
// Peak and bound: an arena's size is its peak. `lower_bound_bytes` is the weight of the heaviest
// set of blocks that must exist at once; no layout of the same lifetimes is smaller. plan_memory
// (plan_memory.h) makes the plan; prove_plan checks it.
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
  kHandedOn,       // to a name that references move
};
// What the value is: "leaving the graph"; "" for kHasBlock.
std::string_view reason_text(NoBlock reason);

struct ValueMemory {
  MemoryPlace place = MemoryPlace::kNone;
  NoBlock reason = NoBlock::kHasBlock;  // of kNone
  uint32_t arena = 0;
  uint64_t size_bytes = 0;              // of the value; the block reaches to the next 64
  std::vector<uint64_t> offsets_bytes;  // none: not planned
  NodeId loop;                          // of two offsets
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

  // Null unless the value stands in a block.
  const ValueMemory* block_or_null(ValueId value) const {
    if (value.index() >= values.size()) return nullptr;
    const ValueMemory& memory = values[value.index()];
    return memory.offsets_bytes.empty() ? nullptr : &memory;
  }
};

}  // namespace eddy
