#include "examples/dynamic_models/model.h"
#include "tools/gpu/case_rows.h"

namespace eddy {
namespace {

Tensor to_tensor(const HostValue& value) {
  if (value.kind == HostValue::Kind::kNone) return Tensor();
  if (value.kind == HostValue::Kind::kTensor) return Tensor::copy_of(value.view());
  std::vector<Tensor> elements;
  for (const HostValue& element : value.elements) elements.push_back(to_tensor(element));
  return Tensor::sequence(value.element, std::move(elements));
}

GpuCase to_case(const dynamic::Recipe& recipe) {
  dynamic::Model model = recipe.make();
  GpuCase one;
  one.name = model.name + ", batch " + std::to_string(model.batch);
  one.size = model.size;
  one.build = model.build;
  one.counted_loop = model.counted_loop;
  one.has_products = true;
  for (const auto& [name, value] : model.inputs) one.inputs.emplace_back(name, to_tensor(value));
  return one;
}

}  // namespace

nlohmann::json report_models(const SessionsUnderReport& what) {
  const Library library;
  std::vector<std::function<GpuCase()>> cases;
  const auto scale = what.is_small ? dynamic::Scale::kSmall : dynamic::Scale::kFull;
  for (const dynamic::Recipe& recipe : dynamic::all_models(scale)) {
    cases.push_back([recipe] { return to_case(recipe); });
  }
  const CaseWay ways[] = {
      {"host", Loops::kHost}, {"auto", Loops::kAuto}, {.name = "auto, tf32", .allows_tf32 = true}};
  PartReport report("models", what.pace);
  report_cases(report, library, cases, ways, what);
  return report.take();
}

}  // namespace eddy
