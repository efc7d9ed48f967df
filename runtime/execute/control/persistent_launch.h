// PersistentLaunch: a loop of one run as one kernel (persistent_program.h): memory for its results
// and its words.
//
// Any addresses serve, because each launch takes those that its inputs have. The kernel is the
// program's and outlives it. Internal to DeviceControl.
#pragma once

#include <memory>
#include <vector>

#include "runtime/execute/control/control_launch.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/run_state.h"

namespace eddy {

class PersistentLaunch : public ControlLaunch {
 public:
  // Errors: no memory.
  static Result<std::unique_ptr<ControlLaunch>> make(RunState& state, NodeId loop,
                                                     const PersistentLoop& persistent);

  bool is_free() const override;
  Status write_words() override;
  Status launch(void* native_stream) override;
  Status leave() override;
  NodeId innermost_running() const override;
  void forget() override;
  BufferRef words() const override { return words_; }

 private:
  PersistentLaunch(RunState& state, NodeId loop, const PersistentLoop& persistent);
  Status allocate();

  RunState& state_;
  const NodeId id_;
  const uint32_t device_;
  const PersistentLoop& persistent_;
  std::vector<const Slot*> inputs_;  // by the program's
  std::vector<const Slot*> given_;
  std::vector<const void*> input_data_;
  std::vector<void*> result_data_;
  std::vector<BufferRef> results_;
  BufferRef words_;  // host memory: {iterations, whether the loop is over}
  uint64_t given_bits_ = 0;
  int64_t limit_ = 0;
};

}  // namespace eddy
