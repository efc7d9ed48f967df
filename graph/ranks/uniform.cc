#include "graph/ranks/uniform.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

using Decision = RankSkeleton::Decision;
using Group = std::vector<uint32_t>;

bool covers(const Group& all, const Group& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

// Which value makes which others vary.
class Spread {
 public:
  Spread(const Graph& graph, const RankRules& rules, const Group& group)
      : graph_(graph), rules_(rules), group_(group) {}

  void collect() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (!rules_.is_one_graph || !rules_.is_replicated(i)) sources.push_back(graph_.inputs()[i]);
    }
    for (size_t v = 0; !rules_.is_one_graph && v < graph_.num_values(); ++v) {
      const ValueId value(static_cast<uint32_t>(v));
      if (graph_.value(value).origin == ValueOrigin::kConstant) sources.push_back(value);
    }
    for (size_t n = 0; n < graph_.num_nodes(); ++n) {
      const Node& node = graph_.node(NodeId(static_cast<uint32_t>(n)));
      if (node.kind == NodeKind::kExec) add_exec(node);
      if (node.kind == NodeKind::kWhile) add_loop(LoopView(graph_, node));
      if (node.kind == NodeKind::kCaseOf) add_case(CaseView(graph_, node));
    }
  }

  std::vector<ValueId> sources;
  std::vector<std::pair<ValueId, ValueId>> edges;

 private:
  void add(ValueId from, ValueId to) {
    if (!from.is_none() && !to.is_none()) edges.push_back({from, to});
  }
  template <typename From, typename To>
  void add_each(const From& from, const To& to) {
    EDDY_DCHECK(from.size() == to.size()) << from.size() << " values become " << to.size();
    for (size_t i = 0; i < std::min<size_t>(from.size(), to.size()); ++i) add(from[i], to[i]);
  }
  void add_all(ValueId from, std::span<const ValueId> to) {
    for (ValueId value : to) add(from, value);
  }

  void add_exec(const Node& node) {
    const std::optional<Communication> communication = rules_.communication(node);
    if (communication.has_value() && communication->makes_equal &&
        covers(communication->channel.group, group_)) {
      return;
    }
    // What comes from other ranks is never known to be equal here.
    if (communication.has_value() || !rules_.is_one_graph || rules_.is_varying(node)) {
      sources.insert(sources.end(), node.outputs.begin(), node.outputs.end());
      return;
    }
    // By way of the first output, so that many inputs and many outputs are few edges.
    for (ValueId input : node.inputs) {
      if (!node.outputs.empty()) add(input, first_of(node));
    }
    for (ValueId output : node.outputs) {
      if (!(output == first_of(node))) add(first_of(node), output);
    }
  }
  static ValueId first_of(const Node& node) {
    for (ValueId output : node.outputs) {
      if (!output.is_none()) return output;
    }
    return ValueId();
  }

  bool agrees(const Node& node) const {
    const Agreement agreement = find_agreement(graph_, node, rules_);
    return agreement.decision >= Decision::kAgreeAll && covers(agreement.channel.group, group_);
  }

  void add_loop(const LoopView& loop) {
    add_each(loop.initial(), loop.carried());
    add_each(loop.next(), loop.carried());
    add_each(loop.forwarded(), loop.received());
    add_each(loop.forwarded(), loop.outputs());
    add_each(loop.rows(), loop.stacked());
    if (agrees(loop.node())) return;
    add_all(loop.predicate(), loop.node().outputs);
    add_all(loop.trip_limit(), loop.node().outputs);
  }

  void add_case(const CaseView& branches) {
    for (size_t i = 0; i < branches.num_branches(); ++i) {
      add_each(branches.results(i), branches.outputs());
    }
    if (branches.has_pass_through()) add_each(branches.pass_through(), branches.outputs());
    if (!agrees(branches.node())) add_all(branches.selector(), branches.outputs());
  }

  const Graph& graph_;
  const RankRules& rules_;
  const Group& group_;
};

std::string value_name(const Graph& graph, ValueId id) {
  const ValueInfo& value = graph.value(id);
  if (value.origin == ValueOrigin::kNodeOutput) return graph.path(value.producer);
  if (!value.name.empty()) return value.name;
  if (value.origin == ValueOrigin::kConstant) return "a constant";
  return "input " + std::to_string(value.index);
}

std::string list(const Group& group) {
  std::string text;
  for (uint32_t rank : group) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

Status differing(const Graph& graph, const Node& node, const std::string& path,
                 const Uniformity& uniformity, ValueId decision, const Group& group,
                 const std::string& communication) {
  const std::vector<ValueId> way = uniformity.reasons(decision);
  std::string text = node.kind == NodeKind::kWhile ? "loop " : "case ";
  text += path + " holds " + communication + " over ranks " + list(group) +
          ", which may decide differently: " + value_name(graph, way.front()) + " may differ";
  for (size_t i = 1; i < way.size(); ++i) {
    const bool is_cut = way.size() > 10 && i >= 5 && i + 5 < way.size();
    if (is_cut && i == 5) text += " -> ...";
    if (!is_cut) text += " -> " + value_name(graph, way[i]);
  }
  return invalid_argument(text + "; set its agree to all, any or root");
}

// What a loop or case holds.
struct Held {
  Group group;
  NodeId communication;
};

std::map<uint32_t, Held> find_held(const Graph& graph, const RankRules& rules) {
  std::map<uint32_t, Held> held;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec) continue;
    const std::optional<Communication> communication = rules.communication(node);
    if (!communication.has_value()) continue;
    for (NodeId owner = graph.region(node.region).owner; !owner.is_none();
         owner = graph.region(graph.node(owner).region).owner) {
      const auto [it, is_new] = held.try_emplace(static_cast<uint32_t>(owner.index()));
      if (is_new) it->second.communication = NodeId(n);
      Group all;
      const Group& group = communication->channel.group;
      std::set_union(it->second.group.begin(), it->second.group.end(), group.begin(), group.end(),
                     std::back_inserter(all));
      it->second.group = std::move(all);
    }
  }
  return held;
}

}  // namespace

