// Claim: MatMulNBits with packed weights gives what unpacking, dequantizing and multiplying gives,
// for every mix of bits, blocks, zero points, biases, element types and sizes, on every instruction
// set and in tiles; and what does not fit is refused with its shapes.
#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "ops/cpu/bits_matrix.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr uint64_t kAllConstant = 2 + 4 + 8;

enum class Zeros { kNone, kPacked, kWholeFloats, kFloats };

struct Form {
  Dims a;
  int64_t n = 1, bits = 4, block = 16;
  Zeros zeros = Zeros::kNone;
  bool has_bias = false;
  ElementType element = ElementType::kFloat;
};

TestTensor bytes(const Dims& dims, Random& random) {
  return TestTensor::random(ElementType::kUint8, dims, random, 0, 255);
}

TestTensor whole_numbers(ElementType element, const Dims& dims, Random& random) {
  TestTensor tensor(element, dims);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const auto value = static_cast<float>(random.below(16));
    if (element == ElementType::kFloat) tensor.view().mutable_as<float>()[i] = value;
    if (element == ElementType::kFloat16) tensor.view().mutable_as<Float16>()[i] = Float16(value);
    if (element == ElementType::kBfloat16) {
      tensor.view().mutable_as<Bfloat16>()[i] = Bfloat16(value);
    }
  }
  return tensor;
}

OpCall call_of(const Form& form, Random& random) {
  const int64_t k = form.a[form.a.rank() - 1], blocks = (k + form.block - 1) / form.block;
  OpCall call;
  call.op = "MatMulNBits";
  call.domain = "com.microsoft";
  call.opset = 1;
  call.attributes = {{"K", k}, {"N", form.n}, {"bits", form.bits}, {"block_size", form.block}};
  const auto floats = [&](const Dims& dims, double low, double high) {
    return TestTensor::random(form.element, dims, random, low, high);
  };
  call.inputs = {floats(form.a, -1, 1), bytes({form.n, blocks, form.block * form.bits / 8}, random),
                 floats({form.n, blocks}, 0.01, 0.1)};
  if (form.zeros == Zeros::kPacked) {
    call.inputs.push_back(bytes({form.n, (blocks * form.bits + 7) / 8}, random));
  } else if (form.zeros == Zeros::kWholeFloats) {
    call.inputs.push_back(whole_numbers(form.element, {form.n, blocks}, random));
  } else if (form.zeros == Zeros::kFloats) {
    call.inputs.push_back(floats({form.n, blocks}, 0, 9));
  }
  if (form.has_bias) {
    call.inputs.resize(5, TestValue::omitted());
    call.inputs.push_back(floats({form.n}, -1, 1));
  }
  call.constant_inputs = kAllConstant;
  return call;
}

TEST(MatMulBitsTest, AgreesWithPlainLoopsForEveryFormOfWeights) {
  uint64_t seed = 0;
  for (const int64_t bits : {2, 4, 8}) {
    for (const int64_t block : {16, 64}) {
      for (const Zeros zeros :
           {Zeros::kNone, Zeros::kPacked, Zeros::kWholeFloats, Zeros::kFloats}) {
        for (const auto& [a, n] : std::vector<std::pair<Dims, int64_t>>{{{1, 100}, 65},
                                                                        {{6, 48}, 64},
                                                                        {{7, 49}, 16},
                                                                        {{9, 1100}, 3},
                                                                        {{2, 3, 17}, 33},
                                                                        {{2, 83}, 70},
                                                                        {{3, 81}, 129},
                                                                        {{4, 130}, 20}}) {
          Random random(++seed);
          const bool has_bias = seed % 2 == 0;
          SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(bits) + " bits");
          OpCall call = call_of({a, n, bits, block, zeros, has_bias}, random);
          compare_with_reference(call, 1e-4, 1e-3);
        }
      }
    }
  }
}

