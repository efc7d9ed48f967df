// DeviceControl: one while node of one run, driven by its device itself: as one kernel where
// it is small enough (persistent_program.h), or recorded with its inner loops and branches as one
// piece of work; launched once, and finished without the host. Or one case node by itself, which
// is the same with a decision in place of the rounds.
//
// It stands beside the commands that drive the same loop from the host: choose() takes the one or
// the other each time the loop begins. How it chooses, what a recording does and when recordings
// are given up: README.md.
//
//   choose     how it is driven this time: the fastest way (loop_choice.h) that can be taken now
//   launch     the recording goes to the strand's stream; the loop's outputs are where it leaves
//              them
//   has_ended  of a try or of a loop with rows: the device has ended it; the rows are the host's
//   left       of a try: the host has
//   finish     what a case without a branch has left becomes the run's failure
//
// Errors: none of its own; what cannot be recorded is driven from the host. A failing launch names
// the loop. Iterations are read while it runs, so the error of a lost device has them. Threads:
// those of its run. Cost: recording, milliseconds for each set of addresses.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/device/graph_capture.h"
#include "runtime/execute/device_loop.h"
#include "runtime/execute/loop_choice.h"
#include "runtime/execute/run_state.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class ControlLaunch;
struct PersistentLoop;

class DeviceControl final : public DeviceLoop {
 public:
  static constexpr int kMostAtOnce = 4;
  static constexpr size_t kMostLaunches = 4;   // that have memory of their own
  static constexpr uint64_t kStaleAfter = 16;  // turns of the loop, where its way is measured
  // Of the rows that a loop may stack in the device's memory, all iterations together.
  static constexpr int64_t kMostRowBytes = int64_t{256} << 20;

  // The state's exec nodes are there.
  DeviceControl(RunState& state, NodeId loop);
  ~DeviceControl();

  // Answers a ResolvedProgram::Driver.
  static int32_t choose(void* device_control);
  static bool launch(void* device_control);
  static int32_t has_ended(void* device_control);
  static bool left(void* device_control);
  // Looks for failures that the device has left; < 0: there is one. At any time.
  static int32_t finish(void* device_control);
  NodeId innermost_running() const override;
  void forget() override;
  const std::string& why_by_host() const override { return why_by_host_; }
  std::string how_by_device() const override;
  bool give_place_back() override;
  bool is_on(const void* native_stream) const override { return stream_ == native_stream; }

  // Where its strand issues to, and notes what it is at.
  void set_strand(void* native_stream, std::atomic<uint32_t>& current_node) {
    stream_ = native_stream;
    current_node_ = &current_node;
  }
  // Launches so far.
  uint64_t num_launches() const { return num_launches_; }

 private:
  using Clock = std::chrono::steady_clock;

  using Way = LoopChoice::Way;
  // Launches of one of the device's ways.
  struct Launches {
    std::vector<std::unique_ptr<ControlLaunch>> all;
    std::string why_off;  // none could be made; empty: it could
  };

  LoopChoice::Advice advice() const;
  bool must_wait() const;
  Way take_advice();
  Way ready_way(Way wish);
  Launches& launches_of(Way way);
  bool is_ready(Way way);
  bool rows_fit();
  bool find_launch(Way way);
  bool find_known(Launches& launches);
  bool give_one_up(Launches& launches);
  void give_up_what_was_tried();
  void take(ControlLaunch* launch);
  bool find_place();
  bool take_place();
  Result<std::unique_ptr<ControlLaunch>> make_launch(Way way);
  void report();
  void find_outside();
  void find_depth();
  void find_rows();
  bool is_told_what_is_copied() const;
  void read_outside(std::vector<const void*>& addresses) const;

  RunState& state_;
  const NodeId id_;
  const PersistentLoop* const persistent_or_null_;
  void* stream_ = nullptr;
  std::atomic<uint32_t>* current_node_ = nullptr;
  LoopChoice* choice_or_null_ = nullptr;  // null: the device's first way whenever it can
  Clock::time_point began_;
  Way way_ = Way::kHost;  // this time
  bool is_try_ = false;
  int depth_ = 1;              // WHILEs that may be active at once
  bool reads_copies_ = false;  // the host gives it what a stream copies there
  bool is_asked_again_ = false;
  int64_t row_bytes_ = 0;  // of one iteration
  bool has_rows_ = false;  // which are the host's when the device has ended
  int64_t limit_ = 0;      // this time, where there are rows
  std::string why_by_host_;
  bool has_place_ = false;  // among those that the process may have at once
  uint64_t num_launches_ = 0;
  std::vector<const Slot*> outside_;  // what the loop reads, and what its writers must keep off
  std::vector<const void*> addresses_;
  Launches kernels_;
  Launches recordings_;
  Launches unrolled_;
  uint64_t num_turns_ = 0;
  // Where LoopState reads iterations although the recording is gone.
  BufferRef words_;
  std::vector<BufferRef> words_of_tried_;
  bool has_given_up_tried_ = false;
  mutable std::mutex current_mutex_;  // others ask what runs while one is given up
  // Written under its mutex by the loop's strand, which reads it without.
  ControlLaunch* current_ = nullptr;
};

// Of one run, by NodeId; null: none. Empty: there is none at all.
using DeviceControls = std::vector<std::unique_ptr<DeviceControl>>;

}  // namespace eddy
