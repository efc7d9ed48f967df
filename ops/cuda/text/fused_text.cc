#include "ops/cuda/text/fused_text.h"

#include <bit>
#include <cstdio>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/fingerprint.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/names/element_types.h"
#include "ops/cuda/text/element_functions.h"

namespace eddy::cuda {
namespace {

std::string element(size_t number) { return "v" + std::to_string(number); }

std::string loaded(uint32_t number) { return "load(" + element(number) + ")"; }

std::string attribute(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "float_of(0x%08xu)", std::bit_cast<uint32_t>(value));
  return text;
}

// The right side of a step.
std::string call_text(const ExpressionStep& step, const ElementSignature& signature) {
  EDDY_CHECK(step.arguments.size() == signature.num_inputs)
      << step.function.name << " has " << step.arguments.size() << " arguments";
  const std::vector<uint32_t>& arguments = step.arguments;
  const std::string type(type_suffix(signature.output));
  const std::string apply = "store<" + type + ">(" + std::string(signature.op) + "::apply(";
  switch (signature.call) {
    case ElementCall::kCast:
      return "convert<" + type + ">(" + element(arguments[0]) + ")";
    case ElementCall::kWhere:
      return element(arguments[0]) + " ? " + element(arguments[1]) + " : " + element(arguments[2]);
    case ElementCall::kUnary:
      return apply + loaded(arguments[0]) + ", " + attribute(step.function.a) + ", " +
             attribute(step.function.b) + "))";
    case ElementCall::kBinary:
      return apply + loaded(arguments[0]) + ", " + loaded(arguments[1]) + "))";
    case ElementCall::kTernary:
      return apply + loaded(arguments[0]) + ", " + loaded(arguments[1]) + ", " +
             loaded(arguments[2]) + "))";
  }
  EDDY_CHECK(false) << "no text for " << step.function.name;
  return "";
}

Status wrong_step(size_t index, const ExpressionStep& step, const std::string& why) {
  return invalid_argument("step " + std::to_string(index) + " (" + step.function.name +
                          ") of the fused program " + why);
}

// Appends the statement of a step and the type of its element.
Status add_step(const Expression& expression, size_t index, std::vector<ElementType>& types,
                std::string& text) {
  const ExpressionStep& step = expression.steps[index];
  const auto signature = element_signature(step.function.name);
  if (!signature) return wrong_step(index, step, "names no function of elements");
  if (step.arguments.size() != signature->num_inputs) {
    return wrong_step(index, step,
                      "has " + std::to_string(step.arguments.size()) + " arguments, not " +
                          std::to_string(signature->num_inputs));
  }
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    if (step.arguments[i] >= types.size() || types[step.arguments[i]] != signature->inputs[i]) {
      return wrong_step(index, step, "is given an element of another type");
    }
  }
  text += "    [[maybe_unused]] const " + std::string(type_suffix(signature->output)) + " " +
          element(types.size()) + " = " + call_text(step, *signature) + ";\n";
  types.push_back(signature->output);
  return Status::ok();
}

// `each(i, type)` for every one, with commas between.
template <typename Each>
std::string list(std::span<const ElementType> all, Each each, const std::string& between = ", ") {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    text += (i > 0 ? between : "") + each(std::to_string(i), std::string(type_suffix(all[i])));
  }
  return text;
}

std::string body_text(std::span<const ElementType> inputs, std::span<const ElementType> outputs,
                      const std::string& apply) {
  using S = const std::string&;
  const auto packs_of = [](const std::string& letter) {
    return [letter](S i, S type) { return "Pack<" + type + ", kCount> " + letter + i + ";"; };
  };
  const std::string loads = list(
      inputs, [](S i, S type) { return "load_pack<" + type + ", kCount>(p, " + i + ", first)"; });
  const std::string of_pack = list(inputs, [](S i, S) { return "x.p" + i + ".values[k]"; });
  const std::string to_pack = list(outputs, [](S k, S) { return "y.q" + k + ".values[k]"; });
  const std::string of_offsets =
      list(inputs, [](S i, S type) { return "input<" + type + ">(p, " + i + ")[at[" + i + "]]"; });
  const std::string to_items =
      list(outputs, [](S k, S type) { return "output<" + type + ">(p, " + k + ")[item]"; });
  const std::string types = list(inputs, [](S, S type) { return type; });
  return "struct Body {\n  static constexpr int kInputs = " + std::to_string(inputs.size()) +
         ";\n  static constexpr int kCount = kPackCount<" +
         list(outputs, [](S, S type) { return type; }) + ", " + types + ">;\n  struct Packs { " +
         list(inputs, packs_of("p"), " ") + " };\n  struct Results { " +
         list(outputs, packs_of("q"), " ") +
         " };\n  EDDY_HD static Packs load_packs(const FusedParams& p, uint64_t first) {\n"
         "    return {" +
         loads +
         "};\n  }\n  EDDY_HD static void at_pack(const Packs& x, int k, Results& y) {\n    apply(" +
         of_pack + ", " + to_pack +
         ");\n  }\n  EDDY_HD static void store_packs(const FusedParams& p, uint64_t item, "
         "const Results& y) {\n    " +
         list(
             outputs, [](S k, S) { return "store_pack(p, " + k + ", item, y.q" + k + ");"; }, " ") +
         "\n  }\n  EDDY_HD static void at(const FusedParams& p, const int64_t (&at)[kInputs], "
         "uint64_t item) {\n    apply(" +
         of_offsets + ", " + to_items + ");\n  }\n" + apply + "};\n";
}

