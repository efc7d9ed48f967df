#include "graph/schedule/open_loops.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "graph/schedule/region_tree.h"
#include "graph/schedule/storages.h"

namespace eddy {
namespace {

constexpr size_t kMaxPairs = size_t{1} << 20;
constexpr uint32_t kMaxOpenDepth = 3;  // a body is recorded twice for each around it

// All that a command touches, in its regions too. Names: the one place of a value under any name
// that a loop's forwarding gives it.
struct Touched {
  std::set<uint32_t> reads, defines;             // names
  std::set<uint32_t> block_reads, block_writes;  // values with blocks
  std::set<uint32_t> streams;                    // of the machine, inside
};

bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
  if (a.size() > b.size()) return meet(b, a);
  return std::any_of(a.begin(), a.end(), [&](uint32_t id) { return b.contains(id); });
}

class Toucher {
 public:
  Toucher(const Graph& graph, const Plan& plan)
      : graph_(graph), plan_(plan), storages_(find_storages(graph, RegionTree(graph))) {}

  ValueId name(ValueId value) const {
    for (;;) {
      const ValueInfo& info = graph_.value(value);
      const NodeId owner = graph_.region(info.region).owner;
      const bool is_forwarded = info.origin == ValueOrigin::kParameter && info.index > 0 &&
                                !owner.is_none() && graph_.node(owner).regions[1] == info.region;
      if (!is_forwarded) return value;
      value = graph_.region(graph_.node(owner).regions[0]).results[info.index];
    }
  }

  void read(ValueId value, Touched& touched) const {
    if (value.is_none()) return;
    touched.reads.insert(value.index());
    touched.reads.insert(name(value).index());
    read_bytes(value, touched);
  }
  void read_bytes(ValueId value, Touched& touched) const {
    for (const uint32_t s : storages_.of_value[value.index()]) {
      const ValueId written = storages_.all[s].value;
      if (plan_.memory.block_or_null(written) != nullptr) {
        touched.block_reads.insert(written.index());
      }
    }
  }
  void define(ValueId value, Touched& touched) const {
    touched.defines.insert(name(value).index());
    if (plan_.memory.block_or_null(value) != nullptr) touched.block_writes.insert(value.index());
  }

  void node(NodeId id, Touched& touched) const {
    const Node& node = graph_.node(id);
    for (const ValueId value : node.inputs) read(value, touched);
    for (const ValueId value : node.outputs) define(value, touched);
    for (const RegionId region : node.regions) this->region(region, touched);
  }
  void region(RegionId id, Touched& touched) const {
    const Region& region = graph_.region(id);
    const RegionPlan& plan = plan_.regions[id.index()];
    for (uint32_t s = 0; s < plan.num_streams; ++s) touched.streams.insert(plan.machine_stream(s));
    // Forwarding moves nothing: a forwarded parameter is a further name, maybe of a value around.
    for (const ValueId value : region.parameters) touched.defines.insert(value.index());
    for (const NodeId node : region.nodes) this->node(node, touched);
    for (const ValueId value : region.results) read(value, touched);
  }

