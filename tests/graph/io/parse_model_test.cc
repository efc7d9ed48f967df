// Claim: parse_model() survives every file: a cut, flipped or mistyped one gives one line with
// offset and field, or parses; limits hold.
#include "graph/io/parse_model.h"

#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

std::string loop_model() {
  const WireWriter body =
      graph({.nodes = {node("Add", {"v", "w"}, {"v2"}), node("Less", {"v2", "limit"}, {"go"}),
                       node("Constant", {}, {"k"}, {attribute("value_int", 1)})},
             .inputs = {info("i", int64s({})), info("c", bools({})), info("v", floats({2, -2}))},
             .outputs = {untyped("go"), untyped("v2"), untyped("k")}});
  return model(
      graph({.nodes = {node("Loop", {"m", "", "x"}, {"y", "ks"}, {graph_attribute("body", body)})},
             .inputs = {info("x", floats({2, -2})), info("limit", floats({}))},
             .outputs = {untyped("y"), untyped("ks")},
             .initializers = {tensor<int64_t>("m", {}, {3}), tensor<float>("w", {2, 1}, {1, 2})}}),
      17,
      {function({.name = "twice",
                 .inputs = {"a"},
                 .outputs = {"b"},
                 .nodes = {node("Add", {"a", "a"}, {"b"})}})});
}

void expect_parse_error(const std::string& bytes, StatusCode code, std::string_view part,
                        const ImportLimits& limits = {}) {
  const Result<OnnxModel> parsed = parse_model(as_bytes(bytes), limits);
  ASSERT_FALSE(parsed.is_ok());
  EXPECT_EQ(parsed.status().code(), code);
  EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
}

TEST(ParseModel, ReadsAllPartsOfAModel) {
  const std::string bytes = loop_model();
  const Result<OnnxModel> parsed = parse_model(as_bytes(bytes), {});
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->ir_version, 8);
  ASSERT_EQ(parsed->graph.nodes.size(), 1u);
  const OnnxNode& loop = parsed->graph.nodes[0];
  EXPECT_EQ(loop.inputs, (std::vector<std::string_view>{"m", "", "x"}));
  ASSERT_EQ(loop.attributes.size(), 1u);
  EXPECT_EQ(loop.attributes[0].type, OnnxAttributeType::kGraph);
  EXPECT_EQ(loop.attributes[0].graphs[0].nodes.size(), 3u);
  EXPECT_EQ(parsed->graph.inputs[0].type.dims[1].param, "s2");
  EXPECT_EQ(parsed->functions[0].opsets[0].version, 17);
}

TEST(ParseModel, AFileCutAtAnyByteFailsOrImportsButNeverCrashes) {
  const std::string whole = loop_model();
  size_t failed = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    const Result<Graph> graph = import_text(whole.substr(0, length));
    failed += graph.is_ok() ? 0 : 1;
    if (!graph.is_ok()) {
      EXPECT_FALSE(graph.status().message().empty());
      EXPECT_EQ(graph.status().message().find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(failed, whole.size() / 2);
  EXPECT_TRUE(import_text(whole).is_ok());
}

TEST(ParseModel, FlippedBytesNeverCrashTheImporter) {
  const std::string whole = loop_model();
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  size_t failed = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = whole;
    for (uint64_t flips = 1 + random.below(3); flips > 0; --flips) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    failed += import_text(bytes).is_ok() ? 0 : 1;
  }
  EXPECT_GT(failed, kRounds / 4u);
}

TEST(ParseModel, EmptyAndForeignFilesAreNotModels) {
  expect_parse_error("", StatusCode::kInvalidArgument, "not an ONNX model");
  expect_parse_error("#!/bin/sh\necho hello\n", StatusCode::kInvalidArgument, "offset 0");
}

TEST(ParseModel, AWrongWireTypeNamesOffsetAndField) {
  WireWriter bad_node;
  bad_node.integer(4, 3);
  const std::string bytes = model(graph({.nodes = {node("Neg", {"a"}, {"b"}), bad_node}}));
  expect_parse_error(bytes, StatusCode::kInvalidArgument,
                     "(graph.node[1].op_type): expected bytes, found a number");
}

TEST(ParseModel, PackedNumbersThatAreCutAreRefused) {
  WireWriter bad;
  bad.bytes(1, "\xff");
  expect_parse_error(model(graph({.initializers = {bad}})), StatusCode::kInvalidArgument,
                     "(graph.initializer[0].dims): the packed numbers are cut off");
  WireWriter odd;
  odd.bytes(4, "abc");
  expect_parse_error(model(graph({.initializers = {odd}})), StatusCode::kInvalidArgument,
                     "packed numbers of 4 bytes each take 3 bytes");
}

TEST(ParseModel, NamesMustBeCleanText) {
  for (const char* name : {"a\nb", "\x7f", "\xff\xfe", "\xc0\x80", "\xed\xa0\x80"}) {
    expect_parse_error(model(graph({.nodes = {node("Neg", {name}, {"b"})}})),
                       StatusCode::kInvalidArgument, "(graph.node[0].input): a name must be UTF-8");
  }
  const std::string fine = model(graph({.nodes = {node("Neg", {"größe/λ:0"}, {"b"})}}));
  EXPECT_TRUE(parse_model(as_bytes(fine), {}).is_ok());
}

TEST(ParseModel, LongNamesAreRefused) {
  expect_parse_error(model(graph({.nodes = {node("Neg", {std::string(20000, 'a')}, {"b"})}})),
                     StatusCode::kResourceExhausted, "a name of 20000 bytes");
}

TEST(ParseModel, DeepNestingIsRefused) {
  const auto nested = [](int depth) {
    WireWriter g = graph({});
    for (int i = 0; i < depth; ++i) {
      g = graph({.nodes = {node("If", {"c"}, {"r"}, {graph_attribute("then_branch", g)})}});
    }
    return model(g);
  };
  EXPECT_TRUE(parse_model(as_bytes(nested(60)), {}).is_ok());
  expect_parse_error(nested(64), StatusCode::kResourceExhausted, "nested more than 64 deep");
}

TEST(ParseModel, DeeplyNestedTypesAreRefused) {
  WireWriter type = type_proto(floats({}), {});
  for (int i = 0; i < 100; ++i) {
    WireWriter layer, outer;
    layer.message(1, type);
    outer.message(4, layer);
    type = outer;
  }
  WireWriter input;
  input.bytes(1, "x");
  input.message(2, type);
  expect_parse_error(model(graph({.inputs = {input}})), StatusCode::kResourceExhausted,
                     "nested more than 64 deep");
}

TEST(ParseModel, TooManyMessagesAreRefused) {
  WireWriter many;
  for (int i = 0; i < 100; ++i) many.bytes(1, "");
  ImportLimits limits;
  limits.max_messages = 50;
  expect_parse_error(model(many), StatusCode::kResourceExhausted, "more than 50 messages", limits);
}

TEST(ParseModel, TwoGraphsAreRefused) {
  WireWriter proto;
  proto.message(7, graph({}));
  proto.message(7, graph({}));
  expect_parse_error(proto.data(), StatusCode::kInvalidArgument, "the model has two graphs");
}

TEST(ParseModel, AnAttributeTypeThatDoesNotExistIsRefused) {
  WireWriter bad;
  bad.bytes(1, "a");
  bad.integer(20, 77);
  expect_parse_error(model(graph({.nodes = {node("Neg", {"x"}, {"y"}, {bad})}})),
                     StatusCode::kInvalidArgument, "attribute type 77 does not exist");
}

}  // namespace
}  // namespace eddy
