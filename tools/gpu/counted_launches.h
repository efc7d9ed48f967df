// CountedLaunches: another launcher, and how many kernels have been launched by it: where a node
// runs and none has, a library did its work.
//
// Threads: one. The other launcher outlives it.
#pragma once

#include "ops/cuda/launcher.h"

namespace eddy {

class CountedLaunches : public CudaLauncher {
 public:
  explicit CountedLaunches(CudaLauncher& to) : to_(to) {}
  uint64_t count() const { return count_; }

  Result<CudaFunction> find(std::string_view name) override { return to_.find(name); }
  Result<CudaFunction> compile(const cuda::KernelSource& source) override {
    return to_.compile(source);
  }
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override {
    ++count_;
    return to_.launch(function, num_blocks, params, stream);
  }
  Status in_context(const std::function<Status()>& calls) override { return to_.in_context(calls); }
  void on_stream_end(const void* key, std::function<void(NativeStream)> keeper) override {
    to_.on_stream_end(key, std::move(keeper));
  }
  void forget_stream_ends(const void* key) override { to_.forget_stream_ends(key); }
  uint32_t num_resident_blocks() const override { return to_.num_resident_blocks(); }

 private:
  CudaLauncher& to_;
  uint64_t count_ = 0;
};

}  // namespace eddy
