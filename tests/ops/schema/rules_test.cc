// Claim: the shared shape rules treat sizes, symbols and unknown dimensions as documented, and the
// standard table holds every operator once, with a kernel for each definition.
#include "ops/schema/rules/rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ops/schema/standard.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy {
namespace {

constexpr int64_t kUnknown = kUnknownDim;
constexpr int64_t kBatch = -2;
constexpr int64_t kLength = -3;

TEST(BroadcastTest, OneGivesWayAndSizesWinOverWhatIsNotKnown) {
  EXPECT_EQ(broadcast_dim(1, kBatch), kBatch);
  EXPECT_EQ(broadcast_dim(kBatch, 1), kBatch);
  EXPECT_EQ(broadcast_dim(kBatch, kBatch), kBatch);
  EXPECT_EQ(broadcast_dim(kBatch, kLength), kUnknown);
  EXPECT_EQ(broadcast_dim(kBatch, kUnknown), kUnknown);
  EXPECT_EQ(broadcast_dim(kBatch, 4), 4);
  EXPECT_EQ(broadcast_dim(kUnknown, 4), 4);
  EXPECT_EQ(broadcast_dim(1, kUnknown), kUnknown);
  EXPECT_EQ(broadcast_dim(0, 1), 0);
  EXPECT_EQ(broadcast_dim(0, 0), 0);
  EXPECT_EQ(broadcast_dim(0, 3), std::nullopt);
  EXPECT_EQ(broadcast_dim(2, 3), std::nullopt);
}

TEST(BroadcastTest, ItIsCommutativeAndAssociativeOnKnownSizes) {
  for (int64_t a : {0, 1, 2, 3}) {
    for (int64_t b : {0, 1, 2, 3}) {
      EXPECT_EQ(broadcast_dim(a, b), broadcast_dim(b, a));
      for (int64_t c : {0, 1, 2, 3}) {
        const auto ab = broadcast_dim(a, b);
        const auto bc = broadcast_dim(b, c);
        const auto left = ab ? broadcast_dim(*ab, c) : std::nullopt;
        const auto right = bc ? broadcast_dim(a, *bc) : std::nullopt;
        EXPECT_EQ(left, right);
      }
    }
  }
}

TEST(BroadcastTest, ShapesAreAlignedAtTheirEnds) {
  EXPECT_EQ(broadcast_dims({2, 1, 4}, {3, 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_dims({}, {kBatch, 3}), (Dims{kBatch, 3}));
  EXPECT_EQ(broadcast_dims({2, 3}, {4}), std::nullopt);
}

TEST(MergeTest, TheDimensionThatSaysMoreStays) {
  EXPECT_EQ(merge_dim(kUnknown, kBatch), kBatch);
  EXPECT_EQ(merge_dim(kBatch, kUnknown), kBatch);
  EXPECT_EQ(merge_dim(kBatch, 5), 5);
  EXPECT_EQ(merge_dim(1, 5), std::nullopt);
}

TEST(AxisTest, NegativeAxesCountFromTheEnd) {
  EXPECT_EQ(*normalize_axis(-1, 3), 2);
  EXPECT_EQ(*normalize_axis(0, 3), 0);
  EXPECT_EQ(normalize_axis(3, 3).status().message(), "axis 3 is out of range for rank 3: -3..2");
  EXPECT_EQ(normalize_axis(0, 0).status().message(), "axis 0 of a scalar, which has no axes");
  EXPECT_EQ(*normalize_axis_inclusive(3, 3), 3);
  EXPECT_FALSE(normalize_axis(INT64_MIN, 3).is_ok());
}

TEST(HostIntsTest, ReadsBothWidthsInPlaceAndRefusesOthers) {
  const auto wide = testing::TestTensor::of<int64_t>({2}, {7, -8});
  const auto narrow = testing::TestTensor::of<int32_t>({}, {9});
  EXPECT_EQ((*HostInts::read(wide.view(), "axes"))[1], -8);
  EXPECT_EQ((*HostInts::read(narrow.view(), "axes"))[0], 9);
  const auto floats = testing::TestTensor::of<float>({1}, {1});
  EXPECT_EQ(HostInts::read(floats.view(), "axes").status().message(),
            "axes must be int64 or int32, not float");
  const auto square = testing::TestTensor::of<int64_t>({1, 1}, {1});
  EXPECT_FALSE(HostInts::read(square.view(), "axes").is_ok());
}

std::string infer(const std::string& op, int opset, const std::vector<ValueType>& inputs,
                  Attributes attributes = {}) {
  testing::OpCall call;
  call.op = op;
  call.opset = opset;
  call.attributes = std::move(attributes);
  const auto types = testing::infer_op_types(call, inputs);
  return types.is_ok() ? to_string((*types)[0]) : types.status().message();
}

ValueType floats(Dims dims) { return tensor_type(ElementType::kFloat, dims); }

TEST(ElementwiseSchemaTest, SymbolsPassThroughBroadcasting) {
  EXPECT_EQ(infer("Add", 14, {floats({kBatch, 3}), floats({3})}), to_string(floats({kBatch, 3})));
  EXPECT_EQ(infer("Less", 14, {floats({kBatch, 1}), floats({1, kLength})}),
            to_string(tensor_type(ElementType::kBool, {kBatch, kLength})));
  EXPECT_EQ(infer("Add", 14, {floats({2}), TensorType(ElementType::kFloat)}),
            to_string(ValueType(TensorType(ElementType::kFloat))));
  EXPECT_EQ(infer("Max", 13, {floats({1}), floats({kBatch}), floats({})}),
            to_string(floats({kBatch})));
}

TEST(ElementwiseSchemaTest, BrokenRulesAreNamedWithTheShapes) {
  EXPECT_EQ(infer("Add", 14, {floats({2, 3}), floats({4})}),
            "inputs 0 and 1 do not broadcast: [2,3] and [4]");
  EXPECT_EQ(infer("Add", 14, {floats({2}), tensor_type(ElementType::kInt64, {2})}),
            "inputs 0 and 1 must have the same element type, not float and int64");
  EXPECT_EQ(infer("Add", 6, {floats({2, 3}), floats({3})}),
            "input 1 of shape [3] does not stretch over input 0 of shape [2,3]: they must be equal "
            "without broadcast=1");
  EXPECT_EQ(infer("Mod", 13, {floats({2}), floats({2})}),
            "Mod of float needs the attribute fmod=1");
  EXPECT_EQ(infer("PRelu", 16, {floats({2, 3}), floats({2})}),
            "the slope of shape [2] does not stretch over X of shape [2,3]");
  EXPECT_EQ(infer("Cast", 13, {floats({2})}, {{"to", int64_t{99}}}),
            "attribute 'to' is 99, which is no element type");
  EXPECT_EQ(infer("Add", 14, {ValueType::sequence_of(floats({2})), floats({2})}),
            "input 0 ('A') of Add must be a tensor, not " +
                to_string(ValueType::sequence_of(floats({2}))));
}

TEST(ReductionSchemaTest, AxesThatAreNotKnownLeaveTheRankWhereDimensionsAreKept) {
  const ValueType axes = tensor_type(ElementType::kInt64, {1});
  EXPECT_EQ(infer("ReduceSum", 13, {floats({2, 3}), axes}),
            to_string(floats({kUnknown, kUnknown})));
  EXPECT_EQ(infer("ReduceSum", 13, {floats({2, 3}), axes}, {{"keepdims", int64_t{0}}}),
            to_string(ValueType(TensorType(ElementType::kFloat))));
  // All axes of a tensor of any rank, unless that means none of them.
  const ValueType unranked = TensorType(ElementType::kFloat);
  const Attributes drops = {{"keepdims", int64_t{0}}};
  const Attributes drops_or_not = {{"keepdims", int64_t{0}}, {"noop_with_empty_axes", int64_t{1}}};
  EXPECT_EQ(infer("ReduceSum", 13, {unranked}, drops), "float[]");
  EXPECT_EQ(infer("ReduceSum", 11, {unranked}, drops), "float[]");
  EXPECT_EQ(infer("ReduceMean", 13, {unranked}, drops), "float[]");
  EXPECT_EQ(infer("ReduceSum", 13, {unranked}, drops_or_not), "float[...]");
  EXPECT_EQ(infer("ReduceSum", 13, {unranked, axes}, drops), "float[...]");
  EXPECT_EQ(infer("ReduceSum", 13, {unranked}), "float[...]");
  EXPECT_EQ(infer("ReduceSum", 11, {unranked},
                  {{"keepdims", int64_t{0}}, {"axes", std::vector<int64_t>{0}}}),
            "float[...]");
  EXPECT_EQ(infer("ReduceSum", 11, {floats({kBatch, 3})}, {{"axes", std::vector<int64_t>{-1}}}),
            to_string(floats({kBatch, 1})));
  EXPECT_EQ(
      infer("ArgMax", 13, {floats({kBatch, 3})}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}),
      to_string(tensor_type(ElementType::kInt64, {kBatch})));
}

TEST(StandardTableTest, EveryDefinitionIsWellFormed) {
  OpTable table;
  const Status status = add_standard_schemas(table);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  for (const auto& def : table.all()) {
    EXPECT_TRUE(static_cast<bool>(def->infer)) << def->name;
    EXPECT_GE(def->max_outputs, def->min_outputs) << def->name;
    std::set<std::string> names;
    for (const auto& attribute : def->attributes) {
      EXPECT_TRUE(names.insert(attribute.name).second) << def->name << " " << attribute.name;
    }
    for (size_t i = 0; i + 1 < def->inputs.size(); ++i) {
      EXPECT_FALSE(has_flag(def->inputs[i].flags, InputFlag::kVariadic)) << def->name;
    }
  }
}

}  // namespace
}  // namespace eddy
