// Claim: on every instruction set this machine has, the vector functions stay within a few units in
// the last place of the exact result over the whole range of float, special values included, an
// element's bits do not depend on its place, and folds depend on the count alone.
#include "ops/cpu/loops/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "graph/base/random.h"

namespace eddy::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const LoopSet*> sets() {
  std::vector<const LoopSet*> found;
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (const LoopSet* set = loop_set_or_null(isa)) found.push_back(set);
  }
  return found;
}

float run_one(const LoopSet& set, UnaryOp op, float x, float a, float b) {
  const float p[2] = {a, b};
  float y = 0;
  set.unary[static_cast<int>(op)][static_cast<int>(LoopType::kFloat)](&x, &y, 1, p);
  return y;
}

// Distance from the exact value in units in the last place of the nearest float.
double error_in_ulp(float actual, double exact) {
  const float nearest = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(nearest) || std::isnan(actual)) {
    return (std::isnan(exact) && std::isnan(actual)) || actual == nearest ? 0 : HUGE_VAL;
  }
  const float magnitude = std::max(std::fabs(nearest), std::numeric_limits<float>::min());
  const double ulp = static_cast<double>(std::nextafter(magnitude, kInfinity)) - magnitude;
  return std::fabs(actual - exact) / ulp;
}

struct Case {
  const char* name;
  UnaryOp op;
  double (*exact)(double);
  float low, high;  // range of the samples
  double max_ulp;
  float a = 0, b = 0;
};

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
// The same where 1 + tanh would cancel.
double gelu_tanh_tail(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x * std::exp(2 * u) / (1 + std::exp(2 * u));
}
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

const Case kCases[] = {
    {"Exp", UnaryOp::kExp, [](double x) { return std::exp(x); }, -110, 95, 1.5},
    {"Log", UnaryOp::kLog, [](double x) { return std::log(x); }, 0, 3, 1.5},
    {"Log", UnaryOp::kLog, [](double x) { return std::log(x); }, 0, 3e38f, 1.5},
    {"Log", UnaryOp::kLog, [](double x) { return std::log(x); }, 0, 1e-37f, 1.5},
    {"Sigmoid", UnaryOp::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -110, 40, 3},
    {"Tanh", UnaryOp::kTanh, [](double x) { return std::tanh(x); }, -12, 12, 3},
    {"Tanh", UnaryOp::kTanh, [](double x) { return std::tanh(x); }, -1e-3f, 1e-3f, 3},
    {"Erf", UnaryOp::kErf, [](double x) { return std::erf(x); }, -5, 5, 3},
    {"Softplus", UnaryOp::kSoftplus, softplus, -110, 100, 4},
    {"Elu", UnaryOp::kElu, [](double x) { return x < 0 ? std::expm1(x) : x; }, -40, 5, 2.5, 1},
    {"Elu", UnaryOp::kElu, [](double x) { return x < 0 ? std::expm1(x) : x; }, -1e-3f, 0, 2.5, 1},
    {"Gelu", UnaryOp::kGelu, [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }, -3, 6,
     20},
    // Relative errors grow with the square: half an ulp of x is 75 of the result at -12.5. What
    // cancels there has no digit left.
    {"Gelu tail", UnaryOp::kGelu, [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); },
     -12.5f, -3, 260},
    {"GeluTanh", UnaryOp::kGeluTanh, gelu_tanh, -3, 6, 20},
    {"GeluTanh tail", UnaryOp::kGeluTanh, gelu_tanh_tail, -7, -3, 90},
};

TEST(LoopsTest, VectorFunctionsAreWithinTheStatedErrorOfTheExactResult) {
  const uint64_t seed = 20260;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const LoopSet* set : sets()) {
    Random random(seed);
    for (const Case& c : kCases) {
      const float p[2] = {c.a, c.b};
      std::vector<float> x(20011), y(x.size());
      for (float& value : x) value = random.uniform(c.low, c.high);
      set->unary[static_cast<int>(c.op)][0](x.data(), y.data(), static_cast<int64_t>(x.size()), p);
      double worst = 0, at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = error_in_ulp(y[i], c.exact(x[i]));
        if (error > worst) worst = error, at = x[i];
      }
      EXPECT_LE(worst, c.max_ulp) << c.name << " at " << at << ", set "
                                  << static_cast<int>(set->isa);
    }
  }
}

