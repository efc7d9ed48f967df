// Claim: FlexAttention of a file gives softmax(score_mod(q k' scale)), changed by prob_mod, times
// v: with heads shared or not, sizes known or found at run time, a scale given or not, in float and
// double; a graph sees scores in the precision that the node names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/io/import.h"
#include "runtime/api/session.h"
#include "tests/graph/io/model_writer.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

constexpr int64_t kBatch = 2, kRows = 3, kKeys = 5, kSize = 4, kValueSize = 6;

struct Form {
  int64_t heads = 4, shared = 4;
  bool knows_sizes = true, has_scale = false;
  bool has_score_mod = false, has_prob_mod = false;
  ElementType element = ElementType::kFloat;
  int64_t precision = 0;  // 0: not named
};

// t = s + s, where it is of that precision alone: a constant of another would not add up.
WireWriter doubling(ElementType element) {
  const WireWriter zero = element == ElementType::kDouble ? tensor<double>("zero", {}, {0.0})
                                                          : tensor<float>("zero", {}, {0.0f});
  return graph({.nodes = {node("Add", {"s", "s"}, {"u"}), node("Add", {"u", "zero"}, {"t"})},
                .inputs = {untyped("s")},
                .outputs = {untyped("t")},
                .initializers = {zero}});
}

std::string model_of(const Form& form) {
  const bool is_double =
      form.precision == 0 ? form.element == ElementType::kDouble : form.precision == 11;
  const WireWriter twice = doubling(is_double ? ElementType::kDouble : ElementType::kFloat);
  Messages attributes;
  if (form.has_scale) attributes.push_back(float_attribute("scale", 0.75f));
  if (form.has_score_mod) attributes.push_back(graph_attribute("score_mod", twice));
  if (form.has_prob_mod) attributes.push_back(graph_attribute("prob_mod", twice));
  if (form.precision != 0) attributes.push_back(attribute("softmax_precision", form.precision));
  const auto type = [&](int64_t heads, int64_t length, int64_t size, int64_t symbol) {
    if (form.knows_sizes) return tensor_type(form.element, {kBatch, heads, length, size});
    return tensor_type(form.element, {-2, symbol, symbol - 1, symbol - 2});
  };
  WireWriter proto;
  proto.integer(1, 8);
  proto.message(7, graph({.nodes = {node("FlexAttention", {"q", "k", "v"}, {"y"}, attributes,
                                         "flex", "ai.onnx.preview")},
                          .inputs = {info("q", type(form.heads, kRows, kSize, -3)),
                                     info("k", type(form.shared, kKeys, kSize, -6)),
                                     info("v", type(form.shared, kKeys, kValueSize, -9))},
                          .outputs = {untyped("y")}}));
  proto.message(8, opset_import("", 26));
  proto.message(8, opset_import("ai.onnx.preview", 1));
  return proto.data();
}

template <typename T>
std::vector<T> random_numbers(int64_t count, Random& random) {
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = static_cast<T>(random.uniform(-1, 1));
  return numbers;
}

// Row `row` of the result, by the definition.
template <typename T>
std::vector<double> expected_row(const Form& form, const T* q, const T* k, const T* v) {
  const double scale = form.has_scale ? 0.75 : 1 / std::sqrt(static_cast<double>(kSize));
  std::vector<double> shares(kKeys);
  double greatest = -HUGE_VAL, total = 0;
  for (int64_t key = 0; key < kKeys; ++key) {
    double score = 0;
    for (int64_t i = 0; i < kSize; ++i) score += double{q[i]} * double{k[key * kSize + i]};
    shares[static_cast<size_t>(key)] = score * scale * (form.has_score_mod ? 2 : 1);
    greatest = std::max(greatest, shares[static_cast<size_t>(key)]);
  }
  for (double& share : shares) total += share = std::exp(share - greatest);
  std::vector<double> row(kValueSize);
  for (int64_t key = 0; key < kKeys; ++key) {
    const double share = shares[static_cast<size_t>(key)] / total * (form.has_prob_mod ? 2 : 1);
    for (int64_t i = 0; i < kValueSize; ++i) {
      row[static_cast<size_t>(i)] += share * double{v[key * kValueSize + i]};
    }
  }
  return row;
}

template <typename T>
void expect_attention(const Form& form, uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", heads " + std::to_string(form.heads) + "/" +
               std::to_string(form.shared) + (form.knows_sizes ? "" : ", sizes unknown"));
  Random random(seed);
  const auto q = random_numbers<T>(kBatch * form.heads * kRows * kSize, random);
  const auto k = random_numbers<T>(kBatch * form.shared * kKeys * kSize, random);
  const auto v = random_numbers<T>(kBatch * form.shared * kKeys * kValueSize, random);
  const Library library;
  const std::string bytes = model_of(form);
  auto graph = import_onnx_bytes(as_bytes(bytes), library.ops(), {});
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library, std::move(*graph), {});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const auto tensor_of = [](const std::vector<T>& numbers, int64_t heads, int64_t length,
                            int64_t size) {
    return Tensor::of(Dims{kBatch, heads, length, size}, std::span<const T>(numbers));
  };
  auto outputs = (*session)->run({{"q", tensor_of(q, form.heads, kRows, kSize)},
                                  {"k", tensor_of(k, form.shared, kKeys, kSize)},
                                  {"v", tensor_of(v, form.shared, kKeys, kValueSize)}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const TensorView y = outputs->at(0).second.view();
  ASSERT_EQ(Dims(y.shape()), (Dims{kBatch, form.heads, kRows, kValueSize}));
  const double tolerance =
      form.element == ElementType::kDouble && form.precision == 0 ? 1e-12 : 2e-6;
  for (int64_t row = 0; row < kBatch * form.heads * kRows; ++row) {
    const int64_t head = row / kRows;  // of all batches
    const int64_t shared = head / (form.heads / form.shared);
    const auto expected = expected_row(form, &q[static_cast<size_t>(row * kSize)],
                                       &k[static_cast<size_t>(shared * kKeys * kSize)],
                                       &v[static_cast<size_t>(shared * kKeys * kValueSize)]);
    for (int64_t i = 0; i < kValueSize; ++i) {
      ASSERT_NEAR(double{y.as<T>()[row * kValueSize + i]}, expected[static_cast<size_t>(i)],
                  tolerance)
          << "row " << row << ", " << i;
    }
  }
}

TEST(FlexAttention, GivesWhatItsDefinitionSays) {
  uint64_t seed = 20261129;
  for (const int mods : {0, 1, 2, 3}) {
    for (const int64_t shared : {6, 2, 1}) {
      for (const bool knows_sizes : {true, false}) {
        for (const bool has_scale : {false, true}) {
          Form form = {.heads = 6,
                       .shared = shared,
                       .knows_sizes = knows_sizes,
                       .has_scale = has_scale,
                       .has_score_mod = (mods & 1) != 0,
                       .has_prob_mod = (mods & 2) != 0};
          expect_attention<float>(form, ++seed);
          form.element = ElementType::kDouble;
          expect_attention<double>(form, ++seed);
        }
      }
    }
  }
}

TEST(FlexAttention, GraphsSeeThePrecisionThatTheNodeNames) {
  const Form form = {.has_score_mod = true, .has_prob_mod = true};
  for (const int64_t precision : {1, 11}) {
    Form named = form;
    named.precision = precision;
    expect_attention<float>(named, 7);
    named.element = ElementType::kDouble;
    expect_attention<double>(named, 8);
  }
}

}  // namespace
}  // namespace eddy
