#include "graph/analysis/matching.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kUnmatched = Matching::kUnmatched;

class HopcroftKarp {
 public:
  HopcroftKarp(const Bipartite& graph, Matching start)
      : graph_(graph), matching_(std::move(start)), level_(graph.num_left()) {}

  Matching run() {
    match_greedily();
    while (build_levels()) augment_all();
    EDDY_DCHECK(std::ranges::count(matching_.right_of_left, kUnmatched) + matching_.size ==
                graph_.num_left())
        << "the size is not the number of pairs";
    return std::move(matching_);
  }

 private:
  static constexpr uint32_t kFar = UINT32_MAX;

  void pair(uint32_t left, uint32_t right) {
    EDDY_DCHECK(right < graph_.num_right) << "right node " << right << " of " << graph_.num_right;
    matching_.right_of_left[left] = right;
    matching_.left_of_right[right] = left;
  }

  void match_greedily();
  bool build_levels();
  void augment_all();
  bool augment_from(uint32_t free_left);

  const Bipartite& graph_;
  Matching matching_;
  std::vector<uint32_t> level_;  // alternating distance of a left node from a free one
  std::vector<uint32_t> next_;   // the first edge of a left node not yet tried in this phase
  std::vector<uint32_t> queue_;
  std::vector<uint32_t> path_;
};

void HopcroftKarp::match_greedily() {
  for (uint32_t left = 0; left < graph_.num_left(); ++left) {
    if (matching_.right_of_left[left] != kUnmatched) continue;
    for (uint32_t right : graph_.row(left)) {
      if (matching_.left_of_right[right] != kUnmatched) continue;
      pair(left, right);
      ++matching_.size;
      break;
    }
  }
}

// True if an augmenting path exists. Levels beyond the shortest one are not needed.
bool HopcroftKarp::build_levels() {
  queue_.clear();
  for (uint32_t left = 0; left < graph_.num_left(); ++left) {
    const bool is_free = matching_.right_of_left[left] == kUnmatched;
    level_[left] = is_free ? 0 : kFar;
    if (is_free && !graph_.row(left).empty()) queue_.push_back(left);
  }
  uint32_t shortest = kFar;
  for (size_t i = 0; i < queue_.size() && level_[queue_[i]] < shortest; ++i) {
    for (uint32_t right : graph_.row(queue_[i])) {
      const uint32_t next = matching_.left_of_right[right];
      if (next == kUnmatched) {
        shortest = level_[queue_[i]] + 1;
      } else if (level_[next] == kFar) {
        level_[next] = level_[queue_[i]] + 1;
        queue_.push_back(next);
      }
    }
  }
  return shortest != kFar;
}

void HopcroftKarp::augment_all() {
  next_.assign(graph_.begin.begin(), graph_.begin.end() - 1);
  const uint32_t size_before = matching_.size;
  for (uint32_t left = 0; left < graph_.num_left(); ++left) {
    if (matching_.right_of_left[left] == kUnmatched && augment_from(left)) ++matching_.size;
  }
  EDDY_CHECK(matching_.size > size_before) << "there is a path, and none was found";
}

// Depth first along rising levels; path_ holds left nodes, next_ their edges being tried.
bool HopcroftKarp::augment_from(uint32_t free_left) {
  path_.assign(1, free_left);
  while (!path_.empty()) {
    const uint32_t left = path_.back();
    if (next_[left] == graph_.begin[left + 1]) {
      level_[left] = kFar;
      path_.pop_back();
      if (!path_.empty()) ++next_[path_.back()];
      continue;
    }
    const uint32_t next = matching_.left_of_right[graph_.targets[next_[left]]];
    if (next == kUnmatched) break;
    if (level_[next] != kFar && level_[next] == level_[left] + 1) {
      path_.push_back(next);
    } else {
      ++next_[left];
    }
  }
  for (uint32_t left : path_) pair(left, graph_.targets[next_[left]++]);
  return !path_.empty();
}

}  // namespace

Matching maximum_matching(const Bipartite& graph) {
  Matching empty;
  empty.right_of_left.assign(graph.num_left(), kUnmatched);
  empty.left_of_right.assign(graph.num_right, kUnmatched);
  return maximum_matching(graph, std::move(empty));
}

Matching maximum_matching(const Bipartite& graph, Matching start) {
  EDDY_CHECK(start.right_of_left.size() == graph.num_left() &&
             start.left_of_right.size() == graph.num_right)
      << "the start belongs to another graph";
  return HopcroftKarp(graph, std::move(start)).run();
}

VertexCover minimum_vertex_cover(const Bipartite& graph, const Matching& maximum) {
  EDDY_CHECK(maximum.right_of_left.size() == graph.num_left() &&
             maximum.left_of_right.size() == graph.num_right)
      << "the matching belongs to another graph";
  // What alternating paths from free left nodes reach: covered on the right, not on the left.
  VertexCover cover{std::vector<bool>(graph.num_left(), true),
                    std::vector<bool>(graph.num_right, false)};
  std::vector<uint32_t> stack;
  for (uint32_t left = 0; left < graph.num_left(); ++left) {
    if (maximum.right_of_left[left] != kUnmatched) continue;
    cover.left[left] = false;
    stack.push_back(left);
  }
  while (!stack.empty()) {
    const uint32_t left = stack.back();
    stack.pop_back();
    for (uint32_t right : graph.row(left)) {
      if (cover.right[right]) continue;
      cover.right[right] = true;
      const uint32_t next = maximum.left_of_right[right];
      EDDY_CHECK(next != kUnmatched) << "the matching is not maximum";
      if (!cover.left[next]) continue;
      cover.left[next] = false;
      stack.push_back(next);
    }
  }
  return cover;
}

}  // namespace eddy