TEST(LoopsTest, SpecialValuesGiveTheirLimits) {
  struct Special {
    UnaryOp op;
    float x, y;
  };
  const Special kSpecials[] = {
      {UnaryOp::kExp, kInfinity, kInfinity},
      {UnaryOp::kExp, -kInfinity, 0},
      {UnaryOp::kExp, 0, 1},
      {UnaryOp::kLog, 0, -kInfinity},
      {UnaryOp::kLog, kInfinity, kInfinity},
      {UnaryOp::kLog, -1, kNan},
      {UnaryOp::kLog, -kInfinity, kNan},
      {UnaryOp::kLog, 1, 0},
      {UnaryOp::kSigmoid, kInfinity, 1},
      {UnaryOp::kSigmoid, -kInfinity, 0},
      {UnaryOp::kSigmoid, 0, 0.5f},
      {UnaryOp::kTanh, kInfinity, 1},
      {UnaryOp::kTanh, -kInfinity, -1},
      {UnaryOp::kTanh, 0, 0},
      {UnaryOp::kErf, kInfinity, 1},
      {UnaryOp::kErf, -kInfinity, -1},
      {UnaryOp::kErf, 0, 0},
      {UnaryOp::kSoftplus, kInfinity, kInfinity},
      {UnaryOp::kSoftplus, -kInfinity, 0},
      {UnaryOp::kGelu, kInfinity, kInfinity},
      {UnaryOp::kRound, 2.5f, 2},
      {UnaryOp::kRound, -1.5f, -2},
  };
  for (const LoopSet* set : sets()) {
    for (const Special& s : kSpecials) {
      const float y = run_one(*set, s.op, s.x, 0, 0);
      EXPECT_TRUE(y == s.y || (std::isnan(y) && std::isnan(s.y)))
          << static_cast<int>(s.op) << " of " << s.x << " is " << y << ", not " << s.y;
    }
    for (UnaryOp op : {UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kSigmoid, UnaryOp::kTanh,
                       UnaryOp::kErf, UnaryOp::kGelu, UnaryOp::kSoftplus, UnaryOp::kElu}) {
      EXPECT_TRUE(std::isnan(run_one(*set, op, kNan, 1, 1))) << static_cast<int>(op);
    }
  }
}

TEST(LoopsTest, AnElementsBitsDoNotDependOnItsPlaceNorOnWritingInPlace) {
  Random random(7);
  std::vector<float> x(67);
  for (float& value : x) value = random.uniform(-4.0f, 4.0f);
  const float p[2] = {0.3f, 0.7f};
  for (const LoopSet* set : sets()) {
    for (int op = 0; op < kNumUnaryOps; ++op) {
      const UnaryLoop loop = set->unary[op][0];
      if (loop == nullptr) continue;
      std::vector<float> all(x);
      loop(all.data(), all.data(), static_cast<int64_t>(all.size()), p);
      for (size_t i = 0; i < x.size(); ++i) {
        float alone = 0;
        loop(&x[i], &alone, 1, p);
        EXPECT_EQ(std::memcmp(&alone, &all[i], sizeof alone), 0)
            << "operator " << op << " at " << i;
      }
    }
  }
}

TEST(LoopsTest, FoldsAgreeWithPlainLoopsForEveryCount) {
  Random random(11);
  for (const LoopSet* set : sets()) {
    for (int64_t count = 1; count < 150; ++count) {
      std::vector<float> x(static_cast<size_t>(count));
      double sum = 0, squares = 0, sum_abs = 0;
      float low = kInfinity, high = -kInfinity;
      for (float& value : x) {
        value = random.uniform(-1.0f, 1.0f);
        sum += value;
        squares += static_cast<double>(value) * value;
        sum_abs += std::fabs(value);
        low = std::min(low, value);
        high = std::max(high, value);
      }
      const auto fold = [&](ReduceOp op) {
        return set->reduce[static_cast<int>(op)].fold(x.data(), count);
      };
      EXPECT_NEAR(fold(ReduceOp::kSum), sum, 1e-5);
      EXPECT_NEAR(fold(ReduceOp::kSumSquare), squares, 1e-5);
      EXPECT_NEAR(fold(ReduceOp::kSumAbs), sum_abs, 2e-5);
      EXPECT_EQ(fold(ReduceOp::kMax), high);
      EXPECT_EQ(fold(ReduceOp::kMin), low);
    }
  }
}

TEST(LoopsTest, AMaximumKeepsANanAnywhere) {
  for (const LoopSet* set : sets()) {
    for (size_t at = 0; at < 150; ++at) {
      std::vector<float> x(150, 1.0f);
      x[at] = kNan;
      for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
        EXPECT_TRUE(std::isnan(set->reduce[static_cast<int>(op)].fold(x.data(), 150))) << at;
      }
    }
  }
}

}  // namespace
}  // namespace eddy::cpu
