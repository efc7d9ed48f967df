#include "graph/schedule/streams/sync_plan.h"

#include <algorithm>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

struct Context {
  const Dag& dag;
  const StreamAssignment& assignment;
  std::span<const uint32_t> order;
  std::vector<uint32_t> position;
};

// Vector clocks: row v holds, for each stream, 1 + the position of the last node on it that has
// surely ended when v starts, v itself included on its own streams.
class ClockSyncs {
 public:
  explicit ClockSyncs(const Context& context)
      : context_(context),
        num_streams_(context.assignment.num_streams),
        clocks_(size_t{num_streams_} * context.order.size()) {}

  std::vector<Edge> run() {
    std::vector<uint32_t> last(num_streams_, kNone);
    for (uint32_t node : context_.order) {
      context_.assignment.for_each_stream_of(node, [&](uint32_t stream) {
        if (last[stream] != kNone) merge(node, last[stream]);
      });
      wait_for_parents(node);
      context_.assignment.for_each_stream_of(node, [&](uint32_t stream) {
        last[stream] = node;
        clock(node)[stream] = context_.position[node] + 1;
      });
    }
    return std::move(waits_);
  }

 private:
  uint32_t* clock(uint32_t node) {
    return clocks_.data() + size_t{num_streams_} * context_.position[node];
  }
  void merge(uint32_t into, uint32_t from) {
    uint32_t* target = clock(into);
    const uint32_t* source = clock(from);
    for (uint32_t s = 0; s < num_streams_; ++s) target[s] = std::max(target[s], source[s]);
  }
  // A parent issued later may cover an earlier one, never the other way round.
  void wait_for_parents(uint32_t node) {
    const std::span<const uint32_t> parents = context_.dag.parents(node);
    latest_first_.assign(parents.begin(), parents.end());
    std::sort(latest_first_.begin(), latest_first_.end(),
              [&](uint32_t a, uint32_t b) { return context_.position[a] > context_.position[b]; });
    for (uint32_t parent : latest_first_) {
      const uint32_t stream = context_.assignment.stream_of_node[parent];
      if (clock(node)[stream] > context_.position[parent]) continue;
      waits_.push_back({parent, node});
      merge(node, parent);
    }
  }

  const Context& context_;
  uint32_t num_streams_;
  std::vector<uint32_t> clocks_;
  std::vector<uint32_t> latest_first_;
  std::vector<Edge> waits_;
};

std::vector<Edge> waits_by_reduction(const Context& context) {
  std::vector<Edge> steps;
  std::vector<uint32_t> last(context.assignment.num_streams, kNone);
  for (uint32_t node : context.order) {
    context.assignment.for_each_stream_of(node, [&](uint32_t stream) {
      if (last[stream] != kNone) steps.push_back({last[stream], node});
      last[stream] = node;
    });
  }
  return edges_beyond(context.dag, steps);
}

// Streams that hold unrelated nodes, as under a cap, give H edges that no sweep can keep short.
// A later node that is no deeper than the one before it on its stream cannot descend from it.
bool streams_add_order(const Context& context) {
  const std::vector<uint32_t> depth = unit_depths(context.dag, context.order);
  std::vector<uint32_t> last(context.assignment.num_streams, kNone);
  bool adds_order = false;
  for (uint32_t node : context.order) {
    context.assignment.for_each_stream_of(node, [&](uint32_t stream) {
      adds_order |= last[stream] != kNone && depth[node] <= depth[last[stream]];
      last[stream] = node;
    });
  }
  return adds_order;
}

bool clocks_are_better(const Context& context) {
  constexpr uint32_t kFewStreams = 64;
  constexpr uint64_t kMaxEntries = uint64_t{1} << 28;  // of 4 bytes
  const uint32_t num_streams = context.assignment.num_streams;
  if (uint64_t{context.dag.num_nodes()} * num_streams > kMaxEntries) return false;
  return num_streams <= kFewStreams || streams_add_order(context);
}

// Numbers the events, shares them between waits and brings both lists into issue order.
SyncPlan number_events(const Context& context, std::span<const Edge> waits) {
  const uint32_t num_nodes = context.dag.num_nodes();
  std::vector<uint32_t> event_of(num_nodes, kNone);
  for (const Edge& wait : waits) event_of[wait.from] = 0;
  SyncPlan plan;
  for (uint32_t node : context.order) {
    if (event_of[node] == kNone) continue;
    event_of[node] = static_cast<uint32_t>(plan.records.size());
    plan.records.push_back({event_of[node], node});
  }
  EDDY_DCHECK(plan.records.size() <= waits.size()) << "a record that nothing waits for";
  const Dag by_node = Dag::from_acyclic_edges(num_nodes, waits);
  plan.waits.reserve(waits.size());
  for (uint32_t node : context.order) {
    const size_t first = plan.waits.size();
    for (uint32_t source : by_node.parents(node)) plan.waits.push_back({node, event_of[source]});
    std::sort(plan.waits.begin() + static_cast<ptrdiff_t>(first), plan.waits.end(),
              [](const SyncPlan::Wait& a, const SyncPlan::Wait& b) { return a.event < b.event; });
  }
  return plan;
}

}  // namespace

SyncPlan plan_syncs(const Dag& dag, const StreamAssignment& assignment,
                    std::span<const uint32_t> issue_order, SyncMethod method) {
  EDDY_CHECK(issue_order.size() == dag.num_nodes() &&
             assignment.stream_of_node.size() == dag.num_nodes())
      << "order and assignment name each node";
  const Context context{dag, assignment, issue_order, position_of(issue_order)};
  const bool use_clocks =
      method == SyncMethod::kAutomatic ? clocks_are_better(context) : method == SyncMethod::kClocks;
  return number_events(context,
                       use_clocks ? ClockSyncs(context).run() : waits_by_reduction(context));
}

}  // namespace eddy
