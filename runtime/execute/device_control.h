// DeviceControl: one while node of one run, driven by its device itself: as one kernel where
// it is small enough (persistent_program.h), or recorded with its inner loops and branches as one
// piece of work; launched once, and finished without the host. Or one case node by itself, which
// is the same with a decision in place of the rounds.
//
// It stands beside the commands that drive the same loop from the host: choose() takes the one or
// the other each time the loop begins.
//
//   choose   how it is driven this time: the way that is known or believed to be the fastest
//            (loop_choice.h) if it can be taken now. A recording: if there is one for the present
//            addresses (or one has been made now) and the process may have this loop more on its
//            devices; else the kernel, where there is one, else the host. Asked while the stream
//            still works on what comes before; it waits for that only where ways are measured,
//            where the loop's last launch has not ended, where the stream makes a decision
//            that the host gives the loop as it begins, and where all places are taken,
//            perhaps by loops that come before it. On a thread that may not wait (no_waiting.h) it
//            makes nothing that it does not have, and is asked again on one that may
//   launch   the recording goes to the strand's stream; the loop's outputs are where it leaves them
//   heard    of a try or of a loop with rows: the device has ended it; the rows are the host's
//   left     of a try: the host has
//   finish   what a case without a branch has left becomes the run's failure
//
// Where values meet they are copied, because a recording's addresses are fixed: each carried value
// has a home that its parameter is; the next value is copied there at the end of an iteration
// (all at once: results may permute), and each branch copies its results to the outputs' homes.
//
//   initial values → homes
//   limits to the device · count 0 · before · test                     (from here on, recorded)
//   WHILE { after · next values → homes · count + 1 · before · test }
//
// Small bodies may be recorded several times into one round (unrolling.h): a way of its own, with
// recordings of its own, taken where it is asked for or measured.
//
// A case by itself reads its selector where its copy to the host leaves it, since that is what the
// plan keeps for it. Its results are copied into homes by whichever branch is taken, passed through
// or not. It takes no place among those below unless there are loops in its branches, and how it is
// decided is not measured: the host would have to wait for the selector each time.
//
// Recordings depend on the addresses of what the loop captures; a few are kept, and for other
// addresses the one that was taken longest ago is given up. Where the way is measured it must not
// have been taken for a while: addresses that take turns would have each launch recorded anew. Once
// it is settled, what other ways have had is given up, with its memory. The
// homes of a recording's results may live on in values that the loop has made: such a recording
// is neither used nor given up until they are gone, and another one is used.
//
// The process's limit: loops of conditional nodes have crashed GPUs, by short rounds, which
// captures avoid (runtime/cuda/plain_order.h), and many at once. So at most kMostAtOnce of them are
// driven by devices at a time, over all sessions, a loop with inner ones counting by its depth;
// others are driven from the host meanwhile. Kernels do not count. A loop has its place until its
// run ends, or until another loop that needs one begins on its stream. Where one graph has more
// beside each other, they are merged if they are small (runtime/api/place_nodes.h).
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
  static int32_t heard(void* device_control);
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
  bool has_rows_ = false;  // which are the host's once it has heard of the end
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
