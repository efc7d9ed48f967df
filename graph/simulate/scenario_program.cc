#include "graph/simulate/scenario_program.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/text_hash.h"
#include "graph/simulate/decision_draw.h"

namespace eddy {
namespace {

constexpr int kMaxDepth = 100;

// Every entry after those it depends on, in the order given where that allows; too short where
// there is a cycle.
std::vector<uint32_t> order_of(const ScenarioRegion& region) {
  const auto size = static_cast<uint32_t>(region.entries.size());
  std::vector<std::vector<uint32_t>> followers(size);
  std::vector<size_t> waits(size);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < size; ++i) {
    waits[i] = region.entries[i].deps.size();
    if (waits[i] == 0) order.push_back(i);
    for (const uint32_t dep : region.entries[i].deps) followers[dep].push_back(i);
  }
  for (size_t k = 0; k < order.size(); ++k) {
    for (const uint32_t next : followers[order[k]]) {
      if (--waits[next] == 0) order.push_back(next);
    }
  }
  return order;
}

// Entries that wait for one another, of those without an order: each of them waits for one of them.
std::vector<uint32_t> cycle_of(const ScenarioRegion& region, const std::vector<uint32_t>& order) {
  std::vector<bool> is_ordered(region.entries.size());
  for (const uint32_t i : order) is_ordered[i] = true;
  auto at = static_cast<uint32_t>(std::ranges::find(is_ordered, false) - is_ordered.begin());
  std::vector<uint32_t> path;
  std::vector<bool> is_met(region.entries.size());
  for (; !is_met[at]; at = *std::ranges::find(region.entries[at].deps, false, [&](uint32_t dep) {
                        return static_cast<bool>(is_ordered[dep]);
                      })) {
    is_met[at] = true;
    path.push_back(at);
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  return path;
}

// Begins with a loop or case, if there is one.
std::string cycle_text(const ScenarioRegion& region, const std::vector<uint32_t>& order) {
  constexpr size_t kMostNamed = 4;
  std::vector<uint32_t> cycle = cycle_of(region, order);
  const auto first = std::ranges::find_if(
      cycle, [&](uint32_t i) { return region.entries[i].kind != ScenarioEntry::Kind::kTask; });
  if (first != cycle.end()) std::rotate(cycle.begin(), first, cycle.end());
  const auto name = [&](size_t i) { return "'" + region.entries[cycle[i]].name + "'"; };
  std::string text = name(0) + " depends on itself";
  if (cycle.size() == 1) return text;
  text += ": it waits for " + name(1);
  for (size_t i = 2; i < std::min(cycle.size(), kMostNamed); ++i) {
    text += ", which waits for " + name(i);
  }
  return text +
         (cycle.size() > kMostNamed ? ", which waits for others, which wait for "
                                    : ", which waits for ") +
         name(0);
}

}  // namespace

Result<ScenarioProgram> ScenarioProgram::create(const ScenarioRegion& root) {
  ScenarioProgram program;
  EDDY_RETURN_IF_ERROR(program.prepare(root, "", 0, true, program.root_));
  std::vector<std::string> names;
  for (const Control& control : program.controls_) names.push_back(control.entry->name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) {
    return invalid_argument(fmt::format("two loops or cases are called '{}'", *twice));
  }
  return program;
}

Status ScenarioProgram::prepare(const ScenarioRegion& from, const std::string& where, int depth,
                                bool is_traced, Region& region) {
  if (depth > kMaxDepth) {
    return invalid_argument(
        fmt::format("{}: loops and cases are nested more than {} deep", where, kMaxDepth));
  }
  region.entries.resize(from.entries.size());
  region.is_sink.assign(from.entries.size(), true);
  for (size_t i = 0; i < from.entries.size(); ++i) {
    const ScenarioEntry& entry = from.entries[i];
    for (const uint32_t dep : entry.deps) {
      if (dep >= from.entries.size()) {
        return invalid_argument(fmt::format("{}'{}' depends on entry {}, its region has {}", where,
                                            entry.name, dep, from.entries.size()));
      }
      region.is_sink[dep] = false;
    }
  }
  region.order = order_of(from);
  if (region.order.size() < from.entries.size()) {
    return invalid_argument(where + cycle_text(from, region.order));
  }
  for (const uint32_t i : region.order) {  // a follow after its case, wherever they stand
    const std::string place = where + "'" + from.entries[i].name + "'";
    EDDY_RETURN_IF_ERROR(
        prepare_entry(from.entries[i], place, depth, is_traced, region.entries[i]));
  }
  for (const Entry& entry : region.entries) region.work += work_of(entry);
  return Status::ok();
}

Status ScenarioProgram::prepare_entry(const ScenarioEntry& from, const std::string& where,
                                      int depth, bool is_traced, Entry& entry) {
  entry.entry = &from;
  if (from.kind == ScenarioEntry::Kind::kTask) {
    if (is_valid_time(from.exe_time) && from.device != kNoSlot) return Status::ok();
    return invalid_argument(
        fmt::format("{}: exe_time {} is no time; times are finite and >= 0", where, from.exe_time));
  }
  if (from.kind == ScenarioEntry::Kind::kFollow) return prepare_follow(from, where, depth, entry);
  EDDY_RETURN_IF_ERROR(check_decision(from, where));
  const bool has_trace = !from.decision.trace.empty();
  if (has_trace && !is_traced) {
    return invalid_argument(where + " has a trace inside a loop or case that has none");
  }
  entry.control = static_cast<uint32_t>(controls_.size());
  controls_.emplace_back().loop = loop_;
  if (from.kind == ScenarioEntry::Kind::kLoop) loop_ = entry.control;
  entry.regions.resize(from.regions.size());
  for (size_t r = 0; r < from.regions.size(); ++r) {
    EDDY_RETURN_IF_ERROR(
        prepare(from.regions[r], where + "/", depth + 1, has_trace, entry.regions[r]));
  }
  loop_ = controls_[entry.control].loop;
  prepare_control(entry);
  if (from.kind == ScenarioEntry::Kind::kCase) cases_[from.name] = entry.control;
  return Status::ok();
}

Status ScenarioProgram::prepare_follow(const ScenarioEntry& from, const std::string& where,
                                       int depth, Entry& entry) {
  const auto followed = cases_.find(from.follows);
  if (followed == cases_.end()) {
    return invalid_argument(
        fmt::format("{} follows '{}', which is no case before it", where, from.follows));
  }
  entry.control = followed->second;
  const size_t branches = controls_[entry.control].entry->regions.size();
  if (from.regions.size() != branches) {
    return invalid_argument(
        fmt::format("{} has {} regions, and '{}', which it follows, {} branches", where,
                    from.regions.size(), from.follows, branches));
  }
  entry.regions.resize(branches);
  for (size_t r = 0; r < branches; ++r) {
    EDDY_RETURN_IF_ERROR(prepare(from.regions[r], where + "/", depth + 1, false, entry.regions[r]));
  }
  return Status::ok();
}

// The entry's work with every control at its extreme.
double ScenarioProgram::work_of(const Entry& entry) const {
  const ScenarioEntry& from = *entry.entry;
  if (from.kind == ScenarioEntry::Kind::kTask) return from.exe_time;
  const Control& control = controls_[entry.control];
  const auto extreme = static_cast<size_t>(control.extreme);
  if (from.kind == ScenarioEntry::Kind::kFollow) return entry.regions[extreme].work;
  const double time = from.decision.time;
  if (from.kind == ScenarioEntry::Kind::kCase) return time + control.region_work[extreme];
  const auto trips = static_cast<double>(control.extreme);
  return (trips + 1) * (time + control.region_work[0]) + trips * control.region_work[1];
}

Status ScenarioProgram::check_decision(const ScenarioEntry& entry, const std::string& where) const {
  const Decision& decision = entry.decision;
  const bool is_loop = entry.kind == ScenarioEntry::Kind::kLoop;
  if (is_loop ? entry.regions.size() != 2 : entry.regions.empty()) {
    return invalid_argument(where + (is_loop ? ": a loop has two regions, before and after"
                                             : ": a case needs at least one branch"));
  }
  if (decision.distribution.empty() == decision.trace.empty()) {
    return invalid_argument(where + " needs a distribution or a trace, and not both");
  }
  if (!is_valid_time(decision.time) || decision.device == kNoSlot) {
    return invalid_argument(
        fmt::format("{}: decision time {} is no time; times are finite and "
                    ">= 0",
                    where, decision.time));
  }
  const auto is_valid = [&](int64_t value) {
    return value >= 0 && (is_loop || static_cast<uint64_t>(value) < entry.regions.size());
  };
  const auto refuse = [&](int64_t value) {
    return invalid_argument(is_loop ? fmt::format("{}: {} trips; trips are >= 0", where, value)
                                    : fmt::format("{}: there is no branch {}; there are {}", where,
                                                  value, entry.regions.size()));
  };
  double sum = 0;
  for (const Decision::Likely& likely : decision.distribution) {
    if (!is_valid(likely.value)) return refuse(likely.value);
    if (!is_valid_time(likely.probability)) {
      return invalid_argument(fmt::format("{}: {} is no probability", where, likely.probability));
    }
    sum += likely.probability;
  }
  for (const int64_t value : decision.trace) {
    if (!is_valid(value)) return refuse(value);
  }
  if (!decision.distribution.empty() && std::abs(sum - 1) > 1e-6) {
    return invalid_argument(fmt::format("{}: probabilities add up to {}, not 1", where, sum));
  }
  return Status::ok();
}

void ScenarioProgram::prepare_control(Entry& entry) {
  EDDY_CHECK(entry.control < controls_.size()) << "control " << entry.control;
  Control& control = controls_[entry.control];
  const ScenarioEntry& from = *entry.entry;
  control.entry = &from;
  control.name_hash = text_hash(from.name);
  double sum = 0;
  for (const Decision::Likely& likely : from.decision.distribution) {
    if (likely.probability == 0) continue;
    sum += likely.probability;
    control.likely.push_back({likely.value, sum});
    control.probabilities.push_back(likely.probability);
  }
  for (double& probability : control.probabilities) probability /= sum;
  for (Decision::Likely& likely : control.likely) likely.probability /= sum;
  std::vector<int64_t> values = from.decision.trace;
  for (const Decision::Likely& likely : control.likely) values.push_back(likely.value);
  for (const Region& region : entry.regions) control.region_work.push_back(region.work);
  EDDY_CHECK(!values.empty()) << "nothing decides '" << from.name << "'";
  control.extreme = from.kind == ScenarioEntry::Kind::kLoop
                        ? std::ranges::max(values)
                        : std::ranges::max(values, {}, [&control](int64_t value) {
                            return control.region_work[static_cast<size_t>(value)];
                          });
}

// One scenario, as far as it has come.
struct ScenarioProgram::Walk {
  const std::vector<Control>& controls;
  const Choose& choose;
  uint64_t limit;
  Expansion* expansion_or_null;
  uint64_t num_steps = 0;  // tasks and decisions
  uint64_t num_edges = 0;
  Status status{};
  // By control: the branch that a case took last, and how many steps there were by then and by the
  // last start of a loop.
  struct Last {
    int64_t branch = 0;
    uint64_t step = 0;
  };
  std::vector<Last> last = std::vector<Last>(controls.size());

