// Claim: nodes of one element that a capture interprets have the bits of their kernels: every
// function that scalar_step.h has, over special and random numbers, and seeded chains of them,
// against the interpreter of fused programs, which knows functions by the lists of kernels; and
// what it does not have is left to kernels.
#include "ops/cuda/images/scalar_program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "graph/base/random.h"
#include "ops/cuda/names/element_types.h"
#include "ops/cuda/text/element_functions.h"
#include "tests/ops/cuda/host/fused_interpreter.h"

namespace eddy::testing {
namespace {

using cuda::ElementSignature;

constexpr ElementType kTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32,
                                  ElementType::kInt64, ElementType::kBool};

std::optional<Expression> asked(const Expression& expression) {
  const OpDef op{.name = "Fused", .domain = "eddy"};
  Attributes attributes;
  attributes.set("program", expression.text());
  const std::vector<ValueType> inputs(expression.num_inputs);
  return cuda::scalar_expression({op, attributes, 1, "", inputs, {}, {}});
}

Expression single(const std::string& name, size_t num_inputs) {
  Expression expression{static_cast<uint32_t>(num_inputs), {{{name}, {}}}};
  for (uint32_t i = 0; i < num_inputs; ++i) expression.steps[0].arguments.push_back(i);
  return expression;
}

// All functions of elements, those of Cast and Where among them.
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const std::string_view name : cuda::element_function_names()) names.emplace_back(name);
  for (const ElementType from : kTypes) {
    names.push_back("Where_" + std::string(cuda::type_suffix(from)));
    for (const ElementType to : kTypes) {
      names.push_back("Cast_" + std::string(cuda::type_suffix(from)) + "_" +
                      std::string(cuda::type_suffix(to)));
    }
  }
  return names;
}

std::vector<std::string> scalar_names() {
  std::vector<std::string> names;
  for (const std::string& name : all_names()) {
    const auto signature = cuda::element_signature(name);
    if (asked(single(name, signature->num_inputs))) names.push_back(name);
  }
  return names;
}

struct Element {
  alignas(8) unsigned char bytes[8] = {};
  template <typename T>
  void set(T value) {
    std::memcpy(bytes, &value, sizeof(value));
  }
};

template <typename T>
T number(Random& random) {
  const T special[] = {T(0), T(1), T(-1), std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::lowest()};
  if constexpr (std::is_floating_point_v<T>) {
    const T odd[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                     -T(0)};
    if (random.below(6) == 0) return odd[random.below(std::size(odd))];
    if (random.below(3) != 0) return static_cast<T>(random.uniform(-50.0f, 50.0f));
  } else if (random.below(2) == 0) {
    return static_cast<T>(random.next());
  }
  return special[random.below(std::size(special))];
}

Element element(ElementType type, Random& random) {
  Element made;
  if (type == ElementType::kFloat) made.set(number<float>(random));
  if (type == ElementType::kDouble) made.set(number<double>(random));
  if (type == ElementType::kInt32) made.set(number<int32_t>(random));
  if (type == ElementType::kInt64) made.set(number<int64_t>(random));
  if (type == ElementType::kBool) made.set(random.below(2) == 0);
  return made;
}

// Both ways, bit for bit.
void compare(const Expression& expression, const std::vector<ElementType>& types,
             ElementType output, Random& random) {
  std::vector<Element> elements;
  for (const ElementType type : types) elements.push_back(element(type, random));
  std::vector<const void*> inputs;
  for (const Element& each : elements) inputs.push_back(each.bytes);
  Element expected;
  void* const to = expected.bytes;
  FusedInterpreter(expression, types, {output}).run_element(inputs.data(), &to);
  std::vector<Element> results(expression.steps.size());
  std::vector<void*> made;
  for (Element& each : results) made.push_back(each.bytes);
  for (const cuda::ScalarStepParams& step : cuda::scalar_steps(expression, inputs, made)) {
    cuda::scalar_step(step);
  }
  EXPECT_EQ(std::memcmp(results.back().bytes, expected.bytes, sizeof(Element)), 0)
      << expression.text();
}

TEST(ScalarProgram, EachFunctionHasTheBitsOfItsKernel) {
  Random random(28);
  const std::vector<std::string> names = scalar_names();
  // Five of two numbers, four comparisons and Equal, three of one, of four types; Div and four of
  // one, of floats; of bools four and Not; Where of five types, Cast of five to five.
  EXPECT_EQ(names.size(), 4u * 13 + 2 * 5 + 5 + 5 + 25);
  for (const std::string& name : names) {
    const ElementSignature signature = *cuda::element_signature(name);
    std::vector<ElementType> types;
    for (size_t i = 0; i < signature.num_inputs; ++i) types.push_back(signature.inputs[i]);
    for (int repeat = 0; repeat < 40; ++repeat) {
      compare(single(name, types.size()), types, signature.output, random);
    }
  }
}

TEST(ScalarProgram, ChainsPassTheirStepsResultsOn) {
  const std::vector<std::string> names = scalar_names();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<ElementType> types;
    for (int i = 0; i < 4; ++i) types.push_back(kTypes[random.below(std::size(kTypes))]);
    const std::vector<ElementType> inputs = types;
    Expression expression{4, {}};
    while (expression.steps.size() < 1 + seed % cuda::kMaxScalarSteps) {
      const std::string& name = names[random.below(names.size())];
      const ElementSignature signature = *cuda::element_signature(name);
      ExpressionStep step{{name}, {}};
      for (size_t i = 0; i < signature.num_inputs; ++i) {
        for (int tries = 0; tries < 20 && step.arguments.size() == i; ++tries) {
          const auto at = static_cast<uint32_t>(random.below(types.size()));
          if (types[at] == signature.inputs[i]) step.arguments.push_back(at);
        }
      }
      if (step.arguments.size() < signature.num_inputs) continue;
      types.push_back(signature.output);
      expression.steps.push_back(std::move(step));
    }
    ASSERT_TRUE(asked(expression)) << "seed " << seed << ": " << expression.text();
    compare(expression, inputs, types.back(), random);
  }
}

