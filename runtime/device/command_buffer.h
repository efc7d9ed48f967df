// CommandBuffer: a program recorded once and launched as one, many times, with control flow that
// the device decides by itself.
//
// Commands are recorded in program order:
//
//   launch(work)                              runs work
//   begin_while, <before>, test_while(d), <after>, end_while
//                                             repeats while d returns 1, ends when 0; a round may
//                                             have several tests, each of which may end it
//   begin_case(d, n), begin_branch, <branch 0>, begin_branch, <branch 1>, …, end_case
//                                             d returns 0 … n-1, or n to run no branch
//   begin_fork(s), <commands>, end_fork       runs the commands on a strand of their own, beside
//                                             what follows, on stream s where the device has any
//   reset(e…), record(e), wait(e)             events between strands of this buffer; an event is
//                                             reset before the round in which it is recorded
//
// A strand runs its commands in order. The buffer is complete when every strand has ended; an
// author must make the main strand wait for the forks of a round before the next round forks
// them again.
//
// Stopping: RunControl::stop is looked at before every command. Once it is not kRunning, strands
// run nothing more, end as soon as their current command returns, and waits are released.
// A failed command (work false, decision < 0) stops its run with kFailed unless it has stopped
// before. Loops give way to other ready work of the device after a slice of iterations.
//
// Threads: recording by one thread. One launch of a buffer at a time (run_here or start); the
// next one only after on_complete. stop may be set from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "runtime/device/device.h"

namespace eddy {

class RecordableWork;

// < 0: failed (the context knows why); otherwise the decision.
using DecideFunction = int32_t (*)(void* context);

enum class StopReason : uint32_t { kRunning = 0, kFailed, kCancelled, kDeadline };

// Shared between one launch and whoever may stop it. Owned by the caller, alive until
// on_complete has been called.
struct RunControl {
  std::atomic<StopReason> stop{StopReason::kRunning};
  // Called once, by the thread that ends the last strand; it may launch the buffer again.
  void (*on_complete)(void* context) = nullptr;
  void* context = nullptr;
  // Why a device ended the run by itself (lost, refused, strands that wait for each other), where
  // no command has said so, and on which strand. Written by fail(), read once the run has ended.
  static constexpr uint32_t kNoStrand = UINT32_MAX;
  Status error;
  uint32_t failed_strand = kNoStrand;
  // A word that a device reads too, 0 while the run goes on; null: none.
  uint32_t* stop_word_or_null = nullptr;

  // The first reason wins. True if it was this one.
  bool request_stop(StopReason reason) {
    StopReason expected = StopReason::kRunning;
    // Sequentially consistent, as begin(): one of the two sees the other.
    if (!stop.compare_exchange_strong(expected, reason)) return false;
    tell_device(1);
    return true;
  }
  // At the start of a launch.
  void begin() {
    tell_device(0);
    if (stop.load() != StopReason::kRunning) tell_device(1);
  }
  void tell_device(uint32_t value) {
    if (stop_word_or_null != nullptr) std::atomic_ref<uint32_t>(*stop_word_or_null).store(value);
  }
  // request_stop(kFailed) by a device, with its reason. Only the winner writes `error`.
  bool fail(Status status, uint32_t strand = kNoStrand) {
    if (!request_stop(StopReason::kFailed)) return false;
    error = std::move(status);
    failed_strand = strand;
    return true;
  }
  bool is_stopped() const { return stop.load(std::memory_order_acquire) != StopReason::kRunning; }
};

// Where a strand stands, for people who ask why a run does not end.
enum class StrandState : uint8_t { kIdle, kQueued, kRunning, kWaitingForStrand, kWaitingForDevice };

class CommandBuffer {
 public:
  virtual ~CommandBuffer() = default;

  // `is_cheap`: below the inline budget, so a host that drives the buffer may run it itself.
  virtual void launch(WorkFunction run, void* context, bool is_cheap = true) = 0;
  // Says of the launch recorded last that it is this; null: that it keeps the host's books only and
  // touches no memory that a device's commands read or write.
  virtual void note_recordable(RecordableWork* /*work_or_null*/) {}
  // Says of the launch recorded last that it does nothing, but for noting where its strand is.
  virtual void note_nothing() {}
  // Says of the reset recorded last that strands which go on meanwhile wait for the event: neither
  // the reset nor what is done with the event behind it can be launched as one with other commands.
  virtual void note_apart() {}
  virtual void begin_while() = 0;
  virtual void test_while(DecideFunction decide, void* context) = 0;
  virtual void end_while() = 0;
  virtual void begin_case(DecideFunction decide, void* context, uint32_t num_branches) = 0;
  // Says of the case begun last that deciding takes long, and more stack than a task has, and reads
  // nothing that its stream makes: it is asked while the stream works, and may answer
  // kAskWhenIdle: it is asked again then; or, where it may not wait, kAskAside: it is asked again
  // on a thread that may.
  static constexpr int32_t kAskWhenIdle = INT32_MIN;
  static constexpr int32_t kAskAside = INT32_MIN + 1;
  virtual void note_choice() {}
  // Asked whenever commands may have failed without a word, and once all have ended: < 0: so it is,
  // and the context knows why.
  virtual void add_check(DecideFunction /*check*/, void* /*context*/) {}
  virtual void begin_branch() = 0;
  virtual void end_case() = 0;
  // Strands that name one stream are never at work together: whoever records them orders them.
  // The main strand is on stream 0; kNewStream: on one of its own.
  static constexpr uint32_t kNewStream = UINT32_MAX;
  virtual void begin_fork(uint32_t stream) = 0;
  virtual void end_fork() = 0;
  virtual uint32_t add_event() = 0;
  virtual void reset(uint32_t event) = 0;
  virtual void record(uint32_t event) = 0;
  virtual void wait(uint32_t event) = 0;
  // Ends recording; nothing can be recorded afterwards.
  virtual void finish() = 0;

  // Launches on the device's workers and returns at once.
  virtual void start(RunControl& control) = 0;
  // Launches with the main strand on the calling thread. It returns when that strand has ended,
  // waits for a fork or gave way; on_complete tells when all is done (often before it returns).
  virtual void run_here(RunControl& control) = 0;
  // A glimpse, from any thread. Strand 0 is the main one; forks are numbered as recorded.
  virtual StrandState strand_state(uint32_t strand) const = 0;
  // The driver's stream that a strand's commands are issued to, once recording has ended; null
  // where there is none.
  virtual void* native_stream(uint32_t) const { return nullptr; }
  // Calls `tell` now, and again whenever strands have got other streams: where they could not be
  // made at once, a later start makes them.
  virtual void tell_streams(std::function<void()> tell) { tell(); }
};

}  // namespace eddy
