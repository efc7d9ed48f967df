// HostLauncher: CUDA kernels without CUDA: their bodies, compiled by the host's compiler, called
// for every thread (or, phase by phase, for every block) of the grid, blocks in a seeded random
// order.
//
// What it shows: indexing, broadcasting, packing, tails, arithmetic. What it does not: the device's
// own math library, anything of its memory, and threads of a block that race within a phase.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "graph/base/random.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/launch/launcher.h"
#include "tests/ops/cuda/host/fused_interpreter.h"
#include "tests/ops/cuda/host/loop_interpreter.h"

namespace eddy::testing {

// One kernel; exactly one of the functions is set, or is_loop_copy. Parameters are the kernel's own
// struct.
struct HostKernel {
  size_t params_bytes = 0;
  void (*run_thread)(const void* params, uint64_t first, uint64_t step) = nullptr;
  void (*run_block)(const void* params, uint64_t index, uint64_t count) = nullptr;
  // Interprets a fused kernel by its program.
  std::shared_ptr<const FusedInterpreter> fused_or_null = nullptr;
  // Interprets a persistent loop likewise.
  std::shared_ptr<const LoopInterpreter> loop_or_null = nullptr;
  // A launch of eddy_loop_copy by itself, which the fake driver's kernel of that name runs.
  bool is_loop_copy = false;
};

// The kernel that a source of fused_text.h, persistent_text.h or copy_source.h stands for; refuses
// any other text.
Result<HostKernel> host_kernel_of(const std::string& source);

// Every kernel of the images, by its full name ("eddy_Add_f32").
using HostKernels = std::map<std::string, HostKernel, std::less<>>;
HostKernels host_kernels();

// Calls the kernel for every thread of `num_blocks` blocks. `next_round`: called before each
// iteration of a persistent loop; false ends it where it is.
void run_host_kernel(const HostKernel& kernel, uint32_t num_blocks, const void* params,
                     Random& random, const std::function<bool()>& next_round = {});
// A reduction of these rows by the kernel, named without "eddy_", that rows of their length take.
void run_row_kernel(const std::string& name, const cuda::RowParams& rows);

class HostLauncher : public CudaLauncher {
 public:
  explicit HostLauncher(uint64_t seed) : random_(seed) {}
  Result<CudaFunction> find(std::string_view name) override;
  Result<CudaFunction> compile(const cuda::KernelSource& source) override;
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override;
  Status in_context(const std::function<Status()>& calls) override { return calls(); }
  void on_stream_end(const void* key, std::function<void(NativeStream)> keeper) override {
    keepers_[key] = std::move(keeper);
  }
  void on_recording_stream(const void* key, std::function<void(NativeStream)> keeper) override {
    makers_[key] = std::move(keeper);
  }
  void forget_streams(const void* key) override {
    keepers_.erase(key);
    makers_.erase(key);
  }
  void make_recording_stream(NativeStream stream) const {
    for (const auto& [key, maker] : makers_) maker(stream);
  }
  void end_stream(NativeStream stream) const {
    for (const auto& [key, keeper] : keepers_) keeper(stream);
  }
  // Few, so that threads have several items.
  uint32_t num_resident_blocks() const override { return 1; }
  uint64_t num_launches() const { return num_launches_; }
  // The name of the kernel that was launched last.
  std::string last_launched() const;

 private:
  HostKernels kernels_ = host_kernels();
  Random random_;
  uint64_t num_launches_ = 0;
  CudaFunction last_launched_ = nullptr;
  std::map<const void*, std::function<void(NativeStream)>> keepers_, makers_;
};

}  // namespace eddy::testing
