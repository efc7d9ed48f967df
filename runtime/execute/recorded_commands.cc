#include "runtime/execute/recorded_commands.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "graph/proof/program_proof.h"
#include "graph/schedule/emit_program.h"
#include "runtime/execute/open_sets.h"
#include "runtime/execute/region_strands.h"

namespace eddy {
namespace {

using Item = CodeItem::Kind;
using Op = Program::Op;
using Strand = RegionStrands::Strand;
using StepKind = RecordedStep::Kind;

class RecordedReader {
 public:
  RecordedReader(const Plan& plan, RunState& state)
      : plan_(plan), graph_(state.graph()), work_(state) {}

  Result<Program> run() {
    result_ = plan_.program;
    note_launches();
    is_read_.resize(graph_.num_regions());
    EDDY_ASSIGN_OR_RETURN(const CodeBlock root, read_blocks(work_.view()));
    EDDY_RETURN_IF_ERROR(
        closed_region(Graph::kRoot, work_.view().strand_streams[0], pointers(root)));
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      if (!is_read_[r]) return work_.fail(RegionId(r), "cannot be found");
    }
    EDDY_RETURN_IF_ERROR(check_shared_events());
    return std::move(result_);
  }

 private:
  void note_launches() {
    for (uint32_t i = 0; i < result_.loops.size(); ++i) number_of_node_[result_.loops[i].node] = i;
    for (uint32_t i = 0; i < result_.cases.size(); ++i) number_of_node_[result_.cases[i].node] = i;
    for (uint32_t i = 0; i < result_.launches.size(); ++i) {
      const Program::Launch& launch = result_.launches[i];
      if (graph_.node(NodeId(launch.node)).kind == NodeKind::kExec) {
        number_of_node_[launch.node] = i;
      }
    }
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) {
      uint32_t index = 0;
      for (const Program::Step& step : result_.blocks[r].steps) {
        if (step.op != Op::kRetain) continue;
        launch_of_take_[{node_of(result_, step).index(), index++}] = step.operand;
        ++num_retained_[r];
      }
    }
    for (uint32_t i = 0; i < result_.rows.size(); ++i) {
      const Program::Loop& loop = result_.loops[result_.rows[i].loop];
      const auto result = static_cast<uint32_t>(loop.advance.size()) + result_.rows[i].index;
      number_of_row_[{loop.node, result}] = i;
    }
  }

  // --- regions ---

  Status closed_region(RegionId id, uint32_t stream, const CodeItems& items) {
    RegionStrands region{.id = id, .strands = {{stream}}};
    const auto number = [&](const CodeItem& record) {
      region.local.emplace(record.id, static_cast<uint32_t>(region.local.size()));
    };
    work_.for_each_record(items, number);
    std::vector<uint32_t> ends;
    for (const CodeItem* item : items) {
      if (item->kind != Item::kFork) continue;
      const CodeItems inner = pointers(item->blocks[0]);
      work_.for_each_record(inner, number);
      if (inner.empty() || inner.back()->kind != Item::kRecord) {
        return work_.fail(id, "has a strand whose end is not recorded");
      }
      ends.push_back(inner.back()->id);
    }
    EDDY_RETURN_IF_ERROR(run_strand(region, 0, items));
    const std::vector<Program::Step>& main = region.strands[0].commands;
    for (const uint32_t end : ends) {
      const Program::Step wait{Op::kWait, stream, region.local.at(end)};
      if (std::ranges::find(main, wait) == main.end()) {
        return work_.fail(id, "ends before one of its strands does");
      }
    }
    return keep(region);
  }

  Status open_region(RegionId id, uint32_t stream, const OpenSet& set, const OpenSet& other) {
    RegionStrands region{.id = id,
                         .strands = {{stream}},
                         .local = set.local,
                         .previous = other.local,
                         .resets = set.resets,
                         .rows = set.rows};
    for (const auto& [event, _] : set.local) users_[event].insert(id.index());
    for (const OpenSet::Fork& fork : set.forks) {
      users_[fork.begun].insert(id.index());
      users_[fork.end].insert(id.index());
      rest_of_fork_[fork.item] = &fork.rest;
    }
    EDDY_RETURN_IF_ERROR(run_strand(region, 0, set.rest));
    return keep(region);
  }

