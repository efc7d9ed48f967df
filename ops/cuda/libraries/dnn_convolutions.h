// DnnConvolutions: convolutions by cuDNN, with descriptors and an algorithm for every shape met.
//
// A convolution has ConvParams, as our own kernels have, channels first or last; for what the
// library does not do (padding that differs at the two ends beyond what the strides make of it, no
// deterministic algorithm within the workspace, whatever it refuses at the call) run() returns
// false, and the caller takes its own kernel. Algorithms are requested once for each shape, order
// and type, of which the latest are kept (dnn_plans.h); only deterministic ones are taken: same
// bits from run to run. Taken is the first that the library's heuristic names. With
// DnnOptions::choices_or_null it is the one of the first three that was measured to be clearly the
// fastest when the shape was first prepared on this kind of device: other algorithms give other
// bits, so what was measured is kept for good, and what can't be kept is not measured. Shapes that
// are first met in a run are never measured.
//
// Ownership: outlives every kernel bound on it; the handles outlive it. Threads: any, one at a time
// a stream; finding a known shape takes a lock.
// Bias, addend and Relu are part of the convolution's call, without a Relu where the algorithm is
// the one that has that; where the library refuses it for a shape, each is a call of its own from
// then on. A shape that the library has no way for, or refuses, is noted
// (DnnHandles::note_refusal). Cost: a lookup and mostly one call; the first time a shape is met,
// some 100 µs. Errors: the library's errors, by the call's name.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "ops/cuda/libraries/dnn_options.h"
#include "ops/cuda/libraries/dnn_plans.h"
#include "ops/cuda/libraries/dnn_shapes.h"

namespace eddy {

class DnnConvolutions {
 public:
  DnnConvolutions(DnnHandles& handles, const DnnOptions& options)
      : handles_(handles), options_(options), plans_(handles, options.max_plans) {}

  static bool has_type(ElementType element) { return has_dnn_type(element); }
  // Chooses the algorithm of a shape that will be met, outside of any recording. An error is left
  // to run(), which tries again.
  void prepare(ElementType element, const cuda::ConvParams& params);
  // Enqueues the convolution. False in the result: the library has no way for it.
  Result<bool> run(const KernelArgs& args, ElementType element, const cuda::ConvParams& params);

 private:
  // The descriptors and the algorithm of one shape.
  struct Plan {
    DnnDescriptor<DnnTensor> x, y, bias;
    DnnDescriptor<DnnFilter> w;
    DnnDescriptor<DnnConvolution> convolution;
    DnnDescriptor<DnnActivation> activation;  // the Relu, or the identity
    DnnAlgorithm chosen{};
    mutable std::atomic<bool> is_one_call{true};
  };

  static DnnPlans<Plan>::Key key_of(ElementType element, const cuda::ConvParams& params);
  std::string choice_key(ElementType element, const cuda::ConvParams& params,
                         int wanted_math) const;
  // Of a shape that may be measured or, in a run, may not.
  enum class When : uint8_t { kPreparing, kRunning };
  Result<bool> describe(DnnHandle handle, Plan& plan, ElementType element,
                        const cuda::ConvParams& params, When when) const;
  Result<bool> describe_or_note(DnnHandle handle, Plan& plan, ElementType element,
                                const cuda::ConvParams& params, When when) const;
  void note_refusal(const cuda::ConvParams& params, const std::string& why) const;
  Status describe_filter(Plan& plan, ElementType element, const DnnShape& weights,
                         DnnOrder order) const;
  Status describe_convolution(Plan& plan, ElementType element,
                              const cuda::ConvParams& params) const;
  Status describe_activation(Plan& plan, const cuda::ConvParams& params) const;
  int wanted_math(ElementType element) const;
  Status set_math(const Plan& plan, int math) const;
  // What may be taken, as the library lists it.
  Result<std::vector<DnnAlgorithm>> list(DnnHandle handle, const Plan& plan, int wanted_math) const;
  // Of several: the one that is kept, or is to be from now on.
  DnnAlgorithm choose(DnnHandle handle, const Plan& plan, const std::vector<DnnAlgorithm>& listed,
                      const std::string& key, When when) const;
  Result<DnnAlgorithm> measure(DnnHandle handle, const Plan& plan,
                               const std::vector<DnnAlgorithm>& listed) const;
  struct Workspace {
    void* data = nullptr;
    size_t bytes = 0;
  };
  Status enqueue(const KernelArgs& args, DnnHandle handle, const Plan& plan, ElementType element,
                 const cuda::ConvParams& params) const;
  Status enqueue_as_one(DnnHandle handle, const Plan& plan, ElementType element,
                        const cuda::ConvParams& params, Workspace workspace) const;
  Status enqueue_apart(DnnHandle handle, const Plan& plan, ElementType element,
                       const cuda::ConvParams& params, Workspace workspace) const;

  DnnHandles& handles_;
  const DnnOptions options_;
  DnnPlans<Plan> plans_;
};

}  // namespace eddy
