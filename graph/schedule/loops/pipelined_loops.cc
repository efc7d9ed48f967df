#include "graph/schedule/loops/pipelined_loops.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/loops/access_set.h"

namespace eddy {
namespace {

constexpr size_t kMaxPairs = size_t{1} << 20;       // of commands
constexpr size_t kMaxBlockPairs = size_t{1} << 23;  // of blocks
constexpr uint32_t kMaxPipelinedDepth = 3;          // a body is recorded twice for each around it

// One loop with several streams in its `after`.
class LoopPipeliner {
 public:
  LoopPipeliner(const Graph& graph, Schedule& plan, const AccessCollector& collector, NodeId loop)
      : graph_(graph),
        collector_(collector),
        loop_(graph, loop),
        region_(plan.regions[loop_.after_id().index()]),
        num_streams_(region_.num_streams),
        taken_(num_streams_) {}

  void run() {
    EDDY_DCHECK(num_streams_ > 1) << "a loop without a tail";
    touch_turn();
    find_takes();
    do {
      if (!touch_commands()) return;
      std::map<size_t, NodeId> at_entry;  // launches waited for, and what for
      while (!order(at_entry)) {
      }
    } while (drop_takes());
    if (has_tail_) record();
  }

 private:
  using Clock = std::vector<uint32_t>;  // by stream: how many launches of the first iteration

  // A launch of a node, or a kRetain before it.
  struct Launch {
    NodeId node;  // a taking: the node that it precedes
    uint32_t stream = 0;
    uint32_t position = 0;  // in its stream, from 1
    AccessSet touched = {};
    bool ends_at_turn = false;  // whatever the turn touches
    Clock clock = {};           // when it has ended
    std::vector<ValueId> takes = {};
  };
  struct Wait {
    NodeId before;
    size_t tail;  // launch
    NodeId serves;
  };

  NodeId loop() const { return graph_.region(loop_.after_id()).owner; }
  bool is_exec(NodeId node) const { return graph_.node(node).kind == NodeKind::kExec; }
  bool is_forwarded(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    return info.origin == ValueOrigin::kParameter && info.region == loop_.after_id();
  }

  // Work of another device: its references are released when it is issued, so they keep no other
  // node from writing what it reads.
  bool is_early(uint32_t stream) const {
    return !region_.devices.empty() && region_.devices[stream] != 0;
  }
  // Such work reads memory under a name that others have it under, too.
  bool reads_passed(const AccessSet& touched) const {
    return std::ranges::any_of(touched.reads, [&](uint32_t id) {
      const ValueInfo& info = graph_.value(ValueId(id));
      if (!is_made_here(ValueId(id))) return false;
      const Node& maker = graph_.node(info.producer);
      return maker.kind != NodeKind::kExec || maker.op->is_view || maker.op->is_value_op ||
             maker.op->may_append;
    });
  }

  // What nodes on further streams read and the turn moves or makes anew.
  void find_takes() {
    for (const Program::Step& command : region_.steps) {
      if (command.op != Program::Op::kLaunch || command.stream == 0) continue;
      if (!is_exec(NodeId(command.operand)) || is_early(command.stream)) continue;
      for (const ValueId value : graph_.node(NodeId(command.operand)).inputs) {
        if (value.is_none()) continue;
        const bool turns = turn_.defines.contains(value.index()) ||
                           turn_.defines.contains(resolve_forwarded(graph_, value).index());
        const ValueInfo& info = graph_.value(value);
        const bool is_own = info.origin == ValueOrigin::kNodeOutput &&
                            streams_of_.contains(info.producer) &&
                            streams_of_.at(info.producer) == command.stream;
        if (turns && !is_own) taken_[command.stream].insert(value);
      }
    }
  }

  // Taking is of no use where all that reads what was taken is waited for all the same.
  bool drop_takes() {
    bool has_dropped = false;
    for (uint32_t s = 1; s < num_streams_; ++s) {
      if (taken_[s].empty() || goes_on_reading(s)) continue;
      taken_[s].clear();
      has_dropped = true;
    }
    return has_dropped;
  }
  bool goes_on_reading(uint32_t stream) const {
    return std::any_of(launches_.begin(), launches_.end(), [&](const Launch& launch) {
      if (launch.stream != stream || !launch.takes.empty()) return false;
      if (launch.position <= end_clock_[stream] || !is_exec(launch.node)) return false;
      const std::vector<ValueId>& inputs = graph_.node(launch.node).inputs;
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](ValueId value) { return taken_[stream].contains(value); });
    });
  }

