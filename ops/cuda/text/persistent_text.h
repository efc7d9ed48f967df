// persistent_kernel_source: the source of one kernel that runs a whole LoopProgram.
//
// One block: what it carries and makes stays in its memory, a barrier stands where threads read
// what others have made, and no iteration costs a launch. Why one: up to some thousand elements a
// barrier of all blocks costs more than their help is worth (0.76 µs an iteration with one block,
// 1.0 with 132 on an H200), and a block needs no promise that all others run at the same time.
// Sources: persistent threads (Gupta, Stuart, Owens, InPar 2012); cooperative groups' grid barrier
// is what several blocks would need.
//
// The same bits as a kernel a node: elementwise steps as in fused_text.h; a reduction takes the
// body and the order of the node's own kernel (rows.cc), short rows a thread each, middling ones a
// warp, long ones the block. Steps of one shape that read each other element for element share a
// phase.
//
// Contract: pure; equal programs have equal sources and names. Errors: kUnsupported, and why, for
// programs beyond the limits or with reductions that have other bits here; kInvalidArgument for
// expressions that are none. Cost: O(steps).
#pragma once

#include "graph/ir/loop_program.h"
#include "ops/cuda/text/fused_text.h"

namespace eddy::cuda {

inline constexpr uint64_t kMostLoopElements = 8192;   // of one value
inline constexpr uint64_t kMostLoopBytes = 32 << 10;  // of all that the block keeps
inline constexpr uint64_t kMiddlingRow = 32;  // from here on a warp takes a row, not a thread
inline constexpr uint64_t kLongRow = 256;     // and from here on a block

// Bytes of the block's memory that the values take.
uint64_t loop_memory_bytes(const LoopProgram& program);
Result<KernelSource> persistent_kernel_source(const LoopProgram& program);

}  // namespace eddy::cuda
