// What a capture keeps back, because one launch may do what comes next, too: steps over single
// elements and over many, copies, and a loop's step.
#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/copy_source.h"
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
  return kept.num_maps == 0 &&
         std::all_of(kept.pieces, kept.pieces + kept.num_pieces, is_of_first_thread);
}

// What a part of a launch reads or writes.
struct Touched {
  const void* at;
  uint64_t size_bytes;
  bool is_written;
};
using Touches = std::vector<Touched>;

void add_touches(const cuda::ScalarStepParams& step, Touches& touches) {
  if (step.op == cuda::ScalarOp::kSet) return touches.push_back({step.out, 1, true});
  for (const void* const word : step.in) {
    if (word != nullptr) touches.push_back({word, 1, false});
  }
  touches.push_back({step.out, 1, true});
}
void add_touches(const cuda::MapParams& map, Touches& touches) {
  for (size_t i = 0; i < std::size(map.in_bytes); ++i) {
    if (map.step.in[i] == nullptr) continue;
    touches.push_back({map.step.in[i], std::max<uint64_t>(map.count * map.in_bytes[i], 1), false});
  }
  touches.push_back({map.step.out, map.count * map.out_bytes, true});
}
// Rows lie where nothing else of the launch does.
void add_touches(const MemoryCopy& copy, Touches& touches) {
  touches.push_back({copy.from, copy.size_bytes, false});
  if (copy.count != nullptr) touches.push_back({copy.count, sizeof(int64_t), false});
  if (copy.kind == MemoryCopy::Kind::kWhole) touches.push_back({copy.to, copy.size_bytes, true});
}
void add_touches(const cuda::LoopCopyParams::Piece& piece, Touches& touches) {
  const auto kind = static_cast<MemoryCopy::Kind>(piece.kind);
  add_touches({piece.to, piece.from, piece.size_bytes, kind, piece.count, piece.row_bytes},
              touches);
}
void add_touches(const cuda::LoopStepParams& step, Touches& touches) {
  touches.push_back({step.counter, sizeof(int64_t), true});
  touches.push_back({step.limit, sizeof(int64_t), false});
  if (step.predicate != nullptr) touches.push_back({step.predicate, 1, false});
}

bool do_overlap(const Touched& a, const Touched& b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.at);
  const auto begin_b = reinterpret_cast<uintptr_t>(b.at);
  return begin_a < begin_b + b.size_bytes && begin_b < begin_a + a.size_bytes;
}

// Whether one of them writes what the other one reads or writes.
bool do_meet(const Touches& all, const Touches& others) {
  return std::ranges::any_of(all, [&](const Touched& a) {
    return std::ranges::any_of(others, [&](const Touched& b) {
      return (a.is_written || b.is_written) && do_overlap(a, b);
    });
  });
}

// Of what only the first thread does, of what all do; steps are first.
Touches scalar_touches(const cuda::LoopCopyParams& kept) {
  Touches touches;
  for (int64_t i = 0; i < kept.num_scalars; ++i) add_touches(kept.scalars[i], touches);
  return touches;
}
Touches map_touches(const cuda::LoopCopyParams& kept) {
  Touches touches;
  for (int64_t i = 0; i < kept.num_maps; ++i) add_touches(kept.maps[i], touches);
  return touches;
}

// Whether threads other than the first copy what a step over single elements reads or writes, or
// any copies what steps over many do.
bool are_shared(const cuda::LoopCopyParams& kept, const MemoryCopy& copy) {
  Touches touches;
  add_touches(copy, touches);
  if (do_meet(map_touches(kept), touches)) return true;
  if (copy.size_bytes <= cuda::kFirstThreadsBytes) return false;
  // Also where both only read: their first thread may copy a word of it later than others.
  return std::ranges::any_of(scalar_touches(kept), [&](const Touched& word) {
    return std::ranges::any_of(touches,
                               [&](const Touched& copied) { return do_overlap(word, copied); });
  });
}