  // Tasks that others wait for; where only choices are requested, no more than their number.
  struct Ends {
    std::vector<uint32_t> tasks;
    uint64_t count = 0;

    void add(const Ends& other) {
      tasks.insert(tasks.end(), other.tasks.begin(), other.tasks.end());
      count += other.count;
    }
  };

  bool count(uint64_t steps, const std::string& name) {
    num_steps += steps;
    if (num_steps <= limit || !status.is_ok()) return status.is_ok();
    status = resource_exhausted(fmt::format(
        "a scenario has more than {} tasks, in '{}'; make its loops run less often", limit, name));
    return false;
  }

  // Many tasks that all wait for many others are refused as well, before they are written out.
  bool count_edges(uint64_t edges, const std::string& name) {
    constexpr uint64_t kEdgesPerTask = 4;
    num_edges += edges;
    if (num_edges / kEdgesPerTask <= limit || !status.is_ok()) return status.is_ok();
    status = resource_exhausted(
        fmt::format("a scenario has more than {} dependencies among its tasks, in '{}'; make its "
                    "loops run less often or give operators fewer parts",
                    limit * kEdgesPerTask, name));
    return false;
  }

  // The ends become those that depend on the task: itself.
  bool add(const TaskSpec<double>& spec, const std::string& own_name, const std::string& name,
           bool is_decision, Ends& ends) {
    if (!count(1, own_name) || !count_edges(ends.count, own_name)) return false;
    std::vector<uint32_t> waits_for = std::move(ends.tasks);
    ends = {{}, 1};
    if (expansion_or_null == nullptr) return true;
    const auto slot = static_cast<uint32_t>(expansion_or_null->specs.size());
    expansion_or_null->specs.push_back({spec.exe_time, spec.device, slot});
    for (const uint32_t from : waits_for) expansion_or_null->edges.push_back({from, slot});
    ends.tasks.push_back(slot);
    if (!expansion_or_null->wants_names) return true;
    expansion_or_null->names.push_back(is_decision ? name + "?" : name);
    expansion_or_null->is_decision.push_back(is_decision);
    return true;
  }

