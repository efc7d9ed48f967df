#include "graph/simulate/fluid_streams.h"

#include <algorithm>
#include <limits>

#include "graph/base/check.h"
#include "graph/simulate/fluid_sharing.h"

namespace eddy {

namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}  // namespace

FluidStreams::FluidStreams(const FluidMachine& machine, const FluidOptions& options)
    : machine_(machine), options_(options), idle_since_(machine.num_workers, -kNever) {}

uint32_t FluidStreams::add_stream() {
  if (free_streams_.empty()) {
    streams_.emplace_back();
    return static_cast<uint32_t>(streams_.size() - 1);
  }
  const uint32_t stream = free_streams_.back();
  free_streams_.pop_back();
  return stream;
}

uint32_t FluidStreams::add_instance(uint32_t num_events) {
  if (free_instances_.empty()) {
    instances_.emplace_back();
    free_instances_.push_back(static_cast<uint32_t>(instances_.size() - 1));
  }
  const uint32_t instance = free_instances_.back();
  free_instances_.pop_back();
  instances_[instance].assign(num_events, {});
  return instance;
}

void FluidStreams::push(uint32_t stream, const FluidStep& step) {
  streams_[stream].steps.push_back(step);
  ready_.push_back(stream);
}

void FluidStreams::start(uint32_t stream, double start_ns) {
  if (!idle_since_.empty()) idle_since_.pop_back();
  ++num_with_worker_;
  streams_[stream].state = State::kWaking;
  resume_at(stream, start_ns);
}

void FluidStreams::settle() {
  while (!ready_.empty()) {
    const uint32_t stream = ready_.front();
    ready_.pop_front();
    run(stream);
  }
}

void FluidStreams::run(uint32_t stream) {
  while (streams_[stream].state == State::kRunning && !streams_[stream].steps.empty()) {
    Stream& self = streams_[stream];
    const FluidStep& step = self.steps.front();
    if (!self.is_paid) {
      self.is_paid = true;
      const double begin = std::max(now_ + step.delay_ns * step.scale, step.earliest_ns);
      if (begin > now_) {
        self.state = State::kDelayed;
        return resume_at(stream, begin);
      }
    }
    busy_ns_ = 0;
    if (!run_step(stream)) return;
    streams_[stream].steps.pop_front();
    streams_[stream].is_paid = false;
    if (busy_ns_ > 0) {
      streams_[stream].state = State::kDelayed;
      return resume_at(stream, now_ + busy_ns_);
    }
  }
}

bool FluidStreams::run_step(uint32_t stream) {
  const FluidStep step = streams_[stream].steps.front();
  switch (step.kind) {
    case FluidStep::Kind::kWork:
    case FluidStep::Kind::kDecision:
      return begin_work(stream, step);
    case FluidStep::Kind::kRecord:
      record(step);
      return true;
    case FluidStep::Kind::kWait: {
      Event& event = instances_[step.instance][step.target];
      if (event.is_done) return true;
      event.parked.push_back(stream);
      streams_[stream].state = State::kParked;
      release_worker();
      return false;
    }
    case FluidStep::Kind::kFork:
      wake(step.target, step.scale);
      return true;
    case FluidStep::Kind::kLeave:
      free_instances_.push_back(step.instance);
      return true;
    case FluidStep::Kind::kEnd:
      streams_[stream].state = State::kClosed;
      streams_[stream].is_paid = false;
      streams_[stream].steps.clear();
      free_streams_.push_back(stream);
      release_worker();
      return false;
  }
  return false;
}

bool FluidStreams::begin_work(uint32_t stream, const FluidStep& step) {
  Stream& self = streams_[stream];
  self.started = now_;
  self.state = State::kWorking;
  if (step.demand->solo_ns <= 0) {
    end_work(stream);
    return true;
  }
  working_.push_back(stream);
  left_ns_.push_back(step.demand->solo_ns * step.scale);
  demands_.push_back(*step.demand);
  are_rates_fresh_ = false;
  return false;
}

// Books the step; the caller takes it off the stream.
void FluidStreams::end_work(uint32_t stream) {
  Stream& self = streams_[stream];
  const FluidStep& step = self.steps.front();
  ++timeline_.num_steps;
  timeline_.unit_ns += step.demand->solo_ns * step.scale * step.demand->units;
  if (options_.wants_spans) {
    timeline_.spans.push_back({step.what, step.id, step.lane, self.started, now_});
  }
  if (step.kind == FluidStep::Kind::kDecision) decided_.push_back(stream);
  self.state = State::kRunning;
}

