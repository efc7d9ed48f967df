// FakeCub: CUB without a GPU: the interface's table, doing by plain loops what the library does
// with what it is given (long_line_inl.h): parts of a line, joined in a seeded order, for
// reductions; a stable sort; a running sum. As strict as the library, and as we must be: scratch
// memory that is smaller than it asked for, a line without elements, more of them than a sort
// takes, running sums of floats are errors and counted.
//
// Work runs when `enqueue` runs it: at once, or in a fake stream's order; scratch memory is filled
// with nonsense then. Threads: one. Outlives its table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "ops/cuda/reduce/cub.h"

namespace eddy::testing {

class FakeCub {
 public:
  using Enqueue = std::function<void(void* stream, std::vector<const void*> addresses,
                                     std::function<void()> work)>;
  static constexpr int kFailure = 700;  // what fail_call() makes a call answer

  explicit FakeCub(uint64_t seed, Enqueue enqueue = nullptr);

  std::shared_ptr<const CubApi> api() const { return api_; }
  // Calls that enqueued, and all of them with those that asked for a size.
  int num_runs() const { return num_runs_; }
  int num_calls() const { return num_calls_; }
  std::vector<std::string> violations() const { return violations_; }
  // The k-th call from here on, from 1, answers with a failure.
  void fail_call(int k) { fails_at_ = num_calls_ + k; }

 private:
  using Work = std::function<void()>;

  template <typename Call>
  CubApi::Entry<Call> entry(Work (FakeCub::*work_of)(const Call&));
  int violation(const std::string& what);
  Work sum_work(const cuda::SumCall& call);
  Work extreme_work(const cuda::ExtremeCall& call);
  Work cum_sum_work(const cuda::CumSumCall& call);
  Work top_k_work(const cuda::TopKCall& call);
  template <typename Value, typename Items, typename Join>
  Value reduce(uint64_t length, const Items& items, const Join& join) const;

  const Enqueue enqueue_;
  const uint64_t seed_;
  int num_runs_ = 0, num_calls_ = 0, fails_at_ = 0;
  std::vector<std::string> violations_;
  std::shared_ptr<const CubApi> api_;
};

}  // namespace eddy::testing
