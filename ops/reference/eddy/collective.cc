// Source of the operators' meanings: the MPI standard 3.1, chapter 5.
#include "ops/reference/eddy/collective.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

// What operands of T are combined in.
template <typename T>
using Combined = std::conditional_t<
    std::is_floating_point_v<T>, T,
    std::conditional_t<is_floating<T>, float,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

template <RankReduction reduction, typename C>
C combine(C a, C b) {
  // Sums and products of whole numbers wrap, which signed ones of C++ may not.
  using Wrapping = std::conditional_t<std::is_floating_point_v<C>, C, uint64_t>;
  switch (reduction) {
    case RankReduction::kSum:
    case RankReduction::kAverage:
      return static_cast<C>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    case RankReduction::kProd:
      return static_cast<C>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
    case RankReduction::kMin:
      return a != a ? a : b != b ? b : std::min(a, b);
    case RankReduction::kMax:
      return a != a ? a : b != b ? b : std::max(a, b);
    case RankReduction::kAnd:
      return static_cast<C>(a != 0 && b != 0);
    case RankReduction::kOr:
      return static_cast<C>(a != 0 || b != 0);
  }
  EDDY_CHECK(false) << "a reduction that there is not";
  return a;
}

// Elements [first, first + count of output) of all inputs, combined; places in runs of `run`
// elements that lie `stride` apart.
struct Runs {
  int64_t first = 0, run = 0, stride = 0;
  int64_t at(int64_t i) const { return first + i / run * stride + i % run; }
};

// Bytes that another rank has sent: any but 0 is true.
template <typename T>
T element_at(const TensorView& input, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<const uint8_t*>(input.data)[i] != 0;
  } else {
    return input.as<T>()[i];
  }
}

// `count` elements from `from` of each input. Where operands are combined in their own type, one
// input after the other, which is the same order for each element.
template <typename T, RankReduction reduction>
void reduce_run(std::span<const TensorView> inputs, int64_t from, int64_t count, T* out) {
  using C = Combined<T>;
  if constexpr (std::is_same_v<C, T>) {
    const T* so_far = inputs[0].as<T>() + from;
    if (inputs.size() == 1) std::copy_n(so_far, count, out);
    for (const TensorView& input : inputs.subspan(1)) {
      const T* const x = input.as<T>() + from;
      for (int64_t i = 0; i < count; ++i) out[i] = combine<reduction>(so_far[i], x[i]);
      so_far = out;
    }
    if (reduction != RankReduction::kAverage) return;
    for (int64_t i = 0; i < count; ++i) out[i] /= static_cast<T>(inputs.size());
  } else {
    for (int64_t i = 0; i < count; ++i) {
      C sum = static_cast<C>(element_at<T>(inputs[0], from + i));
      for (const TensorView& input : inputs.subspan(1)) {
        sum = combine<reduction>(sum, static_cast<C>(element_at<T>(input, from + i)));
      }
      if (reduction == RankReduction::kAverage) sum = sum / static_cast<C>(inputs.size());
      if constexpr (std::is_same_v<C, float>) {
        out[i] = T(sum);
      } else {
        out[i] = static_cast<T>(sum);
      }
    }
  }
}

template <typename T, RankReduction reduction>
void reduce_by(std::span<const TensorView> inputs, const Runs& runs, const TensorView& output) {
  const int64_t count = output.count();
  for (int64_t i = 0; i < count; i += runs.run) {
    reduce_run<T, reduction>(inputs, runs.at(i), std::min(runs.run, count - i),
                             output.mutable_as<T>() + i);
  }
}

template <typename T>
void reduce(RankReduction reduction, std::span<const TensorView> inputs, const Runs& runs,
            const TensorView& output) {
  switch (reduction) {
    case RankReduction::kSum:
      return reduce_by<T, RankReduction::kSum>(inputs, runs, output);
    case RankReduction::kMin:
      return reduce_by<T, RankReduction::kMin>(inputs, runs, output);
    case RankReduction::kMax:
      return reduce_by<T, RankReduction::kMax>(inputs, runs, output);
    case RankReduction::kProd:
      return reduce_by<T, RankReduction::kProd>(inputs, runs, output);
    case RankReduction::kAnd:
      return reduce_by<T, RankReduction::kAnd>(inputs, runs, output);
    case RankReduction::kOr:
      return reduce_by<T, RankReduction::kOr>(inputs, runs, output);
    case RankReduction::kAverage:
      return reduce_by<T, RankReduction::kAverage>(inputs, runs, output);
  }
}

