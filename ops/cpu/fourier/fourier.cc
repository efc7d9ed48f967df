#include "ops/cpu/fourier/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

// A stage of a larger factor costs its square.
constexpr int kGreatestFactor = 31;

Complex operator+(Complex a, Complex b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
Complex operator-(Complex a, Complex b) { return {a.real - b.real, a.imaginary - b.imaginary}; }
Complex operator*(Complex a, Complex b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

// e^(-+ pi i k / n).
Complex half_turns(int64_t k, int64_t n, bool is_inverse) {
  const double angle = std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), is_inverse ? std::sin(angle) : -std::sin(angle)};
}

// Fours first; empty where a factor is too large.
std::vector<int> factors_of(int64_t n) {
  std::vector<int> factors;
  for (const int first : {4, 2, 3}) {
    for (; n % first == 0; n /= first) factors.push_back(first);
  }
  for (int factor = 5; factor <= kGreatestFactor; factor += 2) {
    for (; n % factor == 0; n /= factor) factors.push_back(factor);
  }
  if (n > 1) factors.clear();
  return factors;
}

// A stage: transforms of `length` numbers, `factor` of which make one of length * factor. Number j
// of transform s stands at j * count * factor + s, and goes to rows of `count`.
struct Stage {
  const Complex* roots;
  int64_t n, length, count;
  int factor;
  const Complex* from;
  Complex* to;

  const Complex* source(int64_t j, int q) const { return from + (j * factor + q) * count; }
  Complex* result(int64_t j, int p) const { return to + (j + p * length) * count; }
  Complex turn(int64_t j, int q) const { return roots[q * j * count]; }

  void run_two(int64_t j) const {
    const Complex *a = source(j, 0), *b = source(j, 1);
    const Complex turn_b = turn(j, 1);
    Complex *sum = result(j, 0), *difference = result(j, 1);
    for (int64_t s = 0; s < count; ++s) {
      const Complex turned = turn_b * b[s];
      sum[s] = a[s] + turned;
      difference[s] = a[s] - turned;
    }
  }

  void run_four(int64_t j) const {
    const Complex *a = source(j, 0), *b = source(j, 1), *c = source(j, 2), *d = source(j, 3);
    const Complex turn_b = turn(j, 1), turn_c = turn(j, 2), turn_d = turn(j, 3);
    const double quarter = roots[n / 4].imaginary;  // -1 or 1: of the root's i
    for (int64_t s = 0; s < count; ++s) {
      const Complex u = a[s], v = turn_b * b[s], w = turn_c * c[s], x = turn_d * d[s];
      const Complex even = u + w, odd = u - w, sum = v + x, difference = v - x;
      const Complex turned = {-quarter * difference.imaginary, quarter * difference.real};
      result(j, 0)[s] = even + sum;
      result(j, 1)[s] = odd + turned;
      result(j, 2)[s] = even - sum;
      result(j, 3)[s] = odd - turned;
    }
  }

  void run_any(int64_t j) const {
    Complex parts[kGreatestFactor];
    const int64_t step = n / factor;
    for (int64_t s = 0; s < count; ++s) {
      for (int q = 0; q < factor; ++q) parts[q] = turn(j, q) * source(j, q)[s];
      for (int p = 0; p < factor; ++p) {
        Complex sum = parts[0];
        int place = 0;  // p * q modulo the factor
        for (int q = 1; q < factor; ++q) {
          place += p;
          if (place >= factor) place -= factor;
          sum = sum + roots[place * step] * parts[q];
        }
        result(j, p)[s] = sum;
      }
    }
  }

  void run() const {
    for (int64_t j = 0; j < length; ++j) {
      if (factor == 2) {
        run_two(j);
      } else if (factor == 4) {
        run_four(j);
      } else {
        run_any(j);
      }
    }
  }
};

}  // namespace

Fourier::Fourier(int64_t n, bool is_inverse) : n_(n), factors_(factors_of(n)) {
  EDDY_CHECK(n > 0) << "a transform of " << n << " numbers";
  if (!factors_.empty() || n == 1) {
    roots_.resize(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      roots_[static_cast<size_t>(k)] = half_turns(2 * k, n, is_inverse);
    }
    return;
  }
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  forward_ = std::make_unique<Fourier>(size, false);
  inverse_ = std::make_unique<Fourier>(size, true);
  chirp_.resize(static_cast<size_t>(n));
  filter_.resize(static_cast<size_t>(size));
  int64_t square = 0;  // k * k modulo 2 n
  for (int64_t k = 0; k < n; ++k) {
    const Complex turn = half_turns(square, n, is_inverse);
    chirp_[static_cast<size_t>(k)] = turn;
    const Complex filter = {turn.real / static_cast<double>(size),
                            -turn.imaginary / static_cast<double>(size)};
    filter_[static_cast<size_t>(k)] = filter;
    if (k > 0) filter_[static_cast<size_t>(size - k)] = filter;
    square = (square + 2 * k + 1) % (2 * n);
  }
  std::vector<Complex> scratch(static_cast<size_t>(forward_->scratch_count()));
  forward_->transform(filter_.data(), scratch.data());
}

int64_t Fourier::scratch_count() const { return forward_ == nullptr ? n_ : 2 * forward_->n_; }

void Fourier::transform(Complex* x, Complex* scratch) const {
  if (forward_ == nullptr) {
    run_stages(x, scratch);
  } else {
    convolve(x, scratch);
  }
}

void Fourier::run_stages(Complex* x, Complex* other) const {
  Complex *from = x, *to = other;
  int64_t length = 1;
  for (const int factor : factors_) {
    const int64_t count = n_ / length / factor;
    Stage{roots_.data(), n_, length, count, factor, from, to}.run();
    std::swap(from, to);
    length *= factor;
  }
  EDDY_DCHECK(length == n_) << "factors of " << length << ", not " << n_;
  if (from != x) std::copy_n(from, n_, x);
}

void Fourier::convolve(Complex* x, Complex* scratch) const {
  const int64_t size = forward_->n_;
  Complex *line = scratch, *other = scratch + size;
  for (int64_t k = 0; k < n_; ++k) line[k] = x[k] * chirp_[static_cast<size_t>(k)];
  std::fill(line + n_, line + size, Complex());
  forward_->transform(line, other);
  for (int64_t k = 0; k < size; ++k) line[k] = line[k] * filter_[static_cast<size_t>(k)];
  inverse_->transform(line, other);
  for (int64_t k = 0; k < n_; ++k) x[k] = line[k] * chirp_[static_cast<size_t>(k)];
}

}  // namespace eddy::cpu
