// Claim: every network, small, gives on a session what the reference kernels give, node after node,
// with whatever seed, also read back from a file; its values are of moderate size and depend on its
// inputs; the decoder writes the same tokens, and stops where it wants to.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "examples/nets/net.h"
#include "graph/io/export.h"
#include "ops/reference/reference_kernels.h"
#include "runtime/api/session.h"
#include "tools/check/oracle.h"
#include "tools/command/compare.h"

namespace eddy::nets {
namespace {

constexpr Tolerance kTolerance = {.rtol = 1e-4, .atol = 1e-5};
constexpr uint64_t kSeeds[] = {1, 2, 3};

class NetsTest : public ::testing::TestWithParam<Recipe> {
 protected:
  NetsTest() { add_reference_kernels(reference_); }

  Net build(uint64_t seed) {
    auto net = GetParam().build(library_.ops(), Scale::kSmall, seed);
    EDDY_CHECK(net.is_ok()) << net.status().to_string();
    return std::move(*net);
  }

  static NamedTensors borrow(const Net& net) {
    NamedTensors inputs;
    for (const auto& [name, value] : net.inputs) {
      inputs.emplace_back(name, Tensor::borrow(value.view()));
    }
    return inputs;
  }

  NamedTensors expected(const Net& net, const NamedTensors& inputs) {
    auto result = check::interpret(net.graph, library_, inputs,
                                   {.record_executions = false, .kernels_or_null = &reference_});
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
    return result.is_ok() ? std::move(result->outputs) : NamedTensors();
  }

  // As `eddy bench nets` makes it: everything on.
  static SessionOptions options(int threads) {
    SessionOptions options;
    options.num_threads = threads;
    options.folds_norms = true;
    return options;
  }

  static void expect_outputs(Result<std::unique_ptr<Session>> session, const NamedTensors& inputs,
                             const NamedTensors& wanted) {
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    auto found = (*session)->run(inputs);
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto difference =
          find_difference((*found)[i].second.view(), wanted[i].second.view(), kTolerance);
      EXPECT_FALSE(difference) << wanted[i].first << ": " << *difference;
    }
  }

  const Library library_;
  KernelRegistry reference_;
};

TEST_P(NetsTest, GivesOnASessionWhatTheReferenceGives) {
  for (const uint64_t seed : kSeeds) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Net net = build(seed);
    const NamedTensors inputs = borrow(net);
    const NamedTensors wanted = expected(net, inputs);
    for (const int threads : {1, 2}) {
      expect_outputs(Session::create(library_, net.graph.copy(), options(threads)), inputs, wanted);
    }
  }
}

TEST_P(NetsTest, GivesTheSameReadBackFromAFile) {
  const Net net = build(kSeeds[0]);
  const std::string path = ::testing::TempDir() + "/" + GetParam().name + ".onnx";
  const Status status = export_onnx(net.graph, path);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  expect_outputs(Session::load(library_, path, options(1)), borrow(net),
                 expected(net, borrow(net)));
}

// Otherwise wrong results would look like right ones.
TEST_P(NetsTest, HasOutputsOfModerateSizeThatDependOnInputsAndSeed) {
  const Net net = build(1);
  const Net other = build(2);
  const NamedTensors outputs = expected(net, borrow(net));
  const NamedTensors of_other_inputs = expected(net, borrow(other));
  const NamedTensors of_other_weights = expected(other, borrow(net));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i].second;
    EXPECT_TRUE(find_difference(output.view(), of_other_inputs[i].second.view(), {.rtol = 0.01}))
        << outputs[i].first;
    EXPECT_TRUE(find_difference(output.view(), of_other_weights[i].second.view(), {.rtol = 0.01}))
        << outputs[i].first;
    if (output.element_type() != ElementType::kFloat) continue;
    double sum = 0;
    for (const float value : output.values<float>()) sum += double{value} * double{value};
    const double size = std::sqrt(sum / static_cast<double>(*output.dims().count()));
    EXPECT_GT(size, 0.1) << outputs[i].first;
    EXPECT_LT(size, 10) << outputs[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NetsTest, ::testing::ValuesIn(all_nets()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Decoder, EndsWithItsEndOrAtItsLimit) {
  constexpr size_t kLimit = 12;
  const Library library;
  std::set<size_t> lengths;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    auto net = decoder(library.ops(), Scale::kSmall, seed);
    ASSERT_TRUE(net.is_ok()) << net.status().to_string();
    const NamedTensors inputs = {{"start", Tensor::borrow(net->inputs[0].second.view())}};
    auto session = Session::create(library, std::move(net->graph), {});
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    auto outputs = (*session)->run(inputs);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    const auto tokens = (*outputs)[0].second.values<int64_t>();
    ASSERT_FALSE(tokens.empty());
    EXPECT_LE(tokens.size(), kLimit);
    for (size_t i = 0; i + 1 < tokens.size(); ++i) EXPECT_NE(tokens[i], 0) << "seed " << seed;
    if (tokens.size() < kLimit) {
      EXPECT_EQ(tokens.back(), 0) << "seed " << seed;
    }
    lengths.insert(tokens.size());
  }
  EXPECT_TRUE(lengths.contains(kLimit)) << ::testing::PrintToString(lengths);
  EXPECT_GE(lengths.size(), 3u) << ::testing::PrintToString(lengths);
}

}  // namespace
}  // namespace eddy::nets
