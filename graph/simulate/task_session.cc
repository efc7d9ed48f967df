#include "graph/simulate/task_session.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kMaxRank = UINT32_MAX - 1;

bool is_rank(int64_t id) { return id >= 0 && id <= static_cast<int64_t>(kMaxRank); }

std::string invalid_time_text(const FileTask& task) {
  const std::string time = task.exe_time.is_integer ? std::to_string(task.exe_time.integer)
                                                    : fmt::format("{}", task.exe_time.number);
  return fmt::format("task {}: exe_time {} is no time; times are finite and >= 0", task.id, time);
}

Status no_task(int64_t id) { return invalid_argument(fmt::format("there is no task {}", id)); }

Status self_dep(int64_t id) {
  return invalid_argument(fmt::format("task {} depends on itself", id));
}

Status double_id(int64_t id) {
  return invalid_argument(fmt::format("there are two tasks {}; ids are unique", id));
}

}  // namespace

template <TimeValue Time>
Status TaskSession<Time>::start(const TaskFile& file) {
  std::vector<TaskSpec<Time>> specs;
  specs.reserve(file.tasks.size());
  for (const FileTask& task : file.tasks) {
    const auto slot = static_cast<uint32_t>(specs.size());
    slots_.try_emplace(slots_.end(), task.id, slot);
    if (slots_.size() == slot) return double_id(task.id);
    EDDY_ASSIGN_OR_RETURN(const Time time, time_of(task));
    if (!open_times_.empty()) return invalid_argument(open_times_.begin()->second);
    has_wide_ids_ |= !is_rank(task.id);
    specs.push_back({time, task.device, static_cast<uint32_t>(task.id)});
    ids_.push_back(task.id);
  }
  std::vector<Edge> edges;
  for (uint32_t slot = 0; slot < file.tasks.size(); ++slot) {
    std::vector<int64_t> deps = file.tasks[slot].deps;
    std::ranges::sort(deps);
    deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
    for (const int64_t dep : deps) {
      if (dep == ids_[slot]) return self_dep(dep);
      const auto from = slots_.find(dep);
      if (from == slots_.end()) {
        return invalid_argument(
            fmt::format("task {} depends on {}, but there is no task {}", ids_[slot], dep, dep));
      }
      edges.push_back({from->second, slot});
    }
  }
  TaskGraph<Time> graph;
  graph.assign(specs, edges);
  if (has_wide_ids_) {
    const uint64_t gap = (uint64_t{kMaxRank} + 1) / (slots_.size() + 1);
    uint64_t rank = 0;
    for (const auto& [id, slot] : slots_) graph.set_rank(slot, static_cast<uint32_t>(rank += gap));
  }
  return describe(simulation_.reset(std::move(graph)));
}

template <TimeValue Time>
Result<Time> TaskSession<Time>::time_of(const FileTask& task) {
  Time time;
  if constexpr (std::same_as<Time, double>) {
    time = normalized_time(task.exe_time.number);
    const bool is_held = !task.exe_time.is_integer ||
                         (time < 0x1.0p63 && static_cast<int64_t>(time) == task.exe_time.integer);
    if (!is_held) {
      return invalid_argument(
          fmt::format("task {}: exe_time {} cannot stay exact beside times with fractions", task.id,
                      task.exe_time.integer));
    }
  } else {
    time = task.exe_time.integer;
  }
  open_times_.erase(task.id);
  if (is_valid_time(time)) return time;
  open_times_[task.id] = invalid_time_text(task);
  return Time{0};
}

template <TimeValue Time>
Result<uint32_t> TaskSession<Time>::slot_of(int64_t id) const {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return no_task(id);
  return found->second;
}

template <TimeValue Time>
Status TaskSession<Time>::apply(const TaskFile::Batch& batch, const std::string& where) {
  open_deps_.clear();
  open_times_.clear();
  reverses_.clear();
  if (batch.is_undo) {
    Status status = apply_undo();
    return status.is_ok() ? Status::ok() : std::move(status.prepend_message(where));
  }
  for (const FileEdit& edit : batch.edits) {
    Status status = apply_change(edit);
    if (!status.is_ok()) return status.prepend_message(where + ": " + edit_name(edit.op));
  }
  Status status = check_open_ends();
  if (status.is_ok()) status = describe(simulation_.simulate({.mode = mode_}));
  if (!status.is_ok()) return status.prepend_message(where);
  simulation_.commit();
  history_.push_back(std::move(reverses_));
  return Status::ok();
}

template <TimeValue Time>
Status TaskSession<Time>::apply_undo() {
  if (history_.empty()) return invalid_argument("undo: no edit stands that could be taken back");
  const std::vector<Reverse>& changes = history_.back();
  for (size_t i = changes.size(); i-- > 0;) apply_reverse(changes[i]);
  history_.pop_back();
  EDDY_RETURN_IF_ERROR(describe(simulation_.simulate({.mode = mode_})));
  simulation_.commit();
  return Status::ok();
}

