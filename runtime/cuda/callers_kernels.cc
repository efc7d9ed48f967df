#include "runtime/cuda/callers_kernels.h"

#include <memory>
#include <utility>

namespace eddy {
namespace {

struct CallersState : KernelState {
  CallersState(CudaLauncher& l, BoundKernel b) : launcher(l), bound(std::move(b)) {}
  CudaLauncher& launcher;
  const BoundKernel bound;
};

bool run_in_context(const KernelArgs& args) {
  const auto& state = static_cast<const CallersState&>(*args.state);
  KernelArgs own = args;
  own.state = state.bound.state.get();
  bool is_done = false;
  const Status status = state.launcher.in_context([&] {
    is_done = state.bound.run(own);
    return Status::ok();
  });
  if (!status.is_ok()) return args.fail(status);
  return is_done;
}

Result<BoundKernel> bind_in_context(CudaLauncher& launcher, const BindFunction& bind,
                                    const KernelInit& init) {
  BoundKernel bound;
  EDDY_RETURN_IF_ERROR(launcher.in_context([&]() -> Status {
    EDDY_ASSIGN_OR_RETURN(bound, bind(init));
    return Status::ok();
  }));
  if (bound.run == nullptr) {
    return unsupported("the caller's kernel of " + init.op.name + " runs on no CUDA stream");
  }
  BoundKernel made;
  made.run = run_in_context;
  made.scratch_bytes = bound.scratch_bytes;
  made.state = std::make_unique<CallersState>(launcher, std::move(bound));
  return made;
}

}  // namespace

KernelEntry in_context_of(CudaLauncher& launcher, KernelEntry entry) {
  entry.bind = [&launcher, bind = std::move(entry.bind)](const KernelInit& init) {
    return bind_in_context(launcher, bind, init);
  };
  return entry;
}

}  // namespace eddy
