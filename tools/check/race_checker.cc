#include "tools/check/race_checker.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/run_state.h"

namespace eddy::check {
namespace {

constexpr size_t kGranuleBytes = 64;
constexpr size_t kMaxGranules = 16;  // of one tensor; the start of a large one stands for it
constexpr size_t kMaxPoints = 4;     // records of one event that a wait may still name

uintptr_t slot_key(const Slot& slot) { return reinterpret_cast<uintptr_t>(&slot); }
// Slots and granules share a table: no slot lies at an odd address.
uintptr_t granule_key(uintptr_t address) { return address / kGranuleBytes * kGranuleBytes + 1; }

template <typename Function>
void for_each_granule(const void* data, size_t size_bytes, Function function) {
  const auto first = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < kMaxGranules && i * kGranuleBytes < size_bytes; ++i) {
    function(granule_key(first + i * kGranuleBytes));
  }
}

bool is_constant(const RunState& state, ValueId value) {
  return state.graph().value(value).origin == ValueOrigin::kConstant;
}

// How many of a loop body's results its advance touches: a pipelined loop's rows are stacked apart.
size_t num_results_advanced(const RunState& state, NodeId loop) {
  const LoopView view(state.graph(), loop);
  const Program& program = state.executable().plan().program;
  const bool overlaps = is_pipelined(program, program.blocks[view.after_id().index()]);
  return overlaps ? view.num_carried() : view.after().results.size();
}

}  // namespace

void RaceChecker::reset(const VirtualDevice* device_or_null) {
  std::lock_guard lock(mutex_);
  device_ = device_or_null;
  clocks_.clear();
  points_.clear();
  issued_.clear();
  places_.clear();
  for (Shadow& shadow : shadows_) shadow.clear();
  reported_.clear();
  races_.clear();
  num_accesses_ = 0;
}

std::vector<std::string> RaceChecker::races() const {
  std::lock_guard lock(mutex_);
  return races_;
}

uint64_t RaceChecker::num_accesses() const {
  std::lock_guard lock(mutex_);
  return num_accesses_;
}

RaceChecker::Clock& RaceChecker::clock(LaneNumber lane) {
  // A clock that has begun is as long as that.
  if (lane < clocks_.size() && lane < clocks_[lane].size() && clocks_[lane][lane] != 0) {
    return clocks_[lane];
  }
  if (clocks_.size() <= lane) clocks_.resize(lane + 1);
  Clock& own = clocks_[lane];
  if (own.size() <= lane) own.resize(lane + 1);
  if (own[lane] == 0) own[lane] = 1;
  return own;
}

void RaceChecker::join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void RaceChecker::join_lanes(LaneNumber into, LaneNumber from) {
  clock(std::max(into, from));  // first: it may move the others
  const Clock& known = clock(from);
  join(clock(into), known);
}

void RaceChecker::tick(LaneNumber lane) { ++clock(lane)[lane]; }

bool RaceChecker::is_before(const Access& access, const Clock& now) {
  return access.lane < now.size() && access.time <= now[access.lane];
}

void RaceChecker::on_record(LaneNumber lane, const EventPoint& point) {
  std::lock_guard lock(mutex_);
  auto& points = points_[point.event];
  if (points.size() < kMaxPoints) {
    points.emplace_back();
  } else {
    std::rotate(points.begin(), points.begin() + 1, points.end());
  }
  points.back().first = point.record;
  points.back().second = clock(lane);
  tick(lane);
}

void RaceChecker::on_wait(LaneNumber lane, const EventPoint& point) {
  std::lock_guard lock(mutex_);
  const auto known = points_.find(point.event);
  if (known == points_.end()) return;
  for (const auto& [record, clock_then] : known->second) {
    if (record <= point.record) join(clock(lane), clock_then);
  }
}