  bool decide(const Entry& entry, const std::string& name, Ends& ends, int64_t& value) {
    const Decision& decision = entry.entry->decision;
    if (!add({decision.time, decision.device, 0}, entry.entry->name, name, true, ends)) {
      return false;
    }
    return value != kAsk || choose(entry.control, value);
  }
  static constexpr int64_t kAsk = -1;

  std::string name_of(const std::string& prefix, const Entry& entry) const {
    const bool is_wanted = expansion_or_null != nullptr && expansion_or_null->wants_names;
    return is_wanted ? prefix + entry.entry->name : "";
  }
  std::string iteration_name(const std::string& name, int64_t i) const {
    return name.empty() ? "" : fmt::format("{}[{}]", name, i);
  }

  bool run(const Region& region, const std::string& prefix, Ends& ends) {
    if (region.entries.empty()) return true;
    EDDY_DCHECK(region.order.size() == region.entries.size()) << "an entry has no place";
    std::vector<Ends> ends_of(region.entries.size());
    Ends exits;
    for (const uint32_t i : region.order) {
      const Entry& entry = region.entries[i];
      Ends own;
      if (entry.entry->deps.empty()) own = ends;
      for (const uint32_t dep : entry.entry->deps) own.add(ends_of[dep]);
      if (!run_entry(entry, name_of(prefix, entry), own) || !status.is_ok()) return false;
      if (region.is_sink[i]) exits.add(own);
      ends_of[i] = std::move(own);
    }
    ends = std::move(exits);
    return true;
  }

