#include "graph/proof/rank_proof.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/base/check.h"
#include "graph/proof/rank_lanes.h"
#include "graph/proof/rank_text.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
using Decision = RankSkeleton::Decision;
using Lane = RankLanes::Lane;
constexpr uint32_t kNone = RankSkeleton::kNone;

struct Member {
  uint32_t rank;
  uint32_t region;
};
using JointRegion = std::vector<Member>;  // by rank, ascending

std::vector<uint32_t> ranks_of(const Lane& lane) {
  if (lane.from == kNone) return lane.channel.group;
  EDDY_DCHECK(lane.from != lane.to) << "rank " << lane.from << " sends to itself";
  return {std::min(lane.from, lane.to), std::max(lane.from, lane.to)};
}

// One region of all ranks that meet in it. Vertices are numbered through its members.
class RegionProver {
 public:
  RegionProver(std::span<const RankSkeleton> skeletons, const RankLanes& lanes,
               const JointRegion& members, std::vector<std::string>* violations)
      : skeletons_(skeletons), lanes_(lanes), members_(members), violations_(violations) {
    for (const Member& member : members) {
      offsets_.push_back(size_);
      size_ += static_cast<uint32_t>(vertices_of(member).size());
    }
    class_of_.resize(size_);
    std::iota(class_of_.begin(), class_of_.end(), 0);
  }

  // Appends the joint regions of loops and cases.
  void prove(std::vector<JointRegion>* next) {
    const size_t before = violations_->size();
    match_lanes();
    if (violations_->size() == before) match_controls(next);
    if (violations_->size() == before) check_cycle();
  }

 private:
  struct Token {
    uint32_t lane;
    uint32_t member;
    uint32_t vertex;
  };
  struct Edge {
    uint32_t from;
    uint32_t to;
  };

  const std::vector<RankSkeleton::Vertex>& vertices_of(const Member& member) const {
    EDDY_DCHECK(member.rank < skeletons_.size()) << "rank " << member.rank;
    EDDY_DCHECK(member.region < skeletons_[member.rank].regions.size())
        << "region " << member.region << " of rank " << member.rank;
    return skeletons_[member.rank].regions[member.region].vertices;
  }
  uint32_t member_of(uint32_t vertex) const {
    EDDY_DCHECK(vertex < size_) << "vertex " << vertex << " of " << size_;
    const auto it = std::upper_bound(offsets_.begin(), offsets_.end(), vertex);
    return static_cast<uint32_t>(it - offsets_.begin()) - 1;
  }
  const RankSkeleton::Vertex& vertex(uint32_t id) const {
    const uint32_t member = member_of(id);
    return vertices_of(members_[member])[id - offsets_[member]];
  }
  std::string rank_name(uint32_t member) const {
    return "rank " + std::to_string(members_[member].rank);
  }
  const RankSkeleton& skeleton(uint32_t member) const { return skeletons_[members_[member].rank]; }
  std::string words(uint32_t member, uint32_t id) const {
    return operation_text(skeleton(member), vertex(id));
  }
  void add(std::string text) {
    if (violations_->size() < RankProof::kMaxViolations) violations_->push_back(std::move(text));
  }

  uint32_t find(uint32_t id) {
    EDDY_DCHECK(id < class_of_.size()) << "vertex " << id << " of " << class_of_.size();
    while (class_of_[id] != id) id = class_of_[id] = class_of_[class_of_[id]];
    return id;
  }

