#include "graph/proof/rank_text.h"

#include <utility>
#include <vector>

#include "graph/proof/rank_lanes.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
using Decision = RankSkeleton::Decision;
constexpr uint32_t kNone = RankSkeleton::kNone;

std::string control_text(const RankSkeleton& skeleton, const RankSkeleton::Control& control) {
  const bool is_loop = control.kind == RankSkeleton::ControlKind::kLoop;
  std::string text = (is_loop ? "loop " : "case ") + control.path + ": ";
  switch (control.decision) {
    case Decision::kVarying:
      return text + "ranks decide apart";
    case Decision::kUniform:
      return text + "ranks decide alike";
    case Decision::kAgreeAll:
      text += is_loop ? "goes on while all ranks would" : "true where all ranks say so";
      break;
    case Decision::kAgreeAny:
      text += is_loop ? "goes on while any rank would" : "true where any rank says so";
      break;
    case Decision::kAgreeRoot:
      text += "rank " + std::to_string(control.root) + " decides";
      break;
  }
  return text + ", agreed on by ranks " +
         list_ranks(skeleton.channels[control.agree_channel].group);
}

// A region to be described, and how deep it stands; a loop or case is described before what follows
// it, so the walk keeps a stack of positions.
struct Position {
  uint32_t region;
  size_t vertex = 0;
  size_t depth = 0;
};

bool has_operations(const RankSkeleton::Region& region) {
  for (const RankSkeleton::Vertex& vertex : region.vertices) {
    if (vertex.op == Op::kPost || vertex.op == Op::kEnter) return true;
  }
  return false;
}

}  // namespace

std::string channel_text(const RankSkeleton& skeleton, const RankSkeleton::Post& post) {
  return describe(RankLanes::Lane{skeleton.channels[post.channel], post.from, post.to});
}

std::string operation_text(const RankSkeleton& skeleton, const RankSkeleton::Vertex& vertex) {
  if (vertex.op == Op::kEnter) {
    const RankSkeleton::Control& control = skeleton.controls[vertex.operand];
    const bool is_loop = control.kind == RankSkeleton::ControlKind::kLoop;
    return (is_loop ? "the loop " : "the case ") + control.path;
  }
  const RankSkeleton::Post& post = skeleton.posts[vertex.operand];
  const RankSkeleton::Signature& signature = post.signature;
  std::string text = post.path + " (" + signature.kind;
  if (!signature.reduction.empty()) text += " " + signature.reduction;
  if (!signature.type.empty()) text += " " + signature.type + signature.shape;
  if (signature.root != kNone) text += ", root " + std::to_string(signature.root);
  if (!signature.tag.empty() && signature.tag != post.path) text += ", tag " + signature.tag;
  return text + ")";
}

std::string skeleton_text(const RankSkeleton& skeleton) {
  std::string text;
  std::vector<Position> stack;
  if (!skeleton.regions.empty()) stack.push_back({0});
  // Where a region's title comes from: set when it is entered.
  std::vector<std::string> titles(skeleton.regions.size());
  while (!stack.empty()) {
    Position& at = stack.back();
    const std::string indent(2 * at.depth, ' ');
    const RankSkeleton::Region& region = skeleton.regions[at.region];
    if (at.vertex == 0 && !titles[at.region].empty()) {
      text += indent.substr(2) + titles[at.region] + "\n";
    }
    if (at.vertex == region.vertices.size()) {
      stack.pop_back();
      continue;
    }
    const RankSkeleton::Vertex& vertex = region.vertices[at.vertex++];
    if (vertex.op == Op::kPost) {
      const RankSkeleton::Post& post = skeleton.posts[vertex.operand];
      text +=
          indent + operation_text(skeleton, vertex) + ", on " + channel_text(skeleton, post) + "\n";
    }
    if (vertex.op != Op::kEnter) continue;
    const RankSkeleton::Control& control = skeleton.controls[vertex.operand];
    text += indent + control_text(skeleton, control) + "\n";
    const bool is_loop = control.kind == RankSkeleton::ControlKind::kLoop;
    const size_t depth = at.depth + 2;
    for (size_t i = control.regions.size(); i-- > 0;) {
      const uint32_t inner = control.regions[i];
      if (!has_operations(skeleton.regions[inner])) continue;
      titles[inner] =
          is_loop ? (i == 0 ? "before:" : "after:") : "branch " + std::to_string(i) + ":";
      stack.push_back({inner, 0, depth});
    }
  }
  return text;
}

}  // namespace eddy
