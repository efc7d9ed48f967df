// HostStrands: strands driven from the host. Each is a task on the scheduler that issues work to
// its stream and awaits the stream only to decide. Meanwhile the scheduler issues others. This way
// runs on any device that has streams and events.
//
// A task yields after kInlineDecisions decisions that needed no wait, or InlineTimes::kLongestNs. A
// strand that has kCredit calls in flight awaits its stream before it issues more, so no queue
// grows without bound; it holds no unrecorded event that an issued wait names, because a wait is
// issued only once its event has been recorded. A strand that rests has no task.
//
// Cheap work on an idle stream runs on the scheduler's thread, where it may not wait
// (no_waiting.h); what would have to, and what is not cheap, goes to a worker of the host's device,
// and so do loops of that device that last. Streams may be of several devices: a wait for another
// device's event is one of the host. README.md has the rules.
//
// Where devices are polled, the scheduler knows from the last run of these strands when this one
// should end (Scheduler::expect_end), so that it notices the end at once. With a graph capture for
// a device, which outlives it, straight work of that device's streams is recorded once and launched
// as one (segment.h).
//
// Errors: as StrandRunner. Stopping: seen before each command; issued work that has not started is
// skipped. Stack memory running out, a command that the device refuses, and a device that is lost
// fail the run (RunControl::fail). Threads: as StrandRunner. Cost: an inline call some 5 ns plus
// its function.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "graph/base/check.h"
#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/device/running_strands.h"
#include "runtime/execute/host/inline_times.h"
#include "runtime/execute/host/segment_finder.h"
#include "runtime/execute/host/worker_calls.h"

namespace eddy {

class HostStrands : public RunningStrands {
 public:
  struct Options {
    std::vector<Device*> devices;
    // Each stream is of the device at that place; those beyond are of the first.
    std::vector<uint32_t> stream_devices = {};
    GraphCaptures captures = {};  // by device; empty: nothing is captured
    InlineTimes::Now now = InlineTimes::steady_now;
    // Called with the reason where straight work could not be recorded (segment.h); may be empty.
    std::function<void(const Status& why)> on_refusal = {};
  };
  HostStrands(const StrandCode& code, const Bindings& bindings, Scheduler& scheduler,
              Options options);
  ~HostStrands() override;

  void start(RunControl& control) override;
  void run_here(RunControl& control) override { start(control); }
  void tell_streams(std::function<void()> tell) override {
    tell_streams_ = std::move(tell);
    tell_streams_();
  }
  void* native_stream(uint32_t stream) const override {
    return stream < streams_.size() ? streams_[stream]->native() : nullptr;
  }

 private:
  static constexpr int kInlineDecisions = 64;
  static constexpr uint32_t kCredit = 256;
  static constexpr int64_t kSliceNs = 1'000'000;
  // A run is awaited for so many halves of what the last one took.
  static constexpr int64_t kHalvesOfTheLast = 3;

  // What a stream runs: the call, unless the run has stopped meanwhile.
  struct Issued {
    HostStrands* owner = nullptr;
    const Binding* binding = nullptr;
    bool is_warm = false;      // of another device: it has been issued before
    bool was_refused = false;  // it would have to wait
  };
  // A Work on its way to its stream.
  struct Launch {
    Stream& stream;
    const Work& work;
    bool is_taken;
    static void run(void* launch);
    static void run_without_waiting(void* launch);
  };
  // A strand's task.
  struct Task {
    Completion woken;
    bool is_there = false;
  };
  // Where a strand's task is.
  struct Place {
    const uint32_t strand;
    uint32_t at;             // the next command
    int decisions;           // iterations until the task yields
    uint32_t in_flight = 0;  // at most; since the stream was last seen idle
    int64_t since_ns = 0;    // it has not yielded
  };
  struct Agent;  // the task
  struct Batch;  // calls that run at once, on the thread's stack, up to the next that does not
  // Commands [begin, end): a loop that a worker may execute. An empty one: none.
  struct Loop {
    uint32_t begin = 0;
    uint32_t end = 0;
    bool has(uint32_t at) const { return begin <= at && at < end; }
  };
  struct LoopOnWorker;
  // A strand's commands.
  struct Span {
    uint32_t strand, begin, end;
  };