// A block's rows stand anywhere: as many of each as a block has, fewer, or (by the plain loops)
// more.
TEST(MatMulBitsTest, GroupsNameTheBlockOfARow) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int64_t bits = int64_t{2} << seed % 3, k = 40 + static_cast<int64_t>(random.below(90));
    const ElementType element = seed % 5 == 0 ? ElementType::kFloat16 : ElementType::kFloat;
    OpCall call = call_of({.a = {1 + static_cast<int64_t>(random.below(9)), k},
                           .n = 70,
                           .bits = bits,
                           .zeros = seed % 2 == 0 ? Zeros::kPacked : Zeros::kNone,
                           .has_bias = seed % 4 < 2,
                           .element = element},
                          random);
    const int64_t blocks = (k + 15) / 16;
    std::vector<int32_t> groups;
    for (int64_t i = 0; i < (seed % 7 == 0 ? blocks * 16 : k); ++i) {
      const auto any = static_cast<int64_t>(random.below(static_cast<uint64_t>(blocks)));
      groups.push_back(static_cast<int32_t>(seed % 3 == 0 ? any : i / 16));
    }
    if (seed % 3 == 1) {
      for (size_t i = groups.size(); i > 1; --i) std::swap(groups[i - 1], groups[random.below(i)]);
    }
    call.inputs.resize(std::max<size_t>(call.inputs.size(), 5), TestValue::omitted());
    call.inputs[4] = TestTensor::of<int32_t>({static_cast<int64_t>(groups.size())}, groups);
    call.constant_inputs = seed % 11 == 0 ? 0 : kAllConstant + 16;
    const double rtol = element == ElementType::kFloat16 ? 1e-3 : 1e-4;
    compare_with_reference(call, rtol, element == ElementType::kFloat16 ? 1e-2 : 1e-3);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(MatMulBitsTest, AGroupThatIsNoBlockIsNamed) {
  Random random(2);
  OpCall call = call_of({.a = {2, 40}, .n = 3}, random);
  std::vector<int32_t> groups(40, 1);
  groups[5] = 3;
  call.inputs.resize(5, TestValue::omitted());
  call.inputs[4] = TestTensor::of<int32_t>({40}, groups);
  for (const uint64_t constant : {uint64_t{0}, kAllConstant + 16}) {
    call.constant_inputs = constant;
    EXPECT_EQ(run_op(call, KernelSet::kCpu).status().message(),
              "g_idx[5] is 3, and there are 3 blocks");
  }
}

TEST(MatMulBitsTest, WeightsThatAreNoConstantsTakeThePlainLoops) {
  Random random(5);
  OpCall call = call_of({.a = {3, 40}, .n = 20, .zeros = Zeros::kPacked}, random);
  call.constant_inputs = 0;
  compare_with_reference(call);
}

TEST(MatMulBitsTest, HalvesAreWidenedAndRoundedOnce) {
  uint64_t seed = 50;
  for (const ElementType element : {ElementType::kFloat16, ElementType::kBfloat16}) {
    const double rtol = element == ElementType::kFloat16 ? 1e-3 : 1e-2;
    for (const Dims& a : {Dims{1, 64}, Dims{3, 2, 100}}) {
      Random random(++seed);
      SCOPED_TRACE("seed " + std::to_string(seed));
      compare_with_reference(call_of({a, 70, 4, 32, Zeros::kPacked, true, element}, random), rtol,
                             rtol);
    }
  }
}

TEST(MatMulBitsTest, LeadingDimensionsMayBeEmptyOrNone) {
  for (const Dims& a : {Dims{0, 32}, Dims{2, 0, 32}, Dims{32}}) {
    SCOPED_TRACE(to_string(a));
    Random random(7);
    compare_with_reference(call_of({.a = a, .n = 5}, random), 1e-4, 1e-3);
  }
}

// Worked out by hand: two columns, one block of 16 weights of which the first three count.
TEST(MatMulBitsTest, TheFirstWeightStandsInTheLowestBits) {
  std::vector<uint8_t> b(16, 0x88);  // zeros: 8 less 8
  b[0] = 0x9a, b[1] = 0x87;          // 2, 1, -1
  b[8] = 0x88, b[9] = 0x8f;          // 0, 0, 7
  OpCall call;
  call.op = "MatMulNBits";
  call.domain = "com.microsoft";
  call.opset = 1;
  call.attributes = {{"K", int64_t{3}}, {"N", int64_t{2}}, {"block_size", int64_t{16}}};
  call.inputs = {TestTensor::of<float>({1, 3}, {1, 10, 100}), TestTensor::of<uint8_t>({2, 1, 8}, b),
                 TestTensor::of<float>({2}, {0.5f, 2})};
  for (const uint64_t constants : {uint64_t{0}, kAllConstant}) {
    call.constant_inputs = constants;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_TRUE(
          is_close(run_one(call, kernels), TestTensor::of<float>({1, 2}, {-44, 1400}), 1e-6, 0));
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
  if (tiles == nullptr) {
    GTEST_SKIP() << "this processor has no such instructions";
  }
  constexpr int64_t kDepth = 70, kColumns = 67, kRows = 9, kBlock = 32, kBlocks = 3;
  constexpr uint64_t kSeed = 11;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  std::vector<uint8_t> b(kColumns * kBlocks * kBlock / 2), zeros(kColumns * kBlocks);
  std::vector<float> a(kRows * kDepth), scales(kColumns * kBlocks), bias(kColumns);
  for (uint8_t& x : b) x = static_cast<uint8_t>(random.below(256));
  for (uint8_t& x : zeros) x = static_cast<uint8_t>(random.below(16));
  for (float& x : a) x = static_cast<float>(random.below(200)) / 100.0f - 1.0f;
  for (float& x : scales) x = static_cast<float>(random.below(100)) / 1000.0f;
  for (float& x : bias) x = static_cast<float>(random.below(100)) / 10.0f;
  const cpu::BitsMatrix matrix({.b = b.data(),
                                .column_step = static_cast<int64_t>(b.size()) / kColumns,
                                .k = kDepth,
                                .n = kColumns,
                                .block = kBlock,
                                .bits = 4,
                                .scales = scales,
                                .zeros = zeros},
                               *tiles);
  std::vector<float> c(kRows * kColumns, NAN), scratch(matrix.scratch_bytes(kRows) / 4);
  for (int64_t panel = matrix.num_panels() - 1; panel >= 0; --panel) {
    matrix.multiply(kRows, a.data(), panel, bias.data(), c.data() + panel * matrix.panel_width(),
                    kColumns, scratch.data());
  }
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = bias[j];
      for (int64_t k = 0; k < kDepth; ++k) {
        const int pair = b[(j * kBlocks * kBlock + k) / 2];
        const int weight = k % 2 == 0 ? pair % 16 : pair / 16;
        const int64_t block = j * kBlocks + k / kBlock;
        sum += a[i * kDepth + k] * double{scales[block]} * (weight - zeros[block]);
      }
      EXPECT_NEAR(c[i * kColumns + j], sum, 1e-3) << i << "," << j;
    }
  }
}