  // False: too many to look at.
  bool touch_commands() {
    launches_.clear();
    steps_.clear();
    std::vector<uint32_t> counts(num_streams_, 0);
    const auto add = [&](Launch launch) {
      launch.position = ++counts[launch.stream];
      steps_.push_back(
          {Program::Op::kLaunch, launch.stream, static_cast<uint32_t>(launches_.size())});
      launches_.push_back(std::move(launch));
    };
    std::vector<std::set<ValueId>> to_take = taken_;
    for (const Program::Step& command : region_.steps) {
      if (command.op != Program::Op::kLaunch) {
        steps_.push_back({command.op, command.stream, command.operand});
        continue;
      }
      Launch take = taking(command, counts[command.stream] == 0, to_take[command.stream]);
      if (!take.takes.empty()) add(std::move(take));
      Launch launch{.node = NodeId(command.operand), .stream = command.stream};
      const bool reads_taken = is_exec(NodeId(command.operand));
      collector_.node(NodeId(command.operand), launch.touched,
                      reads_taken ? taken_[command.stream] : std::set<ValueId>());
      launch.touched.streams.erase(region_.machine_stream(command.stream));
      launch.ends_at_turn = is_early(command.stream) && reads_passed(launch.touched);
      add_row(NodeId(command.operand), launch.touched);
      add(std::move(launch));
    }
    const size_t num_tail = launches_.size() - counts[0];
    return num_tail > 0 && num_tail * launches_.size() <= kMaxPairs &&
           num_block_pairs() <= kMaxBlockPairs;
  }
  size_t num_block_pairs() const {
    const auto count = [](const AccessSet& touched) {
      return touched.block_reads.size() + touched.block_writes.size();
    };
    size_t all = count(turn_), tail = 0;
    for (const Launch& launch : launches_) {
      all += count(launch.touched);
      if (launch.stream != 0) tail += count(launch.touched);
    }
    return all * tail;
  }

  // What the stream retains right before that node: a value that is there since the iteration began
  // before the stream's first node, any other before its first reader.
  Launch taking(const Program::Step& command, bool is_first, std::set<ValueId>& left) const {
    const std::vector<ValueId>& inputs = graph_.node(NodeId(command.operand)).inputs;
    const auto is_due = [&](ValueId value) {
      const bool is_read =
          is_exec(NodeId(command.operand)) && std::ranges::count(inputs, value) > 0;
      return is_read || (is_first && is_forwarded(value));
    };
    Launch launch{.node = NodeId(command.operand), .stream = command.stream};
    std::ranges::copy_if(left, std::back_inserter(launch.takes), is_due);
    for (const ValueId value : launch.takes) {
      left.erase(value);
      launch.touched.reads.insert(value.index());
      launch.touched.reads.insert(resolve_forwarded(graph_, value).index());
    }
    return launch;
  }

  // What happens on stream 0 between two iterations' `after`: carried values move, and the whole of
  // `before`.
  void touch_turn() {
    for (const Program::Step& command : region_.steps) {
      if (command.op == Program::Op::kLaunch) streams_of_[NodeId(command.operand)] = command.stream;
    }
    collector_.region(loop_.before_id(), turn_);
    collector_.advance(loop(), turn_);
    turn_.streams.erase(region_.machine_stream(0));
    for (const ValueId parameter : loop_.after().parameters)
      turn_.defines.insert(parameter.index());
    for (const ValueId result : loop_.next()) {
      const ValueId named = resolve_forwarded(graph_, result);
      turn_.reads.insert(named.index());
      if (loop_.has(graph_.value(named).region)) turn_.defines.insert(named.index());
    }
    for (const ValueId row : loop_.rows()) {
      if (!is_made_here(row)) collector_.read(row, turn_);
    }
  }
  bool is_made_here(ValueId value) const {
    const ValueInfo& info = graph_.value(value);
    return info.origin == ValueOrigin::kNodeOutput && info.region == loop_.after_id();
  }
  // A row that a command defines is stacked by that command.
  void add_row(NodeId node, AccessSet& touched) const {
    for (const ValueId row : loop_.rows()) {
      const bool is_its = is_made_here(row) && graph_.value(row).producer == node;
      if (is_its) collector_.read_bytes(row, touched);
    }
  }

