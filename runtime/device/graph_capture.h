// GraphCapture: work of one device, captured once as a graph and launched as one, again and again.
//
//   make_streams(count), begin()
//     work that enqueues on stream(0), stream(1) … is captured instead of run
//     record(stream) → event, wait(stream, event): order between streams
//     begin_while(test), <body>, end_while()     decided by the device itself
//     begin_while(test), <body>, begin_again(), <body>, end_while()     two iterations a round
//     begin_case(choice, n), n × (begin_branch(), <branch>), end_case()
//   finish() -> CapturedGraph; abandon() drops what was captured
//
// Capture streams are the parallel branches of a graph. Stream 0 is where it begins and ends:
// another stream waits for an event before it is used, and stream 0 waits for what each stream did
// last before the graph, a loop, a branch or a body ends. Between these, streams begin anew: what
// follows a loop or case is behind it.
//
// What enqueues must not block, ask the device anything or allocate in a capture stream; else
// finish() fails. A captured graph keeps the addresses that it was made with; its launcher answers
// for them.
//
// Errors: what the driver answers; kInternal for streams used against these rules. After any
// failure only abandon() makes sense. Threads: one at a time. Ownership: the capture, whose streams
// kernels may know, outlives its graphs, and both must go before their device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Enqueues all of it on a native stream. Launches of one graph follow each other.
  virtual Status launch(void* native_stream) = 0;
};

// Words of a loop that the device drives. `counter` and `limit` are in the device's memory, the
// others in host memory that the device reads and writes.
struct LoopWords {
  int64_t* counter = nullptr;
  int64_t* limit = nullptr;
  const uint32_t* stop = nullptr;  // not 0: no further iteration begins
  int64_t* progress = nullptr;     // {the counter, 1 once it is over}, for the host; may lag behind
  // In the device's memory, one for all loops of a graph: the device may look at `stop` every 20 µs
  // only, for graphs in which no kernel writes it. Null: in each iteration.
  uint64_t* asked_ns = nullptr;
};

// What decides a loop: go on while the counter is below the limit, `predicate` (a bool in memory
// that the device reads) is true and it is not stopped.
struct LoopTest {
  LoopWords words;
  const void* predicate = nullptr;
  // In the device's memory: 1 where the last test has said that the loop goes on, else 0. Null: the
  // body holds one iteration.
  uint32_t* go_on = nullptr;
};

// kToRow: `to` is as many copies of this size further on as *count says. kRows: of rows of
// row_bytes each, which fill size_bytes, the first *count go to where the pointer at `to` leads.
// `count` is in the device's memory.
struct MemoryCopy {
  enum class Kind : uint8_t { kWhole, kToRow, kRows };
  void* to;
  const void* from;
  size_t size_bytes;
  Kind kind = Kind::kWhole;
  const int64_t* count = nullptr;
  size_t row_bytes = 0;
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

class GraphCapture {
 public:
  virtual ~GraphCapture() = default;

  // Outside of a capture: the first `count` streams, so that none is made inside one, where
  // libraries can't make what they keep for it.
  virtual Status make_streams([[maybe_unused]] uint32_t count) { return Status::ok(); }
  virtual Status begin() = 0;
  // The native one of a capture stream.
  virtual Result<void*> stream(uint32_t stream) = 0;
  // An event of this graph: what the stream holds by now.
  virtual Result<uint32_t> record(uint32_t stream) = 0;
  virtual Status wait(uint32_t stream, uint32_t event) = 0;
  // In stream 0: a copy within the device's memory or from or to host memory that the device sees.
  virtual Status copy(void* to, const void* from, size_t size_bytes) = 0;
  // In stream 0, in any order: none writes what another one reads or writes. Nothing of size 0.
  // Only where the device can decide: rows.
  virtual Status copy_all(std::span<const MemoryCopy> copies) = 0;
  // One copy at once, on a native stream.
  virtual Status copy_now(void* native_stream, void* to, const void* from, size_t size_bytes) = 0;
  // The graph is launched on that native stream alone, by one Work's last call, and then waited
  // for: it may tell by itself that it has run. Just before finish().
  virtual void tell_end([[maybe_unused]] void* native_stream) {}
  // What of the open capture runs slower than it could, and why; empty: nothing. Just before
  // finish().
  virtual std::string notice() const { return ""; }
  virtual Result<std::unique_ptr<CapturedGraph>> finish() = 0;
  virtual void abandon() = 0;

  // Whether the device can decide loops and cases. Below only then.
  virtual bool can_decide() const { return false; }
  // Sets the counter to 0; before the commands that make the first predicate. The first of a graph
  // makes the device look at `stop` with the first test.
  virtual Status start_counter(const LoopWords& words) = 0;
  // Counts the iteration that has ended; before the commands that make the next predicate.
  virtual Status advance_counter(const LoopWords& words) = 0;
  virtual Status begin_while(const LoopTest& test) = 0;
  // As many launches should a body hold that can hold more than one iteration; end_while() fills it
  // up with such as do nothing.
  virtual uint32_t least_launches() const { return 1; }
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

// By device; null: it captures nothing.
using GraphCaptures = std::vector<GraphCapture*>;

}  // namespace eddy
