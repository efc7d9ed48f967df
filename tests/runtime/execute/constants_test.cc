// Claim: constants that kernels have packed let go of their bytes, those that are still read do
// not, and results are the same.
#include <gtest/gtest.h>

#include "graph/io/export.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

constexpr int64_t kDepth = 64, kColumns = 128;

class ConstantsTest : public testing::Test {
 protected:
  ConstantsTest() {
    for (int64_t i = 0; i < kDepth * kColumns; ++i) {
      weights_.push_back(static_cast<float>(i % 17) - 8.0f);
    }
    for (int64_t i = 0; i < kDepth; ++i) row_.push_back(static_cast<float>(i % 5));
  }

  // Both branches multiply by weights of equal bytes.
  std::unique_ptr<Session> make(bool release_constants = true) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kDepth}));
    const Value weights = b.tensor<float>({kDepth, kColumns}, weights_);
    const Value again = b.tensor<float>({kDepth, kColumns}, weights_);
    const auto y = b.if_else(
        b.input("which", tensor_type(ElementType::kBool, {})),
        [&] {
          return std::vector<Value>{b.op("MatMul", {x, weights})};
        },
        [&] {
          return std::vector<Value>{b.op("Neg", {b.op("MatMul", {x, again})})};
        });
    b.output("y", y[0]);
    SessionOptions options;
    options.num_threads = 1;
    options.release_constants = release_constants;
    auto session = Session::create(library_, std::move(*b.finish()), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }

  std::vector<float> run(Session& session, bool which) {
    auto outputs = session.run(
        {{"x", Tensor::of<float>({1, kDepth}, row_)}, {"which", Tensor::scalar(which)}});
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    const auto values = (*outputs)[0].second.values<float>();
    return {values.begin(), values.end()};
  }

  // How many constants are weights, and of how many of them the bytes are there.
  static std::pair<int, int> weights_with_bytes(const Session& session) {
    std::pair<int, int> counts;
    for (uint32_t c = 0; c < session.graph().num_constants(); ++c) {
      const Constant& constant = session.graph().constant(ConstantId(c));
      if (constant.dims.rank() != 2) continue;
      ++counts.first;
      counts.second += constant.data != nullptr ? 1 : 0;
    }
    return counts;
  }

  float expected(int64_t column) const {
    float sum = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      sum += row_[static_cast<size_t>(k)] * weights_[static_cast<size_t>(k * kColumns + column)];
    }
    return sum;
  }

  Library library_;
  std::vector<float> weights_, row_;
};

TEST_F(ConstantsTest, PackedWeightsAreGoneAndProductsAreRight) {
  auto session = make();
  EXPECT_EQ(weights_with_bytes(*make(/*release_constants=*/false)), (std::pair{2, 2}));
  EXPECT_EQ(weights_with_bytes(*session), (std::pair{2, 0}));
  for (int64_t j : {0, 1, 77, 127}) {
    EXPECT_EQ(run(*session, true)[static_cast<size_t>(j)], expected(j));
    EXPECT_EQ(run(*session, false)[static_cast<size_t>(j)], -expected(j));
  }
}

TEST_F(ConstantsTest, WeightsThatAreStillReadStay) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kDepth}));
  const Value weights = b.tensor<float>({kDepth, kColumns}, weights_);
  b.output("y", b.op("MatMul", {x, weights}));
  b.output("row", b.op("Gather", {weights, b.input("i", tensor_type(ElementType::kInt64, {}))}));
  b.output("weights", weights);
  auto session = Session::create(library_, std::move(*b.finish()), {.num_threads = 1});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  auto outputs = (*session)->run(
      {{"x", Tensor::of<float>({1, kDepth}, row_)}, {"i", Tensor::scalar<int64_t>(3)}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ((*outputs)[0].second.values<float>()[5], expected(5));
  EXPECT_EQ((*outputs)[1].second.values<float>()[7], weights_[3 * kColumns + 7]);
  EXPECT_EQ((*outputs)[2].second.values<float>()[kColumns], weights_[kColumns]);
}

// More than Executable lets stay in memory at once while it packs.
TEST_F(ConstantsTest, AFilesWeightsMayLeaveWhileOthersArePacked) {
  constexpr int64_t kSize = 1024, kLayers = 6;
  const auto build = [this] {
    GraphBuilder b(library_.ops());
    Value x = b.input("x", tensor_type(ElementType::kFloat, {1, kSize}));
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float> weights(kSize * kSize);
      for (int64_t k = 0; k < kSize; ++k) weights[k * kSize + (k + layer + 1) % kSize] = 2;
      x = b.op("MatMul", {x, b.tensor<float>({kSize, kSize}, weights)});
    }
    b.output("y", x);
    return std::move(*b.finish());
  };
  const std::string path = testing::TempDir() + "weights_that_leave.onnx";
  ASSERT_TRUE(export_onnx(build(), path).is_ok());
  auto session = Session::load(library_, path, {.num_threads = 1});
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  std::vector<float> x(kSize);
  x[5] = 1;
  for (int round = 0; round < 2; ++round) {
    auto outputs = (*session)->run({{"x", Tensor::of<float>({1, kSize}, x)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    const auto y = (*outputs)[0].second.values<float>();
    for (int64_t i = 0; i < kSize; ++i) {  // each layer doubles, and turns by its number and one
      EXPECT_EQ(y[static_cast<size_t>(i)], i == 5 + kLayers * (kLayers + 1) / 2 ? 64 : 0) << i;
    }
  }
}

TEST_F(ConstantsTest, AGraphThatHasLetGoIsNotExported) {
  const auto session = make();
  const auto file = format_onnx(session->graph());
  ASSERT_FALSE(file.is_ok());
  EXPECT_NE(file.status().to_string().find("float[64,128] has let go of its bytes"),
            std::string::npos)
      << file.status().to_string();
}

}  // namespace
}  // namespace eddy
