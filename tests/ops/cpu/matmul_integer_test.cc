// MatMulInteger is exact: for every mix of signed and unsigned operands, every form of zero
// point, and on every instruction set, extreme values included (where 255 * 127 sums saturate on
// processors without VNNI).
#include <array>

#include <gtest/gtest.h>

#include "ops/cpu/byte_matrix.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

TestTensor bytes(ElementType element, const Dims& dims, Random& random) {
  const bool is_signed = element == ElementType::kInt8;
  return TestTensor::random(element, dims, random, is_signed ? -128 : 0, is_signed ? 127 : 255);
}

constexpr ElementType kBytes[] = {ElementType::kUint8, ElementType::kInt8};

TEST(MatMulIntegerTest, AgreesForEveryMixOfSignsAndZeroPoints) {
  uint64_t seed = 0;
  for (ElementType a : kBytes) {
    for (ElementType b : kBytes) {
      for (int zeros = 0; zeros < 9; ++zeros) {
        for (const auto& [m, n, k] :
             {std::array<int64_t, 3>{1, 65, 9}, {7, 16, 32}, {13, 130, 31}}) {
          SCOPED_TRACE("seed " + std::to_string(++seed) + " zeros " + std::to_string(zeros));
          Random random(seed);
          OpCall call;
          call.op = "MatMulInteger";
          call.inputs = {bytes(a, {m, k}, random), bytes(b, {k, n}, random)};
          const auto zero = [&](int kind, ElementType element, int64_t count) -> TestValue {
            if (kind == 0) return TestValue::omitted();
            return kind == 1 ? bytes(element, {}, random) : bytes(element, {count}, random);
          };
          call.inputs.push_back(zero(zeros % 3, a, m));
          call.inputs.push_back(zero(zeros / 3, b, n));
          for (uint64_t constants : {0, 2}) {
            call.constant_inputs = constants;
            compare_with_reference(call);
          }
        }
      }
    }
  }
}

TEST(MatMulIntegerTest, BatchesBroadcastAsInNumpy) {
  for (const auto& [a, b] : std::vector<std::pair<Dims, Dims>>{{{3, 2, 5}, {5, 4}},
                                                               {{3, 2, 5}, {3, 5, 4}},
                                                               {{2, 5}, {3, 5, 4}},
                                                               {{5}, {5, 4}},
                                                               {{2, 5}, {5}},
                                                               {{0, 5}, {5, 4}},
                                                               {{2, 0}, {0, 4}},
                                                               {{2, 1, 2, 5}, {3, 5, 4}}}) {
    SCOPED_TRACE(to_string(a) + " times " + to_string(b));
    Random random(5);
    OpCall call;
    call.op = "MatMulInteger";
    call.inputs = {bytes(ElementType::kUint8, a, random), bytes(ElementType::kInt8, b, random),
                   bytes(ElementType::kUint8, {}, random)};
    for (uint64_t constants : {0, 2}) {
      call.constant_inputs = constants;
      compare_with_reference(call);
    }
  }
}

// Each instruction set is a test by itself, so that one that this processor lacks is reported as
// skipped and not as passed.
class InstructionSetTest : public ::testing::TestWithParam<cpu::ByteIsa> {
 protected:
  void SetUp() override {
    tiles_ = cpu::byte_tile_kernels_or_null(GetParam());
    if (tiles_ == nullptr) GTEST_SKIP() << "this processor has no such instructions";
  }
  const cpu::ByteTileKernels* tiles_ = nullptr;
};

std::string isa_name(const ::testing::TestParamInfo<cpu::ByteIsa>& info) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512vnni", "amx"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(, InstructionSetTest,
                         ::testing::Values(cpu::ByteIsa::kBaseline, cpu::ByteIsa::kAvx2,
                                           cpu::ByteIsa::kAvx512Vnni, cpu::ByteIsa::kAmx),
                         isa_name);

TEST_P(InstructionSetTest, IsExactAtTheExtremes) {
  const int64_t m = 35, n = 37, k = 301;
  const std::vector<uint8_t> a(static_cast<size_t>(m * k), 255);
  for (int8_t value : {int8_t{127}, int8_t{-128}}) {
    const std::vector<int8_t> b(static_cast<size_t>(k * n), value);
    std::vector<int32_t> memory(cpu::ByteMatrix::size_bytes(k, n, *tiles_) / 4 + 1);
    const cpu::ByteMatrix matrix =
        cpu::ByteMatrix::pack(b.data(), true, k, n, memory.data(), *tiles_);
    std::vector<int32_t> scratch(matrix.scratch_bytes(m) / 4 + 1);
    std::vector<int32_t> c(static_cast<size_t>(m * n));
    matrix.multiply({.m = m, .a = a.data(), .c = c.data(), .scratch = scratch.data()});
    for (int32_t sum : c) ASSERT_EQ(sum, 255 * value * k);
  }
}

TEST_P(InstructionSetTest, AgreesOnRandomShapes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const auto size = [&](uint64_t bound) { return static_cast<int64_t>(1 + random.below(bound)); };
    const int64_t m = size(seed % 4 == 0 ? 70 : 15), n = size(150), k = size(seed > 30 ? 260 : 80);
    OpCall call;
    call.op = "MatMulInteger";
    call.inputs = {bytes(kBytes[seed % 2], {m, k}, random),
                   bytes(kBytes[seed / 2 % 2], {k, n}, random), bytes(kBytes[seed % 2], {}, random),
                   bytes(kBytes[seed / 2 % 2], {n}, random)};
    const TestTensor expected = run_one(call, KernelSet::kReference);
    const auto input = [&](size_t i) { return call.inputs[i].tensor().view(); };
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool a_signed = seed % 2, b_signed = seed / 2 % 2;
    std::vector<int32_t> memory(cpu::ByteMatrix::size_bytes(k, n, *tiles_) / 4 + 1);
    const cpu::ByteMatrix matrix =
        cpu::ByteMatrix::pack(input(1).data, b_signed, k, n, memory.data(), *tiles_);
    std::vector<int32_t> scratch(matrix.scratch_bytes(m) / 4 + 1);
    TestTensor actual(ElementType::kInt32, {m, n});
    matrix.multiply({.m = m,
                     .a = input(0).data,
                     .a_is_signed = a_signed,
                     .a_zero = {input(2).data, a_signed, 1},
                     .b_zero = {input(3).data, b_signed, n},
                     .c = actual.view().mutable_as<int32_t>(),
                     .scratch = scratch.data()});
    EXPECT_TRUE(is_same_bits(actual, expected));
  }
}

TEST(MatMulIntegerTest, SaysWhatIsWrongWithAZeroPoint) {
  Random random(1);
  OpCall call;
  call.op = "MatMulInteger";
  call.inputs = {bytes(ElementType::kUint8, {2, 3}, random),
                 bytes(ElementType::kInt8, {3, 4}, random), bytes(ElementType::kInt8, {}, random)};
  EXPECT_EQ(infer_op(call).status().message(),
            "a_zero_point must be uint8 like its matrix, not int8");
  call.inputs[2] = bytes(ElementType::kUint8, {3}, random);
  EXPECT_EQ(infer_op(call).status().message(),
            "a_zero_point must be a scalar or hold one value for each row of A, not [3]");
}

}  // namespace
}  // namespace eddy::testing
