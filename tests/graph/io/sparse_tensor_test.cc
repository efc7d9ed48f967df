// Claim: sparse initializers and constants become the dense tensors that their values and indices
// describe, in either form of indices, and whatever contradicts itself is refused by name.
#include "graph/io/sparse_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <random>

#include "graph/io/model_summary.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

using Int64s = std::vector<int64_t>;

WireWriter sparse(const WireWriter& values, const WireWriter& indices, const Int64s& dims) {
  WireWriter proto;
  proto.message(1, values);
  proto.message(2, indices);
  for (const int64_t dim : dims) proto.integer(3, dim);
  return proto;
}

WireWriter floats_at(const std::vector<float>& values, const Int64s& indices, const Int64s& shape,
                     const Int64s& dims) {
  return sparse(tensor<float>("s", {std::ssize(values)}, values),
                tensor<int64_t>("", shape, indices), dims);
}

std::string as_initializer(const WireWriter& proto) {
  WireWriter inner = graph({.outputs = {untyped("s")}});
  inner.message(15, proto);
  return model(inner);
}

std::string as_constant(const WireWriter& proto) {
  WireWriter attribute;
  attribute.bytes(1, "sparse_value");
  attribute.message(22, proto);
  attribute.integer(20, 11);
  return model(
      graph({.nodes = {node("Constant", {}, {"s"}, {attribute}, "c")}, .outputs = {untyped("s")}}));
}

// The elements of output 0, which must be a constant of that type.
template <typename T>
std::vector<T> elements(const Graph& g, std::string_view type) {
  const ValueInfo& info = g.value(g.outputs()[0]);
  EXPECT_EQ(info.origin, ValueOrigin::kConstant);
  EXPECT_EQ(to_string(info.type), type);
  const TensorView view = g.constant(info.constant).view();
  return {view.as<T>(), view.as<T>() + view.count()};
}

void expect_refused(const WireWriter& proto, std::string_view part) {
  expect_import_error(as_initializer(proto), StatusCode::kInvalidArgument, part);
  expect_import_error(as_initializer(proto), StatusCode::kInvalidArgument, "sparse tensor 's'");
  expect_import_error(as_constant(proto), StatusCode::kInvalidArgument, part);
}

TEST(SparseTensor, PositionsAndCoordinatesSayTheSame) {
  const WireWriter forms[] = {floats_at({1, 2, 3}, {1, 3, 5}, {3}, {2, 3}),
                              floats_at({1, 2, 3}, {0, 1, 1, 0, 1, 2}, {3, 2}, {2, 3})};
  for (const WireWriter& form : forms) {
    for (const std::string& text : {as_initializer(form), as_constant(form)}) {
      EXPECT_EQ(elements<float>(must_import(text), "float[2,3]"),
                (std::vector<float>{0, 1, 0, 2, 0, 3}));
    }
  }
}

TEST(SparseTensor, StringsAreEmptyElsewhere) {
  const std::vector<std::string> texts = {"a", "a text too long to stand in a string object"};
  WireWriter values;
  values.integer(1, 2);
  values.integer(2, static_cast<int64_t>(ElementType::kString));
  for (const std::string& text : texts) values.bytes(6, text);
  values.bytes(8, "s");
  const WireWriter proto = sparse(values, tensor<int64_t>("", {2}, {0, 2}), {4});
  EXPECT_EQ(elements<std::string>(must_import(as_initializer(proto)), "string[4]"),
            (std::vector<std::string>{texts[0], "", texts[1], ""}));
}

TEST(SparseTensor, FourBitValuesAreOneByteEach) {
  WireWriter values;
  values.integer(1, 3);
  values.integer(2, static_cast<int64_t>(ElementType::kInt4));
  values.bytes(8, "s");
  values.bytes(9, std::string_view("\xf1\x07", 2));  // 1, -1, 7
  const WireWriter proto = sparse(values, tensor<int64_t>("", {3}, {0, 1, 4}), {5});
  EXPECT_EQ(elements<int8_t>(must_import(as_initializer(proto)), "int4[5]"),
            (std::vector<int8_t>{1, -1, 0, 0, 7}));
}

TEST(SparseTensor, WithoutValuesAllIsZeroAndIndicesMayBeMissing) {
  WireWriter proto;
  proto.message(1, tensor<int64_t>("s", {0}, {}));
  proto.integer(3, 2);
  EXPECT_EQ(elements<int64_t>(must_import(as_initializer(proto)), "int64[2]"), (Int64s{0, 0}));
  const WireWriter listed =
      sparse(tensor<int64_t>("s", {0}, {}), tensor<int64_t>("", {0, 1}, {}), {2});
  EXPECT_EQ(elements<int64_t>(must_import(as_initializer(listed)), "int64[2]"), (Int64s{0, 0}));
}

