// random_expression: seeded programs of fused kernels, of any functions and types that fit.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/names/element_types.h"
#include "ops/cuda/text/element_functions.h"

namespace eddy::testing {

struct RandomProgram {
  Expression expression;
  std::vector<ElementType> inputs;
  std::vector<ElementType> outputs;
};

inline RandomProgram random_program(Random& random) {
  const ElementType kTypes[] = {ElementType::kFloat,  ElementType::kFloat,   ElementType::kFloat,
                                ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
                                ElementType::kInt64,  ElementType::kInt32,   ElementType::kInt8,
                                ElementType::kUint8,  ElementType::kBool};
  const auto any_type = [&] { return kTypes[random.below(std::size(kTypes))]; };
  RandomProgram program;
  const uint64_t num_inputs = 1 + random.below(random.below(8) == 0 ? cuda::kMaxFusedInputs : 4);
  for (uint64_t i = 0; i < num_inputs; ++i) program.inputs.push_back(any_type());
  program.expression.num_inputs = static_cast<uint32_t>(num_inputs);
  std::vector<ElementType> types = program.inputs;
  const std::vector<std::string_view> names = cuda::element_function_names();
  // An element of this type: a late one, so that programs are deep; none: the number of elements.
  const auto element_of = [&](ElementType type) {
    for (size_t i = types.size(); i-- > 0;) {
      if (types[i] == type && random.below(3) != 0) return static_cast<uint32_t>(i);
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == type) return static_cast<uint32_t>(i);
    }
    return static_cast<uint32_t>(types.size());
  };
  const uint64_t num_steps = 2 + random.below(12);
  while (program.expression.steps.size() < num_steps) {
    const std::string from(
        cuda::type_suffix(types[types.size() - 1 - random.below(2) % types.size()]));
    const std::string to(cuda::type_suffix(any_type()));
    const uint64_t kind = random.below(8);
    const std::string name = kind == 0   ? "Cast_" + from + "_" + to
                             : kind == 1 ? "Where_" + from
                                         : std::string(names[random.below(names.size())]);
    const auto signature = cuda::element_signature(name);
    ExpressionStep step{{name, random.uniform(0.1f, 2.0f), random.uniform(0.1f, 2.0f)}, {}};
    for (size_t i = 0; i < signature->num_inputs; ++i) {
      step.arguments.push_back(element_of(signature->inputs[i]));
    }
    const bool fits = std::ranges::all_of(
        step.arguments, [&](uint32_t argument) { return argument < types.size(); });
    if (!fits) continue;
    types.push_back(signature->output);
    program.expression.steps.push_back(std::move(step));
  }
  program.outputs = {types.back()};
  const bool gives_more = random.below(2) == 0;
  for (size_t e = num_inputs; gives_more && e + 1 < types.size(); ++e) {
    if (program.outputs.size() == cuda::kMaxFusedOutputs || random.below(4) != 0) continue;
    program.expression.more_results.push_back(static_cast<uint32_t>(e));
    program.outputs.push_back(types[e]);
  }
  return program;
}

}  // namespace eddy::testing
