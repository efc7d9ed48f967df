// Every tile set of this processor, not only the best: products agree with plain loops around all
// edges, gate functions stay within four units in the last place, and a product has the same bits
// wherever its operands lie.
#include "ops/cpu/tile/tile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "ops/cpu/gemm.h"

namespace eddy::cpu {
namespace {

std::vector<const TileKernels*> all_sets() {
  std::vector<const TileKernels*> sets;
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (const TileKernels* set = tile_kernels_or_null(isa)) sets.push_back(set);
  }
  return sets;
}

std::vector<float> random_floats(int64_t count, Random& random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = random.uniform(-1.0f, 1.0f);
  return values;
}

TEST(TileTest, PackedProductsAgreeOnEverySet) {
  for (const TileKernels* tiles : all_sets()) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(std::string(tiles->name) + " seed " + std::to_string(seed));
      Random random(seed);
      const auto size = [&](uint64_t bound) { return static_cast<int64_t>(random.below(bound)); };
      const int64_t m = size(40), n = size(140), k = size(40);
      const std::vector<float> a = random_floats(m * k, random), b = random_floats(k * n, random);
      const std::vector<float> bias = random_floats(n, random);
      std::vector<float> c = random_floats(m * n, random), expected = c;
      const bool accumulate = seed % 2;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = bias[static_cast<size_t>(j)];
          if (accumulate) sum += c[static_cast<size_t>(i * n + j)];
          for (int64_t p = 0; p < k; ++p) {
            sum += static_cast<double>(a[static_cast<size_t>(i * k + p)]) *
                   b[static_cast<size_t>(p * n + j)];
          }
          expected[static_cast<size_t>(i * n + j)] = static_cast<float>(sum);
        }
      }
      const PackedMatrix packed(b.data(), k, n, n, 1, *tiles);
      packed.multiply({.m = m,
                       .a = a.data(),
                       .a_row = k,
                       .c = c.data(),
                       .c_row = n,
                       .bias_or_null = bias.data(),
                       .accumulate = accumulate});
      for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], expected[i], 1e-5) << i;
    }
  }
}

// Of the set that this processor has: rows of B end where its columns do.
TEST(TileTest, ProductsOfMatricesThatAreNotPackedAgree) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto size = [&](uint64_t bound) { return static_cast<int64_t>(random.below(bound)) + 1; };
    const int64_t m = size(40), n = size(70), k = size(40);
    const std::vector<float> a = random_floats(m * k, random), b = random_floats(k * n, random);
    std::vector<float> c(static_cast<size_t>(m * n));
    gemm({.m = m,
          .n = n,
          .k = k,
          .a = a.data(),
          .a_row = k,
          .b = b.data(),
          .b_row = n,
          .c = c.data(),
          .c_row = n});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(a[static_cast<size_t>(i * k + p)]) *
                 b[static_cast<size_t>(p * n + j)];
        }
        ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, 1e-5) << i << ", " << j;
      }
    }
  }
}

TEST(TileTest, DotProductsSumsAndRowsAgreeOnEverySet) {
  for (const TileKernels* tiles : all_sets()) {
    Random random(7);
    for (int64_t n : {0, 1, 3, 4, 15, 16, 17, 64, 100, 129}) {
      SCOPED_TRACE(std::string(tiles->name) + " size " + std::to_string(n));
      const int64_t rows = 7;
      const std::vector<float> a = random_floats(rows * n, random), x = random_floats(n, random);
      std::vector<float> y(static_cast<size_t>(rows), 0.5f);
      tiles->dot_rows(rows, n, a.data(), n, x.data(), y.data(), y.data());
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < rows; ++i) {
        double expected = 0.5;
        for (size_t k = 0; k < x.size(); ++k) {
          expected += static_cast<double>(a[static_cast<size_t>(i * n) + k]) * x[k];
        }
        EXPECT_NEAR(y[static_cast<size_t>(i)], expected, 1e-5);
      }
      for (float v : x) sum += v;
      for (float v : x) squares += (v - 0.25) * (v - 0.25);
      EXPECT_NEAR(tiles->sum(x.data(), n), sum, 1e-5);
      EXPECT_NEAR(tiles->sum_squares(x.data(), 0.25f, n), squares, 1e-4);
    }
  }
}

// Distance in units in the last place of the expected value.
double ulps(float actual, double expected) {
  const float rounded = static_cast<float>(expected);
  const double unit = static_cast<double>(
      std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity()) -
      std::abs(rounded));
  return std::abs(static_cast<double>(actual) - expected) / unit;
}

TEST(TileTest, GateFunctionsStayWithinFourUnitsInTheLastPlace) {
  for (const TileKernels* tiles : all_sets()) {
    SCOPED_TRACE(tiles->name);
    std::vector<float> x;
    for (float v = -80; v <= 80; v += 0.0173f) x.push_back(v);
    for (float v = 1e-30f; v < 1; v *= 1.7f) {
      x.push_back(v);
      x.push_back(-v);
    }
    std::vector<float> sigmoid = x, tanh = x;
    const int64_t count = static_cast<int64_t>(x.size());
    tiles->sigmoid(sigmoid.data(), count);
    tiles->tanh(tanh.data(), count);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(ulps(sigmoid[i], 1 / (1 + std::exp(-static_cast<double>(x[i])))), 4) << x[i];
      ASSERT_LE(ulps(tanh[i], std::tanh(static_cast<double>(x[i]))), 4) << x[i];
    }
  }
}