template <TimeValue Time>
void TaskSession<Time>::apply_reverse(const Reverse& change) {
  using Op = FileEdit::Op;
  if (change.op == Op::kAddTask) return insert_task(change.id, change.time, change.device);
  const uint32_t slot = slots_.at(change.id);
  switch (change.op) {
    case Op::kSetExe:
      return simulation_.set_exe_time(slot, change.time);
    case Op::kSetDevice:
      return simulation_.set_device(slot, change.device);
    case Op::kAddDep:
      return simulation_.add_dep(slot, slots_.at(change.to));
    case Op::kRemoveDep:
      simulation_.remove_dep(slot, slots_.at(change.to));
      return;
    default:
      EDDY_CHECK(change.op == Op::kRemoveTask) << edit_name(change.op) << " has no reverse";
      simulation_.remove_task(slot);
      slots_.erase(change.id);
  }
}

template <TimeValue Time>
Status TaskSession<Time>::apply_change(const FileEdit& edit) {
  const FileTask& task = edit.task;
  switch (edit.op) {
    case FileEdit::Op::kAddTask:
      return add_task(task);
    case FileEdit::Op::kAddDep:
      return add_dep(task.id, edit.to);
    case FileEdit::Op::kRemoveDep:
      return remove_dep(task.id, edit.to);
    case FileEdit::Op::kSetExe: {
      EDDY_ASSIGN_OR_RETURN(const uint32_t slot, slot_of(task.id));
      EDDY_ASSIGN_OR_RETURN(const Time time, time_of(task));
      reverses_.push_back({.op = FileEdit::Op::kSetExe,
                           .id = task.id,
                           .time = simulation_.graph().task(slot).exe_time});
      simulation_.set_exe_time(slot, time);
      return Status::ok();
    }
    case FileEdit::Op::kSetDevice: {
      EDDY_ASSIGN_OR_RETURN(const uint32_t slot, slot_of(task.id));
      reverses_.push_back({.op = FileEdit::Op::kSetDevice,
                           .device = simulation_.graph().task(slot).device,
                           .id = task.id});
      simulation_.set_device(slot, task.device);
      return Status::ok();
    }
    case FileEdit::Op::kRemoveTask: {
      EDDY_ASSIGN_OR_RETURN(const uint32_t slot, slot_of(task.id));
      remove_task(slot);
      return Status::ok();
    }
  }
  return Status::ok();
}

template <TimeValue Time>
Status TaskSession<Time>::add_task(const FileTask& task) {
  if (slots_.contains(task.id)) return double_id(task.id);
  EDDY_ASSIGN_OR_RETURN(const Time time, time_of(task));
  insert_task(task.id, time, task.device);
  reverses_.push_back({.op = FileEdit::Op::kRemoveTask, .id = task.id});
  close_deps(task.id);
  for (const int64_t dep : task.deps) EDDY_RETURN_IF_ERROR(add_dep(dep, task.id));
  return Status::ok();
}

template <TimeValue Time>
void TaskSession<Time>::insert_task(int64_t id, Time time, uint32_t device) {
  EDDY_DCHECK(!slots_.contains(id)) << "task " << id << " is there";
  const uint32_t slot = simulation_.add_task({time, device, rank_for(id)});
  slots_[id] = slot;
  if (slot >= ids_.size()) ids_.resize(slot + size_t{1});
  ids_[slot] = id;
}

template <TimeValue Time>
void TaskSession<Time>::connect(uint32_t from, uint32_t to) {
  simulation_.add_dep(from, to);
  reverses_.push_back({.op = FileEdit::Op::kRemoveDep, .id = ids_[from], .to = ids_[to]});
}

template <TimeValue Time>
void TaskSession<Time>::remove_task(uint32_t slot) {
  const int64_t id = ids_[slot];
  EDDY_DCHECK(slots_.at(id) == slot) << "task " << id << " is not in slot " << slot;
  const auto& graph = simulation_.graph();
  for (const uint32_t to : graph.successors(slot)) {
    reverses_.push_back({.op = FileEdit::Op::kAddDep, .id = id, .to = ids_[to]});
  }
  for (const uint32_t from : graph.predecessors(slot)) {
    reverses_.push_back({.op = FileEdit::Op::kAddDep, .id = ids_[from], .to = id});
  }
  reverses_.push_back({.op = FileEdit::Op::kAddTask,
                       .device = graph.task(slot).device,
                       .id = id,
                       .time = graph.task(slot).exe_time});
  simulation_.remove_task(slot);
  slots_.erase(id);
  open_times_.erase(id);
  for (const OpenDeps::Dep& dep : open_deps_.of(id)) open_deps_.remove(dep);
}

