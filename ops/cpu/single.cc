// Kernels for single elements, which decide loops: counters, limits, predicates. Each is a load,
// the operation and a store, a few machine instructions in all.
#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/loops/scalar_ops.h"

namespace eddy::cpu {
namespace {
// What binding has seen of the shapes.
void check_single([[maybe_unused]] const KernelArgs& args) {
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    EDDY_DCHECK(args.inputs[i].count() == 1) << "input " << i << " is bound for one element";
  }
}

template <typename Op, typename T, typename R>
bool run_single(const KernelArgs& args) {
  check_single(args);
  *static_cast<R*>(args.outputs[0].data) = Op::apply(*static_cast<const T*>(args.inputs[0].data),
                                                     *static_cast<const T*>(args.inputs[1].data));
  return true;
}
[[gnu::noinline, gnu::cold]] bool fail_zero(const KernelArgs& args) {
  return args.fail(run_failed("integer division by zero"));
}
template <typename Op, typename T>
bool run_single_division(const KernelArgs& args) {
  EDDY_DCHECK(args.inputs[1].data != nullptr) << "there is no divisor";
  if (*static_cast<const T*>(args.inputs[1].data) == 0) [[unlikely]]
    return fail_zero(args);
  return run_single<Op, T, T>(args);
}
template <typename Op, typename T>
bool run_single_unary(const KernelArgs& args) {
  check_single(args);
  *static_cast<T*>(args.outputs[0].data) =
      Op::apply(*static_cast<const T*>(args.inputs[0].data), static_cast<const T*>(nullptr));
  return true;
}
template <typename From, typename To>
bool run_single_cast(const KernelArgs& args) {
  EDDY_DCHECK(args.inputs[0].count() == 1) << "a cast is bound for one element";
  *static_cast<To*>(args.outputs[0].data) =
      scalar::convert<To>(*static_cast<const From*>(args.inputs[0].data));
  return true;
}
template <typename T>
bool run_single_select(const KernelArgs& args) {
  check_single(args);
  const T x = *static_cast<const T*>(args.inputs[1].data);
  const T y = *static_cast<const T*>(args.inputs[2].data);
  *static_cast<T*>(args.outputs[0].data) = *static_cast<const bool*>(args.inputs[0].data) ? x : y;
  return true;
}

template <typename Op>
KernelFunction arithmetic(LoopType type) {
  switch (type) {
    case LoopType::kFloat:
      return run_single<Op, float, float>;
    case LoopType::kDouble:
      return run_single<Op, double, double>;
    case LoopType::kInt32:
      return run_single<Op, int32_t, int32_t>;
    case LoopType::kInt64:
      return run_single<Op, int64_t, int64_t>;
    default:
      return nullptr;
  }
}
template <typename Op>
KernelFunction division(LoopType type) {
  switch (type) {
    case LoopType::kInt32:
      return run_single_division<Op, int32_t>;
    case LoopType::kInt64:
      return run_single_division<Op, int64_t>;
    default:
      return nullptr;
  }
}
template <typename Op>
KernelFunction comparison(LoopType type) {
  switch (type) {
    case LoopType::kFloat:
      return run_single<Op, float, bool>;
    case LoopType::kDouble:
      return run_single<Op, double, bool>;
    case LoopType::kInt32:
      return run_single<Op, int32_t, bool>;
    case LoopType::kInt64:
      return run_single<Op, int64_t, bool>;
    default:
      return nullptr;
  }
}
template <typename Op>
KernelFunction logic(LoopType type) {
  return type == LoopType::kBool ? run_single<Op, bool, bool> : nullptr;
}
template <typename Op, typename... Ts>
KernelFunction unary(LoopType type) {
  KernelFunction found = nullptr;
  ((found = type == kLoopTypeOf<Ts> ? run_single_unary<Op, Ts> : found), ...);
  return found;
}
template <typename From>
KernelFunction cast_from(LoopType to) {
  switch (to) {
    case LoopType::kFloat:
      return run_single_cast<From, float>;
    case LoopType::kDouble:
      return run_single_cast<From, double>;
    case LoopType::kInt32:
      return run_single_cast<From, int32_t>;
    case LoopType::kInt64:
      return run_single_cast<From, int64_t>;
    case LoopType::kBool:
      return run_single_cast<From, bool>;
    default:
      return nullptr;
  }
}

}  // namespace

KernelFunction single_binary(BinaryOp op, LoopType type) {
  switch (op) {
    case BinaryOp::kAdd:
      return arithmetic<scalar::Add>(type);
    case BinaryOp::kSub:
      return arithmetic<scalar::Sub>(type);
    case BinaryOp::kMul:
      return arithmetic<scalar::Mul>(type);
    case BinaryOp::kDiv: {
      const KernelFunction of_integers = division<scalar::Div>(type);
      return of_integers != nullptr ? of_integers : arithmetic<scalar::Div>(type);
    }
    case BinaryOp::kFloorMod:
      return division<scalar::FloorMod>(type);
    case BinaryOp::kFmod:
      return division<scalar::Fmod>(type);
    case BinaryOp::kMax:
      return arithmetic<scalar::Max>(type);
    case BinaryOp::kMin:
      return arithmetic<scalar::Min>(type);
    case BinaryOp::kAnd:
      return logic<scalar::And>(type);
    case BinaryOp::kOr:
      return logic<scalar::Or>(type);
    case BinaryOp::kXor:
      return logic<scalar::Xor>(type);
    case BinaryOp::kEqual: {
      const KernelFunction of_numbers = comparison<scalar::Equal>(type);
      return of_numbers != nullptr ? of_numbers : logic<scalar::Equal>(type);
    }
    case BinaryOp::kGreater:
      return comparison<scalar::Greater>(type);
    case BinaryOp::kGreaterOrEqual:
      return comparison<scalar::GreaterOrEqual>(type);
    case BinaryOp::kLess:
      return comparison<scalar::Less>(type);
    case BinaryOp::kLessOrEqual:
      return comparison<scalar::LessOrEqual>(type);
    case BinaryOp::kPow:
    case BinaryOp::kPrelu:
      return nullptr;
  }
  return nullptr;
}

KernelFunction single_unary(UnaryOp op, LoopType type) {
  switch (op) {
#define EDDY_UNARY_CASE(name, ...) \
  case UnaryOp::k##name:           \
    return unary<scalar::name, __VA_ARGS__>(type);
    EDDY_SINGLE_UNARY(EDDY_UNARY_CASE)
#undef EDDY_UNARY_CASE
    default:
      return nullptr;
  }
}

KernelFunction single_cast(LoopType from, LoopType to) {
  switch (from) {
    case LoopType::kFloat:
      return cast_from<float>(to);
    case LoopType::kDouble:
      return cast_from<double>(to);
    case LoopType::kInt32:
      return cast_from<int32_t>(to);
    case LoopType::kInt64:
      return cast_from<int64_t>(to);
    case LoopType::kBool:
      return cast_from<bool>(to);
    default:
      return nullptr;
  }
}

KernelFunction single_select(size_t size_bytes) {
  switch (size_bytes) {
    case 1:
      return run_single_select<uint8_t>;
    case 4:
      return run_single_select<uint32_t>;
    case 8:
      return run_single_select<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace eddy::cpu