void RaceChecker::on_issue(LaneNumber, uint64_t item) {
  std::lock_guard lock(mutex_);
  if (spare_.empty()) {
    issued_[item] = clock(0);
  } else {
    Issued::node_type reused = std::move(spare_.back());
    spare_.pop_back();
    reused.key() = item;
    reused.mapped() = clock(0);
    issued_.insert(std::move(reused));
  }
  tick(0);
}

void RaceChecker::on_begin(LaneNumber lane, uint64_t item) {
  std::lock_guard lock(mutex_);
  const auto issued = issued_.find(item);
  if (issued == issued_.end()) return;
  join(clock(lane), issued->second);
  spare_.push_back(issued_.extract(issued));
}

void RaceChecker::on_idle_seen(LaneNumber lane) {
  std::lock_guard lock(mutex_);
  join_lanes(0, lane);
  tick(lane);
}

void RaceChecker::on_point_seen(const EventPoint& point) { on_wait(0, point); }

void RaceChecker::on_start(LaneNumber main_strand) {
  std::lock_guard lock(mutex_);
  join_lanes(main_strand, 0);
  tick(0);
}

void RaceChecker::on_end(LaneNumber strand) { on_idle_seen(strand); }

void RaceChecker::on_allocate(const void* data, size_t size_bytes) {
  std::lock_guard lock(mutex_);
  for_each_granule(data, size_bytes, [&](uintptr_t key) { forget(key); });
}

RaceChecker::Shadow& RaceChecker::shadow(uintptr_t key) {
  const uint32_t place = places_.of(key);
  if (place >= shadows_.size()) shadows_.resize(place + 1);
  return shadows_[place];
}

void RaceChecker::forget(uintptr_t key) { shadow(key).clear(); }

void RaceChecker::touch(What what, uintptr_t key, const Access& now, ValueId value) {
  ++num_accesses_;
  Shadow& shadow = this->shadow(key);
  EDDY_DCHECK(now.lane < clocks_.size() && now.time > 0) << "lane " << now.lane << " has no clock";
  const Clock& known = clocks_[now.lane];  // begun by toucher()
  if (shadow.write.time != 0 && !is_before(shadow.write, known)) {
    report(shadow.write, now, true, what, value);
  }
  if (what == What::kRead) {
    for (Access& read : shadow.reads) {
      if (read.lane != now.lane) continue;
      read = now;
      return;
    }
    shadow.reads.push_back(now);
    return;
  }
  for (const Access& read : shadow.reads) {
    if (!is_before(read, known)) report(read, now, false, what, value);
  }
  shadow.reads.clear();
  shadow.write = now;
}

void RaceChecker::report(const Access& first, const Access& now, bool first_writes, What what,
                         ValueId value) {
  EDDY_CHECK(first.state != nullptr && now.state != nullptr) << "a race with nobody";
  const std::pair<uint32_t, uint32_t> pair = {first.step.node.index(), now.step.node.index()};
  const bool is_known = std::find(reported_.begin(), reported_.end(), pair) != reported_.end();
  if (is_known || races_.size() >= kMaxRaces) return;
  reported_.push_back(pair);
  const auto name = [](const Access& access) {
    return access.state->iteration_path(access.step.node) + " of strand " +
           std::to_string(access.step.strand);
  };
  const ValueInfo& info = now.state->graph().value(value);
  const std::string tensor =
      info.name.empty() ? "value " + std::to_string(value.index()) : "'" + info.name + "'";
  races_.push_back(name(now) + (what == What::kWrite ? " writes " : " reads ") + tensor +
                   ", which " + name(first) + (first_writes ? " writes" : " reads") +
                   ": nothing orders them");
}

RaceChecker::Toucher RaceChecker::toucher(RunState& state, const ::eddy::Step& step) {
  const LaneNumber lane = device_ == nullptr ? 0 : device_->current_lane();
  return {*this, state, {lane, clock(lane)[lane], &state, step}};
}

void RaceChecker::Toucher::slot(What what, ValueId value) const {
  if (value.is_none() || is_constant(state, value)) return;
  checker.touch(what, slot_key(state.slot(value)), now, value);
}

