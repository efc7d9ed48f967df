// Recorder: work of one device, recorded once and launched as one, again and again.
//
//   begin()
//     work that enqueues on lane(0), lane(1) … is collected instead of run
//     mark(lane), follow(lane, mark): order between lanes
//     begin_while(test), <body>, end_while()     decided by the device itself
//     begin_while(test), <body>, begin_again(), <body>, end_while()     two iterations a round
//     begin_case(choice, n), n × (begin_branch(), <branch>), end_case()
//   finish() -> Recording; abandon() drops what was collected
//
// Lanes are the parallel branches of a recording. Lane 0 is where it begins and ends: another lane
// must follow a mark before it is used, and lane 0 must follow what each lane did last before the
// recording, a loop, a branch or a body ends. Between these, lanes begin anew: whatever follows a
// loop or case is behind it.
//
// What enqueues must not block, ask the device anything or allocate in a lane; else finish() fails.
// A recording keeps the addresses it was made with: whoever launches it answers for them.
//
// Errors: what the driver answers; kInternal for lanes used against these rules. After any failure
// only abandon() makes sense. Threads: one at a time. Ownership: the recorder, whose lanes kernels
// may know, outlives its recordings, and both must go before their device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "graph/base/status.h"

namespace eddy {

class Recording {
 public:
  virtual ~Recording() = default;
  // Enqueues all of it on a native stream. Launches of one recording follow each other.
  virtual Status launch(void* native_stream) = 0;
};

// Words of a loop that the device drives. `counter` and `limit` are in the device's memory, the
// others in host memory that the device reads and writes.
struct LoopWords {
  int64_t* counter = nullptr;
  int64_t* limit = nullptr;
  const uint32_t* stop = nullptr;  // not 0: no further iteration begins
  int64_t* progress = nullptr;     // {the counter, 1 once it is over}, for the host; may lag behind
};

// What decides a loop: go on while the counter is below the limit, `predicate` (a bool in memory
// that the device reads) is true and nobody has stopped it.
struct LoopTest {
  LoopWords words;
  const void* predicate = nullptr;
  // In the device's memory: 1 where the last test has said that the loop goes on, else 0. Null: the
  // body holds one iteration.
  uint32_t* go_on = nullptr;
};

struct MemoryCopy {
  void* to;
  const void* from;
  size_t size_bytes;
};

// What decides a case: the selector's value, if there is such a branch, else `fallback`.
struct CaseChoice {
  enum class Type : int32_t { kBool, kInt32, kInt64 };
  static constexpr int32_t kFail = -1;
  Type type = Type::kBool;
  const void* selector = nullptr;
  int32_t num_choices = 2;   // values of the selector that choose a branch
  int32_t fallback = kFail;  // a branch; kFail: no branch runs, and all loops end
  const uint32_t* stop = nullptr;
  int64_t* failure = nullptr;  // in host memory: {1, the selector's value} when it fails
};

class Recorder {
 public:
  virtual ~Recorder() = default;

  virtual Status begin() = 0;
  // The native stream that collects for this lane.
  virtual Result<void*> lane(uint32_t lane) = 0;
  virtual Result<uint32_t> mark(uint32_t lane) = 0;
  virtual Status follow(uint32_t lane, uint32_t mark) = 0;
  // In lane 0: a copy within the device's memory or from or to host memory that the device sees.
  virtual Status copy(void* to, const void* from, size_t size_bytes) = 0;
  // In lane 0, in any order: none writes what another one reads or writes. Nothing of size 0.
  virtual Status copy_all(std::span<const MemoryCopy> copies) = 0;
  // One copy at once, on a native stream.
  virtual Status copy_now(void* native_stream, void* to, const void* from, size_t size_bytes) = 0;
  virtual Result<std::unique_ptr<Recording>> finish() = 0;
  virtual void abandon() = 0;

  // Whether the device can decide loops and cases. Below only then.
  virtual bool can_decide() const { return false; }
  // Sets the counter to 0; before the commands that make the first predicate.
  virtual Status start_counter(const LoopWords& words) = 0;
  // Counts the iteration that has ended; before the commands that make the next predicate.
  virtual Status advance_counter(const LoopWords& words) = 0;
  virtual Status begin_while(const LoopTest& test) = 0;
  // In a body whose test has `go_on`: how many launches it holds so far. kUnsupported, and why,
  // where it holds work that cannot be called off: a library's, copies that are no kernels.
  virtual Result<uint32_t> count_launches() = 0;
  // Likewise: tests, as end_while() does, and begins another iteration, whose work does nothing
  // where the test says that the loop ends. kUnsupported at its end, if not here, where
  // count_launches() would be.
  virtual Status begin_again() = 0;
  virtual Status end_while() = 0;
  virtual Status begin_case(const CaseChoice& choice, uint32_t num_branches) = 0;
  virtual Status begin_branch() = 0;
  virtual Status end_case() = 0;
};

}  // namespace eddy
