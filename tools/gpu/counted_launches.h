// CountedLaunches: another launcher, and how many kernels, and which, have been launched by it:
// where a node runs and none has, a library did its work.
//
// Threads: one. The other launcher outlives it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ops/cuda/launch/launcher.h"

namespace eddy {

class CountedLaunches : public CudaLauncher {
 public:
  explicit CountedLaunches(CudaLauncher& to) : to_(to) {}
  uint64_t count() const { return count_; }

  // Names of those that find() has found.
  const std::set<std::string>& launched() const { return launched_; }

  Result<CudaFunction> find(std::string_view name) override {
    EDDY_ASSIGN_OR_RETURN(const CudaFunction function, to_.find(name));
    names_.emplace(function, name);
    return function;
  }
  Result<CudaFunction> compile(const cuda::KernelSource& source) override {
    return to_.compile(source);
  }
  Status launch(CudaFunction function, uint32_t num_blocks, const void* params,
                NativeStream stream) override {
    ++count_;
    if (const auto name = names_.find(function); name != names_.end()) {
      launched_.insert(name->second);
    }
    return to_.launch(function, num_blocks, params, stream);
  }
  Status in_context(const std::function<Status()>& calls) override { return to_.in_context(calls); }
  Status alone_in_context(const std::function<Status()>& calls) override {
    return to_.alone_in_context(calls);
  }
  const void* device() const override { return to_.device(); }
  Status keep_device() override { return to_.keep_device(); }
  void on_stream_end(const void* key, std::function<void(NativeStream)> keeper) override {
    to_.on_stream_end(key, std::move(keeper));
  }
  void on_recording_stream(const void* key, std::function<void(NativeStream)> keeper) override {
    to_.on_recording_stream(key, std::move(keeper));
  }
  void forget_streams(const void* key) override { to_.forget_streams(key); }
  uint32_t num_resident_blocks() const override { return to_.num_resident_blocks(); }

 private:
  CudaLauncher& to_;
  uint64_t count_ = 0;
  std::map<CudaFunction, std::string> names_;
  std::set<std::string> launched_;
};

}  // namespace eddy