void FluidStreams::record(const FluidStep& step) {
  Event& event = instances_[step.instance][step.target];
  event.is_done = true;
  for (const uint32_t parked : event.parked) wake(parked, step.scale);
  event.parked.clear();
}

void FluidStreams::resume_at(uint32_t stream, double time_ns) {
  streams_[stream].due = time_ns;
  due_.push({time_ns, num_due_++, stream, ++streams_[stream].generation});
}

void FluidStreams::wake(uint32_t stream, double scale) {
  double delay = machine_.handoff_ns;
  streams_[stream].state = State::kWaking;
  if (machine_.num_workers > 0) {
    if (idle_since_.empty()) {
      delay = machine_.pickup_ns;  // the workers there are share it
    } else {
      const double idle_ns = now_ - idle_since_.back();
      idle_since_.pop_back();
      const bool is_awake = idle_ns <= machine_.spin_ns * scale;
      const double handing = is_awake ? machine_.handing_ns : machine_.waking_ns;
      // One that has never worked, or came for nothing, was called long before.
      if (idle_ns < kNever) busy_ns_ += handing * scale;
      delay = handing + (is_awake ? machine_.handoff_ns : machine_.wake_ns);
      waking_.push_back(stream);
    }
    ++num_with_worker_;
  }
  resume_at(stream, now_ + delay * scale);
}

// A stream has ended or waits: its worker takes one that is on its way to another, who then finds
// nothing to do and goes to sleep.
void FluidStreams::release_worker() {
  if (machine_.num_workers == 0) return;
  --num_with_worker_;
  if (num_with_worker_ >= machine_.num_workers) return;
  const double picked = now_ + machine_.pickup_ns;
  const auto next =
      std::ranges::find_if(waking_, [&](uint32_t stream) { return streams_[stream].due > picked; });
  if (next != waking_.end()) {
    const uint32_t stream = *next;
    waking_.erase(next);
    resume_at(stream, picked);
    idle_since_.insert(idle_since_.begin(), -kNever);
    return;
  }
  idle_since_.push_back(now_);
}

void FluidStreams::refresh_rates() {
  if (are_rates_fresh_) return;
  rates_.resize(working_.size());
  fluid_rates(machine_.num_units, demands_, rates_);
  are_rates_fresh_ = true;
}

double FluidStreams::next_ns() {
  while (!due_.empty() && due_.top().generation != streams_[due_.top().stream].generation) {
    due_.pop();
  }
  double next = due_.empty() ? kNever : due_.top().time;
  refresh_rates();
  for (size_t i = 0; i < working_.size(); ++i) {
    next = std::min(next, now_ + left_ns_[i] / rates_[i]);
  }
  return next;
}

void FluidStreams::advance_to(double time_ns) {
  refresh_rates();
  const double passed = time_ns - now_;
  size_t kept = 0;
  std::vector<uint32_t> ended;
  for (size_t i = 0; i < working_.size(); ++i) {
    // The very sum that next_ns() took the least of, so the first one ends exactly.
    if (now_ + left_ns_[i] / rates_[i] <= time_ns) {
      ended.push_back(working_[i]);
      continue;
    }
    working_[kept] = working_[i];
    demands_[kept] = demands_[i];
    left_ns_[kept] = left_ns_[i] - passed * rates_[i];
    rates_[kept++] = rates_[i];
  }
  if (kept < working_.size()) are_rates_fresh_ = false;
  working_.resize(kept);
  demands_.resize(kept);
  left_ns_.resize(kept);
  rates_.resize(kept);
  now_ = time_ns;
  for (const uint32_t stream : ended) {
    end_work(stream);
    streams_[stream].steps.pop_front();
    streams_[stream].is_paid = false;
    ready_.push_back(stream);
  }
  while (!due_.empty() && due_.top().time <= now_) {
    const Due due = due_.top();
    due_.pop();
    Stream& stream = streams_[due.stream];
    if (stream.generation != due.generation) continue;
    if (stream.state == State::kWaking) {
      std::erase(waking_, due.stream);
    }
    stream.state = State::kRunning;
    ready_.push_back(due.stream);
  }
}

std::vector<uint32_t> FluidStreams::take_decided() { return std::move(decided_); }

}  // namespace eddy
