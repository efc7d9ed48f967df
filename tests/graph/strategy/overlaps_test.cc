// Overlaps visits as many pairs as it says it will, each with as many elements as a look at every
// element finds, and refuses to tabulate what would not fit in memory.
#include "graph/strategy/operators/overlaps.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "graph/base/random.h"

namespace eddy {
namespace {

struct Pair {
  Operator producer;
  Operator consumer;  // its one input is the producer
  OperatorConfig from;
  OperatorConfig to;
};

OperatorConfig random_config(Random& random, const Dims& shape, int64_t reduction) {
  OperatorConfig config;
  int64_t parts = 1;
  for (const int64_t dim : shape) {
    config.degree.push_back(int64_t{1} << random.below(dim == 4 ? 3 : 2));
    parts *= config.degree[config.degree.rank() - 1];
  }
  config.reduce = reduction > 1 ? int64_t{1} << random.below(2) : 1;
  config.devices.assign(static_cast<size_t>(parts * config.reduce), 0);
  return config;
}

Pair random_pair(Random& random) {
  Pair pair;
  pair.producer.shape = {4, 2, 4};
  pair.consumer.shape = {4, 4};
  pair.consumer.reduction = 2;
  OperatorInput& input = pair.consumer.inputs.emplace_back();
  for (int d = 0; d < 3; ++d) {
    InputDim& dim = input.dims[static_cast<size_t>(d)];
    dim.axis = static_cast<int>(random.below(4)) - 1;
    if (dim.axis == 2) continue;
    dim.before = static_cast<int64_t>(random.below(3));
    dim.after = static_cast<int64_t>(random.below(3)) - 1;
  }
  pair.from = random_config(random, pair.producer.shape, 1);
  pair.to = random_config(random, pair.consumer.shape, pair.consumer.reduction);
  return pair;
}

using Found = std::map<std::pair<uint32_t, uint32_t>, int64_t>;  // elements by part and tile

// Looks at every element of the producer for every part.
Found looked_at(const Pair& pair) {
  Found found;
  const Dims& shape = pair.producer.shape;
  const Dims tile = tile_of(pair.producer, pair.from);
  for (uint32_t part = 0; part < pair.to.devices.size(); ++part) {
    std::array<Interval, 3> read;
    for (int d = 0; d < 3; ++d) {
      const InputDim& dim = pair.consumer.inputs[0].dims[static_cast<size_t>(d)];
      const Interval own = dim.axis == InputDim::kAll
                               ? Interval{0, 1}
                               : part_interval(pair.consumer, pair.to, part, dim.axis);
      read[static_cast<size_t>(d)] = dim.read(own, shape[d]);
    }
    for (int64_t i = read[0].begin; i < read[0].end; ++i) {
      for (int64_t j = read[1].begin; j < read[1].end; ++j) {
        for (int64_t k = read[2].begin; k < read[2].end; ++k) {
          const int64_t number =
              (i / tile[0] * pair.from.degree[1] + j / tile[1]) * pair.from.degree[2] + k / tile[2];
          ++found[{part, static_cast<uint32_t>(number)}];
        }
      }
    }
  }
  return found;
}

TEST(Overlaps, PairsAreThoseOfEveryElementAndCountedBefore) {
  size_t most = 0;
  for (uint64_t seed = 1; seed <= 2000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Pair pair = random_pair(random);
    Overlaps overlaps;
    overlaps.set(pair.producer, pair.from, pair.consumer, pair.to, 0);
    Found found;
    overlaps.for_each([&](uint32_t part, uint32_t tile, int64_t elements) {
      found[{part, tile}] += elements;
    });
    EXPECT_EQ(found, looked_at(pair));
    EXPECT_EQ(overlaps.num_pairs(), found.size());
    EXPECT_FALSE(overlaps.has_more_pairs_than(found.size()));
    EXPECT_TRUE(found.empty() || overlaps.has_more_pairs_than(found.size() - 1));
    most = std::max(most, found.size());
  }
  EXPECT_GT(most, 100u);
}

TEST(Overlaps, HalosAsWideAsALongTensorAreNotTabulated) {
  constexpr int64_t kLength = 100'000;
  Pair pair;
  pair.producer.shape = pair.consumer.shape = {kLength};
  pair.from =
      pair.to = {.degree = {kLength}, .reduce = 1, .devices = std::vector<uint32_t>(kLength)};
  pair.consumer.inputs.resize(1);
  pair.consumer.inputs[0].dims[0] = {.axis = 0, .before = kLength, .after = kLength};
  Overlaps overlaps;
  overlaps.set(pair.producer, pair.from, pair.consumer, pair.to, 0);
  EXPECT_EQ(overlaps.num_pairs(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(overlaps.has_more_pairs_than(kLength));
  overlaps.for_each([](uint32_t, uint32_t, int64_t) { FAIL(); });
  pair.consumer.inputs[0].dims[0] = {.axis = 0, .before = 1};
  overlaps.set(pair.producer, pair.from, pair.consumer, pair.to, 0);
  EXPECT_EQ(overlaps.num_pairs(), 2 * kLength - 1) << "the next one is";
}

}  // namespace
}  // namespace eddy