void RaceChecker::Toucher::own_slot(What what, const Slot& slot, ValueId value) const {
  checker.touch(what, slot_key(slot), now, value);
}

void RaceChecker::Toucher::memory(What what, ValueId value) const {
  if (value.is_none() || is_constant(state, value)) return;
  memory(what, state.slot(value), value);
}

void RaceChecker::Toucher::memory(What what, const Slot& slot, ValueId value) const {
  if (slot.kind != ValueKind::kTensor || slot.is_volatile || slot.view.data == nullptr) return;
  const bool is_own = slot.buffer && slot.buffer.get()->references.load() == 1;
  for_each_granule(slot.view.data, slot.view.size_bytes(), [&](uintptr_t key) {
    // Readers through other slots have released it before: the reference count orders that.
    if (what == What::kWrite && is_own) checker.forget(key);
    checker.touch(what, key, now, value);
  });
}

// What a region gives away: its own values move out, others are shared.
void RaceChecker::Toucher::result(ValueId value, RegionId region, bool is_own_parameter) const {
  const Graph& graph = state.graph();
  const ValueInfo& info = graph.value(value);
  const bool is_made_here = info.origin == ValueOrigin::kNodeOutput && info.region == region;
  slot(is_made_here || is_own_parameter ? What::kWrite : What::kRead, value);
}

// What is copied where values are handed on to places of the plan.
void RaceChecker::Toucher::copies(std::span<const ValueId> to, std::span<const ValueId> from,
                                  Program::Moment moment, NodeId loop) const {
  if (!state.has_arenas()) return;
  const MemoryPlan& plan = state.executable().plan().memory;
  for (size_t k = 0; k < to.size(); ++k) {
    const ValueMemory* const place = plan.block_or_null(to[k]);
    const ValueMemory* const source = plan.block_or_null(from[k]);
    if (place == nullptr) continue;
    if (source != nullptr && has_same_place(*place, *source, moment, loop)) continue;
    memory(What::kRead, from[k]);
    memory(What::kWrite, to[k]);
  }
}

void RaceChecker::touch_before(const Toucher& touch, const ::eddy::Step& step) {
  const Graph& graph = touch.state.graph();
  const Node& node = graph.node(step.node);
  const auto loop = [&] { return LoopView(graph, node); };
  switch (step.kind) {
    case StepKind::kExec:
      for (ValueId value : node.inputs) {
        if (value.is_none() || is_constant(touch.state, value)) continue;
        const Slot& slot = touch.state.slot_read_by(step.node, value);
        touch.own_slot(What::kRead, slot, value);
        touch.memory(What::kRead, slot, value);
      }
      break;
    case StepKind::kEnter:
      touch.copies(loop().carried(), loop().initial(), Program::Moment::kEnter, step.node);
      for (ValueId value : node.inputs) touch.slot(What::kRead, value);
      for (ValueId value : loop().before().parameters) touch.slot(What::kWrite, value);
      break;
    case StepKind::kTest:
      touch.slot(What::kRead, loop().predicate());
      touch.memory(What::kRead, loop().predicate());
      break;
    case StepKind::kAdvance:
      touch.copies(loop().carried(), loop().next(), Program::Moment::kAdvance, step.node);
      for (size_t k = 0; k < num_results_advanced(touch.state, step.node); ++k) {
        touch.result(loop().after().results[k], loop().after_id(), false);
      }
      for (ValueId value : loop().before().parameters) touch.slot(What::kWrite, value);
      break;
    case StepKind::kRow: {
      EDDY_DCHECK(step.branch < loop().after().results.size()) << "row " << step.branch;
      const ValueId row = loop().after().results[step.branch];
      touch.slot(What::kRead, row);
      touch.memory(What::kRead, row);
      break;
    }
    case StepKind::kTake:
      for (const auto& pair : touch.state.loop(step.node).taking(step.branch).pairs) {
        touch.slot(What::kRead, pair.value);
        touch.own_slot(What::kWrite, *pair.to, pair.value);
      }
      break;
    case StepKind::kLeave: {
      touch.copies(loop().outputs(), loop().forwarded(), Program::Moment::kWithin, step.node);
      for (const LoopState::Taking& taking : touch.state.loop(step.node).takings()) {
        for (const auto& pair : taking.pairs) touch.own_slot(What::kWrite, *pair.to, pair.value);
      }
      for (ValueId value : loop().forwarded()) {
        const bool is_own =
            is_carried(graph, value) && graph.value(value).region == loop().before_id();
        touch.result(value, loop().before_id(), is_own);
      }
      for (ValueId value : node.outputs) touch.slot(What::kWrite, value);
      break;
    }
    case StepKind::kSelect:
      for (ValueId value : node.inputs) touch.slot(What::kRead, value);
      touch.memory(What::kRead, node.inputs[0]);
      break;
    case StepKind::kFinishBranch:
      EDDY_DCHECK(step.branch < node.regions.size()) << "branch " << step.branch;
      touch.copies(node.outputs, graph.region(node.regions[step.branch]).results,
                   Program::Moment::kWithin, step.node);
      for (ValueId value : graph.region(node.regions[step.branch]).results) {
        touch.result(value, node.regions[step.branch], false);
      }
      for (ValueId value : node.outputs) touch.slot(What::kWrite, value);
      break;
  }
}

