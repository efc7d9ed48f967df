#include <algorithm>

#include "graph/proof/rank_proof.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
using Decision = RankSkeleton::Decision;
constexpr uint32_t kNone = RankSkeleton::kNone;

bool is_group(const std::vector<uint32_t>& group, uint32_t rank, size_t num_ranks) {
  if (group.empty() || group.back() >= num_ranks) return false;
  for (size_t i = 1; i < group.size(); ++i) {
    if (group[i - 1] >= group[i]) return false;
  }
  return std::binary_search(group.begin(), group.end(), rank);
}

std::string spoilt_post(const RankSkeleton& skeleton, const RankSkeleton::Post& post,
                        uint32_t rank) {
  if (post.channel >= skeleton.channels.size()) return post.path + " has no channel";
  const std::vector<uint32_t>& group = skeleton.channels[post.channel].group;
  const auto has = [&](uint32_t r) { return std::binary_search(group.begin(), group.end(), r); };
  if (post.signature.root != kNone && !has(post.signature.root)) {
    return post.path + " has a root outside its group";
  }
  if (post.from == kNone && post.to == kNone) return {};
  if (!has(post.from) || !has(post.to) || post.from == post.to) {
    return post.path + " needs two ranks of its group";
  }
  if (post.from != rank && post.to != rank) return post.path + " is between two other ranks";
  return {};
}

std::string spoilt_control(const RankSkeleton& skeleton, const RankSkeleton::Control& control) {
  const bool is_loop = control.kind == RankSkeleton::ControlKind::kLoop;
  if (!is_loop && control.kind != RankSkeleton::ControlKind::kCase) {
    return control.path + " is neither a loop nor a case";
  }
  if (is_loop && control.regions.size() != 2) return control.path + " needs two regions";
  if (!is_loop && control.is_pipelined) return control.path + " is a case and pipelined";
  if (control.decision > Decision::kAgreeRoot) return control.path + " is decided in no known way";
  const bool agrees = control.decision >= Decision::kAgreeAll;
  if (agrees != (control.agree_channel != kNone) ||
      (agrees && control.agree_channel >= skeleton.channels.size())) {
    return control.path + " needs a channel exactly where it agrees";
  }
  if ((control.decision == Decision::kAgreeRoot) != (control.root != kNone)) {
    return control.path + " needs a root exactly where the root decides";
  }
  if (control.decision != Decision::kAgreeRoot) return {};
  const std::vector<uint32_t>& group = skeleton.channels[control.agree_channel].group;
  if (std::binary_search(group.begin(), group.end(), control.root)) return {};
  return control.path + " has a root outside its group";
}

// What encloses each region, and whether every list is used once. A vertex of a region that was
// reached before its own index came has depth and owner.
struct Uses {
  std::vector<uint32_t> depth;  // by region; kNone: not owned yet
  std::vector<uint32_t> owner;  // by region: its control
  std::vector<bool> post, control;
};

bool all_below(const std::vector<uint32_t>& ids, size_t bound) {
  return std::all_of(ids.begin(), ids.end(), [&](uint32_t id) { return id < bound; });
}

std::string use_control(const RankSkeleton& skeleton, uint32_t id, uint32_t region, Uses* uses) {
  if (id >= skeleton.controls.size() || uses->control[id]) return "a loop or case is entered twice";
  uses->control[id] = true;
  for (uint32_t child : skeleton.controls[id].regions) {
    if (child <= region || child >= skeleton.regions.size() || uses->depth[child] != kNone) {
      return "a region has not one loop or case around it";
    }
    uses->depth[child] = uses->depth[region] + 1;
    uses->owner[child] = id;
    if (uses->depth[child] > RankProof::kMaxDepth) return "regions are nested too deeply";
  }
  return {};
}

// The vertex of this kind that `end` (a done or leave) belongs to, each once.
bool closes(const RankSkeleton::Region& region, uint32_t end, Op begin, std::vector<bool>* closed) {
  const uint32_t start = region.vertices[end].operand;
  if (start >= end || region.vertices[start].op != begin || (*closed)[start]) return false;
  (*closed)[start] = true;
  return true;
}

