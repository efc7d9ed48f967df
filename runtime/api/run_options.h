// RunOptions: what one run is asked for besides its values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
};

}  // namespace eddy
