// ControlRecording: a while node with everything in it, recorded with the device's own decisions,
// and the memory that it needs besides the plan's (device_control.h says what goes where).
// Unrolled, small bodies hold several iterations (unrolling.h); else as many as a body has to hold
// (GraphCapture::least_launches).
//
// Internal to DeviceControl. Making one moves the slots inside the loop, whose values are dead by
// then, to where the recording has them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "graph/ir/control_view.h"
#include "graph/schedule/plan/plan.h"
#include "runtime/device/graph_capture.h"
#include "runtime/execute/control/control_launch.h"
#include "runtime/execute/run_state.h"

namespace eddy {

class RecordedScalars;

class ControlRecording : public ControlLaunch {
 public:
  // Records. On failure the capture holds nothing. `words`: those of a recording of the same loop
  // that is gone; null: it makes some. kUnsupported where `unrolls` and nothing could be, and why.
  static Result<std::unique_ptr<ControlLaunch>> make(RunState& state, NodeId loop,
                                                     GraphCapture& capture, BufferRef words,
                                                     bool unrolls);

  bool is_free() const override;
  bool has_room(int64_t num_iterations) const override;
  Status write_words() override;
  // Enqueues copies of the initial values to their homes, which may come from anywhere, and the
  // recording behind them.
  Status launch(void* native_stream) override;
  Status leave() override;
  NodeId innermost_running() const override;
  void forget() override;
  BufferRef words() const override { return words_; }
  std::string text() const override;
  int32_t check() override;

 private:
  // The words of one loop.
  struct Loop {
    NodeId id;
    LoopWords words;
    int64_t* limit_word = nullptr;  // in host memory
  };
  // A decision carried into the outermost loop: read from its slot at each launch.
  struct Entry {
    const Slot* from;
    void* home;
  };
  struct CarriedIn {
    const Slot* from;
    uint8_t* word;
  };
  struct Case {
    NodeId id;
    int64_t* failure;
  };
  // Of the outermost loop: they are stacked in the device's memory, and at its end those that there
  // are go to the host's.
  struct Rows {
    size_t stack;  // of the loop's
    ValueId made;  // on the device
    void* home;
    size_t row_bytes;
    void** to;  // host memory: where the host wants them
  };
  struct Output {
    Slot* slot;
    const Slot* from;  // of outside, or a constant; null: as recorded
    BufferRef buffer;
    void* data = nullptr;
  };
  using Addresses = std::vector<const void*>;  // of results

  ControlRecording(RunState& state, NodeId loop, GraphCapture& capture, bool unrolls);
  Status record();
  Status record_top_case(const Node& node);
  Status record_loop(NodeId id);
  Status record_rounds(const Node& node, const LoopWords& words, const Addresses& first,
                       bool unrolls);
  Status record_iteration(const Node& node, const LoopWords& words, const Addresses& first);
  Result<uint32_t> iterations_a_round(const Node& node);
  bool may_stop_itself() const;
  Result<Loop*> make_words(NodeId id);
  Status enter_loop(const Loop& loop);
  Status leave_loop(const Node& node);
  Status make_rows();
  Status copy_rows_out(const LoopWords& words);
  Status copy_next(const LoopView& loop, const LoopWords& words);
  Result<bool> can_test_before_copies(const LoopView& loop);
  void point_to_next(const LoopView& loop);
  void point_to_homes(const LoopView& loop);
  Status record_case(NodeId id);
  Status record_region(RegionId id, Addresses* log);
  Status record_exec(NodeId id, uint32_t stream, const RecordedScalars& scalars, Addresses* log);
  Status record_steps(NodeId id, const RecordedScalars& scalars, Addresses* log);
  Status copy_all(std::vector<MemoryCopy> copies);
  size_t bytes_of(ValueId value) const;  // of fixed shape
  Result<void*> home(ValueId value, size_t size_bytes);
  Result<void*> device_memory(size_t size_bytes);
  Result<const void*> decision_address(ValueId value);
  Result<int64_t*> host_words(size_t count);
  // The value's slot is that memory, which it does not own.
  void point(ValueId value, void* data);
  void put_back();
  uint32_t num_streams() const;
  const Graph& graph() const { return state_.graph(); }

  RunState& state_;
  const NodeId top_;
  Allocator& memory_;  // the device's
  GraphCapture& capture_;
  const bool unrolls_;
  uint32_t most_iterations_ = 1;  // of a round
  std::string why_not_unrolled_;  // of the loop that was refused last
  std::string notice_;            // of the capture
  std::unique_ptr<CapturedGraph> graph_;
  std::vector<uint32_t> uses_;
  std::map<uint32_t, BufferRef> homes_;  // by ValueId; written by each launch
  std::map<uint32_t, BufferRef> made_;   // by ValueId: made inside, not in the plan
  std::map<std::pair<uint32_t, size_t>, void*> step_results_;  // by NodeId and step, but the last
  std::map<const void*, void*> between_;      // by where a copy goes: where it waits for others
  std::vector<BufferRef> kept_;               // other memory of the recording's own
  std::map<uint32_t, void*> kept_decisions_;  // by ValueId of the parameter: on the device
  BufferRef words_;                           // host memory
  size_t num_words_ = 0;
  uint64_t* asked_ns_ = nullptr;  // of all loops
  std::deque<Loop> loops_;
  std::vector<Entry> entries_;  // of the outermost loop
  std::vector<CarriedIn> carried_in_;
  std::vector<Case> cases_;
  std::vector<Rows> rows_;
  int64_t most_rows_ = 0;
  std::vector<Output> outputs_;
  // While it is made: what has been taken away from the host's way.
  std::vector<ValueId> pointed_;
  std::vector<ExecNode*> bound_;
};

}  // namespace eddy
