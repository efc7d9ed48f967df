// resolve_program: a program as the code of its strands (runtime/device/strand_code.h), once for
// all runs of an executable.
//
// Each stream of each block becomes a strand, but for main streams, whose steps stand where the
// loop or case that runs the block does. Its steps, records and waits are those of the program, in
// its order; nothing is added that orders strands, but what a pipelined loop (Program::Loop) needs:
// its `after` begins an iteration when each further stream has ended the last but one, and the loop
// is left when all have ended.
//
// Calls come besides from what the runtime does at a step: values that no node reads any more are
// released, a device may drive a loop or branch in place of this code, and a traced run
// writes spans.
//
//   loop     enter · [before] · test → exit · [after] · advance · repeat      exit: leave
//   branch   select → [branch] · finish branch · jump to the end
//   driven   choose → the code above, hand back | drive | drive, ask
//
// Contract: the program is well formed (graph/program/validate.h); each further stream of a block
// begins with a wait and, unless the block overlaps, ends with a record, or else it would not be
// ordered between the block's begin and end (CHECK). Cost: linear.
#pragma once

#include <functional>
#include <vector>

#include "graph/program/program.h"
#include "runtime/device/strand_code.h"
#include "runtime/execute/step_observer.h"

namespace eddy {

struct ResolvedProgram {
  enum class What : uint8_t {
    kStep,
    // What no observer sees; of `step`, node, strand and branch only.
    kRelease,      // what no node reads after this one
    kBeginTail,    // of a pipelined loop: stream `branch` of its `after` begins an iteration
    kChoose,       // by what the loop or branch is driven: a Driver
    kDrive,        // by the device
    kDeviceEnded,  // the device has ended it
    kHandBack,     // the host has
    kAwaitRoom,    // for rows of the loop; `branch`: of which result of `after`, or kAllRows
    kBeginSpan,    // of a trace; `branch`: a SpanKind
    kEndSpan,
  };
  struct Call {
    What what = What::kStep;
    Step step;
    uint32_t stream = 0;  // of the machine
  };
  // What drives a loop or branch this time; kTryDevice: the device, which is timed.
  enum Driver : int32_t { kByHost, kByDevice, kTryDevice, kNumDrivers };
  StrandCode code;
  std::vector<Call> calls;  // by the operands of commands that call
};

// What a span is of: the whole node, an iteration of the loop, or from kBranch on a branch.
enum SpanKind : uint32_t { kNode, kIteration, kBranch };

struct ResolveOptions {
  // Of launches; may be empty: all are.
  std::function<bool(NodeId)> is_cheap = {};
  // Launches that may answer later; empty: none.
  std::function<bool(NodeId)> may_answer_later = {};
  // A call behind the node releases what no node reads any more; empty: none does.
  std::function<bool(NodeId)> has_release = {};
  // A device may drive the loop or branch; empty: none may.
  std::function<bool(NodeId)> may_be_driven = {};
  bool has_spans = false;
  // Rows of a loop may go to sinks besides (row_sink.h).
  bool streams_rows = false;
};

ResolvedProgram resolve_program(const Program& program, const ResolveOptions& options = {});

}  // namespace eddy
