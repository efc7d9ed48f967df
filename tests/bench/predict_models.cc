#include "tests/bench/predict_models.h"

#include <cmath>

#include "examples/dynamic_models/model.h"
#include "graph/base/random.h"
#include "graph/io/import.h"
#include "tests/graph/convnets/convnets.h"
#include "tools/bench/loop_cases.h"

namespace eddy {
namespace {

constexpr uint64_t kSeed = 7;

// A file of tests/bench/models, with the feed that eddy bench loops gives it.
PredictModel from_file(const std::string& name, const std::string& path, int64_t trip,
                       int64_t inner_trip = 0) {
  const auto build = [path](const Library& library) { return import_onnx(path, library.ops()); };
  const auto feed = [name, trip, inner_trip](const std::vector<ValueDescription>& inputs) {
    return loop_feed(inputs, {name.c_str(), name.c_str(), trip, inner_trip, 100, "", 0});
  };
  return {name, build, feed, false};
}

PredictModel dynamic_model(const std::string& name) {
  for (const dynamic::Recipe& recipe : dynamic::all_models(dynamic::Scale::kFull)) {
    if (recipe.name != name) continue;
    auto model = std::make_shared<dynamic::Model>(recipe.make());
    const auto feed = [model](const std::vector<ValueDescription>&) {
      std::vector<HostValue> values;
      for (const auto& [_, value] : model->inputs) values.push_back(value);
      return Result<std::vector<HostValue>>(std::move(values));
    };
    return {name, [model](const Library& library) { return model->build(library.ops()); }, feed,
            false};
  }
  EDDY_CHECK(false) << "no dynamic model is called " << name;
  return {};
}

// Weights of a size that keeps activations where they are: neither infinite nor subnormal.
Result<std::vector<HostValue>> convnet_feed(const std::vector<ValueDescription>& inputs) {
  Random random(kSeed);
  std::vector<HostValue> values;
  for (const ValueDescription& input : inputs) {
    const Dims& dims = input.type.tensor.dims;
    HostValue value = HostValue::tensor(ElementType::kFloat, dims);
    double fan_in = 1;
    for (int axis = 1; axis < dims.rank(); ++axis) fan_in *= static_cast<double>(dims[axis]);
    const auto bound = static_cast<float>(input.name == "image" ? 1 : std::sqrt(3 / fan_in));
    const TensorView view = value.view();
    for (int64_t i = 0; i < view.count(); ++i) {
      view.mutable_as<float>()[i] = random.uniform(-bound, bound);
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

std::vector<PredictModel> predict_models(const std::string& models,
                                         const std::string& silero_path) {
  const auto file = [&](const char* name) { return models + "/" + name + ".onnx"; };
  std::vector<PredictModel> all = {
      from_file("e0_8chains_mm256", file("e0_8chains_mm256"), 0),
      from_file("e_8loops_256", file("e_8loops_256"), 10),
      from_file("e_8loops_64", file("e_8loops_64"), 200),
      from_file("d_matmul128", file("d_matmul128"), 50),
      dynamic_model("lstm"),
      dynamic_model("attention"),
      dynamic_model("seq2seq"),
      dynamic_model("beam_search"),
      dynamic_model("skipnet"),
      {"inception_v3", [](const Library& library) { return build_inception_v3(library.ops()); },
       convnet_feed, false},
  };
  const size_t num_seen = all.size();
  for (const char* name :
       {"nas_rnn", "blockdrop", "adaptive_time", "fixed_point", "early_exit", "tree"}) {
    all.push_back(dynamic_model(name));
  }
  if (!silero_path.empty()) all.push_back(from_file("silero", silero_path, 0));
  for (size_t i = num_seen; i < all.size(); ++i) all[i].is_held_out = true;
  return all;
}

}  // namespace eddy
