// FakeCudnn: cuDNN without a GPU: the door's table, which computes by plain loops as the
// descriptors define, channels first or last, and as strict: sizes that do not follow from window
// and padding, types or orders that differ, an algorithm that was not offered are errors, and
// objects that are not destroyed are counted.
//
// Work runs when `enqueue` runs it: at once, or in a fake stream's order. The first algorithm it
// offers is not deterministic, the second needs more workspace than any device has, the third is
// good. The fake owns its handles, which a process keeps. Threads: one.
// Outlives its table.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/cuda/libraries/cudnn.h"

namespace eddy::testing {

class FakeCudnn {
 public:
  using Enqueue = std::function<void(void* stream, std::vector<const void*> addresses,
                                     std::function<void()> work)>;
  explicit FakeCudnn(Enqueue enqueue = nullptr);

  std::shared_ptr<const CudnnApi> api() const { return api_; }
  int num_convolutions() const { return num_convolutions_; }
  int num_channels_last() const { return num_channels_last_; }  // of those
  int num_one_calls() const { return num_one_calls_; }  // convolutions with what stands behind
  int num_pools() const { return num_pools_; }
  int num_norms() const { return num_norms_; }
  int num_choices() const { return num_choices_; }
  int num_exact() const { return num_exact_; }          // convolutions that may not round to TF32
  int num_alive() const { return num_alive_; }          // descriptors
  int num_created() const { return num_created_; }      // handles
  int num_destroyed() const { return num_destroyed_; }  // handles
  // Called where the library may synchronize the device: it makes a handle or destroys one.
  void when_handles_change(std::function<void()> synchronize) {
    synchronize_ = std::move(synchronize);
  }
  // Called where the library may measure or compile: it chooses an algorithm.
  void when_choosing(std::function<void()> chosen) { chosen_ = std::move(chosen); }
  std::vector<std::string> violations() const { return violations_; }
  // One more algorithm is offered, the last, and from now on measuring answers by these times: of
  // the good one under tensor math and under FMA, and of that last one, under FMA.
  struct Times {
    float tensor_ms, fma_ms, last_ms;
  };
  void plant_times(const Times& times) { times_ = times; }
  int num_measured() const { return num_measured_; }
  // Of the last convolution.
  struct Ran {
    int algorithm = 0, math = 0;
    bool operator==(const Ran&) const = default;
  };
  Ran last_run() const { return last_run_; }
  static constexpr int kGoodAlgorithm = 1, kLastAlgorithm = 7;
  // Offers nothing good for these many calls.
  void offer_nothing(int calls) { unknown_ = calls; }
  // The next call of that name ("choose", "measure", "convolve", "one_call", "activate",
  // "convolution_set", "add", "pooling_set", "pool", "normalize") answers so.
  void fail_next(std::string call, int status) {
    fail_call_ = std::move(call);
    fail_with_ = status;
  }

 private:
  struct Handle;
  struct Shape;
  struct Window;
  struct Convolution;
  struct Pooling;
  struct Activation;
  struct Sums;

  void fill_handles(CudnnApi& api);
  void fill_descriptors(CudnnApi& api);
  void fill_calls(CudnnApi& api);
  void fill_activations(CudnnApi& api);
  void fill_one_call(CudnnApi& api);
  void fill_pools(CudnnApi& api);
  void fill_norms(CudnnApi& api);
  int pool(const Handle& handle, const Pooling& pooling, const Shape& x, const void* from,
           const Shape& y, void* to);
  std::string misfit(const Pooling& pooling, const Shape& x, const Shape& y) const;
  // Counts a convolution; else the status of a violation.
  int begin(const Sums& sums, int algorithm, const void* workspace, size_t bytes);
  int choose(Convolution& convolution, int num_wanted, int* num_found, DnnAlgorithm* found);
  int measure(int num_wanted, int* num_found, DnnAlgorithm* found);
  std::string misfit(const Shape& x, const Shape& w, const Convolution& c, const Shape& y) const;
  int violation(const std::string& what);
  void enqueue(void* stream, std::vector<const void*> addresses, std::function<void()> work);

  const Enqueue enqueue_;
  int num_convolutions_ = 0, num_choices_ = 0, num_exact_ = 0, num_alive_ = 0, unknown_ = 0;
  int num_one_calls_ = 0, num_measured_ = 0, num_channels_last_ = 0;
  std::optional<Times> times_;
  Ran last_run_;
  int num_created_ = 0, num_destroyed_ = 0, num_pools_ = 0, num_norms_ = 0;
  std::function<void()> synchronize_ = [] {};
  std::function<void()> chosen_ = [] {};
  // The status that the call of that name shall answer with; 0: it may go on.
  int failure_of(const char* call);

  std::string fail_call_;
  int fail_with_ = 0;
  std::vector<std::shared_ptr<Handle>> handles_;
  std::vector<std::string> violations_;
  std::shared_ptr<const CudnnApi> api_;
};

}  // namespace eddy::testing