  // A region that is recorded twice is so in the same way.
  Status keep(const RegionStrands& strands) {
    const uint32_t r = strands.id.index();
    std::multiset<uint32_t> nodes;
    for (const NodeId node : graph_.region(strands.id).nodes) nodes.insert(node.index());
    const Program::Step& end = result_.blocks[r].steps.back();
    const auto retained = num_retained_.find(r);
    const uint32_t num_retained = retained == num_retained_.end() ? 0 : retained->second;
    if (strands.nodes != nodes || strands.num_takes != num_retained) {
      return work_.fail(strands.id, "does not run each node once");
    }
    const bool overlaps = is_pipelined(result_, result_.blocks[r]);
    if (overlaps && strands.rows != rows_of(strands.id)) {
      return work_.fail(strands.id, "does not stack each row once");
    }
    auto region = strands.issue_order();
    if (!region) return work_.fail(strands.id, "has strands that wait for each other");
    end_block(strands, end, overlaps, *region);
    if (is_read_[r]) {
      return region->steps == result_.blocks[r].steps
                 ? Status::ok()
                 : work_.fail(strands.id, "differs where it is recorded again");
    }
    is_read_[r] = true;
    // Numbers of its own: who shares events is seen by the buffer's.
    region->first_machine_event = num_machine_events_;
    region->num_machine_events = region->num_events;
    num_machine_events_ += region->num_events;
    result_.blocks[r] = std::move(*region);
    return Status::ok();
  }

  // Rows that no strand stacks are stacked by advance.
  void end_block(const RegionStrands& strands, const Program::Step& end, bool overlaps,
                 Program::Block& block) const {
    const uint32_t main = strands.strands[0].stream;
    if (end.op == Op::kAdvance) {
      const uint32_t loop = result_.loops[end.operand].node;
      for (const uint32_t row : rows_of(strands.id)) {
        const uint32_t number = number_of_row_.at({loop, row});
        const auto is_it = [&](const Program::Step& step) {
          return step.op == Op::kPushRow && step.operand == number;
        };
        const bool is_pushed = overlaps && std::ranges::any_of(block.steps, is_it);
        if (!is_pushed) block.steps.push_back({Op::kPushRow, main, number});
      }
    }
    block.steps.push_back({end.op, main, end.operand});
  }

  // Results of `after` behind those that are carried.
  std::multiset<uint32_t> rows_of(RegionId after) const {
    const Node& loop = graph_.node(graph_.region(after).owner);
    const auto count = static_cast<uint32_t>(graph_.region(after).results.size());
    std::multiset<uint32_t> rows;
    for (uint32_t k = count - loop.num_scan_outputs; k < count; ++k) rows.insert(k);
    return rows;
  }

  // --- strands ---

  Status run_strand(RegionStrands& region, size_t s, const CodeItems& items) {
    NodeId last;  // that ran
    for (size_t i = 0; i < items.size(); ++i) {
      const CodeItem& item = *items[i];
      if (work_.is_bookkeeping(item)) continue;
      switch (item.kind) {
        case Item::kReset:
          if (s != 0 || region.has_begun) {
            return work_.fail(region.id, "resets an event that may be in use");
          }
          region.resets.insert(item.id);
          continue;
        case Item::kRecord:
        case Item::kWait:
          EDDY_RETURN_IF_ERROR(add_event(region, s, item));
          break;
        case Item::kFork:
          EDDY_RETURN_IF_ERROR(add_fork(region, s, item));
          break;
        case Item::kCase:
          EDDY_RETURN_IF_ERROR(add_case(region, s, item, last));
          break;
        case Item::kLaunch:
          EDDY_RETURN_IF_ERROR(add_launch(region, s, items, i, last));
          break;
        case Item::kWhile:
          return work_.fail(region.id, "repeats something without entering a loop");
      }
      region.has_begun = true;
    }
    return Status::ok();
  }

