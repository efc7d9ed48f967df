// The bodies of kernels that give 32 threads to each row of middling length, 8 rows to a block of
// 256: Softmax; for the device and for tests on the host.
//
// A row is read once and kept in registers: thread t of the 32 has elements t, t + 32, … Results of
// threads are combined as a tree: one order, so the same bits from run to run. 16- and 32-bit types
// are computed in float, whose rounding shows in the last digits of a float result; an exponential
// an element is all that it costs.
//
// Threads of a row are one warp, so its barrier is enough between phases (each_of).
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

inline constexpr int kWarpRows = kThreads / kWarpThreads;  // of a block
// Rows of fewer elements are a thread's each, those of kBlockRow and more a block's.
inline constexpr uint64_t kWarpRow = 32;
inline constexpr uint64_t kBlockRow = 256;

template <typename Op, typename T>
struct WarpSoftmax {
  using Params = RowParams;
  using C = computed_t<T>;
  static constexpr bool kIsLog = std::is_same_v<Op, LogSoftmax>;
  static constexpr int kItems = static_cast<int>(kBlockRow) / kWarpThreads;  // of a thread, at most
  struct Shared {
    C items[kBlockThreads];
  };
  struct Part {
    C x[kItems];
  };
  struct Larger {
    EDDY_HD C operator()(C a, C b) const { return is_nan(a) || a > b ? a : b; }
  };

  // Where the thread's row begins; -1: there is none.
  EDDY_HD static int64_t start_of(const Params& p, uint64_t group, int thread) {
    const uint64_t row = group * kWarpRows + static_cast<uint64_t>(thread / kWarpThreads);
    return row < p.count ? row_start(p, row) : -1;
  }
  // Calls visit(i, where) for each element i of the thread's part of its row, which has one axis.
  template <typename Visit>
  EDDY_HD static void visit_part(const Params& p, int64_t start, int thread, Visit visit) {
    if (start < 0) return;
    EDDY_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int j = thread % kWarpThreads + i * kWarpThreads;
      if (static_cast<uint64_t>(j) < p.length) visit(i, start + j * p.reduced_strides[0]);
    }
  }

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const T* const in = static_cast<const T*>(p.in);
    const uint64_t num_groups = (p.count + kWarpRows - 1) / kWarpRows;
    const auto first_of = [](int thread) { return thread - thread % kWarpThreads; };
    for (uint64_t group = block.index; group < num_groups; group += block.count) {
      PerThread<Part> parts;
      PerThread<C> greatest;
      PerThread<int64_t> starts;
      each_of<kWarpThreads>(block, [&](int thread) {
        starts[thread] = start_of(p, group, thread);
        C most = static_cast<C>(-HUGE_VAL);
        visit_part(p, starts[thread], thread, [&](int i, int64_t at) {
          parts[thread].x[i] = load(in[at]);
          most = Larger()(parts[thread].x[i], most);
        });
        shared.items[thread] = most;
      });
      reduce_lanes<kWarpThreads>(block, shared.items, Larger());
      each_of<kWarpThreads>(block,
                            [&](int thread) { greatest[thread] = shared.items[first_of(thread)]; });
      each_of<kWarpThreads>(block, [&](int thread) {
        C total = 0;
        visit_part(p, starts[thread], thread, [&](int i, int64_t) {
          const C x = parts[thread].x[i] - greatest[thread];
          const C power = std::exp(x);
          total += power;
          parts[thread].x[i] = kIsLog ? x : power;
        });
        shared.items[thread] = total;
      });
      reduce_lanes<kWarpThreads>(block, shared.items, [](C a, C b) { return a + b; });
      each_of<kWarpThreads>(block, [&](int thread) {
        const C total = shared.items[first_of(thread)];
        const C log_total = kIsLog ? std::log(total) : C(0);
        visit_part(p, starts[thread], thread, [&](int i, int64_t at) {
          const C x = parts[thread].x[i];
          static_cast<T*>(p.out)[at] = store<T>(kIsLog ? x - log_total : x / total);
        });
      });
    }
  }
};

}  // namespace eddy::cuda
