// Claim: DequantizeMatMul with weights in bytes gives what dequantizing and multiplying gives, for
// every mix of signs, scales, zero points and sizes, on every instruction set.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "ops/cpu/bits_matrix.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr ElementType kBytes[] = {ElementType::kUint8, ElementType::kInt8};

TestTensor bytes(ElementType element, const Dims& dims, Random& random) {
  const bool is_signed = element == ElementType::kInt8;
  return TestTensor::random(element, dims, random, is_signed ? -128 : 0, is_signed ? 127 : 255);
}
TestTensor floats(const Dims& dims, Random& random) {
  return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
}

OpCall call_of(const Dims& a, const Dims& b, ElementType element, bool by_column, bool has_zero,
               Random& random) {
  OpCall call;
  call.op = "DequantizeMatMul";
  call.domain = "eddy";
  call.opset = 1;
  const Dims each = by_column ? Dims{b[1]} : Dims{};
  call.inputs = {floats(a, random), bytes(element, b, random), floats(each, random)};
  if (has_zero) call.inputs.push_back(bytes(element, each, random));
  return call;
}

TEST(DequantizeMatMulTest, AgreesWithPlainLoopsForEveryFormOfWeights) {
  uint64_t seed = 0;
  for (ElementType element : kBytes) {
    for (int form = 0; form < 4; ++form) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 65, 9},
                                    {1, 130, 101},
                                    {6, 64, 48},
                                    {7, 16, 49},
                                    {13, 1, 1030},
                                    {2, 33, 1}}) {
        SCOPED_TRACE("seed " + std::to_string(++seed));
        Random random(seed);
        OpCall call = call_of({m, k}, {k, n}, element, form % 2 == 1, form >= 2, random);
        for (uint64_t constants : {0, 2 + 4 + 8}) {
          call.constant_inputs = constants;
          compare_with_reference(call, 1e-4, 1e-2);
        }
      }
    }
  }
}

TEST(DequantizeMatMulTest, LeadingDimensionsOfAAreRowsAndAnyMayBeEmpty) {
  for (const auto& [a, b] : std::vector<std::pair<Dims, Dims>>{{{5}, {5, 4}},
                                                               {{2, 3, 5}, {5, 4}},
                                                               {{0, 5}, {5, 4}},
                                                               {{2, 0}, {0, 4}},
                                                               {{2, 5}, {5, 0}}}) {
    SCOPED_TRACE(to_string(a) + " times " + to_string(b));
    Random random(7);
    OpCall call = call_of(a, b, ElementType::kUint8, true, true, random);
    for (uint64_t constants : {0, 2 + 4 + 8}) {
      call.constant_inputs = constants;
      compare_with_reference(call, 1e-4, 1e-2);
    }
  }
}

// Each instruction set is a test by itself, so that one that this processor lacks is reported as
// skipped and not as passed.
class InstructionSetTest : public ::testing::TestWithParam<cpu::Isa> {};

INSTANTIATE_TEST_SUITE_P(, InstructionSetTest,
                         ::testing::Values(cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512),
                         [](const auto& info) {
                           return std::string(info.param == cpu::Isa::kBaseline ? "baseline"
                                              : info.param == cpu::Isa::kAvx2   ? "avx2"
                                                                                : "avx512");
                         });

TEST_P(InstructionSetTest, AgreesWithPlainLoops) {
  const cpu::TileKernels* tiles = cpu::tile_kernels_or_null(GetParam());
  if (tiles == nullptr) GTEST_SKIP() << "this processor has no such instructions";
  constexpr int64_t kDepth = 70, kColumns = 67;
  Random random(11);
  std::vector<uint8_t> b(kDepth * kColumns), zeros(kColumns);
  std::vector<float> scales(kColumns);
  for (uint8_t& x : b) x = static_cast<uint8_t>(random.below(256));
  for (uint8_t& x : zeros) x = static_cast<uint8_t>(random.below(256));
  for (float& x : scales) x = static_cast<float>(random.below(100)) / 1000.0f;
  const cpu::BitsMatrix matrix({.b = b.data(),
                                .row_step = kColumns,
                                .column_step = 1,
                                .k = kDepth,
                                .n = kColumns,
                                .block = kDepth,
                                .bits = 8,
                                .scales = scales,
                                .zeros = zeros},
                               *tiles);
  for (const int64_t rows : {1, 2, 3, 4, 9}) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    std::vector<float> a(static_cast<size_t>(rows * kDepth));
    for (float& x : a) x = static_cast<float>(random.below(200)) / 100.0f - 1.0f;
    std::vector<float> c(static_cast<size_t>(rows * kColumns), NAN);
    std::vector<float> scratch(matrix.scratch_bytes(rows) / 4);
    for (int64_t panel = 0; panel < matrix.num_panels(); ++panel) {
      matrix.multiply(rows, a.data(), panel, nullptr, c.data() + panel * matrix.panel_width(),
                      kColumns, scratch.data());
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) {
          const auto at = static_cast<size_t>(j);
          sum += a[static_cast<size_t>(i * kDepth + k)] *
                 (b[static_cast<size_t>(k * kColumns + j)] - zeros[at]) * double{scales[at]};
        }
        EXPECT_NEAR(c[static_cast<size_t>(i * kColumns + j)], sum, 1e-2) << i << "," << j;
      }
    }
  }
}

void expect_refused(const OpCall& call, const std::string& words) {
  const auto types = infer_op(call);
  ASSERT_FALSE(types.is_ok());
  EXPECT_NE(types.status().to_string().find(words), std::string::npos)
      << types.status().to_string();
}

TEST(DequantizeMatMulTest, WhatDoesNotFitIsRefusedWithItsShapes) {
  Random random(3);
  OpCall call = call_of({2, 5}, {4, 3}, ElementType::kUint8, false, true, random);
  expect_refused(call, "A has 5 columns but B has 4 rows");
  call = call_of({2, 5}, {5, 3}, ElementType::kUint8, true, true, random);
  call.inputs[2] = floats({4}, random);
  expect_refused(call, "the scale of DequantizeMatMul must be one value or one for each column");
  call.inputs[2] = floats({}, random);
  expect_refused(call, "equally many");
  call.inputs[3] = bytes(ElementType::kInt8, {}, random);
  expect_refused(call, "must be uint8 like B, not int8");
}

}  // namespace
}  // namespace eddy::testing
