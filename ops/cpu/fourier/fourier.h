// Fourier: the discrete Fourier transform of a length, in double, in O(n log n) for every n.
//
//   y[k] = sum over j of x[j] * e^(-+ 2 pi i j k / n)      -: forward, +: inverse; no factor 1 / n
//
// Lengths whose prime factors are small are transformed one factor after the other, each stage from
// one buffer to the other, so that nothing has to be put in order; others as a convolution with a
// chirp, of a power of two.
//
// Error: some units in the last place of double times log n, far below a float's.
// Ownership: the plan holds its roots. Threads: const use from any number, each with buffers of its
// own. Cost: n sines and cosines to make, then about 5 n log2 n operations (chirp: some 8 times
// it). Sources: Stockham's autosort form as in Van Loan, Computational Frameworks for the Fast
// Fourier Transform (1992), section 1.7; Bluestein, A linear filtering approach (1970).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace eddy::cpu {

struct Complex {
  double real = 0, imaginary = 0;
};

class Fourier {
 public:
  // n > 0.
  Fourier(int64_t n, bool is_inverse);

  int64_t size() const { return n_; }
  // Numbers of the buffer that transform() needs besides.
  int64_t scratch_count() const;
  // In place: n numbers.
  void transform(Complex* x, Complex* scratch) const;

 private:
  void run_stages(Complex* x, Complex* other) const;
  void convolve(Complex* x, Complex* scratch) const;

  int64_t n_;
  std::vector<int> factors_;     // of n; empty: by the chirp
  std::vector<Complex> roots_;   // e^(-+ 2 pi i k / n)
  std::vector<Complex> chirp_;   // e^(-+ pi i k^2 / n)
  std::vector<Complex> filter_;  // the spectrum of its conjugate, divided by its length
  std::unique_ptr<const Fourier> forward_, inverse_;  // of a power of two
};

}  // namespace eddy::cpu
