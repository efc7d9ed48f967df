// define_loop_kernels: the kernels of ops/cuda/images/loop_control.h on a fake driver.
#pragma once

#include <chrono>

#include "ops/cuda/images/loop_control.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {

// Of the whole device.
inline uint64_t fake_time_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// The first thread first: its step waits for none of the others, but where it is said to, in one
// block.
inline void run_loop_copy(const FakeKernelCall& call, const cuda::LoopCopyParams& params) {
  const uint64_t threads = uint64_t{call.grid[0]} * call.block[0];
  const auto do_step = [&](uint64_t thread) {
    cuda::loop_copy_step(
        params, thread,
        [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); },
        fake_time_ns);
  };
  const bool waits = (params.flags & cuda::LoopStepParams::kBehindAll) != 0 && call.grid[0] == 1;
  bool is_on = true;
  for (uint64_t thread = 0; thread < threads; ++thread) {
    is_on = cuda::loop_copy_parts(params, thread, threads);
    if (is_on && !waits) do_step(thread);
  }
  if (is_on && waits) do_step(0);
  if (params.told != nullptr) cuda::tell_end(params);
}

// Under that name; one that is made for a launch does the same.
inline void define_loop_copy(FakeCuda& fake, const std::string& name) {
  fake.define_kernel(name, sizeof(cuda::LoopCopyParams), [&fake](const FakeKernelCall& call) {
    const auto& params = call.params_as<cuda::LoopCopyParams>();
    for (int32_t i = 0; i < params.num_pieces; ++i) {
      if (params.pieces[i].kind != cuda::LoopCopyParams::Piece::kWhole) {
        fake.check_visible(params.pieces[i].count, sizeof(int64_t));
      }
      const auto piece = cuda::piece_now(params.pieces[i]);
      if (piece.size_bytes == 0) continue;
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
    for (int64_t i = 0; i < params.num_maps; ++i) {
      const cuda::MapParams& map = params.maps[i];
      for (size_t k = 0; k < std::size(map.in_bytes); ++k) {
        const uint64_t bytes = map.count * map.in_bytes[k];
        if (map.step.in[k] == nullptr) continue;
        fake.check_visible(map.step.in[k], bytes == 0 ? 1 : bytes);
      }
      fake.check_visible(map.step.out, map.count * map.out_bytes);
    }
    if (params.told != nullptr) {
      fake.check_visible(const_cast<uint32_t*>(params.told), sizeof(uint32_t));
    }
    run_loop_copy(call, params);
  });
}

inline void define_loop_kernels(FakeCuda& fake) {
  fake.define_kernel(
      "eddy_loop_step", sizeof(cuda::LoopStepParams), [](const FakeKernelCall& call) {
        cuda::loop_step(
            call.params_as<cuda::LoopStepParams>(),
            [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); },
            fake_time_ns);
      });
  fake.define_kernel(
      "eddy_case_choice", sizeof(cuda::CaseChoiceParams), [](const FakeKernelCall& call) {
        cuda::case_choice(
            call.params_as<cuda::CaseChoiceParams>(),
            [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); });
      });
  define_loop_copy(fake, "eddy_loop_copy");
}

}  // namespace eddy::testing
