// TorchRival: the cases of eddy bench training in PyTorch's eager mode, on one thread, each in a
// process of its own.
//
// Any python3 that imports torch does: the path's first, then the system's (Debian: python3-torch,
// and libopenblas0-pthread beside it; with the reference BLAS products are 20 times slower).
// OPENBLAS_CORETYPE is set by what the processor has, unless it is set: OpenBLAS guesses low.
// Threads: one at a time; the environment is changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eddy {

struct TorchTimes {  // of one unit
  double forward_best_ns = 0, forward_median_ns = 0;
  double both_best_ns = 0, both_median_ns = 0;  // with the way back, and a step where there is one
};

class TorchRival {
 public:
  // Empty: looked for.
  explicit TorchRival(std::string python = "");

  bool is_there() const { return !version_.empty(); }
  const std::string& version() const { return version_; }  // "1.13.0, BLAS libopenblas..."
  // None: there is no torch, or no such case.
  std::optional<TorchTimes> run(const std::string& name) const;
  // ns of each of 30 steps of rank_training.h by so many processes that share its samples
  // (DistributedDataParallel on gloo), one thread each. `folder` is empty: they find each other
  // there. None: there is no torch.
  std::vector<double> run_shared(uint32_t num_ranks, int64_t samples,
                                 const std::string& folder) const;

 private:
  std::string python_, version_;
};

}  // namespace eddy