  bool conflict(const Launch& tail, const AccessSet& later, uint32_t later_stream) const {
    const AccessSet& first = tail.touched;
    const uint32_t own = region_.machine_stream(tail.stream);
    return meet(first.reads, later.defines) || meet(first.defines, later.defines) ||
           meet(first.defines, later.reads) || later.streams.contains(own) ||
           first.streams.contains(region_.machine_stream(later_stream)) ||
           meet(first.streams, later.streams) ||
           collector_.blocks_meet(first.block_writes, later.block_reads,
                                  &later == &turn_ ? NodeId() : loop()) ||
           collector_.blocks_meet(first.block_writes, later.block_writes, loop()) ||
           collector_.blocks_meet(first.block_reads, later.block_writes, loop());
  }

  static void join(Clock& into, const Clock& from) {
    EDDY_DCHECK(into.size() == from.size()) << "a wait for what was not recorded";
    for (size_t s = 0; s < into.size(); ++s) into[s] = std::max(into[s], from[s]);
  }

  // Calls wait(tail) for tails that `later` on `stream` must come after and that `clock` does not
  // know to have ended, the latest issued first; the wait updates the clock.
  template <typename Wait>
  void require(const AccessSet& later, uint32_t stream, Clock& clock, Wait wait) const {
    const bool is_turn = &later == &turn_;
    for (size_t t = launches_.size(); t-- > 0;) {
      const Launch& tail = launches_[t];
      if (tail.stream == 0 || tail.stream == stream) continue;
      if (clock[tail.stream] >= tail.position) continue;
      if ((is_turn && tail.ends_at_turn) || conflict(tail, later, stream)) wait(t);
    }
  }

  // Two iterations in a row. False when streams of the second begin too early: at_entry has grown.
  bool order(std::map<size_t, NodeId>& at_entry) {
    end_waits_.clear();
    previous_waits_.clear();
    std::vector<Clock> clocks(num_streams_, Clock(num_streams_, 0));
    first_iteration(clocks);
    Clock& main = clocks[0];
    require(turn_, 0, main, [&](size_t tail) {
      join(main, launches_[tail].clock);
      end_waits_.push_back({NodeId(), tail, NodeId()});
    });
    end_clock_ = main;
    has_tail_ = false;
    for (const Launch& launch : launches_) {
      has_tail_ |= launch.stream > 0 && main[launch.stream] < launch.position;
    }
    for (auto it = at_entry.rbegin(); it != at_entry.rend(); ++it) {
      const auto& [tail, serves] = *it;
      if (main[launches_[tail].stream] >= launches_[tail].position) continue;
      join(main, launches_[tail].clock);
      previous_waits_.push_back({NodeId(), tail, serves});
    }
    for (uint32_t s = 1; s < num_streams_; ++s) join(clocks[s], main);
    return second_iteration(clocks, at_entry);
  }

  void first_iteration(std::vector<Clock>& clocks) {
    std::vector<Clock> recorded(region_.num_events);
    for (const Program::Step& step : steps_) {
      Clock& clock = clocks[step.stream];
      switch (step.op) {
        case Program::Op::kLaunch:
          ++clock[step.stream];
          launches_[step.operand].clock = clock;
          break;
        case Program::Op::kRecord:
          recorded[step.operand] = clock;
          break;
        default:
          join(clock, recorded[step.operand]);
      }
    }
  }

  bool second_iteration(std::vector<Clock>& clocks, std::map<size_t, NodeId>& at_entry) {
    const size_t known = at_entry.size();
    std::vector<Clock> recorded(region_.num_events);
    for (const Program::Step& step : steps_) {
      Clock& clock = clocks[step.stream];
      switch (step.op) {
        case Program::Op::kLaunch: {
          const Launch& later = launches_[step.operand];
          require(later.touched, later.stream, clock, [&](size_t tail) {
            join(clock, launches_[tail].clock);
            if (later.stream == 0) {
              previous_waits_.push_back({later.node, tail, later.node});
            } else {
              at_entry.emplace(tail, later.node);
            }
          });
          break;
        }
        case Program::Op::kRecord:
          recorded[step.operand] = clock;
          break;
        default:
          join(clock, recorded[step.operand]);
      }
    }
    return at_entry.size() == known;
  }