Uniformity::Uniformity(const Graph& graph, const RankRules& rules, const Group& group)
    : reason_(graph.num_values(), kUniform) {
  EDDY_DCHECK(graph.num_values() < kSource) << "a value has the number of a mark";
  Spread spread(graph, rules, group);
  spread.collect();
  std::vector<uint32_t> begins(graph.num_values() + 1), targets(spread.edges.size());
  for (const auto& [from, to] : spread.edges) ++begins[from.index() + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<uint32_t> place = begins;
  for (const auto& [from, to] : spread.edges) {
    targets[place[from.index()]++] = static_cast<uint32_t>(to.index());
  }
  std::vector<uint32_t> reached;
  for (ValueId source : spread.sources) {
    if (source.is_none() || reason_[source.index()] != kUniform) continue;
    reason_[source.index()] = kSource;
    reached.push_back(static_cast<uint32_t>(source.index()));
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    for (uint32_t e = begins[reached[i]]; e < begins[reached[i] + 1]; ++e) {
      if (reason_[targets[e]] != kUniform) continue;
      reason_[targets[e]] = reached[i];
      reached.push_back(targets[e]);
    }
  }
}

std::vector<ValueId> Uniformity::reasons(ValueId value) const {
  EDDY_CHECK(!is_uniform(value)) << "nothing makes it vary";
  std::vector<ValueId> way = {value};
  while (reason_[way.back().index()] != kSource)
    way.push_back(ValueId(reason_[way.back().index()]));
  std::reverse(way.begin(), way.end());
  return way;
}

Result<Decisions> find_decisions(const Graph& graph, const RankRules& rules) {
  Decisions decisions;
  decisions.holds.resize(graph.num_nodes());
  decisions.by_node.resize(graph.num_nodes());
  std::map<Group, Uniformity> known;
  for (const auto& [n, held] : find_held(graph, rules)) {
    const Node& node = graph.node(NodeId(n));
    EDDY_DCHECK(node.kind != NodeKind::kExec) << node.name << " holds no nodes";
    decisions.holds[n] = true;
    const auto [it, is_new] = known.try_emplace(held.group, graph, rules, held.group);
    const Uniformity& uniformity = it->second;
    const bool is_loop = node.kind == NodeKind::kWhile;
    ValueId decision = is_loop ? LoopView(graph, node).predicate() : node.inputs[0];
    if (uniformity.is_uniform(decision) && is_loop) decision = node.inputs[0];
    if (uniformity.is_uniform(decision)) {
      decisions.by_node[n].decision = Decision::kUniform;
      continue;
    }
    const Agreement agreement = find_agreement(graph, node, rules);
    if (agreement.decision < Decision::kAgreeAll) {
      return differing(graph, node, graph.path(NodeId(n)), uniformity, decision, held.group,
                       graph.path(held.communication));
    }
    if (!covers(agreement.channel.group, held.group)) {
      return invalid_argument((is_loop ? "loop " : "case ") + graph.path(NodeId(n)) + " holds " +
                              graph.path(held.communication) + " over ranks " + list(held.group) +
                              ", but only ranks " + list(agreement.channel.group) +
                              " agree on its decision; name them all in its group");
    }
    decisions.by_node[n] = agreement;
  }
  return decisions;
}

Agreement find_agreement(const Graph& graph, const Node& control, const RankRules& rules) {
  EDDY_DCHECK(control.kind != NodeKind::kExec) << control.name << " decides nothing";
  const bool is_loop = control.kind == NodeKind::kWhile;
  const ValueId decision = is_loop ? LoopView(graph, control).predicate() : control.inputs[0];
  const ValueInfo& value = graph.value(decision);
  if (rules.mark && value.origin == ValueOrigin::kNodeOutput) {
    const Node& producer = graph.node(value.producer);
    const bool is_exec = producer.kind == NodeKind::kExec;
    if (const auto marked = is_exec ? rules.mark(producer) : std::nullopt) return *marked;
  }
  return rules.agreement(control);
}

Result<RankSkeleton::Decision> parse_agree(std::string_view text) {
  if (text.empty()) return Decision::kVarying;
  if (text == "all") return Decision::kAgreeAll;
  if (text == "any") return Decision::kAgreeAny;
  if (text == "root") return Decision::kAgreeRoot;
  return invalid_argument("agree is '" + std::string(text) + "'; it must be all, any or root");
}

}  // namespace eddy