  bool blocks_meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) const {
    for (const uint32_t x : a) {
      for (const uint32_t y : b) {
        if (x == y || blocks_meet(*plan_.memory.block_or_null(ValueId(x)),
                                  *plan_.memory.block_or_null(ValueId(y)))) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  static bool blocks_meet(const ValueMemory& a, const ValueMemory& b) {
    if (a.arena != b.arena) return false;
    for (const uint64_t x : a.offsets_bytes) {
      for (const uint64_t y : b.offsets_bytes) {
        if (x < y + b.size_bytes && y < x + a.size_bytes) return true;
      }
    }
    return false;
  }

  const Graph& graph_;
  const Plan& plan_;
  const Storages storages_;
};

// One loop with several streams in its `after`.
class LoopOpener {
 public:
  LoopOpener(const Graph& graph, Plan& plan, const Toucher& toucher, NodeId loop)
      : graph_(graph),
        toucher_(toucher),
        loop_(graph.node(loop)),
        region_(plan.regions[loop_.regions[1].index()]),
        num_streams_(region_.num_streams) {}

  void run() {
    if (!touch_commands()) return;
    std::set<size_t> at_entry;
    while (!order(at_entry)) {
    }
    if (!has_tail_) return;
    record();
    OpenEnd open;
    for (const auto& [place, tail] : end_waits_) open.end_waits.push_back(event_of_.at(tail));
    for (const auto& [before, tail] : previous_waits_) {
      open.previous_waits.push_back({before, event_of_.at(tail)});
    }
    region_.open = std::move(open);
  }

 private:
  using Clock = std::vector<uint32_t>;  // by stream: how many launches of the first iteration

  struct Launch {
    NodeId node;
    uint32_t stream;
    uint32_t position;  // in its stream, from 1
    Touched touched;
    Clock clock;  // when it has ended
  };

  // False: too many to look at.
  bool touch_commands() {
    std::vector<uint32_t> counts(num_streams_, 0);
    std::map<uint32_t, size_t> launch_of;  // by node
    for (const PlanCommand& command : region_.commands) {
      if (command.kind != PlanCommand::Kind::kLaunch) continue;
      Launch launch{command.node, command.stream, ++counts[command.stream], {}, {}};
      toucher_.node(command.node, launch.touched);
      launch.touched.streams.erase(region_.machine_stream(command.stream));
      launch_of[command.node.index()] = launches_.size();
      launches_.push_back(std::move(launch));
    }
    const size_t num_tail = launches_.size() - counts[0];
    if (num_tail == 0 || num_tail * launches_.size() > kMaxPairs) return false;
    touch_turn(launch_of);
    return true;
  }

  // What happens on stream 0 between two iterations' `after`: carried values move, and the whole of
  // `before`. A row that a command defines is stacked by that command.
  void touch_turn(const std::map<uint32_t, size_t>& launch_of) {
    const Region& before = graph_.region(loop_.regions[0]);
    const Region& after = graph_.region(loop_.regions[1]);
    toucher_.region(loop_.regions[0], turn_);
    turn_.streams.erase(region_.machine_stream(0));
    for (const ValueId parameter : after.parameters) turn_.defines.insert(parameter.index());
    const size_t num_carried = before.parameters.size() - 1;
    for (size_t k = 0; k < after.results.size(); ++k) {
      const ValueId result = after.results[k];
      const ValueInfo& info = graph_.value(result);
      const bool is_made_here =
          info.origin == ValueOrigin::kNodeOutput && info.region == loop_.regions[1];
      if (k < num_carried) {
        turn_.reads.insert(toucher_.name(result).index());
        const RegionId home = graph_.value(toucher_.name(result)).region;
        const bool moves = home == loop_.regions[0] || home == loop_.regions[1];
        if (moves) turn_.defines.insert(toucher_.name(result).index());
      } else if (is_made_here) {
        toucher_.read_bytes(result, launches_[launch_of.at(info.producer.index())].touched);
      } else {
        toucher_.read(result, turn_);
      }
    }
  }

  bool conflict(const Launch& tail, const Touched& later, uint32_t later_stream) const {
    const Touched& first = tail.touched;
    const uint32_t own = region_.machine_stream(tail.stream);
    return meet(first.reads, later.defines) || meet(first.defines, later.defines) ||
           meet(first.defines, later.reads) || later.streams.contains(own) ||
           first.streams.contains(region_.machine_stream(later_stream)) ||
           meet(first.streams, later.streams) ||
           toucher_.blocks_meet(first.block_writes, later.block_reads) ||
           toucher_.blocks_meet(first.block_writes, later.block_writes) ||
           toucher_.blocks_meet(first.block_reads, later.block_writes);
  }

  static void join(Clock& into, const Clock& from) {
    for (size_t s = 0; s < into.size(); ++s) into[s] = std::max(into[s], from[s]);
  }

  // Calls wait(tail) for tails that `later` on `stream` must come after and that `clock` does not
  // know to have ended, the latest issued first; the wait updates the clock.
  template <typename Wait>
  void require(const Touched& later, uint32_t stream, Clock& clock, Wait wait) const {
    for (size_t t = launches_.size(); t-- > 0;) {
      const Launch& tail = launches_[t];
      if (tail.stream == 0 || tail.stream == stream) continue;
      if (clock[tail.stream] >= tail.position || !conflict(tail, later, stream)) continue;
      wait(t);
    }
  }

  // Two iterations in a row. False when streams of the second begin too early: at_entry has grown.
  bool order(std::set<size_t>& at_entry) {
    end_waits_.clear();
    previous_waits_.clear();
    std::vector<Clock> clocks(num_streams_, Clock(num_streams_, 0));
    first_iteration(clocks);
    Clock& main = clocks[0];
    require(turn_, 0, main, [&](size_t tail) {
      join(main, launches_[tail].clock);
      end_waits_.emplace_back(NodeId(), tail);
    });
    has_tail_ = false;
    for (const Launch& launch : launches_) {
      has_tail_ |= launch.stream > 0 && main[launch.stream] < launch.position;
    }
    for (auto tail = at_entry.rbegin(); tail != at_entry.rend(); ++tail) {
      if (main[launches_[*tail].stream] >= launches_[*tail].position) continue;
      join(main, launches_[*tail].clock);
      previous_waits_.emplace_back(NodeId(), *tail);
    }
    for (uint32_t s = 1; s < num_streams_; ++s) join(clocks[s], main);
    return second_iteration(clocks, at_entry);
  }

  void first_iteration(std::vector<Clock>& clocks) {
    std::vector<Clock> recorded(region_.num_events);
    size_t next = 0;
    for (const PlanCommand& command : region_.commands) {
      Clock& clock = clocks[command.stream];
      switch (command.kind) {
        case PlanCommand::Kind::kLaunch:
          ++clock[command.stream];
          launches_[next++].clock = clock;
          break;
        case PlanCommand::Kind::kRecord:
          recorded[command.event] = clock;
          break;
        case PlanCommand::Kind::kWait:
          join(clock, recorded[command.event]);
          break;
      }
    }
  }

  bool second_iteration(std::vector<Clock>& clocks, std::set<size_t>& at_entry) {
    const size_t known = at_entry.size();
    std::vector<Clock> recorded(region_.num_events);
    size_t next = 0;
    for (const PlanCommand& command : region_.commands) {
      Clock& clock = clocks[command.stream];
      switch (command.kind) {
        case PlanCommand::Kind::kLaunch: {
          const Launch& later = launches_[next++];
          require(later.touched, later.stream, clock, [&](size_t tail) {
            join(clock, launches_[tail].clock);
            if (later.stream == 0) {
              previous_waits_.emplace_back(later.node, tail);
            } else {
              at_entry.insert(tail);
            }
          });
          break;
        }
        case PlanCommand::Kind::kRecord:
          recorded[command.event] = clock;
          break;
        case PlanCommand::Kind::kWait:
          join(clock, recorded[command.event]);
          break;
      }
    }
    return at_entry.size() == known;
  }

  // Each tail that is waited for has a record right behind it.
  void record() {
    std::set<uint32_t> wanted;  // nodes
    for (const auto* waits : {&end_waits_, &previous_waits_}) {
      for (const auto& [place, tail] : *waits) wanted.insert(launches_[tail].node.index());
    }
    std::map<uint32_t, uint32_t> event_of_node;
    for (const PlanCommand& command : region_.commands) {
      if (command.kind == PlanCommand::Kind::kRecord) {
        event_of_node[command.node.index()] = command.event;
      }
    }
    std::vector<PlanCommand> commands;
    for (const PlanCommand& command : region_.commands) {
      commands.push_back(command);
      const uint32_t node = command.node.index();
      const bool is_new = command.kind == PlanCommand::Kind::kLaunch && wanted.contains(node) &&
                          !event_of_node.contains(node);
      if (!is_new) continue;
      event_of_node[node] = region_.num_events++;
      commands.push_back(
          {PlanCommand::Kind::kRecord, command.stream, command.node, event_of_node[node]});
    }
    region_.commands = std::move(commands);
    for (size_t t = 0; t < launches_.size(); ++t) {
      const auto found = event_of_node.find(launches_[t].node.index());
      if (found != event_of_node.end()) event_of_[t] = found->second;
    }
  }

  const Graph& graph_;
  const Toucher& toucher_;
  const Node& loop_;
  RegionPlan& region_;
  const uint32_t num_streams_;
  std::vector<Launch> launches_;  // issue order
  Touched turn_;
  bool has_tail_ = false;
  std::vector<std::pair<NodeId, size_t>> end_waits_, previous_waits_;  // launches waited for
  std::map<size_t, uint32_t> event_of_;                                // by launch
};

}  // namespace

void open_loops(const Graph& graph, Plan& plan) {
  std::vector<RegionId> candidates;
  for (uint32_t r = 1; r < graph.num_regions(); ++r) {
    const Node& node = graph.node(graph.region(RegionId(r)).owner);
    const bool is_after = node.kind == NodeKind::kWhile && node.regions[1] == RegionId(r);
    if (is_after && plan.regions[r].num_streams > 1) candidates.push_back(RegionId(r));
  }
  if (candidates.empty() || !plan.devices.empty()) return;
  const RegionTree tree(graph);
  std::ranges::stable_sort(candidates, std::greater(),
                           [&](RegionId region) { return tree.depth(region); });
  const Toucher toucher(graph, plan);
  std::vector<uint32_t> num_inside(graph.num_nodes(), 0);  // open loops in one another, at most
  for (const RegionId region : candidates) {
    NodeId owner = graph.region(region).owner;
    const uint32_t num_open = num_inside[owner.index()] + 1;
    if (num_open > kMaxOpenDepth) continue;
    LoopOpener(graph, plan, toucher, owner).run();
    if (!plan.regions[region.index()].open) continue;
    while (!owner.is_none()) {
      num_inside[owner.index()] = std::max(num_inside[owner.index()], num_open);
      owner = graph.region(graph.node(owner).region).owner;
    }
  }
}

}  // namespace eddy
