#include "graph/ranks/tie_channels.h"

#include <compare>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

// What follows one order.
struct Chain {
  RankSkeleton::Channel channel;
  uint32_t from = RankSkeleton::kNone;
  uint32_t to = RankSkeleton::kNone;
  auto operator<=>(const Chain&) const = default;
};

// The last of each chain so far, in the region that is copied: what it made.
using Ends = std::map<Chain, Value>;

class Tying : public GraphCopier {
 public:
  Tying(const Graph& source, GraphBuilder& builder, const RankRules& rules, const TieRules& ties)
      : GraphCopier(source, builder), rules_(rules), ties_(ties), held_(source.num_nodes()) {
    for (uint32_t n = 0; n < source.num_nodes(); ++n) {
      const Node& node = source.node(NodeId(n));
      if (node.kind != NodeKind::kExec) continue;
      const std::optional<Communication> communication = rules.communication(node);
      if (communication.has_value()) add_to_owners(node, chain_of(*communication));
    }
    for (uint32_t n = 0; n < source.num_nodes(); ++n) {
      const Node& node = source.node(NodeId(n));
      if (node.kind == NodeKind::kExec || held_[n].empty()) continue;
      const Agreement agreement = find_agreement(source, node, rules);
      if (agreement.decision < RankSkeleton::Decision::kAgreeAll) continue;
      held_[n].insert({.channel = agreement.channel});
      add_to_owners(node, {.channel = agreement.channel});
    }
  }

 private:
  static Chain chain_of(const Communication& communication) {
    EDDY_DCHECK((communication.from == RankSkeleton::kNone) ==
                (communication.to == RankSkeleton::kNone))
        << "a message has a source and a target";
    return {communication.channel, communication.from, communication.to};
  }
  void add_to_owners(const Node& node, const Chain& chain) {
    for (NodeId owner = source_.region(node.region).owner; !owner.is_none();
         owner = source_.region(source_.node(owner).region).owner) {
      held_[owner.index()].insert(chain);
    }
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    std::vector<Value> inputs = values(node.inputs);
    const std::optional<Communication> communication = rules_.communication(node);
    Value* end = nullptr;
    if (communication.has_value()) {
      end = &ends_[chain_of(*communication)];
      if (!end->is_none()) inputs.push_back(*end);
    }
    const std::vector<Value> made = copy_exec(id, inputs, node.device, ties_.attributes(node));
    if (end != nullptr && !made.empty()) *end = made[0];
  }

  Value join(Value end) {
    if (end.is_none()) return ties_.join(builder_, {});
    return ties_.join(builder_, std::span(&end, 1));
  }
  // A flag for each chain that `id` holds, behind the chain's last.
  void push_flags(NodeId id, std::vector<Value>* values) {
    for (const Chain& chain : held_[id.index()]) values->push_back(join(ends_[chain]));
  }
  // The chains that `id` holds end with these flags.
  void set_ends(NodeId id, std::span<const Value> flags) {
    EDDY_DCHECK(flags.empty() || flags.size() == held_[id.index()].size())
        << flags.size() << " flags for " << held_[id.index()].size() << " chains";
    size_t i = 0;
    for (const Chain& chain : held_[id.index()]) {
      if (i < flags.size()) ends_[chain] = flags[i++];
    }
  }
  static std::span<const Value> behind(std::span<const Value> values, size_t count) {
    return values.subspan(std::min(count, values.size()));
  }

  void loop(NodeId id) override {
    CarriedToo flags;
    push_flags(id, &flags.initial);
    flags.begin = [&](RegionId, ValueSpan given) {
      ends_.clear();
      set_ends(id, given);
    };
    flags.end = [&](RegionId) {
      std::vector<Value> handed_on;
      push_flags(id, &handed_on);
      return handed_on;
    };
    const Ends outside = std::move(ends_);
    const std::vector<Value> last = copy_loop(id, flags);
    ends_ = outside;
    set_ends(id, last);
  }

  void branch(NodeId id) override {
    const CaseView choice(source_, id);
    CaseOptions options;
    options.name = choice.node().name;
    options.selector = value(choice.node().inputs[0]);
    options.default_region = choice.node().default_region;
    options.pass_through = values(choice.pass_through());
    // Without pass-through values a selector out of range is an error, also behind this pass.
    if (choice.has_pass_through()) push_flags(id, &options.pass_through);
    const Ends outside = ends_;
    std::vector<CaseBody> bodies;
    for (const RegionId region : choice.node().regions) {
      bodies.push_back([this, id, region, &outside] {
        ends_ = outside;
        nodes(region);
        std::vector<Value> results = values(source_.region(region).results);
        push_flags(id, &results);
        return results;
      });
    }
    const std::vector<Value> made = builder_.case_of(options, bodies);
    ends_ = outside;
    if (made.size() < choice.outputs().size()) return;  // the builder has an error
    define_all(choice.outputs(), made);
    set_ends(id, behind(made, choice.outputs().size()));
  }

  const RankRules& rules_;
  const TieRules& ties_;
  std::vector<std::set<Chain>> held_;  // by node: of a loop or case, the chains inside
  Ends ends_;
};

}  // namespace

Result<Graph> tie_channels(Graph&& graph, const OpTable& ops, const RankRules& rules,
                           const TieRules& ties) {
  GraphBuilder builder(ops, graph.name());
  Tying(graph, builder, rules, ties).run();
  builder.adopt_blobs_of(std::move(graph));
  return builder.finish();
}

}  // namespace eddy