  Status add_event(RegionStrands& region, size_t s, const CodeItem& item) {
    users_[item.id].insert(region.id.index());
    const bool is_record = item.kind == Item::kRecord;
    const auto own = region.local.find(item.id);
    if (own != region.local.end()) {
      if (!region.resets.contains(item.id)) {
        return work_.fail(region.id, "uses an event without reset");
      }
      region.strands[s].add(is_record ? Op::kRecord : Op::kWait, own->second);
      return Status::ok();
    }
    const auto previous = region.previous.find(item.id);
    if (s != 0 || previous == region.previous.end()) {
      return work_.fail(region.id, "waits for an event that nothing of it records");
    }
    region.strands[s].add(Op::kWaitPrevious, previous->second);
    return Status::ok();
  }

  Status add_fork(RegionStrands& region, size_t s, const CodeItem& item) {
    const uint32_t stream = work_.stream_of(item);
    if (s != 0) return work_.fail(region.id, "forks a strand from a fork");
    if (region.has_stream(stream)) {
      return work_.fail(region.id, fmt::format("has two strands on stream {}", stream));
    }
    region.has_begun = true;
    const size_t own = region.strands.size();
    const uint32_t begun = region.begin_event(own);
    region.strands.push_back({stream});
    region.strands[0].add(Op::kRecord, begun);
    region.strands[own].add(Op::kWait, begun);
    const auto rest = rest_of_fork_.find(&item);
    return run_strand(region, own,
                      rest != rest_of_fork_.end() ? *rest->second : pointers(item.blocks[0]));
  }

  // items[i]; where that enters a loop, i moves on to where it leaves it.
  Status add_launch(RegionStrands& region, size_t s, const CodeItems& items, size_t& i,
                    NodeId& last) {
    const size_t command = items[i]->command;
    const RecordedStep step = work_.launch(*items[i]);
    switch (step.kind) {
      case StepKind::kExec:
        return add_node(region, s, step.node, Op::kLaunch, last);
      case StepKind::kEnter:
        EDDY_RETURN_IF_ERROR(add_node(region, s, step.node, Op::kLoop, last));
        return loop(region.id, region.strands[s].stream, items, i, step.node);
      case StepKind::kTake:
        if (graph_.node(step.node).regions[1] != region.id) break;
        region.strands[s].add(Op::kRetain, launch_of_take_.at({step.node.index(), step.index}));
        ++region.num_takes;
        return Status::ok();
      case StepKind::kRow:
        region.rows.insert(step.index);
        if (is_made_by(step, last)) {
          region.strands[s].add(Op::kPushRow, number_of_row_.at({step.node.index(), step.index}));
          return Status::ok();
        }
        return work_.fail(region.id, "stacks a row that may not be there yet");
      default:
        break;
    }
    return work_.fail(region.id, fmt::format("has command {} out of place", command));
  }

  Status add_node(RegionStrands& region, size_t s, NodeId node, Op op, NodeId& last) const {
    region.nodes.insert(node.index());
    region.strands[s].add(op, number_of_node_.at(node.index()));
    last = node;
    return Status::ok();
  }

  // Right behind it.
  bool is_made_by(const RecordedStep& row, NodeId node) const {
    const std::vector<ValueId>& results = graph_.region(graph_.node(row.node).regions[1]).results;
    if (row.index >= results.size()) return false;
    const ValueInfo& made = graph_.value(results[row.index]);
    return made.origin == ValueOrigin::kNodeOutput && made.producer == node;
  }

