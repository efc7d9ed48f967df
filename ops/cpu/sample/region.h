// RegionLoops: the bins of a region of a plane, by a loop for each instruction set.
//
//   mean   of bin (i, j): factor * sum over taps r of row i, c of column j of
//          high[r] * high[c] * plane[r][c]
//   most   the largest of weight[r] * weight[c] * plane[r][c], each weight its low or its high one,
//          and of 0 where row i or column j has_none; a NaN stays
//
//   plane ──rows of bin i──> one line of `columns` ──taps of column j──> out[i][j]
//
// A sum of products of weights falls apart into two sums, and so does a maximum, as no weight is
// negative: each element is multiplied once for each row that has it, not once for each sample.
//
// Determinism: the order of a sum depends on the taps only; instruction sets differ in the last
// bits. Errors: none. Threads: pure functions.
#pragma once

#include <cstdint>

#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

// Of one axis: bin b has the taps [begin[b], begin[b + 1]), with weights above 0.
struct RegionTaps {
  int64_t bins = 0;
  const int64_t* begin = nullptr;
  const int64_t* place = nullptr;  // elements of the axis; of columns counted from first_column
  const float* low = nullptr;      // unused by means
  const float* high = nullptr;
  const bool* has_none = nullptr;  // per bin; unused by means
  const bool* is_run = nullptr;    // per bin: its taps follow each other
};

struct RegionArgs {
  const float* plane = nullptr;
  int64_t width = 0;  // of a row
  RegionTaps rows, columns;
  int64_t first_column = 0, num_columns = 0;  // that some tap reads
  float* line = nullptr;                      // memory of num_columns
  float factor = 1;                           // of means
  float* out = nullptr;                       // rows.bins x columns.bins
};

struct RegionLoops {
  void (*mean)(const RegionArgs& args) = nullptr;
  void (*most)(const RegionArgs& args) = nullptr;
};

// Of a set that this processor has (tile_kernels().isa).
const RegionLoops& region_loops(Isa isa);

}  // namespace eddy::cpu