void RaceChecker::touch_after(const Toucher& touch, const ::eddy::Step& step, int32_t decision) {
  const Node& node = touch.state.graph().node(step.node);
  if (step.kind == StepKind::kSelect) {
    const bool passes_through = decision == static_cast<int32_t>(node.regions.size());
    for (ValueId value : node.outputs) {
      if (passes_through) touch.slot(What::kWrite, value);
    }
  }
  if (step.kind != StepKind::kExec) return;
  for (ValueId value : node.outputs) {
    touch.slot(What::kWrite, value);
    // Views share their input's memory; value operators may, and else make fresh memory.
    if (!node.op->is_view && !node.op->is_value_op) touch.memory(What::kWrite, value);
  }
}

Status RaceChecker::check_made(RunState& state, const ::eddy::Step& step) {
  const Graph& graph = state.graph();
  const Node& node = graph.node(step.node);
  const auto check = [&](ValueId value) {
    if (value.is_none() || is_constant(state, value)) return Status::ok();
    const bool is_exec = step.kind == StepKind::kExec;
    const Slot& slot = is_exec ? state.slot_read_by(step.node, value) : state.slot(value);
    const bool is_made =
        slot.kind != ValueKind::kTensor || slot.view.data != nullptr || slot.view.size_bytes() == 0;
    return is_made ? Status::ok()
                   : internal_error("reads value " + std::to_string(value.index()) +
                                    ", which nothing has made yet");
  };
  if (step.kind == StepKind::kTest) return check(LoopView(graph, node).predicate());
  if (step.kind == StepKind::kSelect) return check(node.inputs[0]);
  if (step.kind == StepKind::kEnter) return check(node.inputs[0]);
  for (ValueId value : node.inputs) {
    if (step.kind == StepKind::kExec) EDDY_RETURN_IF_ERROR(check(value));
  }
  if (step.kind != StepKind::kAdvance) return Status::ok();
  for (size_t k = 0; k < num_results_advanced(state, step.node); ++k) {
    EDDY_RETURN_IF_ERROR(check(LoopView(graph, node).after().results[k]));
  }
  return Status::ok();
}

Status RaceChecker::before(RunState& state, const ::eddy::Step& step) {
  std::lock_guard lock(mutex_);
  touch_before(toucher(state, step), step);
  return check_made(state, step);
}

void RaceChecker::after(RunState& state, const ::eddy::Step& step, int32_t decision) {
  std::lock_guard lock(mutex_);
  if (decision >= (step.kind == StepKind::kTest || step.kind == StepKind::kSelect ? 0 : 1)) {
    touch_after(toucher(state, step), step, decision);
  }
}

}  // namespace eddy::check
