// BatchValues: which requests fit into one batch, their inputs joined, and outputs taken apart.
//
// A request fits where each input is a host's tensor of the type that the graph declares, all
// batched inputs have equally many samples, at least one, and open dimensions agree. Two requests
// fit together where their other dimensions and their shared inputs, byte by byte, are equal. What
// does not fit is not judged here: the session runs it alone, or says what is wrong with it.
//
// Ownership: joined inputs and parts of outputs are copies; nothing of a caller's is kept.
// Threads: const, any. Cost: of sort() and are_alike() the bytes of the shared inputs; of join()
// and part() the bytes they copy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/batch_axes.h"
#include "runtime/api/session_report.h"
#include "runtime/api/tensor.h"

namespace eddy {

// A request's inputs, in the order of the graph's.
struct SortedInputs {
  std::vector<Tensor> tensors;
  int64_t num_samples = 0;
  std::string key;  // differs where two requests surely do not fit together
};

class BatchValues {
 public:
  BatchValues(std::vector<ValueDescription> inputs, BatchAxes axes)
      : inputs_(std::move(inputs)), axes_(std::move(axes)) {
    EDDY_CHECK(axes_.inputs.size() == inputs_.size())
        << axes_.inputs.size() << " axes of " << inputs_.size() << " inputs";
  }

  // nullopt: the request fits into no batch.
  std::optional<SortedInputs> sort(const NamedTensors& inputs) const;
  // Of equal keys: whether they fit together. False also for what a key says too little of.
  bool are_alike(const SortedInputs& a, const SortedInputs& b) const;
  // At least one; all are alike.
  NamedTensors join(std::span<const SortedInputs* const> requests) const;
  // The outputs for samples [begin, begin + count) of `all`. Fails (kInternal) where an output's
  // axis is no multiple of them.
  Result<NamedTensors> part(const NamedTensors& outputs, int64_t all, int64_t begin,
                            int64_t count) const;

 private:
  bool fits(size_t input, const Tensor& tensor) const;
  bool read_sizes(SortedInputs& sorted) const;
  std::string key_of(const SortedInputs& sorted) const;

  const std::vector<ValueDescription> inputs_;
  const BatchAxes axes_;
};

}  // namespace eddy