// The region whose iteration before `previous` names; kNone where there may be none.
uint32_t previous_region(const RankSkeleton& skeleton, uint32_t region, const Uses& uses) {
  if (uses.owner[region] == kNone) return kNone;
  const RankSkeleton::Control& control = skeleton.controls[uses.owner[region]];
  return control.is_pipelined ? control.regions[1] : kNone;
}

std::string spoilt_vertex(const RankSkeleton& skeleton, uint32_t r, uint32_t v, Uses* uses,
                          std::vector<bool>* closed) {
  const RankSkeleton::Region& region = skeleton.regions[r];
  const RankSkeleton::Vertex& vertex = region.vertices[v];
  if (!all_below(vertex.after, v)) return "a vertex waits for a later one";
  if (!vertex.previous.empty()) {
    const uint32_t before = previous_region(skeleton, r, *uses);
    if (before == kNone || !all_below(vertex.previous, skeleton.regions[before].vertices.size())) {
      return "a vertex waits for an iteration that does not overlap with its own";
    }
  }
  switch (vertex.op) {
    case Op::kPoint:
      return {};
    case Op::kPost:
      if (vertex.operand >= uses->post.size() || uses->post[vertex.operand]) {
        return "an operation is posted twice";
      }
      uses->post[vertex.operand] = true;
      return {};
    case Op::kDone:
      return closes(region, v, Op::kPost, closed) ? "" : "a completion has no post of its own";
    case Op::kEnter:
      return use_control(skeleton, vertex.operand, r, uses);
    case Op::kLeave:
      return closes(region, v, Op::kEnter, closed) ? "" : "an exit has no entry of its own";
  }
  return "a vertex is of no known kind";
}

std::string spoilt_region(const RankSkeleton& skeleton, uint32_t r, Uses* uses) {
  const RankSkeleton::Region& region = skeleton.regions[r];
  if (uses->depth[r] == kNone) return "a region has no loop or case around it";
  std::vector<bool> closed(region.vertices.size());
  for (uint32_t v = 0; v < region.vertices.size(); ++v) {
    std::string spoilt = spoilt_vertex(skeleton, r, v, uses, &closed);
    if (!spoilt.empty()) return spoilt;
  }
  for (uint32_t v = 0; v < region.vertices.size(); ++v) {
    const RankSkeleton::Vertex& vertex = region.vertices[v];
    if (closed[v]) continue;
    if (vertex.op == Op::kPost) return skeleton.posts[vertex.operand].path + " never completes";
    if (vertex.op == Op::kEnter) return skeleton.controls[vertex.operand].path + " is never left";
  }
  return all_below(region.end, region.vertices.size()) ? "" : "a region's end waits for no vertex";
}

}  // namespace

std::string find_spoilt(const RankSkeleton& skeleton, uint32_t rank, size_t num_ranks) {
  if (skeleton.regions.empty()) return "it has no root region";
  for (const RankSkeleton::Channel& channel : skeleton.channels) {
    if (!is_group(channel.group, rank, num_ranks)) {
      return "the group of a channel is not ascending ranks of the world with this rank among them";
    }
  }
  for (const RankSkeleton::Post& post : skeleton.posts) {
    std::string spoilt = spoilt_post(skeleton, post, rank);
    if (!spoilt.empty()) return spoilt;
  }
  for (const RankSkeleton::Control& control : skeleton.controls) {
    std::string spoilt = spoilt_control(skeleton, control);
    if (!spoilt.empty()) return spoilt;
  }
  Uses uses;
  uses.depth.assign(skeleton.regions.size(), kNone);
  uses.owner.assign(skeleton.regions.size(), kNone);
  uses.post.resize(skeleton.posts.size());
  uses.control.resize(skeleton.controls.size());
  uses.depth[0] = 0;
  for (uint32_t r = 0; r < skeleton.regions.size(); ++r) {
    std::string spoilt = spoilt_region(skeleton, r, &uses);
    if (!spoilt.empty()) return spoilt;
  }
  const auto all = [](const std::vector<bool>& used) {
    return std::find(used.begin(), used.end(), false) == used.end();
  };
  return all(uses.post) && all(uses.control) ? "" : "an operation, loop or case stands nowhere";
}

}  // namespace eddy