// Whether each thread that runs the later one's element has run the earlier one's: they have the
// same elements of what they share.
bool can_follow(const cuda::MapParams& earlier, const cuda::MapParams& later) {
  Touches before, behind;
  add_touches(earlier, before);
  add_touches(later, behind);
  const auto is_apart = [&](const Touched& a, const Touched& b) {
    const bool is_same = a.at == b.at && a.size_bytes == b.size_bytes;
    return !(a.is_written || b.is_written) || !do_overlap(a, b) ||
           (is_same && earlier.count == later.count);
  };
  return std::ranges::all_of(before, [&](const Touched& a) {
    return std::ranges::all_of(behind, [&](const Touched& b) { return is_apart(a, b); });
  });
}

// So many may be one block of as many times the work, where threads must wait for each other: it is
// faster than another launch.
constexpr size_t kMostBlocksInOne = 4;

// As many as give each thread a few words, or one element.
size_t blocks_of(const cuda::LoopCopyParams& kept) {
  constexpr size_t kBytesOfAThread = 16, kBytesOfABlock = kBytesOfAThread * cuda::kBlockThreads;
  size_t largest = 1;
  for (int32_t i = 0; i < kept.num_pieces; ++i) {
    largest = std::max<size_t>(largest, kept.pieces[i].size_bytes);
  }
  for (int64_t i = 0; i < kept.num_maps; ++i) {
    largest = std::max<size_t>(largest, kept.maps[i].count * kBytesOfAThread);
  }
  return (largest + kBytesOfABlock - 1) / kBytesOfABlock;
}

// Whether the step needs no thread of the launch but its own. A launch of several that may be
// called off must not write its guard.
bool is_apart(const cuda::LoopCopyParams& kept, const cuda::LoopStepParams& step) {
  using Step = cuda::LoopStepParams;
  const bool tests = (step.flags & Step::kTest) != 0;
  if (is_of_one_thread(kept)) return true;
  if (tests && ((kept.flags | step.flags) & Step::kGuarded) != 0) return false;
  Touches words;
  add_touches(step, words);
  Touches others = map_touches(kept);
  for (int32_t i = 0; i < kept.num_pieces; ++i) {
    if (!is_of_first_thread(kept.pieces[i])) add_touches(kept.pieces[i], others);
  }
  return std::ranges::none_of(words, [&](const Touched& word) {
    return std::ranges::any_of(others,
                               [&](const Touched& other) { return do_overlap(word, other); });
  });
}

// Whether one launch may do what is kept and, behind it, the step. Threads of several blocks wait
// for none of the others there, those of one block do where they must.
bool can_follow(const cuda::LoopCopyParams& kept, const cuda::LoopStepParams& step) {
  const bool tests = (step.flags & cuda::LoopStepParams::kTest) != 0;
  if (kept.step.flags != 0 && (!tests || kept.step.counter != step.counter)) return false;
  return is_apart(kept, step) || blocks_of(kept) <= kMostBlocksInOne;
}

}  // namespace

