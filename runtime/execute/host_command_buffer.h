// HostCommandBuffer: commands driven from the host: each strand is a task on the scheduler that
// issues work to its stream and awaits the stream only to decide.
//
// This way runs on any device that has streams and events. While one strand waits for its
// predicate, the scheduler issues others. After kInlineDecisions decisions that needed no wait, or
// InlineTimes::kLongestNs, a task yields. A strand that has kCredit commands in flight awaits its
// stream before it issues more, so no queue grows without bound; it holds no unrecorded event that
// an issued wait names, because a wait is issued only once its event has been recorded.
//
// Cheap work on an idle stream runs on the scheduler's thread. Whatever runs there, or enqueues a
// device's kernels there, does so on that thread's own stack, never on a task's, and may not wait
// (no_waiting.h): what refuses to is done again by a worker of the host's device, and so is what an
// accelerator's command does the first time (libraries load their kernels then), while the strand's
// task waits and others go on. What turns out not to be cheap is the workers', too.
// Streams may be of several devices. Devices do not know each other's events, so a wait for another
// device's event is one of the host: the strand's task suspends until the event is complete and
// issues nothing before. Hence what a CPU stream has made is there when device work behind it is
// issued.
//
// A fork's stream starts behind what its parent has issued. A wait for an event first waits, on the
// host, until the event has been recorded in this round (strands are issued in no global order),
// then orders the streams.
//
// With a recorder for its second device, which outlives it, straight commands of that device's
// streams are recorded once and launched as one (segment.h).
//
// Errors: as CommandBuffer. Stopping: seen before each command; issued work that has not started
// is skipped. Stack memory running out, a command that the device refuses, and a device that is
// lost fail the run (RunControl::fail).
// Threads: as CommandBuffer. Cost: an inline command some 5 ns plus its function.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/device/command_code.h"
#include "runtime/execute/inline_times.h"
#include "runtime/execute/segment_finder.h"
#include "runtime/execute/worker_calls.h"

namespace eddy {

class HostCommandBuffer : public CommandCode {
 public:
  HostCommandBuffer(Device& device, Scheduler& scheduler)
      : HostCommandBuffer({&device}, {}, scheduler) {}
  // Each stream is of the device at that place; those beyond are of the first.
  HostCommandBuffer(std::vector<Device*> devices, std::vector<uint32_t> stream_devices,
                    Scheduler& scheduler, Recorder* recorder_or_null = nullptr,
                    InlineTimes::Now now = InlineTimes::steady_now);
  ~HostCommandBuffer() override;

  // Who is told why straight work could not be recorded (segment.h). Before start().
  void tell_refusals(std::function<void(const Status& why)> tell) {
    tell_refusal_ = std::move(tell);
  }
  void note_recordable(RecordableWork* work_or_null) override;
  void note_nothing() override;
  void note_apart() override;
  void note_choice() override;
  void add_check(DecideFunction check, void* context) override {
    checks_.push_back({check, context});
  }
  void finish() override;
  void start(RunControl& control) override;
  void run_here(RunControl& control) override { start(control); }
  StrandState strand_state(uint32_t strand) const override {
    return states_[strand].load(std::memory_order_relaxed);
  }
  void tell_streams(std::function<void()> tell) override {
    tell_streams_ = std::move(tell);
    tell_streams_();
  }
  void* native_stream(uint32_t strand) const override {
    const bool is_known =
        strand < strand_streams().size() && strand_streams()[strand] < streams_.size();
    return is_known ? streams_[strand_streams()[strand]]->native() : nullptr;
  }

 private:
  static constexpr int kInlineDecisions = 64;
  static constexpr uint32_t kCredit = 256;

  // What a stream runs: the command, unless the run has stopped meanwhile.
  struct Issued {
    HostCommandBuffer* owner = nullptr;
    const Command* command = nullptr;
    bool is_warm = false;      // an accelerator's: it has been issued before
    bool was_refused = false;  // it would have to wait
  };
  struct HostEvent {
    std::vector<std::unique_ptr<Event>> by_device;
    Completion recorded;  // in this round
    uint32_t device = 0;  // that recorded it last; written before `recorded`
  };