  // Each tail that is waited for has a record right behind it: its event, by launch.
  std::map<size_t, uint32_t> number_records() {
    std::set<size_t> wanted;  // launches
    for (const auto* waits : {&end_waits_, &previous_waits_}) {
      for (const Wait& wait : *waits) wanted.insert(wait.tail);
    }
    std::map<size_t, uint32_t> event_of;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].op != Program::Op::kLaunch || !wanted.contains(steps_[i].operand)) continue;
      event_of[steps_[i].operand] = is_recorded(i) ? steps_[i + 1].operand : region_.num_events++;
    }
    EDDY_DCHECK(event_of.size() == wanted.size()) << "a wait for a launch that is no step";
    return event_of;
  }
  bool is_recorded(size_t launch) const {
    return launch + 1 < steps_.size() && steps_[launch + 1].op == Program::Op::kRecord;
  }

  // The steps with what was found: retains, records and waits.
  void record() {
    const std::map<size_t, uint32_t> event_of = number_records();
    std::vector<Program::Step> steps;
    const auto wait_for_previous = [&](NodeId before) {
      for (const Wait& wait : previous_waits_) {
        if (wait.before != before) continue;
        steps.push_back({Program::Op::kWaitPrevious, 0, event_of.at(wait.tail)});
        if (before.is_none()) region_.held_up.emplace_back(event_of.at(wait.tail), wait.serves);
      }
    };
    wait_for_previous(NodeId());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Program::Step& step = steps_[i];
      if (step.op != Program::Op::kLaunch) {
        steps.push_back(step);
        continue;
      }
      const Launch& launch = launches_[step.operand];
      if (launch.takes.empty()) {
        wait_for_previous(launch.node);
        steps.push_back({step.op, step.stream, launch.node.index()});
      } else {
        const auto number = static_cast<uint32_t>(region_.retained.size());
        steps.push_back({Program::Op::kRetain, step.stream, number});
        region_.retained.push_back(launch.takes);
      }
      const auto event = event_of.find(step.operand);
      if (event == event_of.end() || is_recorded(i)) continue;
      steps.push_back({Program::Op::kRecord, step.stream, event->second});
    }
    for (const Wait& wait : end_waits_) {
      steps.push_back({Program::Op::kWait, 0, event_of.at(wait.tail)});
    }
    EDDY_CHECK(!region_.is_pipelined) << "a loop is opened twice";
    region_.steps = std::move(steps);
    region_.is_pipelined = true;
  }

  const Graph& graph_;
  const AccessCollector& collector_;
  const LoopView loop_;
  RegionSchedule& region_;
  const uint32_t num_streams_;
  std::map<NodeId, uint32_t> streams_of_;
  AccessSet turn_;
  std::vector<std::set<ValueId>> taken_;  // by stream
  std::vector<Launch> launches_;          // issue order
  std::vector<Program::Step> steps_;
  bool has_tail_ = false;
  Clock end_clock_;  // of stream 0 at the end of an iteration
  std::vector<Wait> end_waits_, previous_waits_;
};

}  // namespace

void pipeline_loops(const Graph& graph, Schedule& plan) {
  std::vector<RegionId> candidates;
  for (uint32_t r = 1; r < graph.num_regions(); ++r) {
    const bool is_after = role(graph, RegionId(r)) == RegionRole::kAfter;
    if (is_after && plan.regions[r].num_streams > 1) candidates.push_back(RegionId(r));
  }
  if (candidates.empty()) return;
  const RegionTree tree(graph);
  std::ranges::stable_sort(candidates, std::greater(),
                           [&](RegionId region) { return tree.depth(region); });
  const AccessCollector collector(graph, plan);
  std::vector<uint32_t> num_inside(graph.num_nodes(),
                                   0);  // pipelined loops in one another, at most
  for (const RegionId region : candidates) {
    NodeId owner = graph.region(region).owner;
    const uint32_t num_pipelined = num_inside[owner.index()] + 1;
    if (num_pipelined > kMaxPipelinedDepth) continue;
    LoopPipeliner(graph, plan, collector, owner).run();
    if (!plan.regions[region.index()].is_pipelined) continue;
    while (!owner.is_none()) {
      num_inside[owner.index()] = std::max(num_inside[owner.index()], num_pipelined);
      owner = tree.owner(graph.node(owner).region);
    }
  }
}

}  // namespace eddy
