// The families of CUDA kernels, each in a file of its own.
#pragma once

#include <string>
#include <type_traits>

#include "graph/base/check.h"
#include "ops/contract/registry.h"
#include "ops/cuda/launch/launcher.h"
#include "ops/cuda/names/element_types.h"

namespace eddy {

class DnnLibrary;
class LongLines;
class LtProducts;

void add_elementwise_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_fused_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_movement_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_rows_cuda(KernelRegistry& registry, CudaLauncher& launcher,
                   const LongLines* long_lines_or_null);
void add_parts_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_indices_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_positions_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_lines_cuda(KernelRegistry& registry, CudaLauncher& launcher,
                    const LongLines* long_lines_or_null);
void add_norms_cuda(KernelRegistry& registry, CudaLauncher& launcher, DnnLibrary* dnn_or_null);
void add_windows_cuda(KernelRegistry& registry, CudaLauncher& launcher, DnnLibrary* dnn_or_null);
void add_quantize_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_resize_cuda(KernelRegistry& registry, CudaLauncher& launcher);
void add_products_cuda(KernelRegistry& registry, CudaLauncher& launcher, LtProducts* lt_or_null);
void add_recurrent_cuda(KernelRegistry& registry, CudaLauncher& launcher);

namespace cuda {

// State of every kernel here.
struct LaunchState : KernelState {
  CudaLauncher* launcher = nullptr;
  CudaFunction function = nullptr;
  float a = 0;
  float b = 0;
};

// "float16 is not supported by the CUDA kernel of Add".
Status no_cuda_kernel(const KernelInit& init);
// Finds eddy_<name>.
template <typename State>
Status find_kernel(CudaLauncher& launcher, const std::string& name, State& state) {
  state.launcher = &launcher;
  EDDY_ASSIGN_OR_RETURN(state.function, launcher.find("eddy_" + name));
  return Status::ok();
}
// The same; a kernel that the images lack refuses the node's type by name.
template <typename State>
Status find_typed_kernel(const KernelInit& init, CudaLauncher& launcher, const std::string& name,
                         State& state) {
  Status status = find_kernel(launcher, name, state);
  return status.code() == StatusCode::kUnsupported ? no_cuda_kernel(init) : status;
}
// "f32" of input i; empty where it has none.
inline std::string input_suffix(const KernelInit& init, size_t i = 0) {
  EDDY_CHECK(i < init.inputs.size()) << "input " << i << " of " << init.inputs.size();
  return std::string(type_suffix(init.inputs[i].tensor.element));
}

using BindCuda = Result<BoundKernel> (*)(const KernelInit&, CudaLauncher&);
inline void add_kernel(KernelRegistry& registry, CudaLauncher& launcher, std::string_view op,
                       BindCuda bind, std::string_view domain = "") {
  registry.add({.op = op,
                .bind = [bind, &launcher](const KernelInit& init) { return bind(init, launcher); },
                .provider = "cuda",
                .domain = domain});
}
// Adds a kernel of a family with a library beside its own kernels, or null.
template <typename Library>
void add_kernel(KernelRegistry& registry, CudaLauncher& launcher, std::string_view op,
                Result<BoundKernel> (*bind)(const KernelInit&, CudaLauncher&, Library*),
                std::type_identity_t<Library>* library_or_null, std::string_view domain = "") {
  registry.add(
      {.op = op,
       .bind =
           [=, &launcher](const KernelInit& init) { return bind(init, launcher, library_or_null); },
       .provider = "cuda",
       .domain = domain});
}
inline BoundKernel bound(KernelFunction run, std::unique_ptr<KernelState> state,
                         bool may_fault = false) {
  BoundKernel kernel;
  kernel.run = run;
  kernel.state = std::move(state);
  kernel.may_fault = may_fault;
  return kernel;
}

}  // namespace cuda
}  // namespace eddy
