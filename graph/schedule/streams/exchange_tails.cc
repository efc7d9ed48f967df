#include "graph/schedule/streams/exchange_tails.h"

#include <algorithm>
#include <vector>

#include "graph/analysis/reachability.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/base/check.h"

namespace eddy {
namespace {

class TailExchange {
 public:
  TailExchange(const Dag& dag, std::span<const uint32_t> issue_order, uint32_t device,
               StreamAssignment& assignment)
      : dag_(dag), device_(device), assignment_(assignment), chains_(assignment.num_streams) {
    EDDY_CHECK(assignment.further.empty()) << "each node is on one stream";
    EDDY_CHECK(assignment.device_of_stream.size() == assignment.num_streams)
        << "one device for each stream";
    for (const uint32_t node : issue_order) {
      chains_[assignment.stream_of_node[node]].push_back(node);
    }
  }

  bool run() {
    for (uint32_t s = 0; s < chains_.size(); ++s) {
      if (begins_with_source(s) && ends_with_sink(s)) return false;
    }
    reduced_ = transitive_reduction(dag_);
    reach_ = reachability(reduced_);
    for (uint32_t first = 0; first < chains_.size(); ++first) {
      if (!begins_with_source(first)) continue;
      for (uint32_t second = 0; second < chains_.size(); ++second) {
        if (ends_with_sink(second) && exchange(first, second)) return true;
      }
    }
    return false;
  }

 private:
  bool is_of_device(uint32_t s) const {
    return assignment_.device_of_stream[s] == device_ && !chains_[s].empty();
  }
  bool begins_with_source(uint32_t s) const {
    return is_of_device(s) && dag_.parents(chains_[s].front()).empty();
  }
  bool ends_with_sink(uint32_t s) const {
    return is_of_device(s) && dag_.children(chains_[s].back()).empty();
  }

  bool may_follow(uint32_t node, uint32_t next) const { return reach_.test(node, next); }
  // Waits that this pair saves.
  int saved(uint32_t node, uint32_t next) const {
    return std::ranges::binary_search(reduced_.children(node), next) ? 1 : 0;
  }

  bool exchange(uint32_t first, uint32_t second) {
    // Places of the first node of each tail; that of the first chain may be empty, as may be what
    // is before that of the second, but not both.
    for (size_t i = 1; i <= chains_[first].size(); ++i) {
      for (size_t k = 0; k < chains_[second].size(); ++k) {
        if (!is_as_good(chains_[first], i, chains_[second], k)) continue;
        for (; i < chains_[first].size(); ++i) {
          assignment_.stream_of_node[chains_[first][i]] = second;
        }
        for (; k < chains_[second].size(); ++k) {
          assignment_.stream_of_node[chains_[second][k]] = first;
        }
        return true;
      }
    }
    return false;
  }

  bool is_as_good(const std::vector<uint32_t>& a, size_t i, const std::vector<uint32_t>& b,
                  size_t k) const {
    EDDY_DCHECK(i > 0 && i <= a.size() && k < b.size()) << "places " << i << " and " << k;
    const bool has_tail = i < a.size();
    const bool has_head = k > 0;
    if (!has_tail && !has_head) return false;
    if (!may_follow(a[i - 1], b[k])) return false;
    if (has_tail && has_head && !may_follow(b[k - 1], a[i])) return false;
    const int before =
        (has_tail ? saved(a[i - 1], a[i]) : 0) + (has_head ? saved(b[k - 1], b[k]) : 0);
    const int after = saved(a[i - 1], b[k]) + (has_tail && has_head ? saved(b[k - 1], a[i]) : 0);
    return after >= before;
  }

  const Dag& dag_;
  const uint32_t device_;
  StreamAssignment& assignment_;
  std::vector<std::vector<uint32_t>> chains_;  // by stream
  Dag reduced_;
  BitMatrix reach_{0, 0};
};

}  // namespace

bool exchange_tails(const Dag& dag, std::span<const uint32_t> issue_order, uint32_t device,
                    StreamAssignment& assignment) {
  if (dag.num_nodes() > StreamOptions{}.exact_nodes) return false;
  return TailExchange(dag, issue_order, device, assignment).run();
}

}  // namespace eddy