template <typename... Ts>
Status reduce_any(RankReduction reduction, std::span<const TensorView> inputs, const Runs& runs,
                  const TensorView& output) {
  bool is_done = false;
  const auto attempt = [&]<typename T>(T) {
    if (output.element != element_type_of<T>()) return;
    reduce<T>(reduction, inputs, runs, output);
    is_done = true;
  };
  (attempt(Ts{}), ...);
  if (is_done) return Status::ok();
  return unsupported(std::string(element_type_name(output.element)) + " can't be reduced");
}

Status reduce_runs(const Collective& collective, std::span<const TensorView> inputs,
                   const Runs& runs, const TensorView& output) {
  return reduce_any<float, double, Float16, Bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                    uint16_t, uint32_t, uint64_t, bool>(collective.reduction, inputs, runs, output);
}

// Elements behind the axis.
int64_t inner_count(const TensorView& x, int axis) {
  int64_t count = 1;
  for (int i = axis + 1; i < x.rank; ++i) count *= x.dims[i];
  return count;
}

// Moves `count` blocks of `bytes` from every `from_stride` bytes to every `to_stride`.
void copy_blocks(const TensorView& from, size_t from_first, size_t from_stride,
                 const TensorView& to, size_t to_first, size_t to_stride, size_t bytes,
                 size_t count) {
  if (bytes == 0) return;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to.mutable_as<char>() + to_first + i * to_stride,
                from.as<char>() + from_first + i * from_stride, bytes);
  }
}

Status check_alike(const CollectiveCall& call) {
  const TensorView& own = call.inputs[call.place];
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& other = call.inputs[i];
    if (other.element == own.element && std::ranges::equal(other.shape(), own.shape())) continue;
    return invalid_argument(
        "ranks put in different values: place " + std::to_string(i) + " of the group " +
        std::string(element_type_name(other.element)) + to_string(Dims(other.shape())) +
        ", place " + std::to_string(call.place) + " " +
        std::string(element_type_name(own.element)) + to_string(Dims(own.shape())));
  }
  return Status::ok();
}

// Bytes of one rank's part of x, cut along the axis, up to the next outer index.
Result<size_t> part_bytes(const TensorView& x, int axis, size_t num_ranks) {
  const int64_t dim = x.dims[axis];
  if (dim % static_cast<int64_t>(num_ranks) != 0) {
    return invalid_argument("axis " + std::to_string(axis) + " of size " + std::to_string(dim) +
                            " can't be cut into equal parts for " + std::to_string(num_ranks) +
                            " ranks");
  }
  return static_cast<size_t>(dim / static_cast<int64_t>(num_ranks) * inner_count(x, axis)) *
         element_size_bytes(x.element);
}

size_t outer_count(const TensorView& x, int axis) {
  int64_t count = 1;
  for (int i = 0; i < axis; ++i) count *= x.dims[i];
  return static_cast<size_t>(count);
}

Status run_along_axis(const Collective& collective, const CollectiveCall& call,
                      const TensorView& output) {
  const TensorView& own = call.inputs[call.place];
  const size_t n = call.inputs.size();
  EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(collective.axis, own.rank));
  const size_t outer = outer_count(own, axis);
  if (collective.kind == CollectiveKind::kAllGather) {
    const size_t bytes = static_cast<size_t>(own.dims[axis] * inner_count(own, axis)) *
                         element_size_bytes(own.element);
    for (size_t i = 0; i < n; ++i) {
      copy_blocks(call.inputs[i], 0, bytes, output, i * bytes, n * bytes, bytes, outer);
    }
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(const size_t bytes, part_bytes(own, axis, n));
  if (collective.kind == CollectiveKind::kAllToAll) {
    for (size_t i = 0; i < n; ++i) {
      copy_blocks(call.inputs[i], call.place * bytes, n * bytes, output, i * bytes, n * bytes,
                  bytes, outer);
    }
    return Status::ok();
  }
  if (output.count() == 0) return Status::ok();
  const auto run = static_cast<int64_t>(bytes / element_size_bytes(own.element));
  const Runs runs{static_cast<int64_t>(call.place) * run, run, static_cast<int64_t>(n) * run};
  return reduce_runs(collective, call.inputs, runs, output);
}

