#include "graph/strategy/make_scenarios.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "graph/strategy/border_transfers.h"
#include "graph/strategy/build_task_graph.h"
#include "graph/strategy/carried_makers.h"
#include "graph/strategy/control_order.h"
#include "graph/strategy/list_memory.h"
#include "graph/strategy/made_list.h"

namespace eddy {
namespace {

using Kind = ScenarioEntry::Kind;

// What a list asks of the lists around.
struct Outward {
  BorderReaders readers;
  BorderReaders served = {};         // had in the list itself, each time it runs
  std::set<std::string> names = {};  // all that it waits for
  std::set<std::string> read = {};   // of these, what operators read
};

class ScenarioMaker {
 public:
  explicit ScenarioMaker(const Topology& topology) : topology_(topology), transfers_(topology) {}

  // `around`: null where all that comes from outside is sent outside.
  Status make(const OperatorList& list, const Around* around, ScenarioRegion& region,
              MadeList& made, Outward& outward);

 private:
  Status add_tasks(const OperatorList& list, ScenarioRegion& region, MadeList& made) const;
  static void number(const OperatorList& list, MadeList& made);
  void add_entries(const OperatorList& list, const TaskGraph<double>& tasks,
                   const std::vector<TaskLabel>& labels, ScenarioRegion& region,
                   MadeList& made) const;
  Status add_controls(const Around* around, ScenarioRegion& region, MadeList& made,
                      BorderReaders& readers, Outward& outward);
  Status add_control(uint32_t number, const Around* around, ScenarioRegion& region, MadeList& made,
                     Outward& asked);
  Status send_inside(const MadeList& made, BorderReader reader, ScenarioEntry& loop,
                     bool is_of_body);
  Status bring_in(const ControlOperator& control, Outward wanted, ScenarioEntry& loop,
                  const std::vector<MadeList>& lists, Outward& asked);
  Status add_loop_lists(const ControlOperator& control, ScenarioEntry& entry,
                        std::vector<MadeList>& lists, Outward& asked);
  void add_own_inputs(const ControlOperator& control, uint32_t target, Outward& asked);
  Status wait_for(const std::set<std::string>& names, ScenarioEntry& entry, MadeList& made,
                  Outward& outward) const;
  Status serve(const BorderReader& reader, const Around* around, ScenarioRegion& region,
               MadeList& made, Outward& outward);
  static void add_results(const MadeList& made, ScenarioRegion& region,
                          std::vector<BorderSource>& to);
  static void add_last_results(const MadeList& made, std::optional<uint32_t> loop_or_none,
                               ScenarioRegion& region, std::vector<BorderSource>& to);
  static void add_last_control_results(const MadeList& made, uint32_t control,
                                       std::optional<uint32_t> loop_or_none, ScenarioRegion& region,
                                       std::vector<BorderSource>& to);
  static void add_earlier_results(const MadeList& made, uint32_t number, ScenarioRegion& region,
                                  std::vector<BorderSource>& to);
  static void add_control_results(const MadeList& made, uint32_t control, ScenarioRegion& region,
                                  std::vector<BorderSource>& to);
  void add_devices(const ScenarioEntry& entry, std::set<uint32_t>& devices) const;