std::string refusal(const OpCall& call) {
  const auto types = infer_op(call);
  return types.is_ok() ? "accepted" : types.status().message();
}

TEST(MatMulBitsTest, WhatDoesNotFitIsRefusedByName) {
  Random random(3);
  const OpCall valid =
      call_of({.a = {2, 40}, .n = 3, .zeros = Zeros::kPacked, .has_bias = true}, random);
  EXPECT_EQ(refusal(valid), "accepted");
  const auto with = [&](const char* name, int64_t value) {
    OpCall call = valid;
    call.attributes.set(name, value);
    return refusal(call);
  };
  EXPECT_EQ(with("bits", 3), "attribute bits of MatMulNBits must be 2, 4 or 8, not 3");
  EXPECT_EQ(with("block_size", 24),
            "attribute block_size of MatMulNBits must be a power of 2 of 16 to 1073741824, not 24");
  EXPECT_EQ(with("block_size", 8),
            "attribute block_size of MatMulNBits must be a power of 2 of 16 to 1073741824, not 8");
  EXPECT_EQ(with("N", 0), "attribute N of MatMulNBits must lie in 1 to 2147483647, not 0");
  EXPECT_EQ(with("K", -1), "attribute K of MatMulNBits must lie in 1 to 2147483647, not -1");
  EXPECT_EQ(with("K", INT64_MAX),
            "attribute K of MatMulNBits must lie in 1 to 2147483647, not 9223372036854775807");
  EXPECT_EQ(with("accuracy_level", 5),
            "attribute accuracy_level of MatMulNBits must be 0 to 4, not 5");
  EXPECT_EQ(with("weight_prepacked", 1),
            "attribute weight_prepacked of MatMulNBits must be 0: export the weights as they are "
            "packed in files");
  EXPECT_EQ(with("N", 4),
            "B of MatMulNBits must hold 24 for each of 4 columns, not be of shape [3,3,8]");
  EXPECT_EQ(with("K", 41),
            "A of MatMulNBits must have 41 columns, as K says, not the shape [2,40]");
  const auto replaced = [&](size_t i, const TestValue& value) {
    OpCall call = valid;
    call.inputs[i] = value;
    return refusal(call);
  };
  EXPECT_EQ(replaced(2, TestTensor(ElementType::kFloat, {4, 3})),
            "scales of MatMulNBits must hold 3 for each of 3 columns, not be of shape [4,3]");
  EXPECT_EQ(replaced(2, TestTensor(ElementType::kFloat16, {3, 3})),
            "scales of MatMulNBits must be float like A, not float16");
  EXPECT_EQ(replaced(3, bytes({3, 3}, random)),
            "zero_points of MatMulNBits must hold 2 for each of 3 columns, not be of shape [3,3]");
  EXPECT_EQ(replaced(4, TestTensor(ElementType::kInt32, {41})),
            "g_idx of MatMulNBits must name a block for each of 40 rows, not be of shape [41]");
  EXPECT_EQ(replaced(5, TestTensor(ElementType::kFloat, {4})),
            "bias of MatMulNBits must hold 1 for each of 3 columns, not be of shape [4]");
}

}  // namespace
}  // namespace eddy::testing