  Status add_case(RegionStrands& region, size_t s, const CodeItem& item, NodeId& last) {
    const RecordedStep step = work_.decision(item.command);
    if (step.kind == StepKind::kHeard) return Status::ok();
    // By whom a loop is driven: these commands are the host's way.
    if (step.kind == StepKind::kChoose) return run_strand(region, s, pointers(item.blocks[0]));
    if (step.kind != StepKind::kSelect) return work_.fail(region.id, "branches by nothing");
    const std::vector<RegionId>& regions = graph_.node(step.node).regions;
    if (item.blocks.size() != regions.size()) {
      return work_.fail(region.id, "does not have the branches of its graph");
    }
    for (uint32_t r = 0; r < regions.size(); ++r) {
      CodeItems items = pointers(item.blocks[r]);
      EDDY_RETURN_IF_ERROR(drop_last(items, {StepKind::kFinishBranch, step.node, r}, regions[r]));
      EDDY_RETURN_IF_ERROR(closed_region(regions[r], region.strands[s].stream, items));
    }
    return add_node(region, s, step.node, Op::kCase, last);
  }

  // The last item but for bookkeeping is that step; it goes, and what stands behind it.
  Status drop_last(CodeItems& items, const RecordedStep& wanted, RegionId region) const {
    while (!items.empty() && work_.is_bookkeeping(*items.back())) items.pop_back();
    const bool is_there = !items.empty() &&
                          work_.is_launch(*items.back(), wanted.kind, wanted.node) &&
                          work_.launch(*items.back()).index == wanted.index;
    if (!is_there) return work_.fail(region, "does not end as it should");
    items.pop_back();
    return Status::ok();
  }

  // --- loops ---

  // items[i] enters it; afterwards items[i] leaves it.
  Status loop(RegionId region, uint32_t stream, const CodeItems& items, size_t& i, NodeId id) {
    std::set<uint32_t> resets, recorded, waited;
    for (++i; i < items.size() && items[i]->kind != Item::kWhile; ++i) {
      const CodeItem& item = *items[i];
      if (item.kind == Item::kReset) resets.insert(item.id);
      if (item.kind == Item::kRecord && resets.contains(item.id)) recorded.insert(item.id);
      const bool is_event = item.kind == Item::kReset || recorded.contains(item.id);
      if (!is_event && !work_.is_bookkeeping(item)) {
        return work_.fail(region, "does something between entering a loop and its first turn");
      }
    }
    const size_t turns = i;
    for (++i; i < items.size() && items[i]->kind == Item::kWait; ++i) waited.insert(items[i]->id);
    while (i < items.size() && work_.is_bookkeeping(*items[i])) ++i;
    if (i >= items.size() || !work_.is_launch(*items[i], StepKind::kLeave, id)) {
      return work_.fail(region, "does not turn and leave a loop that it enters");
    }
    const bool is_open = result_.loops[number_of_node_.at(id.index())].is_pipelined;
    const std::vector<uint32_t>& tests = items[turns]->tests;
    for (const uint32_t test : tests) {
      const RecordedStep step = work_.decision(test);
      if (step.kind != StepKind::kTest || step.node != id) {
        return work_.fail(region, "tests something else than the loop that it enters");
      }
    }
    if (tests.size() != (is_open ? 2u : 1u)) return work_.fail(region, "tests a loop too often");
    return is_open ? open_turns(id, stream, *items[turns], recorded, waited)
                   : closed_turn(id, stream, *items[turns]);
  }

  Status closed_turn(NodeId id, uint32_t stream, const CodeItem& turns) {
    const std::vector<RegionId>& regions = graph_.node(id).regions;
    EDDY_RETURN_IF_ERROR(closed_region(regions[0], stream, pointers(turns.blocks[0])));
    CodeItems after = pointers(turns.blocks[1]);
    EDDY_RETURN_IF_ERROR(drop_last(after, {StepKind::kAdvance, id}, regions[1]));
    return closed_region(regions[1], stream, after);
  }