// Each result has the type that the node says.
Status check_results(const Expression& expression, std::span<const ElementType> types,
                     std::span<const ElementType> outputs) {
  if (outputs.size() != expression.num_results() || outputs.size() > kMaxFusedOutputs) {
    return invalid_argument("the fused program makes " + std::to_string(expression.num_results()) +
                            " results, its node " + std::to_string(outputs.size()) +
                            "; a kernel makes 1 to " + std::to_string(kMaxFusedOutputs));
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const ElementType made = types[expression.result(k)];
    if (made == outputs[k]) continue;
    return invalid_argument("the fused program makes " + std::string(element_type_name(made)) +
                            ", its node " + std::string(element_type_name(outputs[k])));
  }
  return Status::ok();
}

}  // namespace

Result<std::string> expression_function(const std::string& name, const Expression& expression,
                                        std::span<const ElementType> inputs,
                                        std::span<const ElementType> outputs) {
  if (inputs.empty() || inputs.size() > kMaxFusedInputs || inputs.size() != expression.num_inputs) {
    return invalid_argument("a fused kernel takes 1 to " + std::to_string(kMaxFusedInputs) +
                            " inputs, not " + std::to_string(inputs.size()));
  }
  for (const ElementType type : inputs) {
    if (!type_suffix(type).empty()) continue;
    return invalid_argument("no fused kernel takes " + std::string(element_type_name(type)));
  }
  std::vector<ElementType> types(inputs.begin(), inputs.end());
  std::string steps;
  for (size_t i = 0; i < expression.steps.size(); ++i) {
    EDDY_RETURN_IF_ERROR(add_step(expression, i, types, steps));
  }
  EDDY_CHECK(!expression.steps.empty()) << "an expression without a step";
  EDDY_RETURN_IF_ERROR(check_results(expression, types, outputs));
  using S = const std::string&;
  const std::string from =
      list(inputs, [](S i, S type) { return "[[maybe_unused]] " + type + " v" + i; });
  const std::string to = list(outputs, [](S k, S type) { return type + "& r" + k; });
  for (size_t k = 0; k < outputs.size(); ++k) {
    steps += "    r" + std::to_string(k) + " = " + element(expression.result(k)) + ";\n";
  }
  return "  EDDY_HD static void " + name + "(" + from + ", " + to + ") {\n" + steps + "  }\n";
}

Result<KernelSource> fused_kernel_source(const Expression& expression,
                                         std::span<const ElementType> inputs,
                                         std::span<const ElementType> outputs) {
  EDDY_ASSIGN_OR_RETURN(const std::string apply,
                        expression_function("apply", expression, inputs, outputs));
  const std::string body = body_text(inputs, outputs, apply);
  Fingerprint fingerprint;
  fingerprint.add(body);
  const auto type = [](const std::string&, const std::string& name) { return name; };
  KernelSource source;
  source.name = "eddy_fused_" + fingerprint.text();
  source.text = "// program: " + expression.text() + "\n// types: " + list(inputs, type) + " to " +
                list(outputs, type) + "\n#include \"ops/cuda/elementwise/fused_inl.h\"\n\n" +
                "namespace eddy::cuda::fused_" + fingerprint.text() + " {\n\n" + body +
                "\n}\n\nEDDY_FUSED_KERNEL(" + source.name + ", eddy::cuda::fused_" +
                fingerprint.text() + "::Body)\n";
  return source;
}

}  // namespace eddy::cuda
