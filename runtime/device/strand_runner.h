// StrandRunner: executes the strands of one run, again and again, where a device or the host does.
//
// Code is shared by all runs of an executable; bindings say what its calls call in this one. Work
// that returns false and decisions below 0 fail the run. Loops give way to other ready work of the
// device after a slice of iterations.
//
// Stopping: RunControl::stop is looked at before every command. Once it is not kRunning, strands
// execute nothing more, end as soon as their current command returns, and waits are released.
//
// Ownership: code, bindings and what they point to outlive the runner. Threads: one run at a time
// (run_here or start); the next one only after on_complete. stop may be set from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "graph/base/call_outcome.h"
#include "graph/base/check.h"
#include "runtime/device/device.h"
#include "runtime/device/strand_code.h"

namespace eddy {

class RecordableWork;

// < 0: failed (the context knows why); otherwise the decision.
using DecideFunction = int32_t (*)(void* context);

enum class StopReason : uint32_t { kRunning = 0, kFailed, kCancelled, kDeadline };

// What a run waits for besides strands and devices, and that has to learn of a stop.
class StopListener {
 public:
  virtual ~StopListener() = default;
  // Called at most once, by the thread that stops the run; quick.
  virtual void on_stop() = 0;
};

// Shared between one run and whatever may stop it. Owned by the caller, alive until on_complete
// has been called.
struct RunControl {
  std::atomic<StopReason> stop{StopReason::kRunning};
  // Called once, by the thread that ends the last strand; it may start the next run.
  void (*on_complete)(void* context) = nullptr;
  void* context = nullptr;
  // Whose run it is: compared only (run_scope.h).
  const void* owner = nullptr;
  // Why a device ended the run by itself (lost, refused, strands that wait for each other), where
  // no call has reported it, and on which strand. Written by fail(), read once the run has ended.
  static constexpr uint32_t kNoStrand = UINT32_MAX;
  Status error;
  uint32_t failed_strand = kNoStrand;
  // A word that a device reads too, 0 while the run goes on; null: none.
  uint32_t* stop_word_or_null = nullptr;

  // The first reason wins. True if it was this one.
  bool request_stop(StopReason reason) {
    EDDY_DCHECK(reason != StopReason::kRunning) << "a run is stopped without a reason";
    StopReason expected = StopReason::kRunning;
    // Sequentially consistent, as begin(): one of the two sees the other.
    if (!stop.compare_exchange_strong(expected, reason)) return false;
    tell_device(1);
    notify_listeners();
    return true;
  }
  // Called at once where the run has been stopped already.
  void add_listener(std::shared_ptr<StopListener> listener) {
    EDDY_DCHECK(listener != nullptr) << "nobody listens";
    {
      const std::lock_guard lock(listeners_mutex);
      if (!is_stopped()) return listeners.push_back(std::move(listener));
    }
    listener->on_stop();
  }
  void remove_listener(const StopListener& listener) {
    const std::lock_guard lock(listeners_mutex);
    std::erase_if(listeners, [&](const auto& each) { return each.get() == &listener; });
  }
  // At the start of a run.
  void begin() {
    tell_device(0);
    if (stop.load() != StopReason::kRunning) tell_device(1);
  }
  void tell_device(uint32_t value) {
    if (stop_word_or_null != nullptr) std::atomic_ref<uint32_t>(*stop_word_or_null).store(value);
  }
  // request_stop(kFailed) by a device, with its reason. Only the winner writes `error`.
  bool fail(Status status, uint32_t strand = kNoStrand) {
    EDDY_DCHECK(!status.is_ok()) << "a device ends a run without saying why";
    if (!request_stop(StopReason::kFailed)) return false;
    error = std::move(status);
    failed_strand = strand;
    return true;
  }
  bool is_stopped() const { return stop.load(std::memory_order_acquire) != StopReason::kRunning; }

  std::mutex listeners_mutex;
  std::vector<std::shared_ptr<StopListener>> listeners;  // under its mutex

 private:
  void notify_listeners() {
    std::vector<std::shared_ptr<StopListener>> all;
    {
      const std::lock_guard lock(listeners_mutex);
      all.swap(listeners);
    }
    for (const auto& listener : all) listener->on_stop();
  }
};

// Where a strand stands, to describe a run that does not end.
enum class StrandState : uint8_t {
  kIdle,
  kQueued,
  kRunning,
  kWaitingForStrand,
  kWaitingForDevice,
  kWaitingForAnswer,
};

// A strand that waits for an answer.
class Resumable {
 public:
  // Once for each call that has answered kLater, or is about to; from any thread. Not ok: it has
  // failed, and has reported it to its run.
  virtual void resume(uint32_t strand, bool is_ok) = 0;

 protected:
  ~Resumable() = default;
};
struct Resume {
  Resumable* owner = nullptr;
  uint32_t strand = 0;
  void operator()(bool is_ok) const {
    EDDY_DCHECK(owner != nullptr) << "an answer for no strand";
    owner->resume(strand, is_ok);
  }
};
using StartCallFunction = CallOutcome (*)(void* context, const Resume& resume);

// What a command calls.
struct Binding {
  union {
    WorkFunction run = nullptr;
    DecideFunction decide;    // of a kTest or kSelect
    StartCallFunction start;  // of a kStart
  };
  void* context = nullptr;
};

// What a runner that records work may make of a call.
struct CallNote {
  enum class Kind : uint8_t {
    kOpaque,      // only execute it
    kBooks,       // it keeps the host's books, and touches no memory that a device's work does
    kNothing,     // it does nothing but note where its strand is
    kRecordable,  // it is `work`
    // A decision that takes long, and more stack than a task has, and reads nothing that its stream
    // makes: it is asked while the stream works, and may answer kAskWhenIdle: it is asked again
    // then; or, where it may not wait, kAskAside: it is asked again on a thread that may.
    kChoice,
  };
  Kind kind = Kind::kOpaque;
  RecordableWork* work = nullptr;
};
inline constexpr int32_t kAskWhenIdle = INT32_MIN;
inline constexpr int32_t kAskAside = INT32_MIN + 1;

// Of one run.
struct Bindings {
  std::vector<Binding> calls;   // by command; of those that call nothing: empty
  std::vector<CallNote> notes;  // by command; empty: all are opaque
  // Asked whenever calls may have failed without a word, and once all have ended: < 0: so it is,
  // and the context knows why.
  std::vector<Binding> checks;
};

class StrandRunner {
 public:
  virtual ~StrandRunner() = default;
  // Executes on the device's workers, and returns at once.
  virtual void start(RunControl& control) = 0;
  // With the main strand on the calling thread. It returns when that strand has ended, waits for
  // another or gave way; on_complete is called when all is done (often before it returns).
  virtual void run_here(RunControl& control) = 0;
  // The same on one of the device's workers, which gives way to what waits for one.
  virtual void run_as_worker(RunControl& control) { run_here(control); }
  // A glimpse, from any thread.
  virtual StrandState strand_state(uint32_t strand) const = 0;
  // The driver's stream to which the work of one of the machine's is issued; null where there is
  // none.
  virtual void* native_stream(uint32_t /*stream*/) const { return nullptr; }
  // Calls `tell` now, and again whenever streams have got other ones of the driver's: where they
  // could not be made at once, a later start makes them.
  virtual void tell_streams(std::function<void()> tell) { tell(); }
};

}  // namespace eddy
