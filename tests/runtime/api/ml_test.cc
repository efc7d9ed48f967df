// Claim: a graph of ai.onnx.ml operators, text in and text out, runs through a session for any
// number of rows, also in a loop; and a tree that forms a cycle is refused, with its node, before
// any run.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

OpOptions ml(const char* name, int num_outputs = 1) {
  return {.name = name, .domain = "ai.onnx.ml", .opset_version = 3, .num_outputs = num_outputs};
}

// x[0] <= 1 ? 0.25 : 0.75 for the second of two classes.
Attributes stump(const Ints& if_true) {
  return {{"nodes_treeids", Ints{0, 0, 0}},
          {"nodes_nodeids", Ints{0, 1, 2}},
          {"nodes_featureids", Ints{0, 0, 0}},
          {"nodes_values", Floats{1, 0, 0}},
          {"nodes_modes", Words{"BRANCH_LEQ", "LEAF", "LEAF"}},
          {"nodes_truenodeids", if_true},
          {"nodes_falsenodeids", Ints{2, 0, 0}},
          {"class_treeids", Ints{0, 0}},
          {"class_nodeids", Ints{1, 2}},
          {"class_ids", Ints{1, 1}},
          {"class_weights", Floats{0.25f, 0.75f}},
          {"classlabels_strings", Words{"no", "yes"}}};
}

// words -> numbers -> scaled -> classes: {a: 0, b: 1}, others 2; twice that decides.
void build_classifier(GraphBuilder& b, const Ints& if_true) {
  const Value words = b.input("words", tensor_type(ElementType::kString, {b.symbol("rows"), 1}));
  const Value number = b.op(
      "LabelEncoder", {words},
      {{"keys_strings", Words{"a", "b"}}, {"values_floats", Floats{0, 1}}, {"default_float", 2.0f}},
      ml("encode"));
  const Value scaled = b.op("Scaler", {number}, {{"scale", Floats{2}}}, ml("scale"));
  const auto classes = b.ops("TreeEnsembleClassifier", {{scaled}}, stump(if_true), ml("trees", 2));
  b.output("labels", classes[0]);
  b.output("scores", classes[1]);
}

TEST(MlSession, TextBecomesAClassForAnyNumberOfRows) {
  const Library library;
  GraphBuilder b(library.ops());
  build_classifier(b, {1, 0, 0});
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library, std::move(*graph), {});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  for (const Words& words : {Words{"a", "b", "c"}, Words{"b"}, Words{}}) {
    const Dims dims = {static_cast<int64_t>(words.size()), 1};
    const TensorView view = {const_cast<std::string*>(words.data()), dims.data(), dims.rank(),
                             ElementType::kString};
    auto outputs = (*session)->run({{"words", Tensor::borrow(view)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    Words labels;
    Floats scores;
    for (const std::string& word : words) {
      labels.push_back(word == "a" ? "no" : "yes");
      scores.insert(scores.end(), {word == "a" ? 0.75f : 0.25f, word == "a" ? 0.25f : 0.75f});
    }
    const auto* found = (*outputs)[0].second.view().as<std::string>();
    EXPECT_EQ(Words(found, found + words.size()), labels);
    const std::span<const float> given = (*outputs)[1].second.values<float>();
    EXPECT_EQ(Floats(given.begin(), given.end()), scores);
  }
}

TEST(MlSession, ACycleInATreeIsRefusedBeforeARun) {
  const Library library;
  GraphBuilder b(library.ops());
  build_classifier(b, {0, 0, 0});
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto session = Session::create(library, std::move(*graph), {});
  ASSERT_FALSE(session.is_ok());
  const std::string said = session.status().to_string();
  EXPECT_EQ(session.status().code(), StatusCode::kInvalidArgument) << said;
  EXPECT_NE(said.find("trees"), std::string::npos) << said;
  EXPECT_NE(said.find("the nodes of tree 0 form a cycle"), std::string::npos) << said;
}

}  // namespace
}  // namespace eddy