Status CudaGraphCapture::copy_by_kernel(std::span<const MemoryCopy> copies) {
  if (levels_.empty()) return internal_error("copies are captured outside a capture");
  // Behind copies that are kept come others only where one thread makes all of them, in order.
  const bool are_small = std::ranges::all_of(
      copies, [](const MemoryCopy& each) { return each.size_bytes <= cuda::kFirstThreadsBytes; });
  while (!copies.empty()) {
    const bool may_join =
        kept_ && kept_->step.flags == 0 && kept_->num_pieces < cuda::kMaxLoopCopies &&
        (kept_->num_pieces == 0 || (are_small && is_of_one_thread(*kept_))) &&
        std::ranges::none_of(copies, [&](const MemoryCopy& c) { return are_shared(*kept_, c); });
    if (!may_join) EDDY_RETURN_IF_ERROR(flush());
    cuda::LoopCopyParams& kept = may_join ? *kept_ : keep_new();
    const auto room = static_cast<size_t>(cuda::kMaxLoopCopies - kept.num_pieces);
    const auto some = copies.first(std::min(copies.size(), room));
    for (const MemoryCopy& each : some) {
      const auto kind = static_cast<uint64_t>(each.kind);
      kept.pieces[kept.num_pieces++] = {each.to, each.from,  each.size_bytes,
                                        kind,    each.count, each.row_bytes};
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
  Touches touches;
  for (const cuda::ScalarStepParams& step : steps) add_touches(step, touches);
  const bool has_room = kept_ && kept_->num_pieces == 0 && kept_->step.flags == 0 &&
                        static_cast<size_t>(kept_->num_scalars) + steps.size() <=
                            static_cast<size_t>(cuda::kMaxScalarSteps) &&
                        !do_meet(map_touches(*kept_), touches);
  if (!has_room) EDDY_RETURN_IF_ERROR(flush());
  cuda::LoopCopyParams& kept = has_room ? *kept_ : keep_new();
  for (const cuda::ScalarStepParams& step : steps) kept.scalars[kept.num_scalars++] = step;
  return Status::ok();
}

Status CudaGraphCapture::compute_all(const Expression& expression,
                                     std::span<const void* const> inputs, const Elements& elements,
                                     std::span<void* const> made) {
  if (levels_.empty()) return internal_error("elements are made outside a capture");
  for (const cuda::MapParams& map :
       cuda::map_steps(expression, inputs, elements.are_single, elements.count, made)) {
    Touches touches;
    add_touches(map, touches);
    const bool has_room =
        kept_ && kept_->num_pieces == 0 && kept_->step.flags == 0 &&
        kept_->num_maps < cuda::kMaxMaps && !do_meet(scalar_touches(*kept_), touches) &&
        std::all_of(kept_->maps, kept_->maps + kept_->num_maps,
                    [&](const cuda::MapParams& earlier) { return can_follow(earlier, map); });
    if (!has_room) EDDY_RETURN_IF_ERROR(flush());
    cuda::LoopCopyParams& kept = has_room ? *kept_ : keep_new();
    kept.maps[kept.num_maps++] = map;
  }
  return Status::ok();
}

Status CudaGraphCapture::keep(const cuda::LoopStepParams& step) {
  if (kept_ && !can_follow(*kept_, step)) EDDY_RETURN_IF_ERROR(flush());
  if (!kept_) kept_.emplace();
  if (!is_apart(*kept_, step)) kept_->flags |= cuda::LoopStepParams::kBehindAll;
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
  const bool is_step =
      kept.num_pieces == 0 && kept.num_scalars == 0 && kept.num_maps == 0 && kept.told == nullptr;
  // In a loop's body a kernel of its own is the faster one for steps, too.
  const CuFunction function = copy_kernel(kept);
  if (is_step && function == kernels_.copy) return launch_one(kernels_.step, &kept.step);
  if (is_of_one_thread(kept)) return launch_one(function, &kept);
  EDDY_DCHECK(kept.num_pieces <= cuda::kMaxLoopCopies) << kept.num_pieces << " pieces are copied";
  const auto most_blocks =
      4 * static_cast<size_t>(std::max(context_.facts().num_multiprocessors, 1));
  const bool is_one = kept.told != nullptr || (kept.flags & cuda::LoopStepParams::kBehindAll) != 0;
  const size_t num_blocks = is_one ? 1 : std::min(blocks_of(kept), most_blocks);
  return launch_one(function, &kept, static_cast<uint32_t>(num_blocks), cuda::kBlockThreads);
}

// A kernel for this launch alone, where it is launched again each round. What has no source is
// interpreted, and so is all that follows a source that could not be made a kernel.
CuFunction CudaGraphCapture::copy_kernel(const cuda::LoopCopyParams& kept) {
  if (!kernels_.compile || !is_in_loop() || !why_interpreted_.empty()) return kernels_.copy;
  const Result<cuda::KernelSource> source = cuda::loop_copy_source(kept);
  if (!source.is_ok()) return kernels_.copy;
  const Result<CuFunction> made = kernels_.compile(*source);
  if (made.is_ok()) return *made;
  why_interpreted_ = made.status().message();
  return kernels_.copy;
}

// Behind all other streams, which stream 0 has waited for. Several blocks don't wait for each
// other.
bool CudaGraphCapture::keep_end() {
  if (!kept_ || (!is_of_one_thread(*kept_) && blocks_of(*kept_) > 1)) return false;
  kept_->told = reinterpret_cast<uint32_t*>(context_.stream_tails().word_or_null(told_));
  return true;
}

}  // namespace eddy
