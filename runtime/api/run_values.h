// RunValues: what a run reads and writes: inputs given or bound, outputs bound or collected, rows
// streamed, and the run state that holds all of them.
//
// One that is used again and again (Call) takes its state first, keeps it, and binds inputs there;
// others are given their inputs by name and take a state when they have their turn, so that a run
// that waits has no memory of the session's.
//
// Internal to runtime/api. Threads: one at a time.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/run_options.h"
#include "runtime/api/streamed_row.h"
#include "runtime/api/tensor.h"
#include "runtime/execute/runs/run_pool.h"

namespace eddy {

struct SessionCore;

class RunValues {
 public:
  RunValues(SessionCore& core, TraceRecorder* trace_or_null);
  // Without a state: touches nothing of the session's.
  ~RunValues();

  // Where rows of outputs go while the run goes on, until end_streams().
  Status give_streams(const std::vector<StreamedOutput>& streams);
  void end_streams(const Status& status) {
    if (!streams_.empty()) end_all(status);
  }
  // By name, all of them, checked at once and bound by take_state(); must stay until then, and what
  // they borrow until the run is over.
  Status give_inputs(const NamedTensors& inputs);
  // The same, one by one; then check_symbols().
  Status give_input(size_t index, const Tensor& value);
  // A state for what was given, that nothing else uses. None: no memory for a sequence's elements.
  Status take_state();
  // The state that is kept is one for the streams that were given, or for none.
  Status adapt_state();
  bool has_state() const { return state_ != nullptr; }
  bool is_streaming() const { return is_streaming_; }  // the state
  BoundRun& state() { return *state_; }
  void drop_state();

  // With a state. Type, shape and symbols are checked; memory is borrowed until the run is over.
  Status bind_input(size_t index, const Tensor& value);
  Status bind_tensor(size_t index, const TensorView& view);
  // Every input is bound, and equal symbols have equal sizes.
  Status check_symbols() const;
  // The caller's memory takes output `index`: the one place or, where there is a spare, either.
  Status bind_output(size_t index, const TensorView& view,
                     const TensorView* spare_or_null = nullptr);
  // Memory of a device takes it.
  Status bind_device_output(size_t index, const TensorView& view);

  // Inputs stand where kernels can read them, outputs where they are to be made.
  void begin();
  // No row comes any more, though the run goes on.
  void leave_streams(const Status& status) const;
  // What is to be equal on all ranks, as RunLedger reads it: lines "input NAME=DIGEST" and
  // "shape NODE=SHAPE".
  std::string shared_facts() const;
  // Once the run has ended: whether finish() and collect_outputs() would copy any.
  bool copies_bound() const { return is_any_bound_; }
  bool copies_collected() const;
  // How the run has ended; outputs that could not be written in place are copied.
  Status finish(StopReason outcome);
  Result<NamedTensors> collect_outputs();
  Status collect_outputs(std::span<const size_t> which, std::span<Tensor> into);
  // One of them, of any kind; shares memory of the session, copies the caller's.
  Tensor collect_output(size_t index);
  // Where it is; of a bound output: where the caller has it.
  TensorView output(size_t index);
  // Bytes of bound outputs that finish() has copied.
  size_t copied_bytes() const { return copied_bytes_; }

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
  // An output's stream, and which result of a loop's `after` its rows are.
  struct Streamed {
    std::string output;
    std::shared_ptr<OutputStream> stream;
    StreamedRow at;
  };

  Result<StreamedRow> find_row(const StreamedOutput& streamed, size_t index) const;
  void end_all(const Status& status);
  std::unique_ptr<BoundRun> make_state() const;
  void release(std::unique_ptr<BoundRun> state);
  bool is_there(size_t index) const {
    return given_.empty() ? index < is_bound_.size() && is_bound_[index] : given_[index] != nullptr;
  }
  void note_bound(size_t index);
  Status check_device_input(size_t index) const;
  Status check_input(size_t index, ElementType element, std::span<const int64_t> dims) const;
  Status check_tensor(size_t index, const TensorView& view) const;
  Status check_value(size_t index, const Tensor& value) const;
  Status check_elements(size_t index, const Tensor& sequence) const;
  Status put(size_t index, const Tensor& value);
  void borrow(size_t index, const TensorView& view);
  Status align_inputs();
  std::optional<std::span<const int64_t>> bound_shape(size_t index) const;
  void make_room_to_give();
  void make_room_to_bind();
  void place_outputs();
  void find_places();
  void find_overlaps();
  bool may_be_made_in(size_t index) const;
  const TensorView& made(size_t index);
  bool is_home(size_t index);
  Status check_made(size_t index);
  Status clear_callers_memory();
  Status copy_outputs();
  Status copy_overlapping();
  Status copy_output(size_t index, const TensorView& from);
  Status end_status(StopReason outcome);

  SessionCore& core_;
  TraceRecorder* const trace_or_null_;
  std::unique_ptr<BoundRun> state_;
  bool is_streaming_ = false;       // the state is one that streams rows
  std::span<const Tensor*> given_;  // by input; empty: none was; null: not this one
  std::array<const Tensor*, 4> few_given_ = {};
  std::vector<const Tensor*> many_given_;  // of a graph of more inputs
  std::vector<Streamed> streams_;
  std::vector<Streamed> last_streams_;  // of the last run that had any; null streams
  std::vector<bool> is_bound_;          // by input; empty: none ever was, one by one
  // Inputs at addresses that kernels can't read from, and where they are; each launch copies them.
  std::vector<std::pair<size_t, const void*>> misaligned_;
  std::vector<std::optional<BoundOutput>> bound_outputs_;  // empty: none was ever bound
  std::vector<Dims> bound_dims_;    // of their views: the caller's need not outlive the call
  std::vector<bool> is_on_device_;  // by output, where bound
  bool is_any_bound_ = false;
  size_t copied_bytes_ = 0;
  // By output, since anything was bound last: it is made where it is bound.
  std::vector<bool> is_made_there_;
  bool is_any_made_there_ = false;
  bool are_places_known_ = false;
  std::vector<Range> ranges_;        // kept for their room
  std::vector<size_t> overlapping_;  // outputs; may be repeated
};

}  // namespace eddy
