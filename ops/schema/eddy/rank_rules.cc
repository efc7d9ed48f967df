#include "ops/schema/eddy/rank_rules.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/base/fingerprint.h"
#include "graph/compile/equal_nodes.h"
#include "graph/ir/node_facts.h"
#include "ops/schema/eddy/collective.h"

namespace eddy {
namespace {

using Kind = CollectiveKind;

bool is_agree(const Node& node) { return node.op->domain == "eddy" && node.op->name == "Agree"; }

bool communicates(const Node& node) {
  return node.kind == NodeKind::kExec && has_effects(node) && !calls_host_function(node) &&
         !is_agree(node);
}

bool is_message(const Collective& collective) {
  return collective.kind == Kind::kSend || collective.kind == Kind::kRecv;
}

std::string list(std::span<const int64_t> ranks) {
  std::string text;
  for (const int64_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

std::vector<uint32_t> all_ranks(const RankWorld& world) {
  std::vector<uint32_t> ranks(world.num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

Status check(const Collective& collective, const RankWorld& world) {
  const std::string of = " of " + std::to_string(world.num_ranks) + " ranks";
  for (const int64_t rank : collective.group) {
    if (rank >= world.num_ranks) {
      return invalid_argument("its group has rank " + std::to_string(rank) + ", which is none" +
                              of);
    }
  }
  if (collective.group.empty() && collective.num_ranks > 0 &&
      collective.num_ranks != world.num_ranks) {
    return invalid_argument("its size is " + std::to_string(collective.num_ranks) + ", but there " +
                            "are " + std::to_string(world.num_ranks) + " ranks");
  }
  if (!collective.group.empty() &&
      std::ranges::count(collective.group, static_cast<int64_t>(world.rank)) == 0) {
    return invalid_argument("rank " + std::to_string(world.rank) + " is not in its group " +
                            list(collective.group) + "; leave it out of this rank's graph");
  }
  const bool has_root = is_message(collective) || collective.kind == Kind::kBroadcast;
  if (has_root && collective.root >= world.num_ranks) {
    return invalid_argument("its root is rank " + std::to_string(collective.root) +
                            ", which is none" + of);
  }
  if (is_message(collective) && collective.root == world.rank) {
    return invalid_argument("rank " + std::to_string(world.rank) + " is its own other side");
  }
  if (collective.channel >= RankWorld::kAgreeChannel) {
    return invalid_argument("its channel is " + std::to_string(collective.channel) +
                            "; it must be below " + std::to_string(RankWorld::kAgreeChannel));
  }
  return Status::ok();
}

// A node's attributes with what is known where there is a world.
Attributes known_attributes(const Node& node, const RankWorld& world) {
  Attributes attributes = node.attributes;
  if (!communicates(node) || node.op->name == "Send" || node.op->name == "Recv") return attributes;
  const std::span<const int64_t> group = node.attributes.get_ints("group");
  if (group.empty() && !attributes.has("size")) attributes.set("size", int64_t{world.num_ranks});
  if (node.op->name != "Exchange") return attributes;
  const auto own = std::ranges::find(group, int64_t{world.rank}) - group.begin();
  attributes.set("place", group.empty() ? int64_t{world.rank} : int64_t{own});
  return attributes;
}

// What all ranks combine with: equal bits on all of them only if exact, or in one order.
bool makes_equal(const Collective& c) {
  switch (c.kind) {
    case Kind::kAllReduce:
      return c.in_rank_order ||
             (c.reduction != RankReduction::kSum && c.reduction != RankReduction::kProd &&
              c.reduction != RankReduction::kAverage);
    case Kind::kAllGather:
    case Kind::kBroadcast:
    case Kind::kBarrier:
      return true;
    default:
      return false;
  }
}

Status check_boxes(const Node& node, const RankWorld& world) {
  EDDY_ASSIGN_OR_RETURN(const Collective c,
                        read_collective(node.op->name, known_attributes(node, world)));
  return exchange_pieces(c.from, c.to).status();
}

bool reduces(const Collective& c) {
  return c.kind == Kind::kAllReduce || c.kind == Kind::kReduceScatter;
}

bool has_axis(const Collective& c) {
  return c.kind == Kind::kAllGather || c.kind == Kind::kReduceScatter || c.kind == Kind::kAllToAll;
}

Communication message(const Node& node, const Collective& c, uint32_t rank) {
  const auto other = static_cast<uint32_t>(c.root);
  const bool sends = c.kind == Kind::kSend;
  return {
      .kind = "message",
      .channel = {{std::min(rank, other), std::max(rank, other)}, static_cast<uint32_t>(c.channel)},
      .from = sends ? rank : other,
      .to = sends ? other : rank,
      .moved = sends ? node.inputs[0] : node.outputs[0]};
}

std::optional<Communication> read(const Node& node, const RankWorld& world) {
  if (!communicates(node)) return std::nullopt;
  const Result<Collective> read = read_collective(node.op->name, node.attributes);
  EDDY_CHECK(read.is_ok()) << node.name << ": " << read.status().to_string();
  const Collective& c = *read;
  if (is_message(c)) return message(node, c, world.rank);
  Communication result;
  result.kind = node.op->name;
  result.channel = {std::vector<uint32_t>(c.group.begin(), c.group.end()),
                    static_cast<uint32_t>(c.channel)};
  if (c.group.empty()) result.channel.group = all_ranks(world);
  if (result.channel.group.size() == 1) return std::nullopt;
  if (has_axis(c) && c.axis != 0) result.kind += " along axis " + std::to_string(c.axis);
  if (c.kind == Kind::kExchange) {
    Fingerprint boxes;
    for (const char* const attribute : {"from", "to"}) {
      for (const int64_t number : node.attributes.get_ints(attribute)) {
        boxes.add(static_cast<uint64_t>(number));
      }
    }
    result.kind += " of boxes " + boxes.text();
    result.has_own_shape = true;
  }
  if (!std::ranges::is_sorted(c.group)) result.kind += " in order " + list(c.group);
  std::ranges::sort(result.channel.group);
  if (reduces(c)) {
    result.reduction = node.attributes.get_string("reduction", "sum");
    if (!c.in_rank_order) result.reduction += " in any order";
  }
  if (c.kind == Kind::kBroadcast) result.root = static_cast<uint32_t>(c.root);
  if (c.kind != Kind::kBarrier) result.moved = node.inputs[0];
  result.makes_equal = makes_equal(c);
  return result;
}

// For a node that the schema has accepted.
Agreement read_mark(const Node& node, const RankWorld& world) {
  Agreement result;
  result.decision = parse_agree(node.attributes.get_string("how", "")).value();
  const std::span<const int64_t> group = node.attributes.get_ints("group");
  result.channel = {std::vector<uint32_t>(group.begin(), group.end()), RankWorld::kAgreeChannel};
  if (group.empty()) result.channel.group = all_ranks(world);
  std::ranges::sort(result.channel.group);
  if (result.decision != RankSkeleton::Decision::kAgreeRoot) return result;
  const int64_t first = group.empty() ? 0 : group[0];
  result.root = static_cast<uint32_t>(node.attributes.get_int("root", first));
  return result;
}

// Draws numbers that nothing fixes.
bool draws_unseeded(const Node& node) {
  if (!node.op->domain.empty() || !draws_random_numbers(node)) return false;
  if (node.attributes.has("seed")) return false;
  if (node.op->name != "Dropout") return true;
  if (node.op->since_version < 7) return node.attributes.get_int("is_test", 0) == 0;
  return node.inputs.size() > 2 && !node.inputs[2].is_none();  // else it does not train
}

bool is_varying(const Node& node) {
  const bool is_rank = node.op->domain == "eddy" && node.op->name == "Rank";
  return is_rank || calls_host_function(node) || draws_unseeded(node);
}

}  // namespace

Status check_communication(const Graph& graph, const RankWorld& world) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    const bool is_mark = node.kind == NodeKind::kExec && is_agree(node);
    if (!communicates(node) && !is_mark) continue;
    // A mark's group and root are checked as those of a copy. What is wrong with the group comes
    // first: a place in it is known behind that.
    EDDY_ASSIGN_OR_RETURN(const Collective c,
                          read_collective(is_mark ? "Broadcast" : node.op->name, node.attributes));
    Status status = check(c, world);
    if (status.is_ok() && c.kind == Kind::kExchange) status = check_boxes(node, world);
    if (!status.is_ok()) return std::move(status.prepend_message(graph.path(NodeId(n))));
  }
  return Status::ok();
}

RankRules standard_rank_rules(const RankWorld& world) {
  RankRules rules;
  rules.communication = [world](const Node& node) { return read(node, world); };
  rules.is_varying = is_varying;
  rules.is_replicated = [world](size_t i) {
    return i < world.replicated.size() && world.replicated[i];
  };
  rules.agreement = [world](const Node& node) -> Agreement {
    const auto found = world.agreement.find(node.name);
    if (found == world.agreement.end()) return {};
    const RankWorld::Agree& agree = found->second;
    return {
        agree.decision,
        {agree.group.empty() ? all_ranks(world) : agree.group, RankWorld::kAgreeChannel},
        agree.decision == RankSkeleton::Decision::kAgreeRoot ? agree.root : RankSkeleton::kNone};
  };
  rules.mark = [world](const Node& node) -> std::optional<Agreement> {
    if (!is_agree(node)) return std::nullopt;
    return read_mark(node, world);
  };
  rules.is_one_graph = world.is_one_graph;
  return rules;
}

TieRules standard_tie_rules(const RankWorld& world) {
  TieRules ties;
  ties.attributes = [world](const Node& node) { return known_attributes(node, world); };
  ties.join = [rank = world.rank](GraphBuilder& builder, std::span<const Value> after) {
    return builder.op("Barrier", after, {{"group", std::vector<int64_t>{rank}}},
                      {.name = "tie", .domain = "eddy"});
  };
  return ties;
}

AgreeRules standard_agree_rules() {
  AgreeRules agrees;
  agrees.agree = [](GraphBuilder& builder, Value decision, const Agreement& agreement,
                    std::string name) {
    const std::vector<uint32_t>& ranks = agreement.channel.group;
    Attributes attributes = {{"group", std::vector<int64_t>(ranks.begin(), ranks.end())},
                             {"channel", int64_t{agreement.channel.number}}};
    const OpOptions options{.name = std::move(name), .domain = "eddy"};
    if (agreement.decision == RankSkeleton::Decision::kAgreeRoot) {
      attributes.set("root", int64_t{agreement.root});
      return builder.op("Broadcast", {decision}, std::move(attributes), options);
    }
    const bool is_flag = builder.type(decision).tensor.element == ElementType::kBool;
    const bool is_all = agreement.decision == RankSkeleton::Decision::kAgreeAll;
    attributes.set("reduction",
                   std::string(is_flag ? (is_all ? "and" : "or") : (is_all ? "min" : "max")));
    return builder.op("AllReduce", {decision}, std::move(attributes), options);
  };
  agrees.within = [](GraphBuilder& builder, Value predicate, Value iteration, Value limit) {
    return builder.op("And", {predicate, builder.op("Less", {iteration, limit})});
  };
  return agrees;
}

}  // namespace eddy