  static void check_stack();
  // A Work on its way to its stream.
  struct Launch {
    Stream& stream;
    const Work& work;
    bool is_taken;
    static void run(void* launch);
    static void run_without_waiting(void* launch);
  };
  bool enqueue(Stream& stream, const Work& work);
  bool enqueue_aside(Stream& stream, const Work& work);
  // Work of an accelerator's for the first time.
  bool is_cold(bool is_warm, uint32_t strand) const {
    return workers_.has_workers() && !is_warm && device_index(strand) != 0;
  }
  bool may_run_here(uint32_t at, uint32_t strand);
  Stream& stream_of(uint32_t strand) { return *streams_[strand_streams()[strand]]; }
  static bool run_issued(void* issued);
  void fork(uint32_t parent, uint32_t strand);
  void execute(uint32_t strand);
  // Where a strand's task is.
  struct Place {
    const uint32_t strand;
    uint32_t at;             // the next command
    int decisions;           // rounds until the task yields
    uint32_t in_flight = 0;  // at most; since the stream was last seen idle
    int64_t since_ns = 0;    // it has not yielded
  };
  // Commands that run at once, up to the next that does not.
  struct Batch {
    HostCommandBuffer& owner;
    Place& place;
    bool is_over = false;  // it has taken long enough
  };
  static void run_batch(void* batch);
  bool run_command(Batch& batch);
  // The segment that begins at the command; null: none.
  Segment* segment_or_null(uint32_t at, uint32_t strand);
  void issue_segment(Segment& segment, Place& place);
  static bool run_segment(void* issued_segment);
  void take_credit(Place& place);
  void await_room(uint32_t strand);
  void issue(Place& place);
  void issue_aside(Place& place);
  void issue_batch(Place& place);
  void give_way(Place& place);
  void yield(Place& place);
  // The command after a test or switch that decided so.
  uint32_t after(uint32_t at, int32_t decision) const;
  int32_t decide(const Command& command, uint32_t strand);
  bool may_decide(uint32_t strand);
  void run_checks();
  void record(HostEvent& event, uint32_t strand);
  void wait(HostEvent& event, uint32_t strand);
  uint32_t device_index(uint32_t strand) const {
    return device_of_stream(strand_streams()[strand]);
  }
  uint32_t device_of_stream(uint32_t stream) const {
    return stream < stream_devices_.size() ? stream_devices_[stream] : 0;
  }
  Device& device(uint32_t strand) const { return *devices_[device_index(strand)]; }
  // Suspends until the event, of any device, is complete.
  void await_event(Event& event, uint32_t strand);
  void end_strand(uint32_t strand);
  void await_stream(uint32_t strand);
  void await_all(uint32_t last_strand);
  void set_state(uint32_t strand, StrandState state) {
    states_[strand].store(state, std::memory_order_relaxed);
  }
  bool is_fine(const Device& device, uint32_t strand);
  bool is_device_fine(uint32_t strand) { return is_fine(device(strand), strand); }
  void refused(uint32_t strand);
  void find_parents();
  // Makes the streams and events that there are not yet.
  Status set_up();

  using CommandCode::record;
  using CommandCode::wait;

  const std::vector<Device*> devices_;
  const std::vector<uint32_t> stream_devices_;
  Scheduler& scheduler_;
  WorkerCalls workers_;         // of the first device
  const bool may_refuse_;       // an accelerator is there, for which work may have to wait
  InlineTimes times_;           // by command
  std::vector<Issued> issued_;  // by command
  // What lowering says of commands; shorter than the code.
  std::vector<CommandNote> notes_;
  std::vector<bool> is_choice_;
  struct Check {
    DecideFunction check;
    void* context;
  };
  std::vector<Check> checks_;
  Recorder* const recorder_or_null_;
  std::function<void(const Status&)> tell_refusal_;  // may be empty
  // A segment, and what its stream's Work needs to know.
  struct IssuedSegment {
    HostCommandBuffer* owner;
    uint32_t strand;
    std::unique_ptr<Segment> segment;  // null: none begins there
    bool is_warm = false;
    bool was_refused = false;
    bool goes_on = false;  // where it was refused
  };
  std::unordered_map<uint32_t, IssuedSegment> segments_;  // by command, once asked for
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<uint32_t> parents_;              // by strand
  std::vector<std::unique_ptr<Event>> forks_;  // by strand: where its parent's stream was
  std::deque<HostEvent> events_;
  std::deque<std::atomic<StrandState>> states_;  // by strand; for describing only
  Status setup_error_;
  std::function<void()> tell_streams_;  // may be empty

  RunControl* control_ = nullptr;
  std::atomic<uint32_t> num_live_{0};  // only the scheduler thread after start(); see end_strand
};

}  // namespace eddy
