// Segment: straight commands of host-driven strands that are recorded once and launched as one.
//
// A segment begins on one strand, whose stream is of a device with a graph capture, and goes on
// over jumps and blocks of several streams to the next decision, or to the first command that
// cannot be part of it: work of another device, work the host must see, an event that is not
// recorded inside. Further streams of such blocks become parallel capture streams of the graph.
//
// Running it is one Work of its strand's stream. First the nodes with operands that may move find
// them and the books are kept (loops count, carried values change places), which gives the
// addresses on which all of the work depends: of a straight graph, those of its inputs and outputs.
// Addresses seen the second time are recorded; recorded ones are launched with one call, all others
// issued one by one. At most kMostRecordings are kept; only a stale one gives way to another
// (README.md).
//
// On a thread that may not wait (no_waiting.h) a recording is not made, and memory that is not at
// hand not found: run() fails, and goes on from there when it is called again by one that may.
//
// Errors: what a node reports where it is issued one by one; what a recording's launch answers.
// Where one cannot be made that is reported (tell_refusal), the work is issued, and no more are
// tried; those made before are launched as ever, since the device may not be through with them. The
// books of a segment are ahead of its work, so a node of a body whose segment goes on into the next
// iteration is named with that one. Threads: those of its run. Cost: a few ns a node whose operands
// may move; recording, milliseconds once for each set of addresses. Source: Nimble, section 4.1.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ops/contract/kernel.h"
#include "runtime/device/device.h"
#include "runtime/device/graph_capture.h"
#include "runtime/device/recordable_work.h"

namespace eddy {

struct SegmentStep {
  enum class Kind : uint8_t {
    kBooks,   // run(context)
    kWork,    // `work`, on `stream`
    kRound,   // a strand has begun a round: counter `event`
    kRecord,  // `event` is where `stream` is
    kWait,    // `stream` goes on, or begins, behind `event`
  };
  Kind kind = Kind::kBooks;
  uint32_t stream = 0;  // of the capture
  uint32_t event = 0;
  WorkFunction run = nullptr;
  void* context = nullptr;
  RecordableWork* work = nullptr;
};

// What segments of one run share, but for the last.
struct SegmentShared {
  GraphCapture* capture = nullptr;
  // Called once by each segment whose capture fails, with the reason, by the thread that runs it;
  // may be empty.
  std::function<void(const Status& why)> tell_refusal = {};
  // The host waits for each of them before it goes on, to decide.
  bool is_awaited = false;
};

class Segment {
 public:
  static constexpr size_t kMostRecordings = 8;
  // More than a stream has in flight, so what is given up has ended.
  static constexpr uint64_t kStaleAfter = 1024;
  // More works than a stream should have in flight are recorded when first seen, not issued.
  static constexpr size_t kMostIssued = 256;

  Segment(std::vector<SegmentStep> steps, uint32_t next, const SegmentShared& shared);

  // The command that follows.
  uint32_t next() const { return next_; }
  // By the last run, one by one; 0: it was launched as one.
  size_t num_issued() const { return num_issued_; }
  // Rounds and records in it pass when it runs.
  const std::vector<SegmentStep>& steps() const { return steps_; }

  // As a Work of its strand's stream. False: failed, with a reason where no node has reported one,
  // or refused. `goes_on`: where the last call was refused.
  bool run(NativeStream stream, Status& why, bool goes_on = false);

 private:
  struct Recorded {
    std::vector<const void*> addresses;
    std::unique_ptr<CapturedGraph> graph;  // null: seen once
    uint64_t last_run = 0;                 // that launched it
  };

  // How far a run has come.
  struct Progress {
    size_t num_prepared = 0;  // of moving_
    bool is_recordable = true;
    bool is_issuing = false;  // one by one, not launched as one
    size_t num_issued = 0;    // of steps_
  };

  bool prepare();
  Recorded* find_recorded();
  void see();
  bool has_room() const;
  void make_room();
  bool issue(NativeStream stream);
  Status record(NativeStream stream, std::unique_ptr<CapturedGraph>& made);
  Status record_steps();

  const std::vector<SegmentStep> steps_;
  const uint32_t next_;
  const SegmentShared shared_;
  size_t num_works_ = 0;
  uint32_t num_streams_ = 1;  // of the capture
  size_t num_issued_ = 0;
  // Of the steps: what each run does, books and works that may move; and with which of the others
  // a stream ends, so that its strand is there.
  std::vector<SegmentStep> moving_;
  std::vector<RecordableWork*> ends_;
  bool is_still_recordable_ = true;  // what does not move
  Progress at_;
  uint64_t num_runs_ = 0;
  bool is_off_ = false;                 // no more recordings: one has failed
  std::vector<const void*> addresses_;  // of this run
  std::vector<Recorded> recordings_;
  std::vector<Recorded> seen_;  // once; the oldest goes
  size_t next_seen_ = 0;
};

}  // namespace eddy