TEST(TileTest, GateFunctionsKeepNanAndReachTheirLimits) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const TileKernels* tiles : all_sets()) {
    SCOPED_TRACE(tiles->name);
    std::vector<float> sigmoid = {inf, -inf, NAN, 0}, tanh = sigmoid;
    tiles->sigmoid(sigmoid.data(), 4);
    tiles->tanh(tanh.data(), 4);
    EXPECT_EQ(sigmoid[0], 1);
    EXPECT_NEAR(sigmoid[1], 0, 1e-37);
    EXPECT_TRUE(std::isnan(sigmoid[2]));
    EXPECT_EQ(sigmoid[3], 0.5f);
    EXPECT_EQ(tanh[0], 1);
    EXPECT_EQ(tanh[1], -1);
    EXPECT_TRUE(std::isnan(tanh[2]));
    EXPECT_EQ(tanh[3], 0);
  }
}

TEST(TileTest, TheLstmCellAgreesOnEverySet) {
  for (const TileKernels* tiles : all_sets()) {
    for (int64_t n : {1, 5, 16, 33, 128}) {
      SCOPED_TRACE(std::string(tiles->name) + " size " + std::to_string(n));
      Random random(9);
      const std::vector<float> gates = random_floats(4 * n, random);
      const std::vector<float> before = random_floats(n, random);
      std::vector<float> cell = before, hidden(before.size());
      tiles->lstm_cell({.count = n,
                        .gates = gates.data(),
                        .gate_step = n,
                        .cell = cell.data(),
                        .hidden = hidden.data()});
      const auto sigmoid = [&](int64_t at) {
        return 1 / (1 + std::exp(-static_cast<double>(gates[static_cast<size_t>(at)])));
      };
      for (int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<size_t>(j);
        const double c = sigmoid(2 * n + j) * before[at] +
                         sigmoid(j) * std::tanh(gates[static_cast<size_t>(3 * n + j)]);
        EXPECT_NEAR(cell[at], c, 1e-6);
        EXPECT_NEAR(hidden[at], sigmoid(n + j) * std::tanh(c), 1e-6);
      }
    }
  }
}

// Where the operands of a product lie: floats from the begin of a cache line, and between rows.
struct Layout {
  int64_t offset = 0, gap = 0;
};

// A matrix of `values` in memory of its own, all else being `filler`.
class Placed {
 public:
  Placed(const std::vector<float>& values, int64_t rows, int64_t columns, const Layout& layout,
         float filler)
      : row_(columns + layout.gap),
        memory_(static_cast<size_t>(rows * row_ + layout.offset + 2 * kLineFloats), filler) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    const auto past_line = static_cast<int64_t>(address % 64 / sizeof(float));
    begin_ = (kLineFloats - past_line) % kLineFloats + layout.offset;
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(values.begin() + i * columns, columns, begin() + i * row_);
    }
  }
  float* begin() { return memory_.data() + begin_; }
  int64_t row() const { return row_; }

 private:
  const int64_t row_;
  std::vector<float> memory_;
  int64_t begin_ = 0;
};

struct TestProduct {
  int64_t m, n, k;
  std::vector<float> a, b, bias;

  TestProduct(int64_t m, int64_t n, int64_t k, Random& random)
      : m(m),
        n(n),
        k(k),
        a(random_floats(m * k, random)),
        b(random_floats(k * n, random)),
        bias(random_floats(n, random)) {}

  std::vector<float> run(const Layout& a_layout, const Layout& b_layout, const Layout& c_layout,
                         bool has_bias) const {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Placed left(a, m, k, a_layout, nan), right(b, k, n, b_layout, nan);
    Placed result(std::vector<float>(static_cast<size_t>(m * n), nan), m, n, c_layout, nan);
    gemm({.m = m,
          .n = n,
          .k = k,
          .a = left.begin(),
          .a_row = left.row(),
          .b = right.begin(),
          .b_row = right.row(),
          .c = result.begin(),
          .c_row = result.row(),
          .bias_or_null = has_bias ? bias.data() : nullptr});
    std::vector<float> c;
    for (int64_t i = 0; i < m; ++i) {
      c.insert(c.end(), result.begin() + i * result.row(), result.begin() + i * result.row() + n);
    }
    return c;
  }
};

// By tiles, by dot products, and by the library.
TEST(GemmTest, AProductHasTheSameBitsWhereverItLiesAndWhateverRunsBesideIt) {
  constexpr int64_t kSizes[][3] = {{1, 40, 70},    {6, 100, 33},    {16, 16, 16},  {23, 1, 90},
                                   {64, 64, 64},   {100, 100, 100}, {128, 48, 64}, {7, 300, 500},
                                   {150, 130, 90}, {130, 257, 65}};
  Random random(11);
  for (const auto& [m, n, k] : kSizes) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
    const TestProduct product(m, n, k, random);
    const std::vector<float> plain = product.run({}, {}, {}, false);
    const std::vector<float> biased = product.run({}, {}, {}, true);
    const auto try_layouts = [&](int64_t first) {
      std::vector<std::string> others;
      for (int64_t i = first; i < 40; i += 2) {
        const Layout a{i % 16, i % 5};
        Layout b{i * 7 % 16, i % 3 * 16 + i % 2}, c{i * 3 % 16, i % 4 * 5};
        if (n == 1) b.gap = c.gap = 0;  // neighbours
        const std::string name = "layout " + std::to_string(i);
        if (product.run(a, b, c, false) != plain) others.push_back(name);
        if (product.run(a, b, c, true) != biased) others.push_back(name + " with a bias");
      }
      return others;
    };
    auto beside = std::async(std::launch::async, try_layouts, 1);
    EXPECT_THAT(try_layouts(0), ::testing::IsEmpty());
    EXPECT_THAT(beside.get(), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace eddy::cpu
