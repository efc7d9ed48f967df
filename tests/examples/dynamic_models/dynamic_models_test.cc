// Claim: every dynamic model gives what plain loops give, at every step, and goes round as often,
// in every way of running it; run again, it gives the same bits; read back from a file, the same
// numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "examples/dynamic_models/model.h"
#include "graph/io/export.h"
#include "runtime/api/session.h"
#include "tests/runtime/testing/ways.h"

namespace eddy::dynamic {
namespace {

// The first difference, or "".
std::string difference(const TensorView& found, const HostValue& expected) {
  const TensorView wanted = expected.view();
  const Dims dims(std::span(found.dims, static_cast<size_t>(found.rank)));
  if (found.element != wanted.element || !(dims == expected.dims)) {
    return "shape " + to_string(dims) + " instead of " + to_string(expected.dims);
  }
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const bool is_float = wanted.element == ElementType::kFloat;
    const double x = is_float ? found.as<float>()[i] : found.as<int64_t>()[i];
    const double y = is_float ? wanted.as<float>()[i] : wanted.as<int64_t>()[i];
    if (std::abs(x - y) <= (is_float ? 1e-5 + 1e-4 * std::abs(y) : 0)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(x) + " instead of " +
           std::to_string(y);
  }
  return "";
}

NamedTensors borrow(const Model& model) {
  NamedTensors inputs;
  for (const auto& [name, value] : model.inputs) {
    inputs.emplace_back(name, Tensor::borrow(value.view()));
  }
  return inputs;
}

int64_t counted(const Model& model, const Session& session, const NamedTensors& outputs) {
  if (model.counted_loop.empty()) return outputs.back().second.values<int64_t>()[0];
  for (const LoopReport& loop : session.loop_reports()) {
    if (loop.path == model.counted_loop) return loop.iterations;
  }
  ADD_FAILURE() << "no loop " << model.counted_loop;
  return -1;
}

void expect_plain(const Model& model, const NamedTensors& outputs, const PlainResult& plain) {
  ASSERT_EQ(outputs.size(), plain.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(difference(outputs[i].second.view(), plain.outputs[i]), "")
        << model.name << ": output " << outputs[i].first;
  }
}

class DynamicModels : public eddy::testing::WaysTest {};

TEST_P(DynamicModels, GiveWhatPlainLoopsGiveAndGoRoundAsOften) {
  for (const Recipe& recipe : all_models(Scale::kSmall)) {
    const Model model = recipe.make();
    SCOPED_TRACE(model.name + ", " + model.size + ", batch " + std::to_string(model.batch));
    const PlainResult plain = model.run_plainly();
    auto graph = model.build(library_.ops());
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), options());
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    const NamedTensors inputs = borrow(model);
    auto first = (*session)->run(inputs);
    ASSERT_TRUE(first.is_ok()) << first.status().to_string();
    expect_plain(model, *first, plain);
    EXPECT_EQ(counted(model, **session, *first), plain.trips);
    auto second = (*session)->run(inputs);
    ASSERT_TRUE(second.is_ok()) << second.status().to_string();
    for (size_t i = 0; i < first->size(); ++i) expect_same((*first)[i].second, (*second)[i].second);
  }
}

// Otherwise a wrong decision would look like a right one.
TEST(DynamicModelSizes, DecideDifferently) {
  std::map<std::string, std::set<int64_t>> trips;
  for (const Recipe& recipe : all_models(Scale::kSmall)) {
    const Model model = recipe.make();
    trips[model.name].insert(model.run_plainly().trips);
  }
  for (const char* name : {"seq2seq", "blockdrop", "skipnet", "adaptive_time", "fixed_point",
                           "early_exit", "beam_search"}) {
    EXPECT_GE(trips[name].size(), 2u) << name << ": " << ::testing::PrintToString(trips[name]);
  }
}

TEST(DynamicModelFiles, GiveTheSameReadBackFromAFile) {
  const Library library;
  for (const Recipe& recipe : all_models(Scale::kSmall)) {
    const Model model = recipe.make();
    SCOPED_TRACE(model.name);
    EXPECT_EQ(model.name, recipe.name);
    auto graph = model.build(library.ops());
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const std::string path = ::testing::TempDir() + "/" + model.name + ".onnx";
    const Status status = export_onnx(*graph, path);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    auto session = Session::load(library, path, {});
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    auto outputs = (*session)->run(borrow(model));
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    expect_plain(model, *outputs, model.run_plainly());
  }
}

EDDY_IN_ALL_WAYS(DynamicModels);

}  // namespace
}  // namespace eddy::dynamic