  void expect_end();
  static void check_stack();
  bool enqueue_work(Stream& stream, const Work& work);
  bool enqueue_aside(Stream& stream, const Work& work);
  // Work of another device for the first time.
  bool is_cold(bool is_warm, uint32_t strand) const {
    return workers_.has_workers() && !is_warm && device_index(strand) != 0;
  }
  bool may_run_here(uint32_t at, uint32_t strand);
  Stream& stream_of(uint32_t strand) { return *streams_[code_.strands[strand].stream]; }
  static bool run_issued(void* issued);
  void execute(uint32_t strand);
  void enqueue(uint32_t strand) override;
  Status spawn(uint32_t strand);
  static void run_batch(void* batch);
  // The segment that begins at the command; null: none.
  Segment* segment_or_null(uint32_t at, uint32_t strand);
  void issue_segment(Segment& segment, Place& place);
  void pass_over(const Segment& segment);
  static bool run_segment(void* issued_segment);
  void take_credit(Place& place);
  void await_room(uint32_t strand);
  void issue(Place& place);
  void issue_aside(Place& place);
  void issue_batch(Place& place);
  void give_way(Place& place);
  void yield(Place& place);
  std::vector<Span> spans_of_strands() const;
  void find_loops();
  // The outermost of those that a worker may execute; an empty one: none.
  Loop loop_around(uint32_t at) const;
  void go_on(Place& place);
  void run_on_worker(const Loop& loop, Place& place);
  int32_t decide(uint32_t strand, uint32_t at);
  bool may_decide(uint32_t strand);
  void run_checks();
  Event& device_event(uint32_t index, uint32_t count) {
    EDDY_DCHECK(index < device_events_.size() && device_events_[index][count & 1] != nullptr)
        << "event " << index << " is recorded by no stream";
    return *device_events_[index][count & 1];
  }
  void record_on_device(uint32_t strand, uint32_t index);
  bool wait(uint32_t strand, uint32_t at);
  void start(uint32_t strand, uint32_t at);
  bool rest(uint32_t strand, uint32_t at);
  uint32_t device_index(uint32_t strand) const {
    return device_of_stream(code_.strands[strand].stream);
  }
  uint32_t device_of_stream(uint32_t stream) const {
    return stream < options_.stream_devices.size() ? options_.stream_devices[stream] : 0;
  }
  Device& device(uint32_t strand) const { return *options_.devices[device_index(strand)]; }
  // Suspends until the event, of any device, is complete.
  void await_event(Event& event, uint32_t strand);
  void await_stream(uint32_t strand);
  void await_all(uint32_t last_strand);
  bool is_fine(const Device& device, uint32_t strand);
  bool is_device_fine(uint32_t strand) { return is_fine(device(strand), strand); }
  void refused(uint32_t strand);
  // Makes the streams and events that there are not yet.
  Status set_up();
  Status make_device_events();
  // Whether no stream of the device that records the event waits for it, but strands of others, and
  // so the host.
  bool is_for_host(uint32_t event) const { return is_for_host_[event]; }
  std::vector<bool> find_events_for_host() const;

  const Options options_;
  Scheduler& scheduler_;
  WorkerCalls workers_;                    // of the first device
  const std::vector<uint32_t> num_waits_;  // by event
  const std::vector<bool> is_for_host_;    // by event
  const bool may_refuse_;                  // other devices are there, whose work may have to wait
  InlineTimes times_;                      // by command
  std::vector<Issued> issued_;             // by command
  std::vector<Loop> loops_;                // outermost ones that workers may execute, ascending
  struct IssuedSegment {
    HostStrands* owner;
    uint32_t strand;
    std::unique_ptr<Segment> segment;  // null: none begins there
    bool is_warm = false;
    bool was_refused = false;
    bool goes_on = false;  // where it was refused
  };
  std::unordered_map<uint32_t, IssuedSegment> segments_;  // by command, once asked for
  std::vector<std::unique_ptr<Stream>> streams_;
  // Of the machine's events, those that are recorded; by number, device and whether they are the
  // host's.
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::unique_ptr<Event>> machine_events_;
  std::vector<std::array<Event*, 2>> device_events_;  // by event, and the parity of its count
  std::deque<Task> tasks_;                            // by strand
  bool is_polled_ = false;                            // some device moves only while it is polled
  int64_t began_ns_ = 0;  // the run, and how long the last one took that nothing stopped
  int64_t last_ns_ = 0;
  Status setup_error_;
  std::function<void()> tell_streams_;  // may be empty
};

}  // namespace eddy