struct RandomSparse {
  Int64s dims;
  std::vector<float> values;
  Int64s positions;
  Int64s coordinates;
  std::vector<float> dense;
};

RandomSparse random_sparse(std::mt19937& random) {
  RandomSparse made;
  made.dims.resize(1 + random() % 4);
  int64_t count = 1;
  for (int64_t& dim : made.dims) count *= dim = 1 + random() % 5;
  std::map<int64_t, float> map;
  for (uint32_t i = random() % 20; i > 0; --i) {
    map[static_cast<int64_t>(random() % static_cast<uint64_t>(count))] = 1.0f + random() % 9;
  }
  made.dense.resize(static_cast<size_t>(count));
  for (const auto& [position, value] : map) {
    made.values.push_back(value);
    made.positions.push_back(position);
    made.dense[static_cast<size_t>(position)] = value;
    int64_t below = count;
    for (const int64_t dim : made.dims) {
      below /= dim;
      made.coordinates.push_back(position / below % dim);
    }
  }
  return made;
}

// Against a map from positions to values.
TEST(SparseTensor, RandomTensorsAreTheirMaps) {
  const uint32_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const RandomSparse r = random_sparse(random);
    const int64_t n = std::ssize(r.values);
    const std::string type = to_string(tensor_type(ElementType::kFloat, Dims(r.dims)));
    const WireWriter by_position = floats_at(r.values, r.positions, {n}, r.dims);
    const WireWriter by_axis = floats_at(r.values, r.coordinates, {n, std::ssize(r.dims)}, r.dims);
    EXPECT_EQ(elements<float>(must_import(as_initializer(by_position)), type), r.dense);
    EXPECT_EQ(elements<float>(must_import(as_constant(by_axis)), type), r.dense);
  }
}

TEST(SparseTensor, IndicesOutsideAreRefused) {
  expect_refused(floats_at({1}, {6}, {1}, {2, 3}), "index 0 is 6, outside of the shape [2,3]");
  expect_refused(floats_at({1}, {-1}, {1}, {2, 3}), "index 0 is -1, outside");
  expect_refused(floats_at({1, 2}, {0, INT64_MAX}, {2}, {6}), "index 1 is 9223372036854775807");
  expect_refused(floats_at({1}, {INT64_MIN}, {1}, {6}), "index 0 is -9223372036854775808");
  // Inside by its position, outside by its column.
  expect_refused(floats_at({1}, {0, 3}, {1, 2}, {2, 3}), "index 0 is 3 along axis 1, outside");
  expect_refused(floats_at({1}, {1, -1}, {1, 2}, {2, 3}), "index 0 is -1 along axis 1, outside");
  expect_refused(floats_at({1}, {0}, {1}, {0}), "index 0 is 0, outside of the shape [0]");
}

TEST(SparseTensor, IndicesThatDoNotAscendAreRefused) {
  expect_refused(floats_at({1, 2}, {2, 2}, {2}, {6}), "index 1 repeats the one in front of it");
  expect_refused(floats_at({1, 2}, {3, 2}, {2}, {6}), "index 1 comes before the one in front");
  expect_refused(floats_at({1, 2}, {1, 0, 0, 2}, {2, 2}, {2, 3}), "index 1 comes before");
}

TEST(SparseTensor, TypesAndCountsThatDisagreeAreRefused) {
  expect_refused(floats_at({1, 2}, {0}, {1}, {6}), "the indices have shape [1], but 2 values");
  expect_refused(floats_at({1}, {0, 0, 0}, {1, 3}, {2, 3}), "need [1] or [1, 2]");
  expect_refused(floats_at({1}, {0}, {}, {6}), "the indices have shape []");
  expect_refused(floats_at({1}, {0}, {1}, {}), "a shape of at least one dimension");
  expect_refused(floats_at({1}, {0}, {1}, {-6}), "a dimension has size -6");
  expect_refused(sparse(tensor<float>("s", {1, 1}, {1}), tensor<int64_t>("", {1}, {0}), {6}),
                 "the values have shape [1,1]");
  expect_refused(sparse(tensor<float>("s", {1}, {1}), tensor<int32_t>("", {1}, {0}), {6}),
                 "the indices are int32, but they must be int64");
  WireWriter no_indices;
  no_indices.message(1, tensor<float>("s", {1}, {1}));
  no_indices.integer(3, 6);
  expect_refused(no_indices, "1 values have no indices");
}