// Either end may still be missing; then the batch has to bring it.
template <TimeValue Time>
Status TaskSession<Time>::add_dep(int64_t from, int64_t to) {
  if (from == to) return self_dep(from);
  const auto tail = slots_.find(from);
  const auto head = slots_.find(to);
  if (tail == slots_.end() || head == slots_.end()) {
    open_deps_.add({from, to});
  } else if (!simulation_.graph().has_dep(tail->second, head->second)) {
    connect(tail->second, head->second);
  }
  return Status::ok();
}

// The task has come: whatever waited for it can be tied, unless the other end is missing as well.
template <TimeValue Time>
void TaskSession<Time>::close_deps(int64_t id) {
  for (const OpenDeps::Dep& dep : open_deps_.of(id)) {
    const auto tail = slots_.find(dep.first);
    const auto head = slots_.find(dep.second);
    if (tail == slots_.end() || head == slots_.end()) continue;
    connect(tail->second, head->second);
    open_deps_.remove(dep);
  }
}

template <TimeValue Time>
Status TaskSession<Time>::remove_dep(int64_t from, int64_t to) {
  if (open_deps_.remove({from, to})) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const uint32_t tail, slot_of(from));
  EDDY_ASSIGN_OR_RETURN(const uint32_t head, slot_of(to));
  if (!simulation_.remove_dep(tail, head)) {
    return invalid_argument(fmt::format("task {} does not depend on {}", to, from));
  }
  reverses_.push_back({.op = FileEdit::Op::kAddDep, .id = from, .to = to});
  return Status::ok();
}

template <TimeValue Time>
Status TaskSession<Time>::check_open_ends() const {
  if (!open_deps_.is_empty()) {
    const auto [from, to] = open_deps_.first();
    return invalid_argument(fmt::format("task {} depends on {}, but there is no task {}", to, from,
                                        slots_.contains(to) ? from : to));
  }
  if (!open_times_.empty()) return invalid_argument(open_times_.begin()->second);
  return Status::ok();
}

// Ids are ranks where they fit; else ranks are spread out in the order of ids, and new ones go
// between their neighbours.
template <TimeValue Time>
uint32_t TaskSession<Time>::rank_for(int64_t id) {
  if (!has_wide_ids_ && is_rank(id)) return static_cast<uint32_t>(id);
  if (!has_wide_ids_) {
    has_wide_ids_ = true;
    spread_ranks();
  }
  for (;;) {
    const auto above = slots_.upper_bound(id);
    const auto& graph = simulation_.graph();
    const uint64_t high =
        above == slots_.end() ? uint64_t{kMaxRank} + 1 : graph.task(above->second).rank;
    const uint64_t low =
        above == slots_.begin() ? 0 : graph.task(std::prev(above)->second).rank + uint64_t{1};
    if (low < high) return static_cast<uint32_t>(low + (high - low) / 2);
    spread_ranks();
  }
}

template <TimeValue Time>
void TaskSession<Time>::spread_ranks() {
  const uint64_t gap = (uint64_t{kMaxRank} + 1) / (slots_.size() + 1);
  uint64_t rank = 0;
  for (const auto& [id, slot] : slots_) {
    EDDY_DCHECK(rank + gap <= kMaxRank) << "ranks end before " << slots_.size() << " tasks";
    simulation_.set_rank(slot, static_cast<uint32_t>(rank += gap));
  }
}

template <TimeValue Time>
Status TaskSession<Time>::describe(const SimulationResult& result) const {
  switch (result.end) {
    case SimulationEnd::kDone:
    case SimulationEnd::kExceeds:
      return Status::ok();
    case SimulationEnd::kCycle:
      return invalid_argument("tasks wait for each other in a circle: " +
                              name_cycle(result.culprits));
    case SimulationEnd::kOverflow:
      return invalid_argument(
          fmt::format("task {}: its end does not fit {}; use a larger unit of time",
                      ids_[result.culprits.at(0)],
                      std::same_as<Time, double> ? "a double" : "a 64-bit integer"));
  }
  return Status::ok();
}

// "1 -> 2 -> 1" from the smallest id on, the middle of a long one left out.
template <TimeValue Time>
std::string TaskSession<Time>::name_cycle(const std::vector<uint32_t>& slots) const {
  EDDY_CHECK(!slots.empty()) << "a cycle of nobody";
  constexpr size_t kShown = 12;
  const auto id_of = [this](uint32_t slot) { return ids_[slot]; };
  std::vector<uint32_t> cycle = slots;
  std::rotate(cycle.begin(), std::ranges::min_element(cycle, {}, id_of), cycle.end());
  std::string text;
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (cycle.size() > kShown && i == kShown - 2) {
      text += fmt::format("({} more) -> ", cycle.size() - kShown + 1);
      i = cycle.size() - 1;
    }
    text += fmt::format("{} -> ", id_of(cycle[i]));
  }
  return text + std::to_string(id_of(cycle.at(0)));
}

template class TaskSession<int64_t>;
template class TaskSession<double>;

}  // namespace eddy