  bool run_entry(const Entry& entry, const std::string& name, Ends& ends) {
    switch (entry.entry->kind) {
      case ScenarioEntry::Kind::kTask:
        return add({entry.entry->exe_time, entry.entry->device, 0}, entry.entry->name, name, false,
                   ends);
      case ScenarioEntry::Kind::kLoop:
        return run_loop(entry, name, ends);
      case ScenarioEntry::Kind::kCase: {
        int64_t branch = kAsk;
        if (!decide(entry, name, ends, branch)) return false;
        EDDY_DCHECK(branch >= 0 && static_cast<size_t>(branch) < entry.regions.size())
            << "branch " << branch << " of '" << name << "'";
        last[entry.control] = {branch, num_steps};
        return run(entry.regions[static_cast<size_t>(branch)], name + "/", ends);
      }
      case ScenarioEntry::Kind::kFollow: {
        const Last& taken = last[entry.control];
        const uint32_t loop = controls[entry.control].loop;
        const bool is_taken = taken.step > (loop == UINT32_MAX ? 0 : last[loop].step);
        return !is_taken || run(entry.regions[static_cast<size_t>(taken.branch)], name + "/", ends);
      }
    }
    return false;
  }

  // The number of trips is drawn once; each iteration still decides.
  bool run_loop(const Entry& entry, const std::string& name, Ends& ends) {
    int64_t trips = kAsk;
    last[entry.control].step = num_steps;
    for (int64_t i = 0;; ++i) {
      const std::string iteration = iteration_name(name, i);
      const std::string inside = iteration.empty() ? "" : iteration + "/";
      if (!run(entry.regions[0], inside, ends)) return false;
      if (!decide(entry, iteration, ends, trips)) return false;
      EDDY_DCHECK(trips >= i) << name << " ran more than " << trips << " times";
      if (i == trips) return true;
      if (!run(entry.regions[1], inside, ends)) return false;
    }
  }
};

Status ScenarioProgram::walk(const Choose& choose, uint64_t limit) const {
  Walk walk{controls_, choose, limit, nullptr};
  Walk::Ends ends;
  walk.run(root_, "", ends);
  return std::move(walk.status);
}

Status ScenarioProgram::expand(const Choose& choose, uint64_t limit, Expansion& expansion) const {
  Walk walk{controls_, choose, limit, &expansion};
  Walk::Ends ends;
  walk.run(root_, "", ends);
  return std::move(walk.status);
}

}  // namespace eddy
