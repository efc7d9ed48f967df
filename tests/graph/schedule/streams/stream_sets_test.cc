// Claim: a set holds the streams put into it or its parts, less those with a tail that changed
// since; find_first gives the lowest that the predicate accepts, and contains is true for each.
#include "graph/schedule/streams/stream_sets.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "graph/base/random.h"

namespace eddy {
namespace {

std::set<uint32_t> members(StreamSets& sets, StreamSets::Set set) {
  std::set<uint32_t> found;
  for (;;) {
    const uint32_t next = sets.find_first(set, [&](uint32_t s) { return !found.contains(s); });
    if (next == StreamSets::kNoStream) return found;
    EXPECT_TRUE(found.empty() || *found.rbegin() < next) << "ascending";
    found.insert(next);
  }
}

TEST(StreamSetsTest, RandomOperationsEqualPlainSets) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const uint32_t num_streams = seed % 2 == 0 ? 40 : 3000;
    StreamSets sets;
    for (uint32_t stream = 0; stream < num_streams; ++stream) sets.tail_changed(stream);
    std::vector<StreamSets::Set> fast = {StreamSets::kEmpty};
    std::vector<std::set<uint32_t>> plain = {{}};
    for (int step = 0; step < 300; ++step) {
      const uint32_t stream = static_cast<uint32_t>(random.below(num_streams));
      const size_t a = random.below(fast.size());
      const size_t b = random.below(fast.size());
      switch (random.below(4)) {
        case 0:
          fast.push_back(sets.single(stream));
          plain.push_back({stream});
          break;
        case 1:
          sets.tail_changed(stream);
          for (std::set<uint32_t>& set : plain) set.erase(stream);
          break;
        default:
          fast.push_back(sets.unite(fast[a], fast[b]));
          plain.push_back(plain[a]);
          plain.back().insert(plain[b].begin(), plain[b].end());
      }
      const size_t checked = random.below(fast.size());
      const auto asked = static_cast<uint32_t>(random.below(num_streams));
      ASSERT_EQ(sets.contains(fast[checked], asked), plain[checked].contains(asked));
      ASSERT_EQ(sets.contains(fast[checked], stream), plain[checked].contains(stream));
      ASSERT_EQ(members(sets, fast[checked]), plain[checked]);
    }
    for (size_t i = 0; i < fast.size(); ++i) ASSERT_EQ(members(sets, fast[i]), plain[i]);
  }
}

}  // namespace
}  // namespace eddy
