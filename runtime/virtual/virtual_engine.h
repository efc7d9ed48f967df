// VirtualEngine: time and order of a virtual device.
//
// Nothing happens by itself. Streams and strands are lanes; a lane that could go on is ready, and
// step() lets one ready lane, as the chooser says, do one thing. Time is the number of steps. So
// the order of a run is a sequence of choices, and the same choices give the same run.
//
// The engine holds the one lock of its device: queues, events and strands are under it. It is
// let go while work, decisions, listeners and hooks run, which may issue to the device.
//
// Defects of what drives the device (an event recorded twice in a round, a strand forked while it
// lives) are kept as violations: a real device would go on in silence.
//
// Threads: step() from any thread, one at a time; a second caller is turned away. Everything else
// as in virtual_device.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "runtime/virtual/chooser.h"
#include "runtime/virtual/device_watcher.h"
#include "runtime/virtual/fault_plan.h"
#include "runtime/virtual/lane_runner.h"

namespace eddy {

class VirtualLane {
 public:
  virtual ~VirtualLane() = default;
  // Does one thing, and says make_ready again where it could go on. Called under the lock, which it
  // lets go of while work, decisions and listeners run; held or not when it returns.
  virtual void step(std::unique_lock<std::mutex>& guard) = 0;
  // Under the lock: "stream 3 waits for record 2 of event 1"; empty when it waits for nothing.
  virtual std::string waits_for() const = 0;
  // Under the lock: the device is lost; a lane that waits takes itself off what it waits for and
  // says make_ready.
  virtual void stop_waiting() = 0;

 private:
  friend class VirtualEngine;
  LaneNumber id_ = 0;
  bool is_ready_ = false;
};

struct VirtualEngineOptions {
  ChooserOptions order = {};
  // Instead of `order`; all of these must outlive the engine. Null: none.
  Chooser* chooser_or_null = nullptr;
  FaultPlan* faults_or_null = nullptr;
  DeviceWatcher* watcher_or_null = nullptr;
  LaneRunner* runner_or_null = nullptr;  // null: work runs in step()
  // Called before each step with the number of steps done; it may cancel runs.
  std::function<void(uint64_t tick)> on_tick = {};
};

class VirtualEngine {
 public:
  explicit VirtualEngine(VirtualEngineOptions options);
  ~VirtualEngine();

  // One lane does one thing; false when none could, or another thread is stepping.
  bool step();
  uint64_t now() const { return now_.load(std::memory_order_relaxed); }
  // Of all steps so far, in order: which lane took each, and out of how many. Equal for two runs
  // that went alike step by step.
  uint64_t digest() const { return digest_.load(std::memory_order_relaxed); }
  // The lane that the calling thread is stepping; 0 on any other thread.
  LaneNumber current_lane() const;

  // Without the lock: the code of a lane's command.
  int32_t run(const VirtualLane& lane, const LaneWork& work) {
    LaneRunner* runner = options_.runner_or_null;
    return runner == nullptr ? work() : runner->run(lane.id_, work);
  }

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

  // Under the lock.
  LaneNumber add_lane(VirtualLane& lane);
  void remove_lane(VirtualLane& lane);
  void make_ready(VirtualLane& lane);
  // From any thread, with the lock or without it: the lane is ready in the next step.
  void wake(VirtualLane& lane);
  void add_violation(std::string text) { violations_.push_back(std::move(text)); }
  uint64_t next_number() { return ++last_number_; }
  DeviceWatcher* watcher_or_null() const { return options_.watcher_or_null; }
  LaneNumber id(const VirtualLane& lane) const { return lane.id_; }

  bool should_fail(FaultKind kind) {
    return options_.faults_or_null != nullptr && options_.faults_or_null->should_fail(kind);
  }
  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  Status health() const;
  // Under the lock: what health() says.
  const Status& health_here() const {
    EDDY_DCHECK(lost_.is_ok() == !is_lost()) << "the device is lost without a reason";
    return lost_;
  }
  // Under the lock: the device is lost from now on; every lane gets to see it.
  void lose(std::string why);

  // Events and gates that live.
  void count_event(int more) {
    const int before = num_events_.fetch_add(more, std::memory_order_relaxed);
    EDDY_DCHECK(before + more >= 0) << "more events have gone than were made";
  }
  int num_events() const { return num_events_.load(std::memory_order_relaxed); }

  // Every lane that waits, and for what; one line each.
  std::string wait_graph() const;
  std::vector<std::string> violations() const;

 private:
  VirtualLane* choose();  // under the lock
  void take_woken();      // likewise

  VirtualEngineOptions options_;
  std::unique_ptr<Chooser> own_chooser_;
  Chooser& chooser_;
  std::atomic<bool> is_stepping_{false};
  std::atomic<uint64_t> now_{0};
  std::atomic<uint64_t> digest_{0};  // written by the thread that steps
  std::atomic<bool> is_lost_{false};
  std::atomic<int> num_events_{0};

  std::mutex woken_mutex_;
  std::vector<VirtualLane*> woken_;  // under its mutex

  mutable std::mutex mutex_;
  // Under the mutex.
  LaneNumber last_lane_ = 0;
  uint64_t last_number_ = 0;
  std::vector<VirtualLane*> lanes_;
  std::vector<VirtualLane*> ready_;
  std::vector<LaneNumber> ready_ids_;  // as ready_
  std::vector<std::string> violations_;
  Status lost_;
};

}  // namespace eddy
