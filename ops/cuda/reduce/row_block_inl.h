// The bodies of kernels that give a block to each long row: reductions, ArgMax and ArgMin, Softmax,
// LayerNormalization, InstanceNormalization, TopK; for the device and for tests on the host. Those
// of reductions and places also give a warp to each row of middling length, 8 rows to a block.
//
// Thread t gathers elements t, t + 256 (or 32), … and the threads' results are combined as a tree:
// one order, whatever the device, so the same bits from run to run. Sums are held in double, whose
// rounding is lost in that of the result. A run ends with a barrier of the block.
#pragma once

#include "ops/cuda/device/block_inl.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

// Rows by groups of kLanes threads: those that a group of rows has.
template <int kLanes>
EDDY_HD uint64_t num_row_groups(const RowParams& p) {
  constexpr uint64_t kRows = kThreads / kLanes;
  return (p.count + kRows - 1) / kRows;
}
template <int kLanes>
EDDY_HD uint64_t row_of(uint64_t group, int thread) {
  return group * (kThreads / kLanes) + static_cast<uint64_t>(thread / kLanes);
}
// Calls visit(j, where) for each element j of the thread's part of its row; a group may have fewer
// rows than a block takes.
template <int kLanes, typename Visit>
EDDY_HD void visit_lane(const RowParams& p, uint64_t group, int thread, Visit visit) {
  const uint64_t row = row_of<kLanes>(group, thread);
  if (row >= p.count) return;
  const int64_t start = row_start(p, row);
  for (uint64_t j = static_cast<uint64_t>(thread % kLanes); j < p.length; j += kLanes) {
    visit(j, start + row_element(p, j));
  }
}

template <typename Op, typename T, int kLanes = kThreads>
struct BlockReduce {
  using Params = RowParams;
  using Sum = sum_t<T>;
  struct Shared {
    Sum items[kBlockThreads];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const T* const in = static_cast<const T*>(p.in);
    for (uint64_t group = block.index; group < num_row_groups<kLanes>(p); group += block.count) {
      each_of<kLanes>(block, [&](int thread) {
        Sum sum = Op::template start<Sum>();
        visit_lane<kLanes>(p, group, thread, [&](uint64_t, int64_t at) {
          sum = Op::step(sum, static_cast<Sum>(load(in[at])));
        });
        shared.items[thread] = sum;
      });
      // Sums of squares and of magnitudes are sums by now.
      reduce_lanes<kLanes>(block, shared.items, [](Sum a, Sum b) { return Op::join(a, b); });
      block.each([&](int thread) {
        const uint64_t row = row_of<kLanes>(group, thread);
        if (thread % kLanes != 0 || row >= p.count) return;
        static_cast<T*>(p.out)[row] =
            round_sum<T>(Op::finish(shared.items[thread], static_cast<double>(p.length)));
      });
    }
  }
};
template <typename Op, typename T>
using WarpReduce = BlockReduce<Op, T, kWarpThreads>;

template <typename C>
struct Candidate {
  C value;
  int64_t place;  // -1: none
};

template <typename Op>
struct Better {
  bool takes_last;
  template <typename C>
  EDDY_HD Candidate<C> operator()(const Candidate<C>& a, const Candidate<C>& b) const {
    if (a.place < 0) return b;
    if (b.place < 0) return a;
    if (is_beyond<Op>(a.value, b.value)) return a;
    if (is_beyond<Op>(b.value, a.value)) return b;
    return (a.place < b.place) != takes_last ? a : b;
  }
};

// The most extreme element: itself (kGivesPlace false) or its place.
template <typename Op, typename T, bool kGivesPlace, int kLanes = kThreads>
struct BlockExtreme {
  using Params = RowParams;
  using Item = Candidate<computed_t<T>>;
  struct Shared {
    Item items[kBlockThreads];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const T* const in = static_cast<const T*>(p.in);
    const Better<Op> better{p.takes_last != 0};
    for (uint64_t group = block.index; group < num_row_groups<kLanes>(p); group += block.count) {
      each_of<kLanes>(block, [&](int thread) {
        Item best{computed_t<T>{}, -1};
        visit_lane<kLanes>(p, group, thread, [&](uint64_t j, int64_t at) {
          best = better(best, Item{load(in[at]), static_cast<int64_t>(j)});
        });
        shared.items[thread] = best;
      });
      reduce_lanes<kLanes>(block, shared.items, better);
      block.each([&](int thread) {
        const uint64_t row = row_of<kLanes>(group, thread);
        if (thread % kLanes != 0 || row >= p.count) return;
        const int64_t place = shared.items[thread].place;
        if constexpr (kGivesPlace) {
          static_cast<int64_t*>(p.out)[row] = place;
        } else {
          static_cast<T*>(p.out)[row] =
              in[row_start(p, row) + row_element(p, static_cast<uint64_t>(place))];
        }
      });
    }
  }
};
template <typename Op, typename T>
using BlockMost = BlockExtreme<Op, T, false>;
template <typename Op, typename T>
using BlockArg = BlockExtreme<Op, T, true>;
template <typename Op, typename T>
using WarpMost = BlockExtreme<Op, T, false, kWarpThreads>;
template <typename Op, typename T>
using WarpArg = BlockExtreme<Op, T, true, kWarpThreads>;

