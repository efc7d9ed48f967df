// Persistent loops without their compiler: an interpreter of LoopPrograms, one step after the other
// over whole arrays, and the reading of a kernel's source back into its program.
//
// Elementwise steps are FusedInterpreter's; reductions are the host kernels of their nodes. So it
// is what the texts of persistent_text.h are checked against, and runs persistent loops on fakes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/ir/loop_program.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/text/fused_text.h"
#include "tests/ops/cuda/host/fused_interpreter.h"

namespace eddy::testing {

class LoopInterpreter {
 public:
  // A reduction's kernel on the host, of RowParams: "ReduceSum_f32", of rows of this length.
  using RowKernel = std::function<void(const std::string& name, const cuda::RowParams& params)>;
  // Called before each iteration; false: the device is lost, and nothing more is written.
  using NextRound = std::function<bool()>;

  static bool is_loop(const std::string& text) { return text.starts_with("// loop: "); }
  // Refuses a text that persistent_kernel_source does not write for the program that it names.
  static Result<LoopInterpreter> read(const std::string& text, RowKernel run_rows);
  LoopInterpreter(LoopProgram program, RowKernel run_rows)
      : program_(std::move(program)), run_rows_(std::move(run_rows)) {}

  void run(const cuda::LoopParams& params, const NextRound& next_round) const;

 private:
  using Memory = std::vector<std::vector<std::byte>>;  // by value; of inputs: none
  const std::byte* data(const cuda::LoopParams& params, const Memory& memory, uint32_t value) const;
  size_t size_bytes(uint32_t value) const;
  void run_step(const LoopProgram::Step& step, const cuda::LoopParams& params,
                Memory& memory) const;
  void reduce(const LoopProgram::Step& step, const cuda::LoopParams& params, Memory& memory) const;

  LoopProgram program_;
  RowKernel run_rows_;
};

}  // namespace eddy::testing
