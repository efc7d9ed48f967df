// BlockCumSum: the running sums of a long line by one block, for the device and for tests on the
// host.
//
// Thread t adds up the t-th run of neighbouring elements; the sums of the runs are scanned in
// log2(256) steps; then each thread goes along its run again from the sum of those before it. So a
// line of n elements takes 2 n / 256 additions in a row instead of n, in an order that depends on n
// alone; sums are held in double, whose rounding is lost in the result's.
// Source of the scan: Hillis and Steele, "Data parallel algorithms" (CACM 1986).
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

template <typename T>
struct BlockCumSum {
  using Params = LineParams;
  using Sum = sum_t<T>;
  struct Shared {
    Sum sums[2][kBlockThreads];
  };

  // One line, in the direction of its sums.
  struct Line {
    const Params& p;
    uint64_t start;

    EDDY_HD uint64_t at(uint64_t j) const {
      return start + (p.is_reverse != 0 ? p.length - 1 - j : j) * p.inner;
    }
    EDDY_HD Sum element(uint64_t j) const {
      return static_cast<Sum>(load(static_cast<const T*>(p.in)[at(j)]));
    }
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    for (uint64_t i = block.index; i < p.num_lines; i += block.count) {
      const uint64_t o = i / p.inner;
      run_line({p, o * p.length * p.inner + (i - o * p.inner)}, block, shared);
    }
  }

 private:
  EDDY_HD static void run_line(const Line& line, const Block& block, Shared& shared) {
    const Params& p = line.p;
    const uint64_t run_length = (p.length + kBlockThreads - 1) / kBlockThreads;
    const auto begin_of = [&](int thread) {
      const uint64_t begin = static_cast<uint64_t>(thread) * run_length;
      return begin < p.length ? begin : p.length;
    };
    block.each([&](int thread) {
      Sum sum = 0;
      const uint64_t end = begin_of(thread + 1);
      for (uint64_t j = begin_of(thread); j < end; ++j) sum += line.element(j);
      shared.sums[0][thread] = sum;
    });
    const int last = scan(block, shared);
    block.each([&](int thread) {
      Sum sum = thread == 0 ? 0 : shared.sums[last][thread - 1];
      const uint64_t end = begin_of(thread + 1);
      for (uint64_t j = begin_of(thread); j < end; ++j) {
        const Sum before = sum;
        sum += line.element(j);
        static_cast<T*>(p.out)[line.at(j)] = round_sum<T>(p.is_exclusive != 0 ? before : sum);
      }
    });
  }

  // Which of the two holds, for each thread, the sum up to its own.
  EDDY_HD static int scan(const Block& block, Shared& shared) {
    int from = 0;
    for (int step = 1; step < kThreads; step *= 2) {
      block.each([&](int thread) {
        const Sum left = thread < step ? 0 : shared.sums[from][thread - step];
        shared.sums[1 - from][thread] = left + shared.sums[from][thread];
      });
      from = 1 - from;
    }
    return from;
  }
};

}  // namespace eddy::cuda
