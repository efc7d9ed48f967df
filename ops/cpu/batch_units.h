// BatchUnits: how a batch of float products is cut into units, of which tiles take some each: whole
// products, or, of large ones, blocks of rows.
//
// An element that is read counts as so many terms at least: the time of vectors times matrices goes
// there. By shapes alone. Threads: a value. Cost: O(1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cpu/tiles.h"

namespace eddy::cpu {

struct BatchUnits {
  static constexpr int64_t kMinTerms = 16;  // for each element read
  // Some 6 µs at the least, so that several workers have equal shares of small batches, too: 16
  // products of 32 x 32 by 32 x 32 take two of them 6.3 µs, and one 10.9.
  static constexpr int64_t kBatchTerms = 500'000;
  static constexpr int64_t kBlockRows = 128;

  int64_t num_batches, rows_each, per_batch, terms;

  BatchUnits(int64_t batches, int64_t m, int64_t n, int64_t k) : num_batches(batches) {
    const bool is_large = m >= 2 * kBlockRows && m * n * k >= 2 * kBatchTerms;
    rows_each = is_large ? kBlockRows : m;
    per_batch = is_large ? (m + rows_each - 1) / rows_each : 1;
    terms = std::max(rows_each * n * k, kMinTerms * (rows_each * k + k * n));
  }
  int64_t count() const { return num_batches * per_batch; }
  Tiles tiles() const { return Tiles::of(count(), terms, kBatchTerms); }
};

}  // namespace eddy::cpu
