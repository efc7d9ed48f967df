#include "tests/ops/cuda/host/fused_interpreter.h"

#include <cstring>
#include <functional>
#include <map>
#include <tuple>

#include "graph/base/check.h"
#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/elementwise_inl.h"
#include "ops/cuda/names/element_types.h"
#include "ops/cuda/names/kernel_list.h"
#include "ops/cuda/text/element_functions.h"

namespace eddy::testing {
namespace {

using namespace cuda;  // the types of the list

using Call = std::function<void(const void* const* x, void* out, float a, float b)>;
using Calls = std::map<std::string, Call, std::less<>>;

template <typename T>
T at(const void* const* x, int i) {
  T value;
  std::memcpy(&value, x[i], sizeof(T));
  return value;
}
template <typename T>
void put(void* out, T value) {
  std::memcpy(out, &value, sizeof(T));
}

template <typename To, typename From>
void add_cast(Calls& calls, const std::string& to, const std::string& from) {
  calls["Cast_" + from + "_" + to] = [](const void* const* x, void* out, float, float) {
    put(out, convert<To>(at<From>(x, 0)));
  };
}

template <typename T>
void add_type(Calls& calls, const std::string& name) {
  calls["Where_" + name] = [](const void* const* x, void* out, float, float) {
    put(out, at<T>(x, at<bool>(x, 0) ? 1 : 2));
  };
#define EDDY_TYPES(X) \
  X(f32) X(f64) X(f16) X(bf16) X(i8) X(u8) X(i16) X(u16) X(i32) X(u32) X(i64) X(u64) X(b8)
#define EDDY_ADD_CAST(to) add_cast<to, T>(calls, #to, name);
  EDDY_TYPES(EDDY_ADD_CAST)
}

Calls make_calls() {
  Calls calls;
#define EDDY_CALL(op, type, Out, expression)                                           \
  calls[#op "_" #type] = [](const void* const* x, void* out, [[maybe_unused]] float a, \
                            [[maybe_unused]] float b) { put(out, store<Out>(expression)); };
#define EDDY_X(type, i) load(at<type>(x, i))
#define EDDY_CALL_BINARY(op, type) \
  EDDY_CALL(op, type, type, op::apply(EDDY_X(type, 0), EDDY_X(type, 1)))
#define EDDY_CALL_COMPARE(op, type) \
  EDDY_CALL(op, type, bool, op::apply(EDDY_X(type, 0), EDDY_X(type, 1)))
#define EDDY_CALL_UNARY(op, type) EDDY_CALL(op, type, type, op::apply(EDDY_X(type, 0), a, b))
#define EDDY_CALL_TEST(op, type) EDDY_CALL(op, type, bool, op::apply(EDDY_X(type, 0), a, b))
#define EDDY_CALL_TERNARY(op, type) \
  EDDY_CALL(op, type, type, op::apply(EDDY_X(type, 0), EDDY_X(type, 1), EDDY_X(type, 2)))
#define EDDY_CALL_WORDS(size, word)
  EDDY_CUDA_KERNELS(EDDY_CALL)
  EDDY_CUDA_ACTIVATIONS(EDDY_CALL)
#define EDDY_ADD_TYPE(type) add_type<type>(calls, #type);
  EDDY_TYPES(EDDY_ADD_TYPE)
  return calls;
}

const Call& call_of(const std::string& name) {
  static const Calls* const calls = new Calls(make_calls());
  const auto found = calls->find(name);
  EDDY_CHECK(found != calls->end()) << name;
  return found->second;
}

// "f32, i64".
std::vector<ElementType> types_of(const std::string& names) {
  std::vector<ElementType> types;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(", ", begin), names.size());
    types.push_back(element_type_of(names.substr(begin, end - begin)));
    begin = end + 2;
  }
  return types;
}

// The rest of the line that starts so; "" without one.
std::string line_of(const std::string& text, const std::string& start) {
  const size_t begin = text.find(start);
  if (begin == std::string::npos) return "";
  return text.substr(begin + start.size(), text.find('\n', begin) - begin - start.size());
}

}  // namespace

Result<FusedInterpreter> FusedInterpreter::read(const std::string& text) {
  const std::string types = line_of(text, "// types: ");
  const size_t to = types.find(" to ");
  if (to == std::string::npos) return invalid_argument("the source names no types");
  const std::vector<ElementType> inputs = types_of(types.substr(0, to));
  const std::vector<ElementType> outputs = types_of(types.substr(to + 4));
  EDDY_ASSIGN_OR_RETURN(
      Expression expression,
      parse_expression(line_of(text, "// program: "), static_cast<uint32_t>(inputs.size())));
  EDDY_ASSIGN_OR_RETURN(const KernelSource source,
                        fused_kernel_source(expression, inputs, outputs));
  if (source.text != text) return invalid_argument("the source is not that of its program");
  return FusedInterpreter(std::move(expression), inputs, outputs);
}

void FusedInterpreter::run_element(const void* const* inputs, void* const* outputs) const {
  uint64_t slots[Expression::kMaxSteps] = {};
  std::vector<const void*> elements(inputs, inputs + inputs_.size());
  for (size_t i = 0; i < expression_.steps.size(); ++i) {
    const ExpressionStep& step = expression_.steps[i];
    const void* arguments[Expression::kMaxArguments] = {};
    for (size_t k = 0; k < step.arguments.size(); ++k) arguments[k] = elements[step.arguments[k]];
    call_of(step.function.name)(arguments, &slots[i], step.function.a, step.function.b);
    elements.push_back(&slots[i]);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    std::memcpy(outputs[k], elements[expression_.result(k)], element_size_bytes(outputs_[k]));
  }
}

void FusedInterpreter::run(const cuda::FusedParams& params, uint64_t first, uint64_t step) const {
  for (uint64_t item = first; item < params.count; item += step) {
    int64_t offsets[kMaxFusedInputs];
    locate(params, item, offsets);
    const void* inputs[kMaxFusedInputs];
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs[i] = static_cast<const std::byte*>(params.in[i]) +
                  offsets[i] * static_cast<int64_t>(element_size_bytes(inputs_[i]));
    }
    void* outputs[kMaxFusedOutputs];
    for (size_t k = 0; k < outputs_.size(); ++k) {
      void* const all = k == 0 ? params.out : params.more_out[k - 1];
      outputs[k] = static_cast<std::byte*>(all) + item * element_size_bytes(outputs_[k]);
    }
    run_element(inputs, outputs);
  }
}

}  // namespace eddy::testing
