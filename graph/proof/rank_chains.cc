#include <algorithm>
#include <optional>
#include <span>

#include "graph/proof/rank_lanes.h"
#include "graph/proof/rank_proof.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
using Token = RankLanes::Token;
using Vertices = std::vector<RankSkeleton::Vertex>;

class ChainCheck {
 public:
  ChainCheck(const RankSkeleton& skeleton, uint32_t rank, const RankLanes& lanes,
             std::vector<std::string>* violations)
      : skeleton_(skeleton), rank_(rank), lanes_(lanes), violations_(violations) {}

  void check() {
    std::vector<bool> is_open(skeleton_.regions.size());
    for (const RankSkeleton::Control& control : skeleton_.controls) {
      if (control.is_pipelined) is_open[control.regions[1]] = true;
    }
    for (uint32_t r = 0; r < skeleton_.regions.size() && !is_full(); ++r) {
      check_order(r);
      if (!is_open[r]) check_end(r);
    }
    for (const RankSkeleton::Control& control : skeleton_.controls) {
      if (control.is_pipelined && !is_full()) check_iterations(control);
    }
  }

 private:
  bool is_full() const { return violations_->size() >= RankProof::kMaxViolations; }
  void add(std::string text) {
    if (!is_full()) violations_->push_back("rank " + std::to_string(rank_) + ": " + text);
  }
  const std::string& path(uint32_t region, uint32_t vertex) const {
    return path_of(skeleton_, skeleton_.regions[region].vertices[vertex]);
  }