template <typename Op, typename T>
struct BlockSoftmax {
  using Params = RowParams;
  struct Shared {
    double items[kBlockThreads];
  };
  struct Larger {
    EDDY_HD double operator()(double a, double b) const { return is_nan(a) || a > b ? a : b; }
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const T* const in = static_cast<const T*>(p.in);
    for (uint64_t row = block.index; row < p.count; row += block.count) {
      const int64_t start = row_start(p, row);
      const auto at = [&](uint64_t j) { return start + row_element(p, j); };
      block.each([&](int thread) {
        double greatest = -HUGE_VAL;
        for (uint64_t j = static_cast<uint64_t>(thread); j < p.length; j += kBlockThreads) {
          greatest = Larger()(static_cast<double>(load(in[at(j)])), greatest);
        }
        shared.items[thread] = greatest;
      });
      reduce_block(block, shared.items, Larger());
      PerThread<double> greatest;
      block.each([&](int thread) { greatest[thread] = shared.items[0]; });
      block.each([&](int thread) {
        double total = 0;
        for (uint64_t j = static_cast<uint64_t>(thread); j < p.length; j += kBlockThreads) {
          total += std::exp(static_cast<double>(load(in[at(j)])) - greatest[thread]);
        }
        shared.items[thread] = total;
      });
      reduce_block(block, shared.items, [](double a, double b) { return a + b; });
      block.each([&](int thread) {
        for (uint64_t j = static_cast<uint64_t>(thread); j < p.length; j += kBlockThreads) {
          const double x = static_cast<double>(load(in[at(j)])) - greatest[thread];
          const double y = Op::value(x, shared.items[0]);
          static_cast<T*>(p.out)[at(j)] = store<T>(static_cast<computed_t<T>>(y));
        }
      });
    }
  }
};

struct Moments {
  double mean = 0;
  double variance = 0;
};

// Finds the moments of row `in` in two passes; every thread gets them.
template <typename T>
EDDY_HD void find_moments(const Block& block, double (&items)[kBlockThreads], const T* in,
                          uint64_t length, PerThread<Moments>& moments) {
  const double count = static_cast<double>(length);
  const auto plus = [](double a, double b) { return a + b; };
  block.each([&](int thread) {
    double sum = 0;
    for (uint64_t j = static_cast<uint64_t>(thread); j < length; j += kBlockThreads) {
      sum += static_cast<double>(load(in[j]));
    }
    items[thread] = sum;
  });
  reduce_block(block, items, plus);
  block.each([&](int thread) { moments[thread].mean = items[0] / count; });
  block.each([&](int thread) {
    double sum = 0;
    for (uint64_t j = static_cast<uint64_t>(thread); j < length; j += kBlockThreads) {
      const double distance = static_cast<double>(load(in[j])) - moments[thread].mean;
      sum += distance * distance;
    }
    items[thread] = sum;
  });
  reduce_block(block, items, plus);
  block.each([&](int thread) { moments[thread].variance = items[0] / count; });
}

// Offset of element `index` of the input in an operand broadcast to it.
EDDY_HD int64_t broadcast_place(const NormParams& p, int operand, uint64_t index) {
  return walk(index, p.rank, p.dims, p.strides[operand]);
}

