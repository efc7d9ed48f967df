#include "graph/simulate/fluid_streams.h"

#include <algorithm>
#include <limits>

#include "graph/base/check.h"
#include "graph/simulate/fluid_sharing.h"

namespace eddy {

namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}  // namespace

FluidStreams::FluidStreams(const FluidMachine& machine, const FluidOptions& options,
                           const std::vector<uint32_t>& lanes, uint32_t num_events, double start_ns)
    : machine_(machine),
      options_(options),
      streams_(lanes.size()),
      events_(num_events),
      idle_since_(machine.num_workers, -kNever),
      num_with_worker_(1) {
  EDDY_CHECK(!lanes.empty()) << "the issuer has a stream at least";
  for (size_t s = 0; s < lanes.size(); ++s) streams_[s].lane = lanes[s];
  if (!idle_since_.empty()) idle_since_.pop_back();
  streams_[0].state = State::kWaking;
  streams_[0].has_rested = false;
  resume_at(0, start_ns);
}

void FluidStreams::push(uint32_t stream, const FluidStep& step) {
  using Kind = FluidStep::Kind;
  const bool is_work = step.kind == Kind::kWork || step.kind == Kind::kDecision;
  const bool has_event = step.kind == Kind::kRecord || step.kind == Kind::kWait;
  EDDY_DCHECK(stream < streams_.size() && is_work == (step.demand != nullptr) &&
              (!has_event || step.event < events_.size()))
      << "a step of stream " << stream << " at event " << step.event;
  streams_[stream].steps.push_back(step);
  ready_.push_back(stream);
}

void FluidStreams::settle() {
  while (!ready_.empty()) {
    const uint32_t stream = ready_.front();
    ready_.pop_front();
    run(stream);
  }
}

void FluidStreams::run(uint32_t stream) {
  if (streams_[stream].state == State::kResting) end_rest(stream);
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
    case FluidStep::Kind::kWait:
      if (is_passed(step)) return true;
      park(stream, step);
      release_worker();
      return false;
    case FluidStep::Kind::kRest:
      return rest(stream);
  }
  return false;
}

bool FluidStreams::is_passed(const FluidStep& step) const {
  return events_[step.event].num_records >= step.needed;
}

void FluidStreams::park(uint32_t stream, const FluidStep& wait) {
  EDDY_DCHECK(wait.kind == FluidStep::Kind::kWait) << "stream " << stream << " parks at no wait";
  EDDY_DCHECK(streams_[stream].state == State::kRunning ||
              streams_[stream].state == State::kResting)
      << "stream " << stream << " stands already";
  events_[wait.event].parked.push_back({stream, wait.needed});
  streams_[stream].state = State::kParked;
}

// A resting stream has got its next wait.
void FluidStreams::end_rest(uint32_t stream) {
  Stream& self = streams_[stream];
  if (self.steps.empty()) return;
  EDDY_DCHECK(self.steps.front().kind == FluidStep::Kind::kWait)
      << "stream " << stream << " ends its rest without a wait";
  self.is_paid = true;
  if (!is_passed(self.steps.front())) return park(stream, self.steps.front());
  busy_ns_ = 0;  // it takes no other stream's time
  if (machine_.num_workers > 0) return wake(stream, self.steps.front().scale);
  self.state = State::kRunning;
  self.has_rested = false;
}

bool FluidStreams::rest(uint32_t stream) {
  EDDY_DCHECK(stream > 0) << "the first stream never rests";
  Stream& self = streams_[stream];
  if (self.steps.size() > 1 && is_passed(self.steps[1])) return true;
  self.steps.pop_front();
  self.is_paid = false;
  self.has_rested = true;
  self.state = State::kResting;
  release_worker();
  ready_.push_back(stream);
  return false;
}

bool FluidStreams::begin_work(uint32_t stream, const FluidStep& step) {
  EDDY_DCHECK(streams_[stream].state == State::kRunning) << "stream " << stream;
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
  EDDY_DCHECK(self.state == State::kWorking && step.demand != nullptr)
      << "stream " << stream << " ends work that it did not begin";
  ++timeline_.num_steps;
  timeline_.unit_ns += step.demand->solo_ns * step.scale * step.demand->units;
  if (options_.wants_spans) {
    timeline_.spans.push_back({step.what, step.id, self.lane, self.started, now_});
  }
  if (step.kind == FluidStep::Kind::kDecision) decided_.push_back(stream);
  self.state = State::kRunning;
}

void FluidStreams::record(const FluidStep& step) {
  Event& event = events_[step.event];
  ++event.num_records;
  const auto may_go = [&](const Parked& parked) { return parked.needed <= event.num_records; };
  for (const Parked& parked : event.parked) {
    if (may_go(parked)) wake(parked.stream, step.scale);
  }
  std::erase_if(event.parked, may_go);
}

void FluidStreams::resume_at(uint32_t stream, double time_ns) {
  streams_[stream].due = time_ns;
  due_.push({time_ns, num_due_++, stream, ++streams_[stream].generation});
}

// The record hands over to one stream after the other.
void FluidStreams::wake(uint32_t stream, double scale) {
  Stream& self = streams_[stream];
  EDDY_DCHECK(self.state == State::kParked || self.state == State::kResting)
      << "stream " << stream << " is awake";
  if (self.has_rested) busy_ns_ += machine_.stream.fork_ns * scale;
  self.has_rested = false;
  double start = now_ + busy_ns_;
  if (machine_.num_workers == 0) {
    start += machine_.handoff_ns * scale;
  } else if (idle_since_.empty()) {
    start += machine_.pickup_ns * scale;  // the workers there are share it
  } else {
    const double idle_ns = now_ - idle_since_.back();
    idle_since_.pop_back();
    const bool is_awake = idle_ns <= machine_.spin_ns * scale;
    const double handing = is_awake ? machine_.handing_ns : machine_.waking_ns;
    // One that has never worked, or came for nothing, was called long before.
    if (idle_ns < kNever) busy_ns_ += handing * scale;
    start += (handing + (is_awake ? machine_.handoff_ns : machine_.wake_ns)) * scale;
    waking_.push_back(stream);
  }
  if (machine_.num_workers > 0) ++num_with_worker_;
  self.state = State::kWaking;
  resume_at(stream, start);
}

// A stream has ended or waits: its worker takes one that is on its way to another worker, which
// then finds nothing to do and goes to sleep.
void FluidStreams::release_worker() {
  if (machine_.num_workers == 0) return;
  EDDY_DCHECK(num_with_worker_ > 0) << "more workers go than came";
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
  EDDY_DCHECK(left_ns_.size() == working_.size() && demands_.size() == working_.size())
      << working_.size() << " streams at work";
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