// Threads take the elements in turns; one of each expression's inputs serves all, another one is
// overwritten where it has the result's type.
TEST(ScalarProgram, MapsDoToEachElementWhatStepsDoToOne) {
  const std::vector<std::string> names = scalar_names();
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::string& name = names[random.below(names.size())];
    const ElementSignature signature = *cuda::element_signature(name);
    const size_t count = 2 + random.below(70), num_inputs = signature.num_inputs;
    const size_t single_input = random.below(num_inputs + 1);  // the last: none
    const size_t out_bytes = element_size_bytes(signature.output);
    std::vector<std::vector<unsigned char>> inputs;
    std::vector<const void*> addresses;
    std::vector<bool> are_single;
    std::vector<ElementType> types;
    for (size_t k = 0; k < num_inputs; ++k) {
      types.push_back(signature.inputs[k]);
      are_single.push_back(k == single_input);
      const size_t element_bytes = element_size_bytes(types[k]);
      inputs.emplace_back((are_single[k] ? 1 : count) * element_bytes);
      for (size_t i = 0; i < inputs[k].size() / element_bytes; ++i) {
        const Element one = element(types[k], random);
        std::memcpy(inputs[k].data() + i * element_bytes, one.bytes, element_bytes);
      }
      addresses.push_back(inputs[k].data());
    }
    const Expression expression = single(name, num_inputs);
    std::vector<unsigned char> expected(count * out_bytes);
    FusedInterpreter slow(expression, types, {signature.output});
    for (size_t i = 0; i < count; ++i) {
      std::vector<const void*> at;
      for (size_t k = 0; k < num_inputs; ++k) {
        at.push_back(inputs[k].data() + (are_single[k] ? 0 : i * element_size_bytes(types[k])));
      }
      void* const to = expected.data() + i * out_bytes;
      slow.run_element(at.data(), &to);
    }
    std::vector<unsigned char> own(count * out_bytes);
    const bool is_in_place = !are_single[0] && types[0] == signature.output;
    void* const made = is_in_place ? inputs[0].data() : own.data();
    const auto maps = cuda::map_steps(expression, addresses, are_single, count, {&made, 1});
    ASSERT_EQ(maps.size(), 1u);
    for (uint64_t thread = 0; thread < 32; ++thread) {
      for (uint64_t i = thread; i < count; i += 32) cuda::map_element(maps[0], i);
    }
    EXPECT_EQ(std::memcmp(made, expected.data(), expected.size()), 0) << name << ", seed " << seed;
  }
}

// Numbers of a byte are set as bools are.
TEST(ScalarProgram, WhatIsSetKeepsItsBits) {
  for (const uint64_t bits : {uint64_t{0}, uint64_t{1}, uint64_t{0x80}, uint64_t{0xffffffda}}) {
    for (const auto& [type, size] :
         {std::pair{cuda::ScalarType::k_b8, 1}, std::pair{cuda::ScalarType::k_i32, 4},
          std::pair{cuda::ScalarType::k_i64, 8}}) {
      uint64_t made = 0;
      cuda::ScalarStepParams step{};
      step.op = cuda::ScalarOp::kSet;
      step.type = type;
      step.in[0] = reinterpret_cast<const void*>(bits);
      step.out = &made;
      cuda::scalar_step(step);
      EXPECT_EQ(std::memcmp(&made, &bits, static_cast<size_t>(size)), 0) << bits;
    }
  }
}

TEST(ScalarProgram, ANodeIsItsOneFunction) {
  const OpDef add{.name = "Add"};
  const Attributes none;
  const std::vector<ValueType> numbers(2, tensor_type(ElementType::kInt64, {}));
  const std::vector<ValueType> result(1, tensor_type(ElementType::kInt64, {}));
  const auto expression = cuda::scalar_expression({add, none, 14, "", numbers, result, {}});
  ASSERT_TRUE(expression);
  EXPECT_EQ(expression->text(), "Add_i64 0 1");
}

TEST(ScalarProgram, WhatIsNoFunctionOfItsOwnKeepsItsKernel) {
  const Attributes none;
  const std::vector<ValueType> integers(2, tensor_type(ElementType::kInt64, {}));
  const std::vector<ValueType> halves(2, tensor_type(ElementType::kFloat16, {}));
  const OpDef div{.name = "Div"}, add{.name = "Add"}, sum{.name = "ReduceSum"};
  const OpDef other{.name = "Add", .domain = "mine"};
  EXPECT_FALSE(cuda::scalar_expression({div, none, 14, "", integers, integers, {}}));
  EXPECT_FALSE(cuda::scalar_expression({add, none, 14, "", halves, halves, {}}));
  EXPECT_FALSE(cuda::scalar_expression({sum, none, 13, "", integers, integers, {}}));
  EXPECT_FALSE(cuda::scalar_expression({other, none, 14, "", integers, integers, {}}));
  EXPECT_FALSE(asked(single("Erf_f32", 1)));
  Expression longer = single("Add_f32", 2);
  while (longer.steps.size() <= size_t{cuda::kMaxScalarSteps}) {
    longer.steps.push_back(longer.steps.front());
  }
  EXPECT_FALSE(asked(longer));
  longer.steps.pop_back();
  EXPECT_TRUE(asked(longer));
}

}  // namespace
}  // namespace eddy::testing