  // Match.
  void match_lanes() {
    std::vector<Token> tokens;
    for (uint32_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      for (const RankLanes::Token& token :
           tokens_of(skeletons_[member.rank], member.region, lanes_, member.rank)) {
        tokens.push_back({token.lane, m, offsets_[m] + token.first});
      }
    }
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const Token& a, const Token& b) { return a.lane < b.lane; });
    for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
      while (end < tokens.size() && tokens[end].lane == tokens[begin].lane) ++end;
      match_lane(std::span(tokens).subspan(begin, end - begin));
    }
  }

  // Tokens of one lane, by member.
  void match_lane(std::span<const Token> tokens) {
    EDDY_DCHECK(!tokens.empty() && tokens[0].lane < lanes_.lanes.size()) << "no such lane";
    const Lane& lane = lanes_.lanes[tokens[0].lane];
    std::span<const Token> first;
    size_t begin = 0;
    for (uint32_t rank : ranks_of(lane)) {
      size_t end = begin;
      while (end < tokens.size() && members_[tokens[end].member].rank == rank) ++end;
      const std::span<const Token> own = tokens.subspan(begin, end - begin);
      if (own.empty()) {
        add("rank " + std::to_string(rank) + " has nothing where rank " +
            std::to_string(members_[tokens[0].member].rank) + " has " +
            words(tokens[0].member, tokens[0].vertex) + ", on " + describe(lane));
        return;
      }
      if (first.empty()) first = own;
      if (!match_chains(lane, first, own)) return;
      begin = end;
    }
  }

  bool match_chains(const Lane& lane, std::span<const Token> a, std::span<const Token> b) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (i < a.size() && i < b.size() && are_equal(a[i], b[i])) {
        class_of_[find(b[i].vertex)] = find(a[i].vertex);
        continue;
      }
      const auto has = [&](std::span<const Token> chain) {
        return rank_name(chain[0].member) + " has " +
               (i < chain.size() ? words(chain[i].member, chain[i].vertex) : "no more");
      };
      add(has(a) + " where " + has(b) + ", operation " + std::to_string(i + 1) + " on " +
          describe(lane));
      return false;
    }
    return true;
  }

  bool are_equal(const Token& a, const Token& b) const {
    const auto of = [&](const Token& token) -> const RankSkeleton::Vertex& {
      return vertices_of(members_[token.member])[token.vertex - offsets_[token.member]];
    };
    const RankSkeleton::Vertex& va = of(a);
    const RankSkeleton::Vertex& vb = of(b);
    if (va.op != vb.op) return false;
    if (va.op == Op::kPost) {
      return skeleton(a.member).posts[va.operand].signature ==
             skeleton(b.member).posts[vb.operand].signature;
    }
    const RankSkeleton::Control& ca = skeleton(a.member).controls[va.operand];
    const RankSkeleton::Control& cb = skeleton(b.member).controls[vb.operand];
    return ca.kind == cb.kind && ca.regions.size() == cb.regions.size();
  }

  // Decisions.
  void match_controls(std::vector<JointRegion>* next) {
    std::vector<std::pair<uint32_t, uint32_t>> entries;  // class, vertex
    for (uint32_t m = 0; m < members_.size(); ++m) {
      const std::vector<RankSkeleton::Vertex>& vertices = vertices_of(members_[m]);
      for (uint32_t v = 0; v < vertices.size(); ++v) {
        const uint32_t id = offsets_[m] + v;
        if (vertices[v].op == Op::kEnter) entries.push_back({find(id), id});
      }
    }
    std::sort(entries.begin(), entries.end());
    std::vector<uint32_t> joint;
    for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
      joint.clear();
      while (end < entries.size() && entries[end].first == entries[begin].first) {
        joint.push_back(entries[end++].second);
      }
      if (!are_one(joint)) continue;
      check_decision(joint);
      const size_t num_regions = control(joint[0]).regions.size();
      for (size_t i = 0; i < num_regions; ++i) {
        JointRegion inside;
        for (uint32_t id : joint) {
          inside.push_back({members_[member_of(id)].rank, control(id).regions[i]});
        }
        next->push_back(std::move(inside));
      }
    }
  }

  const RankSkeleton::Control& control(uint32_t id) const {
    EDDY_DCHECK(vertex(id).op == Op::kEnter) << "vertex " << id << " enters nothing";
    return skeleton(member_of(id)).controls[vertex(id).operand];
  }

  bool are_one(const std::vector<uint32_t>& joint) {
    for (size_t i = 1; i < joint.size(); ++i) {
      const uint32_t member = member_of(joint[i]);
      if (member != member_of(joint[i - 1])) continue;
      add(rank_name(member) + " has " + words(member, joint[i - 1]) + " and " +
          words(member, joint[i]) + " where other ranks have one, by the channels inside");
      return false;
    }
    return true;
  }

  // Of an agreement: the channel; its lane is inside, so all ranks of it are in `joint`.
  void check_decision(const std::vector<uint32_t>& joint) {
    EDDY_DCHECK(!joint.empty()) << "a decision of no rank";
    if (joint.size() == 1) return;
    const RankSkeleton::Control& first = control(joint[0]);
    for (uint32_t id : joint) {
      const RankSkeleton::Control& other = control(id);
      const uint32_t member = member_of(id);
      if (other.decision == Decision::kVarying) {
        return add(rank_name(member) + " meets " + rank_name(member_of(joint[id == joint[0]])) +
                   " in " + words(member, id) +
                   ", whose decision may differ; let it agree: all, any or root");
      }
      const bool is_alike = other.decision == first.decision && other.root == first.root;
      if (!is_alike || channel_of(id) != channel_of(joint[0])) {
        return add(rank_name(member) + " decides " + words(member, id) + " in another way than " +
                   rank_name(member_of(joint[0])));
      }
      if (other.agree_channel != kNone && channel_of(id).group.size() != joint.size()) {
        return add(rank_name(member) + " meets ranks in " + words(member, id) +
                   " that do not agree on its decision; their group must be all of them");
      }
    }
  }

  RankSkeleton::Channel channel_of(uint32_t id) const {
    const uint32_t channel = control(id).agree_channel;
    return channel == kNone ? RankSkeleton::Channel{} : skeleton(member_of(id)).channels[channel];
  }

  // No cycle. Behind the vertices stands one node for each class: all posts, then it, then all
  // completions.
  std::vector<Edge> joint_edges() {
    std::vector<Edge> edges;
    for (uint32_t m = 0; m < members_.size(); ++m) {
      const std::vector<RankSkeleton::Vertex>& vertices = vertices_of(members_[m]);
      for (uint32_t v = 0; v < vertices.size(); ++v) {
        const uint32_t id = offsets_[m] + v;
        for (uint32_t before : vertices[v].after) edges.push_back({offsets_[m] + before, id});
        const Op op = vertices[v].op;
        if (op == Op::kPost || op == Op::kEnter) edges.push_back({id, size_ + find(id)});
        if (is_closing(vertices[v])) {
          edges.push_back({size_ + find(offsets_[m] + vertices[v].operand), id});
        }
      }
    }
    return edges;
  }

  // By node: the others of its edges, `ends` behind the last of each.
  static void sort_edges(const std::vector<Edge>& edges, size_t num_nodes, bool by_to,
                         std::vector<uint32_t>* begins, std::vector<uint32_t>* others) {
    begins->assign(num_nodes + 1, 0);
    others->resize(edges.size());
    for (const Edge& edge : edges) ++(*begins)[(by_to ? edge.to : edge.from) + 1];
    std::partial_sum(begins->begin(), begins->end(), begins->begin());
    std::vector<uint32_t> place = *begins;
    for (const Edge& edge : edges) {
      (*others)[place[by_to ? edge.to : edge.from]++] = by_to ? edge.from : edge.to;
    }
  }

  void check_cycle() {
    const std::vector<Edge> edges = joint_edges();
    const size_t num_nodes = 2 * static_cast<size_t>(size_);
    std::vector<uint32_t> begins, others, degrees(num_nodes), ready;
    sort_edges(edges, num_nodes, false, &begins, &others);
    for (const Edge& edge : edges) ++degrees[edge.to];
    for (uint32_t node = 0; node < num_nodes; ++node) {
      if (degrees[node] == 0) ready.push_back(node);
    }
    for (size_t i = 0; i < ready.size(); ++i) {
      for (uint32_t e = begins[ready[i]]; e < begins[ready[i] + 1]; ++e) {
        if (--degrees[others[e]] == 0) ready.push_back(others[e]);
      }
    }
    if (ready.size() == num_nodes) return;
    uint32_t node = 0;
    while (degrees[node] == 0) ++node;
    sort_edges(edges, num_nodes, true, &begins, &others);
    add(describe_cycle(find_cycle(node, degrees, begins, others)));
  }

  // Each node with a degree left waits for another such node; a node, what it waits for, and so on.
  static std::vector<uint32_t> find_cycle(uint32_t node, const std::vector<uint32_t>& degrees,
                                          const std::vector<uint32_t>& begins,
                                          const std::vector<uint32_t>& before) {
    EDDY_DCHECK(degrees[node] > 0) << "node " << node << " waits for nothing";
    std::vector<uint32_t> path;
    std::vector<uint32_t> place(degrees.size(), kNone);
    while (place[node] == kNone) {
      place[node] = static_cast<uint32_t>(path.size());
      path.push_back(node);
      uint32_t e = begins[node];
      while (degrees[before[e]] == 0) ++e;
      node = before[e];
    }
    path.erase(path.begin(), path.begin() + place[node]);
    return path;
  }

  // Where the cycle crosses a class from a completion to another rank's post, a rank waits for it.
  std::string describe_cycle(const std::vector<uint32_t>& cycle) const {
    EDDY_DCHECK(!cycle.empty()) << "a cycle of no node";
    struct Wait {
      uint32_t member, post, target;
    };
    std::vector<Wait> waits;
    for (size_t i = 0; i < cycle.size(); ++i) {
      if (cycle[i] < size_) continue;
      const uint32_t done = cycle[(i + cycle.size() - 1) % cycle.size()];
      const uint32_t target = member_of(cycle[(i + 1) % cycle.size()]);
      const uint32_t member = member_of(done);
      if (member == target) continue;
      waits.push_back({member, offsets_[member] + vertex(done).operand, target});
    }
    std::string text;
    for (const Wait& wait : waits) {
      text += text.empty() ? rank_name(wait.member) : ", which";
      text += " waits in " + path_of(skeleton(wait.member), vertex(wait.post)) + " for " +
              rank_name(wait.target);
    }
    return text;
  }

  const std::span<const RankSkeleton> skeletons_;
  const RankLanes& lanes_;
  const JointRegion& members_;
  std::vector<std::string>* const violations_;
  std::vector<uint32_t> offsets_;
  uint32_t size_ = 0;
  std::vector<uint32_t> class_of_;
};

}  // namespace

RankProof prove_ranks(std::span<const RankSkeleton> skeletons) {
  RankProof proof;
  std::vector<const RankSkeleton*> all;
  JointRegion root;
  for (uint32_t rank = 0; rank < skeletons.size(); ++rank) {
    all.push_back(&skeletons[rank]);
    root.push_back({rank, 0});
    const std::string spoilt = find_spoilt(skeletons[rank], rank, skeletons.size());
    if (spoilt.empty()) continue;
    proof.violations.push_back("rank " + std::to_string(rank) + ": " + spoilt);
    if (proof.violations.size() == RankProof::kMaxViolations) break;
  }
  if (!proof.is_safe() || skeletons.empty()) return proof;
  const RankLanes lanes = find_lanes(all);
  for (uint32_t rank = 0; rank < skeletons.size(); ++rank) {
    check_chains(skeletons[rank], rank, lanes, &proof.violations);
  }
  std::vector<JointRegion> left = {root};
  while (!left.empty() && proof.violations.size() < RankProof::kMaxViolations) {
    const JointRegion region = std::move(left.back());
    left.pop_back();
    RegionProver(skeletons, lanes, region, &proof.violations).prove(&left);
  }
  return proof;
}

}  // namespace eddy
