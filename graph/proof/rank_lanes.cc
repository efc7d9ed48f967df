#include "graph/proof/rank_lanes.h"

#include <algorithm>
#include <array>
#include <map>

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
constexpr uint32_t kNone = RankSkeleton::kNone;

class LaneFinder {
 public:
  uint32_t id(const RankSkeleton::Channel& channel, uint32_t from, uint32_t to) {
    const auto [it, is_new] = ids_.try_emplace({channel, from, to}, ids_.size());
    return it->second;
  }
  std::vector<RankLanes::Lane> take() const {
    std::vector<RankLanes::Lane> lanes(ids_.size());
    for (const auto& [lane, id] : ids_) lanes[id] = lane;
    return lanes;
  }

 private:
  std::map<RankLanes::Lane, uint32_t> ids_;
};

void sort_once(std::vector<uint32_t>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

std::vector<uint32_t> lanes_of_posts(const RankSkeleton& skeleton, LaneFinder* finder) {
  std::map<std::array<uint32_t, 3>, uint32_t> known;  // by channel, from, to: few, so groups are
  std::vector<uint32_t> of_post;                      // compared seldom
  for (const RankSkeleton::Post& post : skeleton.posts) {
    const auto [it, is_new] = known.try_emplace({post.channel, post.from, post.to}, 0);
    if (is_new) it->second = finder->id(skeleton.channels[post.channel], post.from, post.to);
    of_post.push_back(it->second);
  }
  return of_post;
}

// Regions of a control stand behind the one that it is in, so they are looked at first.
std::vector<std::vector<uint32_t>> lanes_inside(const RankSkeleton& skeleton,
                                                const std::vector<uint32_t>& of_post,
                                                LaneFinder* finder) {
  std::vector<std::vector<uint32_t>> inside(skeleton.controls.size());
  std::vector<std::vector<uint32_t>> in_region(skeleton.regions.size());
  for (size_t r = skeleton.regions.size(); r-- > 0;) {
    for (const RankSkeleton::Vertex& vertex : skeleton.regions[r].vertices) {
      if (vertex.op == Op::kPost) in_region[r].push_back(of_post[vertex.operand]);
      if (vertex.op != Op::kEnter) continue;
      const RankSkeleton::Control& control = skeleton.controls[vertex.operand];
      std::vector<uint32_t>& lanes = inside[vertex.operand];
      if (control.agree_channel != kNone) {
        lanes.push_back(finder->id(skeleton.channels[control.agree_channel], kNone, kNone));
      }
      for (uint32_t child : control.regions) {
        lanes.insert(lanes.end(), in_region[child].begin(), in_region[child].end());
        in_region[child] = {};
      }
      sort_once(&lanes);
      in_region[r].insert(in_region[r].end(), lanes.begin(), lanes.end());
    }
    sort_once(&in_region[r]);
  }
  return inside;
}

}  // namespace

RankLanes find_lanes(const std::vector<const RankSkeleton*>& skeletons) {
  RankLanes lanes;
  LaneFinder finder;
  for (const RankSkeleton* skeleton : skeletons) {
    lanes.of_post.push_back(lanes_of_posts(*skeleton, &finder));
    lanes.inside.push_back(lanes_inside(*skeleton, lanes.of_post.back(), &finder));
  }
  lanes.lanes = finder.take();
  return lanes;
}

std::vector<RankLanes::Token> tokens_of(const RankSkeleton& skeleton, uint32_t region,
                                        const RankLanes& lanes, uint32_t rank) {
  const std::vector<RankSkeleton::Vertex>& vertices = skeleton.regions[region].vertices;
  std::vector<uint32_t> last(vertices.size());
  for (uint32_t v = 0; v < vertices.size(); ++v) {
    last[v] = v;
    if (vertices[v].op == Op::kLeave) last[vertices[v].operand] = v;
  }
  std::vector<RankLanes::Token> tokens;
  for (uint32_t v = 0; v < vertices.size(); ++v) {
    const uint32_t operand = vertices[v].operand;
    if (vertices[v].op == Op::kPost) tokens.push_back({lanes.of_post[rank][operand], v, v});
    if (vertices[v].op != Op::kEnter) continue;
    for (uint32_t lane : lanes.inside[rank][operand]) tokens.push_back({lane, v, last[v]});
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& a, const auto& b) { return a.lane < b.lane; });
  return tokens;
}

const std::string& path_of(const RankSkeleton& skeleton, const RankSkeleton::Vertex& vertex) {
  return vertex.op == Op::kPost ? skeleton.posts[vertex.operand].path
                                : skeleton.controls[vertex.operand].path;
}

std::string list_ranks(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == 8 && ranks.size() > 9) return text + "…";
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

std::string describe(const RankLanes::Lane& lane) {
  const std::string text = "channel " + std::to_string(lane.channel.number) + " of ranks " +
                           list_ranks(lane.channel.group);
  if (lane.from == kNone) return text;
  return text + " from " + std::to_string(lane.from) + " to " + std::to_string(lane.to);
}

}  // namespace eddy