  // before, test, after, turn; before, test, after, turn
  Status open_turns(NodeId id, uint32_t stream, const CodeItem& turns,
                    const std::set<uint32_t>& recorded, const std::set<uint32_t>& waited) {
    const std::vector<RegionId>& regions = graph_.node(id).regions;
    const CodeItems middle = pointers(turns.blocks[1]);
    const auto turn = std::ranges::find_if(middle, [&](const CodeItem* item) {
      return work_.is_launch(*item, StepKind::kAdvance, id);
    });
    if (turn == middle.end()) return work_.fail(regions[1], "does not end as it should");
    const CodeItems befores[] = {pointers(turns.blocks[0]), {turn + 1, middle.end()}};
    CodeItems afters[] = {{middle.begin(), turn + 1}, pointers(turns.blocks[2])};
    OpenSet sets[2];
    for (size_t set = 0; set < 2; ++set) {
      EDDY_RETURN_IF_ERROR(closed_region(regions[0], stream, befores[set]));
      EDDY_RETURN_IF_ERROR(drop_last(afters[set], {StepKind::kAdvance, id}, regions[1]));
      EDDY_ASSIGN_OR_RETURN(sets[set], read_open_set(work_, id, std::move(afters[set])));
    }
    EDDY_RETURN_IF_ERROR(check_open_sets(work_, regions[1], sets, recorded, waited));
    EDDY_RETURN_IF_ERROR(open_region(regions[1], stream, sets[0], sets[1]));
    return open_region(regions[1], stream, sets[1], sets[0]);
  }

  // --- events ---

  // Only regions of one loop or branch may share them.
  Status check_shared_events() const {
    for (const auto& [event, regions] : users_) {
      for (auto a = regions.begin(); a != regions.end(); ++a) {
        for (auto b = std::next(a); b != regions.end(); ++b) {
          if (are_exclusive(RegionId(*a), RegionId(*b))) continue;
          return work_.fail(RegionId(*b),
                            fmt::format("uses event {} beside another region", event));
        }
      }
    }
    return Status::ok();
  }

  // From the root.
  std::vector<RegionId> way_to(RegionId region) const {
    std::vector<RegionId> way = {region};
    for (NodeId owner = graph_.region(region).owner; !owner.is_none();
         owner = graph_.region(way.back()).owner) {
      way.push_back(graph_.node(owner).region);
    }
    std::ranges::reverse(way);
    return way;
  }
  bool are_exclusive(RegionId a, RegionId b) const {
    const std::vector<RegionId> way_a = way_to(a);
    const std::vector<RegionId> way_b = way_to(b);
    const auto [at_a, at_b] = std::ranges::mismatch(way_a, way_b);
    if (at_a == way_a.end() || at_b == way_b.end()) return false;
    return graph_.region(*at_a).owner == graph_.region(*at_b).owner;
  }

  const Plan& plan_;
  const Graph& graph_;
  const RecordedWork work_;
  Program result_;
  std::map<uint32_t, uint32_t> number_of_node_;                       // in its list, by NodeId
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> launch_of_take_;  // by loop and number
  std::map<uint32_t, uint32_t> num_retained_;                         // by block
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> number_of_row_;   // by loop and result
  std::map<const CodeItem*, const CodeItems*> rest_of_fork_;          // of open regions
  std::map<uint32_t, std::set<uint32_t>> users_;                      // regions, by event
  std::vector<bool> is_read_;                                         // by region
  uint32_t num_machine_events_ = 0;
};

}  // namespace

bool is_readable(const CommandBuffer& commands) {
  return dynamic_cast<const CommandCode*>(&commands) != nullptr;
}

Result<Program> read_recorded(const Plan& plan, RunState& state) {
  return RecordedReader(plan, state).run();
}

Status prove_recorded(const Plan& plan, RunState& state) {
  EDDY_ASSIGN_OR_RETURN(const Program commands, read_recorded(plan, state));
  const ProgramProof proof = prove_program(commands);
  if (proof.is_safe()) return Status::ok();
  const Graph& graph = state.graph();
  const auto value_name = [&](uint32_t name) {
    return "'" + graph.value(value_of_name(graph, plan.program, name)).name + "'";
  };
  return internal_error("the recorded commands are unsafe: " +
                        proof.violations[0].to_string(
                            [&](uint32_t node) { return graph.path(NodeId(node)); }, value_name));
}

}  // namespace eddy
