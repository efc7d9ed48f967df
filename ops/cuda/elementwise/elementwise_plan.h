// ElementwisePlan, FusedPlan: from tensor views to the parameters of one launch.
//
// Axes are added outermost first; those of 1 are dropped and those that every input walks alike
// are merged, so equal shapes become one axis and `[8,1,64] + [64]` two.
// Cost: O(rank), nothing allocated. Threads: a plan belongs to one call.
#pragma once

#include <span>

#include "ops/contract/kernel.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/launch/launcher.h"

namespace eddy {

template <typename Params>
class BroadcastPlan {
 public:
  // Strides in elements, one for each input.
  void add_axis(int64_t size, std::span<const int64_t> strides);
  // All axes of `out`, each input broadcast to it by NumPy's rule. `wholes`: the tensors in which
  // the inputs lie, as parts of one axis each; none: each is one by itself.
  void add_broadcast(const TensorView& out, std::span<const TensorView> inputs,
                     std::span<const TensorView> wholes = {});

  // Sets the pointers and enqueues: true, or false after args.fail(). Nothing to do for no
  // elements. `may_pack`: the kernel can move packs of 16 bytes.
  bool launch(const KernelArgs& args, CudaLauncher& launcher, CudaFunction function, void* out,
              std::span<const void* const> inputs, bool may_pack);

  // Where result k > 0 of a fused kernel goes; before launch().
  template <typename Given = Params>
  requires requires(Given p) { p.more_out; }
  void set_out(size_t k, void* out) { params_.more_out[k - 1] = out; }
  void set_attributes(float a, float b) {
    params_.a = a;
    params_.b = b;
  }
  // The axes so far; pointers and count are launch()'s.
  const Params& params() const { return params_; }
  // False: more axes than a kernel takes are left; refuse.
  bool fits() const { return fits_; }

 private:
  bool can_pack(const void* out, std::span<const void* const> inputs) const;

  Params params_{};
  bool is_empty_ = false;
  bool fits_ = true;
};

using ElementwisePlan = BroadcastPlan<cuda::ElementwiseParams>;
using FusedPlan = BroadcastPlan<cuda::FusedParams>;

}  // namespace eddy
