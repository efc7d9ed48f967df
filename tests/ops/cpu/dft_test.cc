// Claim: the fast DFT and STFT give the sums that define them, for lengths of every kind (powers,
// products of small factors, primes), every axis, cut and filled lines, halves of spectra and their
// way back; and a transform there and back is the line itself.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ops/cpu/fourier/fourier.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using cpu::Complex;
using cpu::Fourier;

TestTensor scalar(int64_t value) { return TestTensor::of<int64_t>({}, {value}); }

OpCall dft(const Dims& dims, Random& random, int64_t axis, Attributes attributes = {}) {
  OpCall call;
  call.op = "DFT";
  call.opset = 20;
  call.inputs = {TestTensor::random(ElementType::kFloat, dims, random, -1, 1), TestValue::omitted(),
                 scalar(axis)};
  call.attributes = std::move(attributes);
  call.constant_inputs = 6;
  return call;
}

TEST(FourierTest, EveryLengthGivesTheSumsThatDefineItsBins) {
  Random random(1);
  for (int64_t n = 1; n <= 130; ++n) {
    for (const bool is_inverse : {false, true}) {
      std::vector<Complex> x(static_cast<size_t>(n));
      for (Complex& value : x) value = {random.uniform(-1, 1), random.uniform(-1, 1)};
      const Fourier plan(n, is_inverse);
      std::vector<Complex> y = x, scratch(static_cast<size_t>(plan.scratch_count()));
      plan.transform(y.data(), scratch.data());
      for (int64_t k = 0; k < n; ++k) {
        double real = 0, imaginary = 0;
        for (int64_t j = 0; j < n; ++j) {
          const double angle = (is_inverse ? 2 : -2) * std::numbers::pi *
                               static_cast<double>(j * k % n) / static_cast<double>(n);
          const Complex value = x[static_cast<size_t>(j)];
          real += value.real * std::cos(angle) - value.imaginary * std::sin(angle);
          imaginary += value.real * std::sin(angle) + value.imaginary * std::cos(angle);
        }
        ASSERT_NEAR(y[static_cast<size_t>(k)].real, real, 1e-12) << n << ", bin " << k;
        ASSERT_NEAR(y[static_cast<size_t>(k)].imaginary, imaginary, 1e-12) << n << ", bin " << k;
      }
    }
  }
}

TEST(FourierTest, ThereAndBackIsTheLineItself) {
  Random random(2);
  for (const int64_t n : {4096, 30 * 31, 10'007, 2 * 3 * 37, 7 * 7 * 7 * 11}) {
    std::vector<Complex> x(static_cast<size_t>(n));
    for (Complex& value : x) value = {random.uniform(-1, 1), random.uniform(-1, 1)};
    std::vector<Complex> y = x;
    for (const bool is_inverse : {false, true}) {
      const Fourier plan(n, is_inverse);
      std::vector<Complex> scratch(static_cast<size_t>(plan.scratch_count()));
      plan.transform(y.data(), scratch.data());
    }
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(y[i].real / static_cast<double>(n), x[i].real, 1e-12) << n;
      ASSERT_NEAR(y[i].imaginary / static_cast<double>(n), x[i].imaginary, 1e-12) << n;
    }
  }
}

TEST(DftCpuTest, LinesOfEveryAxisAgreeWithPlainLoops) {
  Random random(3);
  for (const int64_t parts : {1, 2}) {
    for (const int64_t axis : {0, 1, 2, -2}) {
      for (const int64_t inverse : {0, 1}) {
        compare_with_reference(dft({5, 12, 7, parts}, random, axis, {{"inverse", inverse}}), 1e-5,
                               1e-5);
      }
    }
  }
}

TEST(DftCpuTest, LinesAreCutOrFilledAndSpectraHalved) {
  Random random(4);
  for (const int64_t length : {1, 2, 9, 20, 37}) {
    OpCall call = dft({3, 20, 2}, random, 1);
    call.inputs[1] = scalar(length);
    compare_with_reference(call, 1e-5, 1e-5);
    OpCall half = dft({3, 20, 1}, random, 1, {{"onesided", int64_t{1}}});
    half.inputs[1] = scalar(length);
    compare_with_reference(half, 1e-5, 1e-5);
    OpCall back = dft({3, 11, 2}, random, 1, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
    back.inputs[1] = scalar(length);
    compare_with_reference(back, 1e-5, 1e-5);
  }
}

TEST(StftCpuTest, FramesAgreeWithPlainLoopsWithAndWithoutAWindow) {
  Random random(5);
  for (const int64_t frame : {1, 16, 25, 37}) {
    for (const int64_t parts : {1, 2}) {
      OpCall call;
      call.op = "STFT";
      call.inputs = {TestTensor::random(ElementType::kFloat, {2, 100, parts}, random, -1, 1),
                     scalar(7), TestValue::omitted(), scalar(frame)};
      call.attributes = {{"onesided", int64_t{parts == 1}}};
      call.constant_inputs = 2 + 8;
      compare_with_reference(call, 1e-5, 1e-5);
      call.inputs[2] = TestTensor::random(ElementType::kFloat, {frame}, random, 0, 1);
      compare_with_reference(call, 1e-5, 1e-5);
    }
  }
}

}  // namespace
}  // namespace eddy::testing
