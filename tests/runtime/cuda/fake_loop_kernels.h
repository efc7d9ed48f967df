// define_loop_kernels: the kernels of ops/cuda/images/loop_control.h on a fake driver.
#pragma once

#include "ops/cuda/images/loop_control.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {

// The first thread first: its step has waited for none of the others.
inline void run_loop_copy(const FakeKernelCall& call, const cuda::LoopCopyParams& params) {
  const uint64_t threads = uint64_t{call.grid[0]} * call.block[0];
  for (uint64_t thread = 0; thread < threads; ++thread) {
    cuda::loop_copy(params, thread, threads,
                    [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); });
  }
}

inline void define_loop_kernels(FakeCuda& fake) {
  fake.define_kernel(
      "eddy_loop_step", sizeof(cuda::LoopStepParams), [](const FakeKernelCall& call) {
        cuda::loop_step(
            call.params_as<cuda::LoopStepParams>(),
            [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); });
      });
  fake.define_kernel(
      "eddy_case_choice", sizeof(cuda::CaseChoiceParams), [](const FakeKernelCall& call) {
        cuda::case_choice(
            call.params_as<cuda::CaseChoiceParams>(),
            [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); });
      });
  fake.define_kernel("eddy_loop_copy", sizeof(cuda::LoopCopyParams),
                     [&fake](const FakeKernelCall& call) {
                       const auto& params = call.params_as<cuda::LoopCopyParams>();
                       for (int32_t i = 0; i < params.num_pieces; ++i) {
                         const cuda::LoopCopyParams::Piece& piece = params.pieces[i];
                         fake.check_visible(piece.to, piece.size_bytes);
                         fake.check_visible(piece.from, piece.size_bytes);
                       }
                       for (int64_t i = 0; i < params.num_scalars; ++i) {
                         const cuda::ScalarStepParams& step = params.scalars[i];
                         const bool is_set = step.op == cuda::ScalarOp::kSet;
                         for (const void* const word : step.in) {
                           if (word != nullptr && !is_set) fake.check_visible(word, 1);
                         }
                         fake.check_visible(step.out, 1);
                       }
                       run_loop_copy(call, params);
                     });
}

}  // namespace eddy::testing
