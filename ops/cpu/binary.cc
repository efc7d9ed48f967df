// Fast elementwise operators of two and more inputs: the loops of ops/cpu/loops under
// broadcasting.
//
// What runs is decided when binding where shapes are known: one element; equal counts or a single
// element on one side (one flat loop); else a BroadcastPlan. Otherwise run_any decides the same in
// the call, so the bits are the same either way.
#include <cstring>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/broadcast_plan.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/broadcast.h"

namespace eddy {
namespace {

using namespace cpu;

struct BinaryRow {
  std::string_view name;
  BinaryOp op;
};
constexpr BinaryRow kRows[] = {
    {"Add", BinaryOp::kAdd},         {"Sub", BinaryOp::kSub},
    {"Mul", BinaryOp::kMul},         {"Div", BinaryOp::kDiv},
    {"Mod", BinaryOp::kFloorMod},    {"Pow", BinaryOp::kPow},
    {"And", BinaryOp::kAnd},         {"Or", BinaryOp::kOr},
    {"Xor", BinaryOp::kXor},         {"Equal", BinaryOp::kEqual},
    {"Greater", BinaryOp::kGreater}, {"GreaterOrEqual", BinaryOp::kGreaterOrEqual},
    {"Less", BinaryOp::kLess},       {"LessOrEqual", BinaryOp::kLessOrEqual},
    {"PRelu", BinaryOp::kPrelu},     {"Max", BinaryOp::kMax},
    {"Min", BinaryOp::kMin},         {"Sum", BinaryOp::kAdd},
    {"Mean", BinaryOp::kAdd},
};

struct KernelData {
  const void *a, *b;
  void* out;
};

struct BinaryState : KernelState {
  BinaryLoops loops;
  int64_t in_size_bytes = 0;
  int64_t out_size_bytes = 0;
  int64_t count = -1;                    // of the output, where known
  BroadcastPlan plan;                    // where all shapes are known
  BinaryLoop divide_by_count = nullptr;  // Mean
};

const BinaryState& state_of(const KernelArgs& args) {
  return *static_cast<const BinaryState*>(args.state);
}

bool run_flat(const KernelArgs& args) {
  const BinaryState& s = state_of(args);
  EDDY_DCHECK(args.outputs[0].count() == s.count && args.inputs[0].count() == s.count &&
              args.inputs[1].count() == s.count)
      << "bound for " << s.count << " elements";
  s.loops.both(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, s.count);
  return true;
}
bool run_right_scalar(const KernelArgs& args) {
  const BinaryState& s = state_of(args);
  EDDY_DCHECK(args.inputs[0].count() == s.count && args.inputs[1].count() == 1)
      << "bound for " << s.count << " elements and one";
  s.loops.right_scalar(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, s.count);
  return true;
}
bool run_left_scalar(const KernelArgs& args) {
  const BinaryState& s = state_of(args);
  EDDY_DCHECK(args.inputs[1].count() == s.count && args.inputs[0].count() == 1)
      << "bound for one and " << s.count << " elements";
  s.loops.left_scalar(args.inputs[0].data, args.inputs[1].data, args.outputs[0].data, s.count);
  return true;
}

const void* at(const void* data, int64_t offset_bytes) {
  return static_cast<const std::byte*>(data) + offset_bytes;
}
void* at(void* data, int64_t offset_bytes) { return static_cast<std::byte*>(data) + offset_bytes; }

// The same in tiles of elements; an operand that is a single element is read by each.
Tiles tiles_of(const KernelArgs& args) { return Tiles::of(args.outputs[0].count(), 1); }

bool run_some(const KernelArgs& args, int64_t first, int64_t end) {
  const BinaryState& s = state_of(args);
  const TensorView &a = args.inputs[0], &b = args.inputs[1];
  EDDY_DCHECK(end <= s.count && args.outputs[0].count() == s.count)
      << "elements " << first << " to " << end << " of " << s.count;
  const BinaryLoop loop = b.count() == 1   ? s.loops.right_scalar
                          : a.count() == 1 ? s.loops.left_scalar
                                           : s.loops.both;
  loop(a.count() == 1 ? a.data : at(a.data, first * s.in_size_bytes),
       b.count() == 1 ? b.data : at(b.data, first * s.in_size_bytes),
       at(args.outputs[0].data, first * s.out_size_bytes), end - first);
  return true;
}

// One row whose two operands are repeated: computed once for each element.
void repeat_row(const BinaryState& s, const void* a, const void* b, void* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) s.loops.both(a, b, at(out, i * s.out_size_bytes), 1);
}

// The rows [first, end).
void run_rows(const BinaryState& s, const BroadcastPlan& plan, const KernelData& data,
              int64_t first, int64_t end) {
  const int64_t count = plan.row_count();
  const bool repeats_a = plan.row_stride(0) == 0 && count != 1;
  const bool repeats_b = plan.row_stride(1) == 0 && count != 1;
  const BinaryLoop loop = repeats_b   ? s.loops.right_scalar
                          : repeats_a ? s.loops.left_scalar
                                      : s.loops.both;
  for_rows(plan, first, end, [&](const auto& offsets, int64_t out_offset) {
    const void* row_a = at(data.a, offsets[0] * s.in_size_bytes);
    const void* row_b = at(data.b, offsets[1] * s.in_size_bytes);
    void* row_out = at(data.out, out_offset * s.out_size_bytes);
    if (repeats_a && repeats_b)
      repeat_row(s, row_a, row_b, row_out, count);
    else
      loop(row_a, row_b, row_out, count);
  });
}

// Short rows of one operand, each met by many neighbouring rows of the other (a factor for each
// channel of a blocked image): copies of the row beside each other make long ones.
constexpr int64_t kLongRowBytes = 4096;

// The operand whose rows are repeated; -1: there is none, or rows are long already.
int repeated_operand(const BinaryState& s, const BroadcastPlan& plan) {
  const int64_t count = plan.row_count();
  if (count * s.in_size_bytes * 8 > kLongRowBytes || plan.rows_inside() < 4) return -1;
  for (const int one : {0, 1}) {
    const int other = 1 - one;
    if (plan.row_stride(one) == 1 && plan.stride_of_rows(one) == 0 && plan.row_stride(other) == 1 &&
        plan.stride_of_rows(other) == count) {
      return one;
    }
  }
  return -1;
}

void run_long_rows(const BinaryState& s, const BroadcastPlan& plan, int repeated,
                   const KernelData& data, int64_t first, int64_t end) {
  alignas(64) std::byte copies[kLongRowBytes];
  const int64_t count = plan.row_count(), inside = plan.rows_inside();
  const int64_t row_bytes = count * s.in_size_bytes;
  const int64_t most = kLongRowBytes / row_bytes;
  for (int64_t row = first; row < end;) {
    const int64_t last = std::min(end, (row / inside + 1) * inside);
    for_rows(plan, row, row + 1, [&](const auto& offsets, int64_t out_offset) {
      const void* const of_a = at(data.a, offsets[0] * s.in_size_bytes);
      const void* const of_b = at(data.b, offsets[1] * s.in_size_bytes);
      const int64_t num_copies = std::min(most, last - row);
      for (int64_t i = 0; i < num_copies; ++i) {
        std::memcpy(copies + i * row_bytes, repeated == 0 ? of_a : of_b,
                    static_cast<size_t>(row_bytes));
      }
      for (int64_t done = 0; done < last - row; done += most) {
        const int64_t some = std::min(most, last - row - done) * count;
        const int64_t skipped = done * row_bytes;
        s.loops.both(repeated == 0 ? copies : at(of_a, skipped),
                     repeated == 1 ? copies : at(of_b, skipped),
                     at(data.out, (out_offset + done * count) * s.out_size_bytes), some);
      }
    });
    row = last;
  }
}

void run_some_rows(const BinaryState& s, const BroadcastPlan& plan, const KernelData& data,
                   int64_t first, int64_t end) {
  const int repeated = repeated_operand(s, plan);
  if (repeated < 0) return run_rows(s, plan, data, first, end);
  run_long_rows(s, plan, repeated, data, first, end);
}

KernelData data_of(const KernelArgs& args) {
  return {args.inputs[0].data, args.inputs[1].data, args.outputs[0].data};
}

bool run_planned(const KernelArgs& args) {
  const BinaryState& s = state_of(args);
  EDDY_DCHECK(args.outputs[0].count() == s.count) << "bound for " << s.count << " elements";
  run_some_rows(s, s.plan, data_of(args), 0, s.plan.num_rows());
  return true;
}

// The same in tiles of rows.
Tiles row_tiles_of(const KernelArgs& args) {
  const BroadcastPlan& plan = state_of(args).plan;
  return Tiles::of(plan.num_rows(), plan.row_count());
}

bool run_planned_some(const KernelArgs& args, int64_t first, int64_t end) {
  const BinaryState& s = state_of(args);
  run_some_rows(s, s.plan, data_of(args), first, end);
  return true;
}

// The general case: everything is decided here. `b_dims` are b's dimensions as aligned to out.
void apply(const BinaryState& s, const TensorView& a, const TensorView& b, const Dims& b_dims,
           const TensorView& out) {
  const int64_t count = out.count();
  if (count == 0) return;
  const int64_t a_count = a.count(), b_count = b.count();
  if (a_count == count && b_count == count) {
    s.loops.both(a.data, b.data, out.data, count);
  } else if (b_count == 1 && a_count == count) {
    s.loops.right_scalar(a.data, b.data, out.data, count);
  } else if (a_count == 1 && b_count == count) {
    s.loops.left_scalar(a.data, b.data, out.data, count);
  } else {
    const Dims inputs[2] = {Dims(a.shape()), b_dims};
    const BroadcastPlan plan = plan_broadcast(Dims(out.shape()), inputs);
    run_some_rows(s, plan, {a.data, b.data, out.data}, 0, plan.num_rows());
  }
}

bool run_any(const KernelArgs& args) {
  const BinaryState& s = state_of(args);
  const TensorView& out = args.outputs[0];
  apply(s, args.inputs[0], args.inputs[1], Dims(args.inputs[1].shape()), out);
  return true;
}

template <typename T>
int64_t find_zero(const TensorView& view) {
  const T* data = view.as<T>();
  const int64_t count = view.count();
  for (int64_t i = 0; i < count; ++i) {
    if (data[i] == 0) return i;
  }
  return -1;
}

// Integer division: a zero divisor is found before anything is computed.
bool run_divide(const KernelArgs& args) {
  const TensorView& divisor = args.inputs[1];
  const int64_t zero = args.outputs[0].count() == 0             ? -1
                       : divisor.element == ElementType::kInt64 ? find_zero<int64_t>(divisor)
                                                                : find_zero<int32_t>(divisor);
  if (zero >= 0) {
    return args.fail(
        run_failed("integer division by zero at element " + std::to_string(zero) + " of input 1"));
  }
  return run_any(args);
}

// Max, Min, Sum, Mean: the output gathers one input after the other.
bool run_variadic(const KernelArgs& args) {
  const BinaryState& s = state_of(args);
  const TensorView& out = args.outputs[0];
  EDDY_DCHECK(args.num_inputs > 0) << "nothing is gathered";
  if (args.num_inputs == 1) {
    if (out.size_bytes() != 0) std::memmove(out.data, args.inputs[0].data, out.size_bytes());
    return true;
  }
  for (uint32_t i = 1; i < args.num_inputs; ++i) {
    const TensorView& left = i == 1 ? args.inputs[0] : out;
    apply(s, left, args.inputs[i], Dims(args.inputs[i].shape()), out);
  }
  if (s.divide_by_count != nullptr) {
    const float as_float = static_cast<float>(args.num_inputs);
    const double as_double = args.num_inputs;
    const void* divisor =
        out.element == ElementType::kFloat ? static_cast<const void*>(&as_float) : &as_double;
    s.divide_by_count(out.data, divisor, out.data, out.count());
  }
  return true;
}

Result<std::pair<BinaryOp, LoopType>> find_op(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  const std::optional<LoopType> type = loop_type(element);
  for (const ValueType& input : init.inputs) {
    if (!type || input.tensor.element != element) return no_fast_kernel(init);
  }
  for (const BinaryRow& row : kRows) {
    if (row.name != init.op.name) continue;
    const bool is_c_remainder =
        row.op == BinaryOp::kFloorMod && init.attributes.get_int("fmod", 0) != 0;
    return std::pair(is_c_remainder ? BinaryOp::kFmod : row.op, *type);
  }
  return no_fast_kernel(init);
}

bool is_flat(KernelFunction run) {
  return run == run_flat || run == run_right_scalar || run == run_left_scalar;
}

// Picks the function for two inputs by what is known of their shapes.
KernelFunction pick_function(const KernelInit& init, BinaryOp op, LoopType type, BinaryState& s) {
  const int64_t a = known_count(init.inputs[0]);
  const int64_t b = known_count(init.inputs[1]);
  s.count = known_count(init.outputs[0]);
  const bool is_known = a >= 0 && b >= 0 && s.count >= 0;
  if (is_known && a == 1 && b == 1 && single_binary(op, type) != nullptr) {
    return single_binary(op, type);
  }
  const bool divides =
      (op == BinaryOp::kDiv || op == BinaryOp::kFloorMod || op == BinaryOp::kFmod) &&
      (type == LoopType::kInt32 || type == LoopType::kInt64);
  if (divides) return run_divide;
  if (!is_known || s.count == 0) return run_any;
  if (a == s.count && b == s.count) return run_flat;
  if (a == s.count && b == 1) return run_right_scalar;
  if (b == s.count && a == 1) return run_left_scalar;
  const Dims inputs[2] = {init.inputs[0].tensor.dims, init.inputs[1].tensor.dims};
  s.plan = plan_broadcast(init.outputs[0].tensor.dims, inputs);
  return run_planned;
}

Result<BoundKernel> bind_binary(const KernelInit& init) {
  EDDY_ASSIGN_OR_RETURN(const auto found, find_op(init));
  const auto [op, type] = found;
  auto state = std::make_unique<BinaryState>();
  state->loops = loop_set().binary[static_cast<int>(op)][static_cast<int>(type)];
  if (state->loops.both == nullptr) return no_fast_kernel(init);
  state->in_size_bytes = static_cast<int64_t>(element_size_bytes(init.inputs[0].tensor.element));
  state->out_size_bytes = static_cast<int64_t>(element_size_bytes(init.outputs[0].tensor.element));
  BoundKernel kernel;
  EDDY_CHECK(!init.op.inputs.empty() && !init.inputs.empty()) << "an operator without inputs";
  const bool is_variadic = has_flag(init.op.inputs.back().flags, InputFlag::kVariadic);
  if (is_variadic && init.op.name == "Mean") {
    state->divide_by_count =
        loop_set().binary[static_cast<int>(BinaryOp::kDiv)][static_cast<int>(type)].right_scalar;
  }
  const bool is_plain_pair = !is_variadic || (init.inputs.size() == 2 && init.op.name != "Mean");
  kernel.run = is_plain_pair ? pick_function(init, op, type, *state) : run_variadic;
  if (state->count > kTileElements) {
    if (is_flat(kernel.run)) set_tiles<tiles_of, run_some>(kernel);
    if (kernel.run == run_planned) set_tiles<row_tiles_of, run_planned_some>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_binary_cpu(KernelRegistry& registry) {
  for (const BinaryRow& row : kRows) {
    registry.add({.op = row.name, .bind = bind_binary, .has_tiles = true});
  }
}

}  // namespace eddy