template <typename T>
struct BlockLayerNorm {
  using Params = NormParams;
  struct Shared {
    double items[kBlockThreads];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const T* const scale = static_cast<const T*>(p.scale);
    const T* const bias = static_cast<const T*>(p.bias);
    for (uint64_t row = block.index; row < p.count; row += block.count) {
      const uint64_t start = row * p.length;
      const T* const in = static_cast<const T*>(p.in) + start;
      PerThread<Moments> moments;
      find_moments(block, shared.items, in, p.length, moments);
      block.each([&](int thread) {
        const double mean = moments[thread].mean;
        const double factor = 1 / std::sqrt(moments[thread].variance + p.epsilon);
        for (uint64_t j = static_cast<uint64_t>(thread); j < p.length; j += kBlockThreads) {
          const auto place = [&](int operand) {
            return p.is_row_alike != 0 ? static_cast<int64_t>(j)
                                       : broadcast_place(p, operand, start + j);
          };
          double y = (static_cast<double>(load(in[j])) - mean) * factor;
          y *= static_cast<double>(load(scale[place(0)]));
          if (bias != nullptr) y += static_cast<double>(load(bias[place(1)]));
          static_cast<T*>(p.out)[start + j] = store_double<T>(y);
        }
        if (thread != 0) return;
        if (p.mean_out != nullptr) p.mean_out[row] = static_cast<float>(mean);
        if (p.factor_out != nullptr) p.factor_out[row] = static_cast<float>(factor);
      });
    }
  }
};

template <typename T>
struct BlockInstanceNorm {
  using Params = NormParams;
  struct Shared {
    double items[kBlockThreads];
  };

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    for (uint64_t row = block.index; row < p.count; row += block.count) {
      const T* const in = static_cast<const T*>(p.in) + row * p.length;
      T* const out = static_cast<T*>(p.out) + row * p.length;
      const uint64_t channel = row % p.channels;
      PerThread<Moments> moments;
      find_moments(block, shared.items, in, p.length, moments);
      block.each([&](int thread) {
        const double scale = static_cast<double>(load(static_cast<const T*>(p.scale)[channel]));
        const double bias = static_cast<double>(load(static_cast<const T*>(p.bias)[channel]));
        const double mean = moments[thread].mean;
        const double factor = scale / std::sqrt(moments[thread].variance + p.epsilon);
        for (uint64_t j = static_cast<uint64_t>(thread); j < p.length; j += kBlockThreads) {
          out[j] = store_double<T>((static_cast<double>(load(in[j])) - mean) * factor + bias);
        }
      });
    }
  }
};

// The k most extreme of a line, one after the other: each is the best of those behind the last one
// in the total order (value, then place). Reads the line k times; for k near the length a sort
// would be better.
template <typename T>
struct BlockTopK {
  using Params = LineParams;
  using Item = Candidate<computed_t<T>>;
  struct Shared {
    Item items[kBlockThreads];
    Item last;
  };

  // NaN is greater than every number.
  template <typename C>
  EDDY_HD static bool is_greater(C a, C b) {
    if (a != a) return b == b;
    return a > b;
  }
  EDDY_HD static bool precedes(const Item& a, const Item& b, bool is_largest) {
    if (is_largest ? is_greater(a.value, b.value) : is_greater(b.value, a.value)) return true;
    if (is_largest ? is_greater(b.value, a.value) : is_greater(a.value, b.value)) return false;
    return a.place < b.place;
  }

  EDDY_HD static void run(const Params& p, const Block& block, Shared& shared) {
    const bool is_largest = p.is_largest != 0;
    const auto better = [is_largest](const Item& a, const Item& b) {
      if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
      return precedes(a, b, is_largest) ? a : b;
    };
    for (uint64_t line = block.index; line < p.num_lines; line += block.count) {
      const uint64_t o = line / p.inner, i = line - o * p.inner;
      const T* const in = static_cast<const T*>(p.in) + o * p.length * p.inner + i;
      block.each([&](int thread) {
        if (thread == 0) shared.last.place = -1;
      });
      for (uint64_t rank = 0; rank < p.k; ++rank) {
        block.each([&](int thread) {
          Item best{computed_t<T>{}, -1};
          for (uint64_t j = static_cast<uint64_t>(thread); j < p.length; j += kBlockThreads) {
            const Item item{load(in[j * p.inner]), static_cast<int64_t>(j)};
            if (shared.last.place >= 0 && !precedes(shared.last, item, is_largest)) continue;
            best = better(best, item);
          }
          shared.items[thread] = best;
        });
        reduce_block(block, shared.items, better);
        block.each([&](int thread) {
          if (thread != 0) return;
          shared.last = shared.items[0];
          const uint64_t to = (o * p.k + rank) * p.inner + i;
          const auto place = static_cast<uint64_t>(shared.last.place);
          static_cast<T*>(p.out)[to] = in[place * p.inner];
          if (p.indices != nullptr) p.indices[to] = shared.last.place;
        });
      }
    }
  }
};

}  // namespace eddy::cuda