// What place `i` puts in must be its box.
Status check_boxes(const Collective& collective, const CollectiveCall& call,
                   const TensorView& output) {
  const auto check = [](const TensorView& x, const Box& box, const char* what, size_t place) {
    if (std::ranges::equal(x.shape(), box.sizes)) return Status::ok();
    return invalid_argument(std::string(what) + " of place " + std::to_string(place) +
                            " of the group is " + to_string(Dims(x.shape())) + ", but its box " +
                            to_string(box) + " has other sizes");
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    EDDY_RETURN_IF_ERROR(check(call.inputs[i], collective.from[i], "the input", i));
  }
  return check(output, collective.to[call.place], "the output", call.place);
}

Status run_exchange(const Collective& collective, const CollectiveCall& call,
                    const TensorView& output) {
  EDDY_RETURN_IF_ERROR(check_boxes(collective, call, output));
  EDDY_ASSIGN_OR_RETURN(const auto pieces, exchange_pieces(collective.from, collective.to));
  for (const ExchangePiece& piece : pieces) {
    if (piece.target != call.place) continue;
    copy_box(call.inputs[piece.source].data, collective.from[piece.source], output.data,
             collective.to[call.place], piece.box, element_size_bytes(output.element));
  }
  return Status::ok();
}

// A node of a session without ranks has no kernel, and the session is not made.
Result<BoundKernel> refuse_without_ranks(const KernelInit& init) {
  return invalid_argument(init.op.name +
                          " needs ranks, and this is one process: run it with --ranks N, or give " +
                          "its session a world (SessionOptions::ranks)");
}

}  // namespace

Status run_collective(const Collective& collective, const CollectiveCall& call,
                      const TensorView& output) {
  EDDY_CHECK(call.place < call.inputs.size() && call.root_place < call.inputs.size())
      << "place " << call.place << " of " << call.inputs.size() << " ranks";
  switch (collective.kind) {
    case CollectiveKind::kAllReduce: {
      EDDY_RETURN_IF_ERROR(check_alike(call));
      const int64_t count = output.count();
      return count == 0 ? Status::ok()
                        : reduce_runs(collective, call.inputs, {0, count, count}, output);
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      EDDY_RETURN_IF_ERROR(check_alike(call));
      return run_along_axis(collective, call, output);
    case CollectiveKind::kExchange:
      return run_exchange(collective, call, output);
    case CollectiveKind::kBroadcast:
      EDDY_RETURN_IF_ERROR(check_alike(call));
      [[fallthrough]];
    case CollectiveKind::kRecv: {
      const TensorView& from = call.inputs[call.root_place];
      if (from.element != output.element || !std::ranges::equal(from.shape(), output.shape())) {
        return invalid_argument("received " + std::string(element_type_name(from.element)) +
                                to_string(Dims(from.shape())) + ", but expected " +
                                std::string(element_type_name(output.element)) +
                                to_string(Dims(output.shape())));
      }
      copy_blocks(from, 0, 0, output, 0, 0, output.size_bytes(), 1);
      return Status::ok();
    }
    case CollectiveKind::kSend:
    case CollectiveKind::kBarrier:
      *output.mutable_as<bool>() = true;
      return Status::ok();
    case CollectiveKind::kRank:
      *output.mutable_as<int64_t>() = static_cast<int64_t>(call.place);
      return Status::ok();
  }
  EDDY_CHECK(false) << "a collective that there is not";
  return Status::ok();
}

namespace {

// On one rank there is nobody to agree with.
Result<BoundKernel> bind_agree(const KernelInit&) {
  BoundKernel kernel;
  kernel.run = [](const KernelArgs& args) {
    const TensorView& x = args.inputs[0];
    std::memcpy(args.outputs[0].data, x.data, x.size_bytes());
    return true;
  };
  return kernel;
}

}  // namespace

void add_collective_reference(KernelRegistry& registry) {
  for (const std::string_view op : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                    "AllToAll", "Exchange", "Send", "Recv", "Barrier", "Rank"}) {
    registry.add(
        {.op = op, .bind = refuse_without_ranks, .provider = "reference", .domain = "eddy"});
  }
  registry.add({.op = "Agree", .bind = bind_agree, .provider = "reference", .domain = "eddy"});
}

}  // namespace eddy
