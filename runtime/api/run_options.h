// RunOptions: what one run is asked for besides its values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime/api/output_stream.h"

namespace eddy {

class TraceRecorder;

// The rows of an output go to the stream, too (output_stream.h).
struct StreamedOutput {
  std::string output;
  std::shared_ptr<OutputStream> stream;
};

// Which of the runs that wait for their turn, or for a worker, goes first. One that runs keeps its
// worker; as long as higher ones come, lower ones wait.
enum class Priority : uint8_t { kLow, kNormal, kHigh };
inline constexpr size_t kNumPriorities = 3;

struct RunOptions {
  // From the call on, turns and streams waited for included. A run that ends later fails with
  // kDeadlineExceeded, also when its outputs were made; one that still waits ends at once.
  std::optional<std::chrono::nanoseconds> timeout = {};
  Priority priority = Priority::kNormal;
  // Spans of this run go there (runtime/trace); one traced run at a time. A Call is traced by
  // giving the recorder to prepare().
  TraceRecorder* trace_or_null = nullptr;
  // Outputs whose rows are wanted while their loop runs; not of a traced run. The host drives its
  // loops.
  std::vector<StreamedOutput> streams = {};
  // Of a Call: a run that is stopped goes on until all answers that its kernels and host functions
  // owe have come (ops/contract/pending_call.h). Where one has not come `answer_limit` after the
  // stop, this is called once, on the callback thread, with why the run was stopped and which node
  // owes; perhaps after the run has ended. Not with ranks.
  std::function<void(const Status&)> on_overdue = {};
  std::chrono::nanoseconds answer_limit = std::chrono::seconds(1);
};

}  // namespace eddy
