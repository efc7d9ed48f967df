// What a capture keeps back, because one launch may do what comes next, too: steps over single
// elements, copies, and a loop's step.
#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/scalar_program.h"
#include "runtime/cuda/cuda_graph_capture.h"

namespace eddy {
namespace {

// Whether the first thread alone copies the piece.
bool is_of_first_thread(const cuda::LoopCopyParams::Piece& piece) {
  return piece.size_bytes <= cuda::kFirstThreadsBytes;
}

// One thread does all of it.
bool is_of_one_thread(const cuda::LoopCopyParams& kept) {
  return std::all_of(kept.pieces, kept.pieces + kept.num_pieces, is_of_first_thread);
}

bool holds(const void* memory, uint64_t size_bytes, const void* address) {
  const auto begin = reinterpret_cast<uintptr_t>(memory), at = reinterpret_cast<uintptr_t>(address);
  return at >= begin && at - begin < size_bytes;
}

// Whether threads other than the first copy what a step over single elements reads or writes.
bool are_shared(const cuda::LoopCopyParams& kept, const MemoryCopy& copy) {
  if (copy.size_bytes <= cuda::kFirstThreadsBytes) return false;
  for (int64_t i = 0; i < kept.num_scalars; ++i) {
    const cuda::ScalarStepParams& step = kept.scalars[i];
    for (const void* const word :
         {step.in[0], step.in[1], step.in[2], static_cast<const void*>(step.out)}) {
      if (holds(copy.to, copy.size_bytes, word) || holds(copy.from, copy.size_bytes, word)) {
        return true;
      }
    }
  }
  return false;
}

// Whether one launch may do what is kept and, behind it, the step. Threads wait for none of the
// others there; and a launch of several that may be called off must not write its guard.
bool can_follow(const cuda::LoopCopyParams& kept, const cuda::LoopStepParams& step) {
  using Step = cuda::LoopStepParams;
  const bool tests = (step.flags & Step::kTest) != 0;
  if (kept.step.flags != 0 && (!tests || kept.step.counter != step.counter)) return false;
  if (kept.num_pieces == 0) return true;
  if (is_of_one_thread(kept)) return true;
  if (tests && ((kept.flags | step.flags) & Step::kGuarded) != 0) return false;
  for (int32_t i = 0; i < kept.num_pieces; ++i) {
    const cuda::LoopCopyParams::Piece& piece = kept.pieces[i];
    for (const void* word :
         {static_cast<const void*>(step.counter), static_cast<const void*>(step.limit),
          static_cast<const void*>(step.predicate)}) {
      const bool is_shared =
          holds(piece.to, piece.size_bytes, word) || holds(piece.from, piece.size_bytes, word);
      if (is_shared && !is_of_first_thread(piece)) return false;
    }
  }
  return true;
}

}  // namespace

Status CudaGraphCapture::copy_by_kernel(std::span<const MemoryCopy> copies) {
  if (levels_.empty()) return internal_error("copies are captured outside a capture");
  while (!copies.empty()) {
    const auto some = copies.first(std::min<size_t>(copies.size(), cuda::kMaxLoopCopies));
    const bool may_join =
        kept_ && kept_->num_pieces == 0 && kept_->step.flags == 0 &&
        std::ranges::none_of(some, [&](const MemoryCopy& c) { return are_shared(*kept_, c); });
    if (!may_join) EDDY_RETURN_IF_ERROR(flush());
    cuda::LoopCopyParams& kept = may_join ? *kept_ : keep_new();
    kept.num_pieces = static_cast<int32_t>(some.size());
    for (size_t i = 0; i < some.size(); ++i) {
      kept.pieces[i] = {some[i].to, some[i].from, some[i].size_bytes};
    }
    copies = copies.subspan(some.size());
  }
  return Status::ok();
}

// ---------------------------------------------------------------- single elements

std::optional<Expression> CudaGraphCapture::scalar_of(const KernelInit& init,
                                                      const BoundKernel& kernel) const {
  if (kernels_.copy == nullptr || kernel.provider != "cuda") return std::nullopt;
  return cuda::scalar_expression(init);
}

Status CudaGraphCapture::compute(const Expression& expression, std::span<const void* const> inputs,
                                 std::span<void* const> made) {
  if (levels_.empty()) return internal_error("an element is made outside a capture");
  const std::vector<cuda::ScalarStepParams> steps = cuda::scalar_steps(expression, inputs, made);
  const bool has_room = kept_ && kept_->num_pieces == 0 && kept_->step.flags == 0 &&
                        static_cast<size_t>(kept_->num_scalars) + steps.size() <=
                            static_cast<size_t>(cuda::kMaxScalarSteps);
  if (!has_room) EDDY_RETURN_IF_ERROR(flush());
  cuda::LoopCopyParams& kept = has_room ? *kept_ : keep_new();
  for (const cuda::ScalarStepParams& step : steps) kept.scalars[kept.num_scalars++] = step;
  return Status::ok();
}

Status CudaGraphCapture::keep(const cuda::LoopStepParams& step) {
  if (kept_ && !can_follow(*kept_, step)) EDDY_RETURN_IF_ERROR(flush());
  if (!kept_) kept_.emplace();
  const uint32_t counts = kept_->step.flags;
  EDDY_DCHECK(counts == 0 || kept_->step.counter == step.counter) << "one launch counts two loops";
  kept_->step = step;
  kept_->step.flags |= counts;
  return Status::ok();
}

cuda::LoopCopyParams& CudaGraphCapture::keep_new() {
  cuda::LoopCopyParams& kept = kept_.emplace();
  kept.go_on = levels_.back().test.go_on;
  kept.flags = guard_flag();
  return kept;
}

Status CudaGraphCapture::flush() {
  if (!kept_) return Status::ok();
  const cuda::LoopCopyParams kept = *std::exchange(kept_, std::nullopt);
  if (kept.num_pieces == 0 && kept.num_scalars == 0) {
    return launch_one(kernels_.step, &kept.step);
  }
  if (is_of_one_thread(kept)) return launch_one(kernels_.copy, &kept);
  EDDY_DCHECK(kept.num_pieces > 0 && kept.num_pieces <= cuda::kMaxLoopCopies)
      << kept.num_pieces << " pieces are copied";
  constexpr size_t kBytesOfABlock = 16 * cuda::kBlockThreads;
  const auto most_blocks =
      4 * static_cast<size_t>(std::max(context_.facts().num_multiprocessors, 1));
  size_t largest = 1;
  for (int32_t i = 0; i < kept.num_pieces; ++i) {
    largest = std::max<size_t>(largest, kept.pieces[i].size_bytes);
  }
  const size_t blocks = (largest + kBytesOfABlock - 1) / kBytesOfABlock;
  return launch_one(kernels_.copy, &kept, static_cast<uint32_t>(std::min(blocks, most_blocks)),
                    cuda::kBlockThreads);
}

}  // namespace eddy
