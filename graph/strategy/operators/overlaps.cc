#include "graph/strategy/operators/overlaps.h"

#include <algorithm>
#include <limits>

#include "graph/base/check.h"

namespace eddy {

void Overlaps::set(const Operator& producer, const OperatorConfig& producer_config,
                   const Operator& consumer, const OperatorConfig& consumer_config, size_t input) {
  EDDY_CHECK(input < consumer.inputs.size()) << "input " << input << " of " << consumer.name;
  EDDY_DCHECK(static_cast<int64_t>(consumer_config.devices.size()) == consumer_config.num_parts())
      << consumer_config.devices.size() << " devices for the parts of " << consumer.name;
  runs_.clear();
  lengths_.clear();
  num_tables_ = 0;
  constant_ = 1;
  is_too_long_ = false;
  const int consumer_rank = consumer.shape.rank();
  num_axes_ = consumer_rank + 1;
  for (int d = 0; d < consumer_rank; ++d) {
    grid_[static_cast<size_t>(d)] = static_cast<uint32_t>(consumer_config.degree[d]);
  }
  grid_[static_cast<size_t>(consumer_rank)] = static_cast<uint32_t>(consumer_config.reduce);
  num_parts_ = static_cast<uint32_t>(consumer_config.devices.size());

  int64_t tile_step = 1;
  for (int k = producer.shape.rank() - 1; k >= 0; --k) {
    const InputDim& dim = consumer.inputs[input].dims[static_cast<size_t>(k)];
    EDDY_DCHECK(dim.axis >= InputDim::kAll && dim.axis <= consumer_rank)
        << consumer.name << " has no axis " << dim.axis;
    const int64_t extent = producer.shape[k];
    const int64_t degree = producer_config.degree[k];
    const int64_t tile = extent / degree;
    const bool is_all = dim.axis == InputDim::kAll;
    const uint32_t coordinates = is_all ? 1 : grid_[static_cast<size_t>(dim.axis)];
    const int64_t axis_extent = is_all                      ? 1
                                : dim.axis == consumer_rank ? consumer.reduction
                                                            : consumer.shape[dim.axis];
    const int64_t share = axis_extent / coordinates;
    DimTable table{.runs = static_cast<uint32_t>(runs_.size()),
                   .coordinate_step = coordinates > 1 ? 1u : 0u,
                   .axis = is_all ? 0 : dim.axis,
                   .tile_step = tile_step};
    tile_step *= degree;
    for (uint32_t c = 0; c < coordinates; ++c) {
      const Interval read = dim.read({c * share, (c + 1) * share}, extent);
      Run run{.lengths = static_cast<uint32_t>(lengths_.size())};
      if (read.size() > 0) {
        run.first = static_cast<uint32_t>(read.begin / tile);
        run.count = static_cast<uint32_t>((read.end - 1) / tile) - run.first + 1;
      }
      is_too_long_ |= lengths_.size() + run.count > kMaxLengths;
      for (uint32_t i = 0; i < run.count && !is_too_long_; ++i) {
        const int64_t begin = (run.first + i) * tile;
        lengths_.push_back(std::min(read.end, begin + tile) - std::max(read.begin, begin));
      }
      runs_.push_back(run);
    }
    if (coordinates == 1 && degree == 1) {
      // The same for every pair: no table.
      constant_ *= runs_.back().count == 0 || is_too_long_ ? 0 : lengths_.back();
      continue;
    }
    // Outer dimensions first, so that tiles come in ascending order.
    std::move_backward(tables_.begin(), tables_.begin() + num_tables_,
                       tables_.begin() + num_tables_ + 1);
    tables_[0] = table;
    ++num_tables_;
  }
  num_tiles_ = static_cast<uint64_t>(tile_step);
}

// The product, over the axes of the consumer's grid, of the sums over their coordinates.
double Overlaps::num_pairs() const {
  if (is_too_long_) return std::numeric_limits<double>::infinity();
  if (constant_ == 0) return 0;
  double pairs = 1;
  for (int axis = 0; axis < num_axes_; ++axis) {
    double sum = 0;
    for (uint32_t c = 0; c < grid_[static_cast<size_t>(axis)]; ++c) {
      double product = 1;
      for (int t = 0; t < num_tables_; ++t) {
        const DimTable& table = tables_[static_cast<size_t>(t)];
        if (table.axis == axis) product *= runs_[table.runs + table.coordinate_step * c].count;
      }
      sum += product;
    }
    pairs *= sum;
  }
  return pairs;
}

}  // namespace eddy