  const Topology& topology_;
  BorderTransfers transfers_;
  std::deque<BorderReading> readings_;
};

Status ScenarioMaker::add_tasks(const OperatorList& list, ScenarioRegion& region,
                                MadeList& made) const {
  made.list = &list;
  made.parts.resize(list.graph.operators.size());
  made.tiles.resize(list.graph.operators.size());
  if (list.graph.operators.empty()) return Status::ok();
  TaskGraph<double> tasks;
  std::vector<TaskLabel> labels;
  EDDY_RETURN_IF_ERROR(TaskGraphBuilder(list.graph, topology_).build(list.strategy, tasks, labels));
  tasks.make_predecessors();
  add_entries(list, tasks, labels, region, made);
  return Status::ok();
}

void set_at(std::vector<uint32_t>& list, uint32_t at, uint32_t value) {
  if (at >= list.size()) list.resize(at + size_t{1});
  list[at] = value;
}

// Entries stand in the order of ranks, which is the order in which ties are settled.
void ScenarioMaker::add_entries(const OperatorList& list, const TaskGraph<double>& tasks,
                                const std::vector<TaskLabel>& labels, ScenarioRegion& region,
                                MadeList& made) const {
  std::vector<uint32_t> order(tasks.num_slots());
  for (uint32_t slot = 0; slot < order.size(); ++slot) order[slot] = slot;
  std::ranges::sort(order, {}, [&](uint32_t slot) { return tasks.task(slot).rank; });
  std::vector<uint32_t> position(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (const uint32_t slot : order) {
    const TaskLabel& label = labels[slot];
    ScenarioEntry entry;
    entry.name = task_name(label, list.graph, topology_);
    entry.exe_time = tasks.task(slot).exe_time;
    entry.device = tasks.task(slot).device;
    for (const uint32_t from : tasks.predecessors(slot)) entry.deps.push_back(position[from]);
    region.entries.push_back(std::move(entry));
    if (label.kind == TaskKind::kPart) set_at(made.parts[label.op], label.part, position[slot]);
    if (label.kind == TaskKind::kSum) set_at(made.tiles[label.op], label.part, position[slot]);
  }
  for (size_t op = 0; op < made.tiles.size(); ++op) {
    if (made.tiles[op].empty()) made.tiles[op] = made.parts[op];
  }
}

// Those of operators and decisions in the entry's regions, at any depth.
void ScenarioMaker::add_devices(const ScenarioEntry& entry, std::set<uint32_t>& devices) const {
  for (const ScenarioRegion& region : entry.regions) {
    for (const ScenarioEntry& inner : region.entries) {
      if (inner.kind == Kind::kFollow) continue;
      const uint32_t own = inner.kind == Kind::kTask ? inner.device : inner.decision.device;
      if (own < topology_.num_nodes()) devices.insert(own);
      add_devices(inner, devices);
    }
  }
}

// The devices of operators that wait for nothing.
void add_starts(const std::vector<OperatorList>& lists, std::set<uint32_t>& devices) {
  for (const OperatorList& list : lists) {
    std::vector<bool> waits(list.graph.operators.size());
    for (const OuterInput& input : list.outer_inputs) waits[input.op] = true;
    for (size_t op = 0; op < waits.size(); ++op) {
      if (waits[op] || !list.graph.operators[op].inputs.empty()) continue;
      devices.insert(list.strategy[op].devices.begin(), list.strategy[op].devices.end());
    }
    for (const ControlOperator& control : list.controls) {
      if (control.inputs.empty()) add_starts(control.lists, devices);
    }
  }
}

// What it names itself and no operator in it reads.
void ScenarioMaker::add_own_inputs(const ControlOperator& control, uint32_t target,
                                   Outward& asked) {
  std::set<uint32_t> devices;
  add_starts(control.lists, devices);
  const auto count = static_cast<int64_t>(devices.size());
  for (const std::string& from : control.inputs) {
    asked.names.insert(from);
    if (asked.read.contains(from) || count == 0) continue;
    BorderReading& reading = readings_.emplace_back();
    reading.op.name = control.name;
    reading.op.shape = {count};
    reading.op.inputs.resize(1);
    reading.config = {.degree = {count}, .reduce = 1, .devices = {devices.begin(), devices.end()}};
    asked.readers.add({from, &reading, {target}});
  }
}

// What is carried, at the end of each turn: of what `before` made once the decision has come.
Status ScenarioMaker::send_inside(const MadeList& made, BorderReader reader, ScenarioEntry& loop,
                                  bool is_of_body) {
  const uint32_t number = made.numbers.at(reader.from);
  ScenarioRegion& body = loop.regions[1];
  std::vector<BorderSource> sources;
  if (!is_of_body) {
    add_earlier_results(made, number, body, sources);
  } else if (number < made.num_ops()) {
    sources.push_back({made.list, number, made.tiles[number], &body});
  } else {
    add_control_results(made, number - made.num_ops(), body, sources);
  }
  reader.targets.clear();  // a decision is between
  return transfers_.send(sources, reader, body);
}

// All else is sent before the loop begins.
Status ScenarioMaker::bring_in(const ControlOperator& control, Outward wanted, ScenarioEntry& loop,
                               const std::vector<MadeList>& lists, Outward& asked) {
  const CarriedMakers makers(control);
  BorderReaders inside = std::move(wanted.served);
  for (const BorderReader& wanting : wanted.readers.all()) {
    EDDY_RETURN_IF_ERROR(makers.for_each(wanting.from, [&](const std::string& maker) {
      const MadeList* const made = list_inside(lists, maker, wanting.from);
      BorderReader reader = wanting;
      reader.from = maker;
      if (made == nullptr) {
        asked.readers.add(std::move(reader));
        return Status::ok();
      }
      if (reads_within(lists, reader) || !inside.add(reader)) return Status::ok();
      return send_inside(*made, reader, loop, made == &lists[1]);
    }));
  }
  for (const auto set : {&Outward::names, &Outward::read}) {
    for (const std::string& name : wanted.*set) {
      EDDY_RETURN_IF_ERROR(makers.for_each(name, [&](const std::string& maker) {
        if (list_inside(lists, maker, name) == nullptr) (asked.*set).insert(maker);
        return Status::ok();
      }));
    }
  }
  return Status::ok();
}

// Of a loop: who makes what it carries outside, whoever reads it.
void wait_for_carried(const ControlOperator& control, const std::vector<MadeList>& lists,
                      Outward& asked) {
  const auto is_inside = [&](const std::string& name) {
    return std::ranges::any_of(lists,
                               [&](const MadeList& made) { return made.numbers.contains(name); });
  };
  std::set<std::string> own;
  for (const CarriedValue& value : control.carried) own.insert(value.name);
  for (const CarriedValue& value : control.carried) {
    for (const std::string& name : {value.initial, value.next}) {
      if (!name.empty() && !own.contains(name) && !is_inside(name)) asked.names.insert(name);
    }
  }
}

Status ScenarioMaker::add_loop_lists(const ControlOperator& control, ScenarioEntry& entry,
                                     std::vector<MadeList>& lists, Outward& asked) {
  Outward wanted;
  EDDY_RETURN_IF_ERROR(make(control.lists[0], nullptr, entry.regions[0], lists[0], wanted));
  const Around around{&lists[0]};
  EDDY_RETURN_IF_ERROR(make(control.lists[1], &around, entry.regions[1], lists[1], wanted));
  return bring_in(control, std::move(wanted), entry, lists, asked);
}

// They stand in the list's order, whatever the order in which they are made.
Status ScenarioMaker::add_controls(const Around* around, ScenarioRegion& region, MadeList& made,
                                   BorderReaders& readers, Outward& outward) {
  const size_t count = made.list->controls.size();
  made.inner.resize(count);
  region.entries.resize(made.first_control + count);
  std::vector<Outward> asked(count);
  for (const uint32_t c : control_order(*made.list)) {
    EDDY_RETURN_IF_ERROR(add_control(c, around, region, made, asked[c]));
  }
  for (size_t c = 0; c < count; ++c) {
    ScenarioEntry& entry = region.entries[made.first_control + c];
    EDDY_RETURN_IF_ERROR(wait_for(asked[c].names, entry, made, outward));
    for (const std::string& name : asked[c].read) {
      if (!made.numbers.contains(name)) outward.read.insert(name);
    }
    for (const BorderReader& reader : asked[c].readers.all()) readers.add(reader);
  }
  return Status::ok();
}

Status ScenarioMaker::add_control(uint32_t number, const Around* around, ScenarioRegion& region,
                                  MadeList& made, Outward& asked) {
  const ControlOperator& control = made.list->controls[number];
  ScenarioEntry entry;
  entry.name = control.name;
  entry.kind = control.kind;
  entry.decision = control.decision;
  entry.regions.resize(control.lists.size());
  std::vector<MadeList> lists(control.lists.size());
  if (control.kind == Kind::kLoop) {
    EDDY_RETURN_IF_ERROR(add_loop_lists(control, entry, lists, asked));
  } else {
    for (size_t b = 0; b < control.lists.size(); ++b) {
      EDDY_RETURN_IF_ERROR(make(control.lists[b], around, entry.regions[b], lists[b], asked));
    }
  }
  const uint32_t position = made.first_control + number;
  asked.readers.set_target(position);
  add_own_inputs(control, position, asked);
  wait_for_carried(control, lists, asked);
  if (entry.decision.device == kAnyDevice) {
    std::set<uint32_t> devices;
    add_devices(entry, devices);
    entry.decision.device = devices.size() == 1 ? *devices.begin() : topology_.devices()[0];
  }
  region.entries[position] = std::move(entry);
  made.inner[number] = std::move(lists);
  return Status::ok();
}

// Those of this list; the others are asked of the lists around.
Status ScenarioMaker::wait_for(const std::set<std::string>& names, ScenarioEntry& entry,
                               MadeList& made, Outward& outward) const {
  for (const std::string& name : names) {
    const auto found = made.numbers.find(name);
    if (found == made.numbers.end()) {
      outward.names.insert(name);
      continue;
    }
    const uint32_t number = found->second;
    made.is_read[number] = true;
    if (number < made.num_ops()) {
      const std::vector<uint32_t>& parts = made.parts[number];
      const std::vector<uint32_t>& tiles = made.tiles[number];
      entry.deps.insert(entry.deps.end(), parts.begin(), parts.end());
      if (tiles != parts) entry.deps.insert(entry.deps.end(), tiles.begin(), tiles.end());
    } else if (name == entry.name) {
      return invalid_argument("'" + name + "': depends on itself");
    } else {
      entry.deps.push_back(made.first_control + number - made.num_ops());
    }
  }
  return Status::ok();
}

void ScenarioMaker::add_control_results(const MadeList& made, uint32_t control,
                                        ScenarioRegion& region, std::vector<BorderSource>& to) {
  const uint32_t position = made.first_control + control;
  const std::vector<MadeList>& lists = made.inner[control];
  if (made.list->controls[control].kind == Kind::kCase) {
    for (size_t b = 0; b < lists.size(); ++b) {
      add_results(lists[b], region.entries[position].regions[b], to);
    }
    return;
  }
  add_last_results(lists[lists[1].is_empty() ? 0 : 1], position, region, to);
}

// Of what a loop's last turn left: what a branch made is sent where that was taken, after the loop.
void ScenarioMaker::add_last_results(const MadeList& made, std::optional<uint32_t> loop_or_none,
                                     ScenarioRegion& region, std::vector<BorderSource>& to) {
  for (uint32_t op = 0; op < made.num_ops(); ++op) {
    if (made.is_read[op]) continue;
    std::vector<uint32_t> deps;
    if (loop_or_none) deps.assign(made.tiles[op].size(), *loop_or_none);
    to.push_back({made.list, op, std::move(deps), &region});
  }
  for (uint32_t control = 0; control < made.inner.size(); ++control) {
    if (made.is_read[made.num_ops() + control]) continue;
    add_last_control_results(made, control, loop_or_none, region, to);
  }
}

void ScenarioMaker::add_last_control_results(const MadeList& made, uint32_t control,
                                             std::optional<uint32_t> loop_or_none,
                                             ScenarioRegion& region,
                                             std::vector<BorderSource>& to) {
  const ControlOperator& from = made.list->controls[control];
  const std::vector<MadeList>& lists = made.inner[control];
  if (from.kind == Kind::kLoop) {
    add_last_results(lists[lists[1].is_empty() ? 0 : 1], loop_or_none, region, to);
    return;
  }
  ScenarioEntry follow;
  follow.name = "after " + from.name;
  follow.kind = Kind::kFollow;
  follow.follows = from.name;
  if (loop_or_none) follow.deps = {*loop_or_none};
  follow.regions.resize(lists.size());
  for (size_t b = 0; b < lists.size(); ++b) {
    add_last_results(lists[b], std::nullopt, follow.regions[b], to);
  }
  region.entries.push_back(std::move(follow));
}

// Of what has ended before the region begins; nothing of what waits for that, which is a cycle.
void ScenarioMaker::add_earlier_results(const MadeList& made, uint32_t number,
                                        ScenarioRegion& region, std::vector<BorderSource>& to) {
  if (number < made.num_ops()) {
    to.push_back({made.list, number, {}, &region});
  } else if (!made.inner[number - made.num_ops()].empty()) {
    add_last_control_results(made, number - made.num_ops(), std::nullopt, region, to);
  }
}

void ScenarioMaker::add_results(const MadeList& made, ScenarioRegion& region,
                                std::vector<BorderSource>& to) {
  for (uint32_t op = 0; op < made.num_ops(); ++op) {
    if (!made.is_read[op]) to.push_back({made.list, op, made.tiles[op], &region});
  }
  for (uint32_t control = 0; control < made.inner.size(); ++control) {
    if (!made.is_read[made.num_ops() + control]) add_control_results(made, control, region, to);
  }
}

Status ScenarioMaker::serve(const BorderReader& reader, const Around* around,
                            ScenarioRegion& region, MadeList& made, Outward& outward) {
  const auto found = made.numbers.find(reader.from);
  const auto first = static_cast<uint32_t>(region.entries.size());
  std::vector<BorderSource> sources;
  if (found != made.numbers.end()) {
    const uint32_t number = found->second;
    if (number < made.num_ops()) {
      sources.push_back({made.list, number, made.tiles[number], &region});
    } else {
      add_control_results(made, number - made.num_ops(), region, sources);
    }
  } else if (const MadeList* const other = Around::find_or_null(around, reader.from)) {
    add_earlier_results(*other, other->numbers.at(reader.from), region, sources);
  } else {
    outward.readers.add(reader);
    return Status::ok();
  }
  outward.served.add({reader.from, reader.reading, {}});
  // Follows, each of which all of the reader's parts wait for.
  const auto last = static_cast<uint32_t>(region.entries.size());
  for (uint32_t follow = first; follow < last; ++follow) {
    for (const uint32_t target : reader.targets) region.entries[target].deps.push_back(follow);
  }
  return transfers_.send(sources, reader, region);
}

void ScenarioMaker::number(const OperatorList& list, MadeList& made) {
  for (uint32_t op = 0; op < made.num_ops(); ++op) {
    made.numbers[list.graph.operators[op].name] = op;
  }
  for (uint32_t c = 0; c < list.controls.size(); ++c) {
    made.numbers[list.controls[c].name] = made.num_ops() + c;
  }
  made.is_read.assign(made.num_ops() + list.controls.size(), false);
  for (const Operator& op : list.graph.operators) {
    for (const OperatorInput& input : op.inputs) made.is_read[input.producer] = true;
  }
}

Status ScenarioMaker::make(const OperatorList& list, const Around* around, ScenarioRegion& region,
                           MadeList& made, Outward& outward) {
  EDDY_RETURN_IF_ERROR(add_tasks(list, region, made));
  number(list, made);
  made.first_control = static_cast<uint32_t>(region.entries.size());
  BorderReaders readers;
  for (const OuterInput& input : list.outer_inputs) {
    readings_.push_back({input.shape, list.graph.operators[input.op], list.strategy[input.op]});
    readings_.back().op.inputs = {{.producer = 0, .dims = input.dims}};
    for (const uint32_t part : made.parts[input.op]) {
      EDDY_RETURN_IF_ERROR(wait_for({input.from}, region.entries[part], made, outward));
    }
    if (!made.numbers.contains(input.from)) outward.read.insert(input.from);
    readers.add({input.from, &readings_.back(), made.parts[input.op]});
  }
  const Around inside{&made, around};
  EDDY_RETURN_IF_ERROR(add_controls(&inside, region, made, readers, outward));
  for (const BorderReader& reader : readers.all()) {
    EDDY_RETURN_IF_ERROR(serve(reader, around, region, made, outward));
  }
  return Status::ok();
}

}  // namespace

Result<ScenarioRegion> make_scenarios(const OperatorList& root, const Topology& topology) {
  EDDY_RETURN_IF_ERROR(check_list_memory(root, topology));
  ScenarioRegion region;
  MadeList made;
  Outward outward;
  EDDY_RETURN_IF_ERROR(ScenarioMaker(topology).make(root, nullptr, region, made, outward));
  if (outward.names.empty()) return region;
  return invalid_argument("no operator is called '" + *outward.names.begin() +
                          "', which another one reads");
}

}  // namespace eddy
