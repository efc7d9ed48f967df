// Overlaps: which parts of a producer's tensor each part of a consumer reads, and how many
// elements of it.
//
// Both are cut into grids, so what a consumer's part reads is a box, and its overlap with the
// producer's tiles is the product of the overlaps along each dimension. Those are tabulated once
// for each coordinate of the consumer; after that a pair costs a few additions.
//
// Cost: set() and num_pairs() O(sum of degrees and of what coordinates read along one dimension),
// for_each() O(parts of the consumer + pairs). Memory is reused from one set() to the next.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/base/check.h"
#include "graph/strategy/operators/operator_graph.h"

namespace eddy {

class Overlaps {
 public:
  // For input `input` of the consumer.
  void set(const Operator& producer, const OperatorConfig& producer_config,
           const Operator& consumer, const OperatorConfig& consumer_config, size_t input);

  // How many pairs for_each() visits; infinite, and it visits none, where coordinates read so much
  // along one dimension that it is not tabulated.
  double num_pairs() const;
  // The same as num_pairs() > limit, at once where that cannot be.
  bool has_more_pairs_than(uint64_t limit) const {
    return static_cast<uint64_t>(num_parts_) * num_tiles_ > limit &&
           num_pairs() > static_cast<double>(limit);
  }

  // visit(consumer_part, producer_tile, elements) for every pair with elements > 0, by consumer
  // part, then by tile, ascending. Tiles are numbered row-major over the producer's degrees, the
  // reduction left out.
  template <typename Visit>
  void for_each(const Visit& visit) const;

 private:
  // What one coordinate of the consumer reads along one dimension of the producer.
  struct Run {
    uint32_t first = 0;    // coordinate of the producer
    uint32_t count = 0;    // 0: nothing
    uint32_t lengths = 0;  // place of the first length in lengths_
  };
  struct DimTable {
    uint32_t runs = 0;         // place in runs_ of the run of coordinate 0
    uint32_t coordinate_step;  // 0: the same run for all coordinates
    int axis = 0;              // of the consumer's grid
    int64_t tile_step = 0;     // tiles between neighbours along this dimension
  };

  static constexpr size_t kMaxLengths = size_t{1} << 24;

  template <typename Visit>
  void visit_tiles(const std::array<uint32_t, kMaxRank>& runs, int table, int64_t tile,
                   int64_t elements, uint32_t part, const Visit& visit) const;

  std::vector<Run> runs_;
  std::vector<int64_t> lengths_;
  std::array<DimTable, kMaxRank> tables_{};
  int num_tables_ = 0;
  int num_axes_ = 0;  // of the consumer's grid, the reduction included
  std::array<uint32_t, kMaxRank + 1> grid_{};
  uint32_t num_parts_ = 0;
  uint64_t num_tiles_ = 0;  // of the producer
  int64_t constant_ = 1;    // product of what dimensions without a table contribute
  bool is_too_long_ = false;
};

template <typename Visit>
void Overlaps::visit_tiles(const std::array<uint32_t, kMaxRank>& runs, int table, int64_t tile,
                           int64_t elements, uint32_t part, const Visit& visit) const {
  if (table == num_tables_) {
    EDDY_DCHECK(static_cast<uint64_t>(tile) < num_tiles_ && elements > 0)
        << elements << " elements of tile " << tile << " of " << num_tiles_;
    visit(part, static_cast<uint32_t>(tile), elements);
    return;
  }
  const Run& run = runs_[runs[static_cast<size_t>(table)]];
  const int64_t step = tables_[static_cast<size_t>(table)].tile_step;
  for (uint32_t i = 0; i < run.count; ++i) {
    visit_tiles(runs, table + 1, tile + step * (run.first + i),
                elements * lengths_[run.lengths + i], part, visit);
  }
}

template <typename Visit>
void Overlaps::for_each(const Visit& visit) const {
  if (constant_ == 0 || is_too_long_) return;
  std::array<uint32_t, kMaxRank + 1> at{};
  std::array<uint32_t, kMaxRank> runs{};
  for (uint32_t part = 0; part < num_parts_; ++part) {
    for (int t = 0; t < num_tables_; ++t) {
      const DimTable& table = tables_[static_cast<size_t>(t)];
      runs[static_cast<size_t>(t)] =
          table.runs + table.coordinate_step * at[static_cast<size_t>(table.axis)];
    }
    visit_tiles(runs, 0, 0, constant_, part, visit);
    for (int axis = num_axes_ - 1; axis >= 0; --axis) {
      auto& place = at[static_cast<size_t>(axis)];
      if (++place < grid_[static_cast<size_t>(axis)]) break;
      place = 0;
    }
  }
}

}  // namespace eddy
