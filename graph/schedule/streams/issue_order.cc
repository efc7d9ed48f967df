#include "graph/schedule/streams/issue_order.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "graph/base/check.h"

namespace eddy {
namespace {

std::vector<uint32_t> by_unit_rank(std::span<const uint32_t> ranks) {
  uint32_t highest = 0;
  for (uint32_t rank : ranks) highest = std::max(highest, rank);
  // next[k]: where the next node of rank highest - k goes.
  std::vector<uint32_t> next(highest + size_t{2});
  for (uint32_t rank : ranks) ++next[highest - rank + size_t{1}];
  for (size_t k = 0; k <= highest; ++k) next[k + 1] += next[k];
  std::vector<uint32_t> order(ranks.size());
  for (uint32_t node = 0; node < ranks.size(); ++node) {
    order[next[highest - ranks[node]]++] = node;
  }
  EDDY_DCHECK(std::ranges::is_sorted(order, std::greater(), [&](uint32_t n) { return ranks[n]; }))
      << "a lower rank is issued before a higher one";
  return order;
}

}  // namespace

std::vector<uint32_t> issue_order(std::span<const uint32_t> unit_ranks,
                                  std::span<const double> cost_ranks) {
  std::vector<uint32_t> order = by_unit_rank(unit_ranks);
  if (cost_ranks.empty()) return order;
  EDDY_CHECK(cost_ranks.size() == unit_ranks.size()) << "two ranks for each node";
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return cost_ranks[a] > cost_ranks[b]; });
  return order;
}

}  // namespace eddy