// 64 GiB of zeros in a file of some hundred bytes.
TEST(SparseTensor, ZerosAreChargedBeforeTheyAreMade) {
  const WireWriter proto = floats_at({1}, {0}, {1}, {int64_t{1} << 34});
  expect_import_error(as_initializer(proto), StatusCode::kResourceExhausted,
                      "store the tensor with all its elements");
  expect_import_error(as_constant(proto), StatusCode::kResourceExhausted,
                      "store the tensor with all its elements");
}

// Nodes may read a sparse initializer, and a body its own, also where the outer graph has one of
// the same name.
TEST(SparseTensor, InnerGraphsHaveTheirOwn) {
  WireWriter then_branch = graph({.outputs = {untyped("s")}});
  then_branch.message(15, floats_at({5}, {1}, {1}, {2}));
  const WireWriter else_branch =
      graph({.nodes = {node("Neg", {"s"}, {"n"})}, .outputs = {untyped("n")}});
  WireWriter outer = graph({.nodes = {node("If", {"c"}, {"y"},
                                           {graph_attribute("then_branch", then_branch),
                                            graph_attribute("else_branch", else_branch)})},
                            .inputs = {info("c", bools({}))},
                            .outputs = {untyped("y")}});
  outer.message(15, floats_at({2}, {0}, {1}, {3}));
  const Graph g = must_import(model(outer));
  EXPECT_EQ(count_ops(g, "Neg"), 1u);
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "float[?]") << "each branch reads its own";
  std::vector<std::vector<float>> constants;
  for (uint32_t i = 0; i < g.num_constants(); ++i) {
    const Constant& each = g.constant(ConstantId(i));
    const auto* data = static_cast<const float*>(each.data);
    if (each.element == ElementType::kFloat)
      constants.emplace_back(data, data + *each.dims.count());
  }
  EXPECT_THAT(constants, testing::UnorderedElementsAre(testing::ElementsAre(0, 5),
                                                       testing::ElementsAre(2, 0, 0)));
}

// A body's own name is no need of a node of the same name around it, which stands behind.
TEST(SparseTensor, AnInnerNameDecidesNoOrderOutside) {
  WireWriter branch = graph({.outputs = {untyped("s")}});
  branch.message(15, floats_at({5}, {1}, {1}, {2}));
  const WireWriter outer =
      graph({.nodes = {node("Neg", {"y"}, {"s"}), node("If", {"c"}, {"y"},
                                                       {graph_attribute("then_branch", branch),
                                                        graph_attribute("else_branch", branch)})},
             .inputs = {info("c", bools({}))},
             .outputs = {untyped("s")}});
  EXPECT_EQ(count_ops(must_import(model(outer)), "Neg"), 1u);
}

TEST(SparseTensor, BytesThatCannotBeCountedExceedEveryBudget) {
  TensorLayout layout;
  layout.element = ElementType::kDouble;
  layout.count = int64_t{1} << 61;
  EXPECT_EQ(dense_bytes(layout, 1), UINT64_MAX);
  layout.count = int64_t{1} << 60;
  EXPECT_EQ(dense_bytes(layout, 1), uint64_t{1} << 63);
  EXPECT_EQ(dense_bytes(layout, 2), UINT64_MAX);
}

TEST(SparseTensor, AnInputWithASparseDefaultIsNone) {
  WireWriter inner = graph({.inputs = {info("s", floats({2}))}, .outputs = {untyped("s")}});
  inner.message(15, floats_at({4}, {1}, {1}, {2}));
  const Graph g = must_import(model(inner));
  EXPECT_TRUE(g.inputs().empty());
  EXPECT_EQ(elements<float>(g, "float[2]"), (std::vector<float>{0, 4}));
}

TEST(SparseTensor, ASummaryCountsTheDenseTensor) {
  const std::string path = testing::TempDir() + "/sparse.onnx";
  std::ofstream(path, std::ios::binary) << as_initializer(floats_at({1, 2}, {0, 4}, {2}, {2, 3}));
  const Result<ModelSummary> summary = summarize_model(path, standard_ops());
  ASSERT_TRUE(summary.is_ok()) << summary.status().to_string();
  EXPECT_EQ(summary->initializers.num_tensors, 1);
  EXPECT_EQ(summary->initializers.num_elements, 6);
  EXPECT_EQ(summary->initializers.num_bytes, 24);
  EXPECT_EQ(summary->initializers.num_refused, 0);
}

}  // namespace
}  // namespace eddy
