// Run: one run state with what a caller needs around it: inputs checked and bound, launch, wait,
// deadline, outputs collected.
//
// Life of a run: give inputs → (its turn) take_state → launch → (commands run) → done → finish →
// outputs → drop_state. So a run that waits for its turn has no memory of the session's yet. One
// that is used again and again (Call) takes its state first, keeps it, and binds inputs there.
// `done_` is released by the thread that ends the last strand and acquired by whoever waits.
//
// Internal to runtime/api. Threads: one owner; stop and describe from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/deadline_timer.h"
#include "runtime/api/session.h"
#include "runtime/execute/executable.h"

namespace eddy {

struct SessionCore;

class Run {
 public:
  explicit Run(SessionCore& core, TraceRecorder* trace_or_null = nullptr);
  // Of a run without a state: touches nothing of the session's.
  ~Run();

  // Where rows of outputs go while the run goes on; before take_state(). Ends with end_streams(),
  // at the latest when the run goes.
  Status give_streams(const std::vector<StreamedOutput>& streams);
  void end_streams(const Status& status);
  // By name, all of them, checked at once and bound by take_state(); must stay until then, and what
  // they borrow until the run is over.
  Status give_inputs(const NamedTensors& inputs);
  // A state nobody else uses, with what was given.
  void take_state();
  bool has_state() const { return state_ != nullptr; }
  void drop_state();

  // With a state. Type, shape and symbols are checked; memory is borrowed until the run is over.
  Status bind_input(size_t index, const Tensor& value);
  Status bind_tensor(size_t index, const TensorView& view);
  // Every input is bound, and equal symbols have equal sizes.
  Status check_symbols() const;
  // The caller's memory takes output `index`: the one place or, where there is a spare, either.
  Status bind_output(size_t index, const TensorView& view,
                     const TensorView* spare_or_null = nullptr);
  // Memory of a device's takes it.
  Status bind_device_output(size_t index, const TensorView& view);

  // Before it can be reached by others: no stop of an earlier time counts.
  void forget_stop();
  // Stops the run at that time, until finish(). Before launch.
  void arm_deadline(std::chrono::steady_clock::time_point when);
  // Starts; `on_done` (may be empty) is called by the thread that ends the last strand. A run that
  // ends later than `deadline` has passed it, whatever it had made by then.
  // Nothing may throw: strands would be left behind.
  void launch(bool on_this_thread, std::optional<std::chrono::steady_clock::time_point> deadline,
              std::function<void()> on_done) noexcept;
  void wait();
  bool is_done() const { return done_.load(std::memory_order_acquire) == kDone; }
  void stop(StopReason reason);
  // After the run is done, before finish(): it neither failed nor was stopped.
  bool has_made_outputs() const { return outcome_ == StopReason::kRunning; }
  // After the run is done: its status; copies outputs that could not be written in place.
  Status finish();

  // After the run has made its outputs: those that are given inputs' memory are copied, so that the
  // caller may write it. collect_output() then returns the copies.
  void copy_given_outputs();
  // Whether to collect them would copy any: the caller's input, a constant, the caller's memory.
  bool copies_outputs();
  Result<NamedTensors> collect_outputs();
  // One of them, of any kind; shares memory of the session, copies the caller's.
  Tensor collect_output(size_t index);
  // Where it is; of a bound output: where the caller has it.
  TensorView output(size_t index);
  // Bytes of bound outputs that finish() has copied.
  size_t copied_bytes() const { return copied_bytes_; }
  // Of the loop's last time.
  int64_t iterations(NodeId loop) const { return state_->loop(loop).iteration(); }
  bool is_driven_by_device(NodeId loop) const { return state_->loop(loop).is_driven_by_device(); }
  std::string describe() const;
  std::string why_by_host(NodeId loop) const { return state_->why_by_host(loop); }
  std::string how_by_device(NodeId loop) const { return state_->how_by_device(loop); }

 private:
  static constexpr size_t kNoOutput = SIZE_MAX;
  struct Range {
    uintptr_t begin;
    uintptr_t end;
    size_t output;  // kNoOutput: an input
  };
  struct BoundOutput {
    TensorView view;
    void* spare_or_null = nullptr;

    bool has(const void* data) const {
      return data == view.data || (data != nullptr && data == spare_or_null);
    }
  };
  enum : uint32_t { kRunning, kAwaited, kDone };  // awaited: somebody sleeps until it is done

  Status check_device_input(size_t index) const;
  Status check_input(size_t index, ElementType element, std::span<const int64_t> dims) const;
  Status check_tensor(size_t index, const TensorView& view) const;
  Status check_value(size_t index, const Tensor& value) const;
  Status check_elements(size_t index, const Tensor& sequence) const;
  void put(size_t index, const Tensor& value);
  void borrow(size_t index, const TensorView& view);
  Status align_inputs();
  std::optional<std::span<const int64_t>> bound_shape(size_t index) const;
  bool is_given(const void* data) const;
  bool is_given_output(size_t index) const;
  void place_outputs();
  void find_overlaps();
  bool may_be_made_in(size_t index) const;
  TensorView made(size_t index);
  bool is_home(size_t index);
  Status check_made(size_t index);
  Status clear_callers_memory();
  Status copy_outputs();
  Status copy_output(size_t index, const TensorView& from);
  Status end_status();
  void begin_streams();
  static void on_complete(void* run);

  SessionCore& core_;
  TraceRecorder* const trace_or_null_;
  std::unique_ptr<RunState> state_;
  // The state as others reach it. Sequentially consistent, as is wish_: who stops the run either
  // finds the state or is found by take_state().
  std::atomic<RunState*> reached_or_null_{nullptr};
  std::atomic<StopReason> wish_{StopReason::kRunning};
  std::vector<const Tensor*> given_;  // by input; empty: they are bound one by one
  // An output's stream, and which result of a loop's `after` its rows are.
  struct Streamed {
    std::shared_ptr<OutputStream> stream;
    NodeId loop;
    uint32_t row = 0;
  };
  std::vector<Streamed> streams_;
  std::vector<bool> is_bound_;
  // Inputs at addresses that kernels can't read from, and where they are; each launch copies them.
  std::vector<std::pair<size_t, const void*>> misaligned_;
  std::vector<std::optional<BoundOutput>> bound_outputs_;
  std::vector<Dims> bound_dims_;    // of their views: the caller's need not outlive the call
  std::vector<bool> is_on_device_;  // by output, where bound
  bool is_any_bound_ = false;
  size_t copied_bytes_ = 0;
  std::vector<Range> ranges_;                  // kept for their room
  std::vector<size_t> overlapping_;            // outputs; may be repeated
  std::vector<std::optional<Tensor>> copies_;  // by output; empty: there are none
  Status copy_error_;
  std::function<void()> on_done_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  DeadlineTimer timer_;
  StopReason outcome_ = StopReason::kRunning;  // when it ended; a later stop changes nothing
  std::atomic<uint32_t> done_{kDone};
};

}  // namespace eddy