  // Calls `check_lane` with the tokens of each lane.
  template <typename CheckLane>
  void for_each_lane(uint32_t region, CheckLane check_lane) {
    const std::vector<Token> tokens = tokens_of(skeleton_, region, lanes_, rank_);
    for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
      while (end < tokens.size() && tokens[end].lane == tokens[begin].lane) ++end;
      check_lane(std::span(tokens).subspan(begin, end - begin));
    }
  }

  void check_order(uint32_t region) {
    const Vertices& vertices = skeleton_.regions[region].vertices;
    const auto is_tied = [&](const Token& a, const Token& b) {
      const std::vector<uint32_t>& after = vertices[b.first].after;
      return std::find(after.begin(), after.end(), a.last) != after.end();
    };
    for_each_lane(region, [&](std::span<const Token> chain) {
      for (size_t i = 1; i < chain.size(); ++i) {
        if (!is_tied(chain[i - 1], chain[i])) return walk_chain(region, chain);
      }
    });
  }

  // seen_[v]: how much of the chain is before v. The chain is tied up to there, so the furthest
  // token stands for all before it.
  void walk_chain(uint32_t region, std::span<const Token> chain) {
    const Vertices& vertices = skeleton_.regions[region].vertices;
    seen_.assign(vertices.size(), 0);
    uint32_t next = 0;    // token whose first comes next
    uint32_t passed = 0;  // token whose last comes next
    for (uint32_t v = chain.front().first; next < chain.size() && v < vertices.size(); ++v) {
      for (uint32_t before : vertices[v].after) seen_[v] = std::max(seen_[v], seen_[before]);
      if (is_closing(vertices[v])) seen_[v] = std::max(seen_[v], seen_[vertices[v].operand]);
      if (v == chain[next].first) {
        if (seen_[v] < next) {
          add(path(region, v) + " may be posted before " + path(region, chain[next - 1].first) +
              ", both on " + describe(lanes_.lanes[chain.front().lane]) +
              "; order the one behind the other");
          return;
        }
        ++next;
      }
      if (passed < next && v == chain[passed].last) seen_[v] = ++passed;
    }
  }

  // By vertex: whether the region's end waits for it.
  std::vector<bool> before_end(uint32_t region) const {
    const Vertices& vertices = skeleton_.regions[region].vertices;
    std::vector<bool> marked(vertices.size());
    for (uint32_t v : skeleton_.regions[region].end) marked[v] = true;
    for (size_t v = vertices.size(); v-- > 0;) {
      if (!marked[v]) continue;
      for (uint32_t before : vertices[v].after) marked[before] = true;
      if (is_closing(vertices[v])) marked[vertices[v].operand] = true;
    }
    return marked;
  }

  void check_end(uint32_t region) {
    const Vertices& vertices = skeleton_.regions[region].vertices;
    const std::vector<bool> marked = before_end(region);
    for (uint32_t v = 0; v < vertices.size(); ++v) {
      if (!is_closing(vertices[v]) || marked[v]) continue;
      add("a region may end before " + path(region, vertices[v].operand) + " does");
      return;
    }
  }

  // Two iterations: what the last token of a lane in `after` is before, in the next iteration's
  // regions. What the advance waits for is before all of the next iteration. Where the ranks agree,
  // they do so at the end of `before`.
  void check_iterations(const RankSkeleton::Control& control) {
    const uint32_t before = control.regions[0];
    const uint32_t after = control.regions[1];
    const std::vector<bool> marked = before_end(after);
    std::optional<RankLanes::Lane> agree_lane;
    if (control.agree_channel != RankSkeleton::kNone) {
      agree_lane = RankLanes::Lane{skeleton_.channels[control.agree_channel], RankSkeleton::kNone,
                                   RankSkeleton::kNone};
    }
    const std::vector<Token> in_before = tokens_of(skeleton_, before, lanes_, rank_);
    for_each_lane(after, [&](std::span<const Token> chain) {
      if (marked[chain.back().last]) return;
      const auto first =
          std::lower_bound(in_before.begin(), in_before.end(), chain.front().lane,
                           [](const Token& token, uint32_t lane) { return token.lane < lane; });
      const bool has = first != in_before.end() && first->lane == chain.front().lane;
      const std::vector<bool> reached = reach(after, chain.back().last, {});
      const std::vector<bool> tested = reach(before, RankSkeleton::kNone, reached);
      bool is_kept = false;
      if (has) {
        is_kept = tested[first->first];
      } else {
        bool is_behind = false;
        for (uint32_t v : skeleton_.regions[before].end) is_behind = is_behind || tested[v];
        const bool is_tested = agree_lane == lanes_.lanes[chain.front().lane];
        is_kept = is_behind ||
                  (!is_tested && reach(after, RankSkeleton::kNone, reached)[chain.front().first]);
      }
      if (is_kept) return;
      add(path(after, chain.back().first) + " of an iteration may be posted after " +
          (has ? path(before, first->first) : path(after, chain.front().first)) +
          " of the next, both on " + describe(lanes_.lanes[chain.front().lane]));
    });
  }

  // What is behind `start` (none: nothing) or behind what `previous` holds of the iteration before.
  std::vector<bool> reach(uint32_t region, uint32_t start,
                          const std::vector<bool>& previous) const {
    const Vertices& vertices = skeleton_.regions[region].vertices;
    std::vector<bool> reached(vertices.size());
    for (uint32_t v = 0; v < vertices.size(); ++v) {
      bool is_behind = v == start;
      for (uint32_t before : vertices[v].after) is_behind = is_behind || reached[before];
      if (is_closing(vertices[v])) is_behind = is_behind || reached[vertices[v].operand];
      for (uint32_t before : vertices[v].previous) {
        is_behind = is_behind || (!previous.empty() && previous[before]);
      }
      reached[v] = is_behind;
    }
    return reached;
  }

  const RankSkeleton& skeleton_;
  const uint32_t rank_;
  const RankLanes& lanes_;
  std::vector<std::string>* const violations_;
  std::vector<uint32_t> seen_;
};

}  // namespace

void check_chains(const RankSkeleton& skeleton, uint32_t rank, const RankLanes& lanes,
                  std::vector<std::string>* violations) {
  ChainCheck(skeleton, rank, lanes, violations).check();
}

}  // namespace eddy
