#include "runtime/virtual/virtual_stream.h"

#include <algorithm>
#include <thread>

#include "graph/base/check.h"

namespace eddy {

namespace {

std::shared_ptr<VirtualEventState> make_state(VirtualEngine& engine) {
  auto state = std::make_shared<VirtualEventState>();
  auto guard = engine.lock();
  state->number = engine.next_number();
  engine.count_event(1);
  return state;
}

}  // namespace

void VirtualEventState::complete(VirtualEngine& engine, uint64_t record,
                                 std::vector<EventListener*>& called) {
  EDDY_DCHECK(record > 0 && record <= issued) << "record " << record << " of " << issued;
  completed = std::max(completed, record);
  auto* watcher = engine.watcher_or_null();
  if (watcher != nullptr && !listeners.empty()) watcher->on_point_seen({this, completed});
  std::erase_if(listeners, [&](const Waiting& waiting) {
    if (waiting.record > completed) return false;
    called.push_back(waiting.listener);
    return true;
  });
  for (VirtualStream* stream : parked) engine.make_ready(*stream);
  parked.clear();
}

VirtualEvent::VirtualEvent(VirtualEngine& engine) : engine_(engine), state_(make_state(engine)) {}

bool VirtualEvent::is_complete() const {
  auto guard = engine_.lock();
  if (state_->completed < state_->issued) return false;
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_point_seen({state_.get(), state_->issued});
  }
  return true;
}

bool VirtualEvent::listen_or_complete(EventListener& listener) {
  if (is_complete()) return true;
  auto guard = engine_.lock();
  if (state_->completed >= state_->issued) return true;
  state_->listeners.push_back({state_->issued, &listener});
  return false;
}

VirtualGate::VirtualGate(VirtualEngine& engine) : engine_(engine), state_(make_state(engine)) {
  state_->is_gate = true;
  state_->issued = 1;
}

void VirtualGate::open() {
  std::vector<EventListener*> none;  // gates have no listeners
  auto guard = engine_.lock();
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_record(engine_.current_lane(), {state_.get(), 1});
  }
  state_->complete(engine_, 1, none);
}

VirtualStream::VirtualStream(VirtualEngine& engine) : engine_(engine) {
  auto guard = engine_.lock();
  engine_.add_lane(*this);
}

VirtualStream::~VirtualStream() {
  while (may_go_on()) {
    if (!engine_.step()) std::this_thread::yield();  // another thread moves it
  }
  auto guard = engine_.lock();
  EDDY_CHECK(queue_.empty())
      << "a stream is destroyed while it waits for a run or event that has not ended; wait for the "
         "run's handle first";
  EDDY_DCHECK(idle_listeners_.empty()) << "somebody still waits until the stream is idle";
  engine_.remove_lane(*this);
}

bool VirtualStream::may_go_on() const {
  auto guard = engine_.lock();
  if (queue_.empty() || engine_.current_lane() != 0) return false;
  const Item& front = queue_.front();
  const bool is_parked = front.kind == Item::Kind::kWait && front.event->completed < front.record;
  return !is_parked || engine_.is_lost();
}

bool VirtualStream::may_enqueue(FaultKind kind, const char* what) {
  if (!engine_.is_lost() && engine_.should_fail(kind)) {
    engine_.lose(std::string("the virtual device was told to refuse a ") + what + " on stream " +
                 std::to_string(engine_.id(*this)));
  }
  return !engine_.is_lost();
}

void VirtualStream::push(Item item) {
  EDDY_DCHECK((item.kind == Item::Kind::kWork) == (item.event == nullptr))
      << "an item of two kinds";
  EDDY_DCHECK(item.event == nullptr || item.record <= item.event->issued)
      << "record " << item.record << " is never made";
  item.number = engine_.next_number();
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_issue(engine_.id(*this), item.number);
  queue_.push_back(std::move(item));
  if (queue_.size() == 1) engine_.make_ready(*this);
}

bool VirtualStream::launch(const Work& work) {
  EDDY_DCHECK(work.run != nullptr) << "work that does nothing is launched";
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kEnqueue, "launch")) return false;
  push({.kind = Item::Kind::kWork, .work = work});
  return true;
}

bool VirtualStream::record(Event& event) {
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kRecord, "record")) return false;
  const auto& state = static_cast<VirtualEvent&>(event).state_;
  push({.kind = Item::Kind::kRecord, .event = state, .record = ++state->issued});
  return true;
}

bool VirtualStream::wait(Event& event) {
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kWait, "wait")) return false;
  const auto& state = static_cast<VirtualEvent&>(event).state_;
  push({.kind = Item::Kind::kWait, .event = state, .record = state->issued});
  return true;
}

bool VirtualStream::hold(std::shared_ptr<Gate> gate) {
  EDDY_DCHECK(gate != nullptr) << "a stream is held by no gate";
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kWait, "hold")) return false;
  const auto& state = static_cast<VirtualGate&>(*gate).state_;
  push({.kind = Item::Kind::kWait, .event = state, .record = state->issued});
  return true;
}

bool VirtualStream::is_idle() const {
  auto guard = engine_.lock();
  if (!queue_.empty()) return false;
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_idle_seen(engine_.id(*this));
  return true;
}

bool VirtualStream::listen_or_idle(EventListener& listener) {
  auto guard = engine_.lock();
  if (queue_.empty()) {
    if (auto* watcher = engine_.watcher_or_null()) watcher->on_idle_seen(engine_.id(*this));
    return true;
  }
  idle_listeners_.push_back(&listener);
  return false;
}

// False: parked until the point is reached.
bool VirtualStream::park_or_go_on(const Item& item) {
  EDDY_DCHECK(item.kind == Item::Kind::kWait) << "only waits park a stream";
  if (item.event->completed < item.record && !engine_.is_lost()) {
    item.event->parked.push_back(this);
    return false;
  }
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_wait(engine_.id(*this), {item.event.get(), item.record});
  }
  return true;
}

// Behind the item: the next one, or no thread may touch the stream any more once it is idle.
void VirtualStream::finish_item(std::vector<EventListener*>& listeners) {
  EDDY_DCHECK(!queue_.empty()) << "an item is finished that was taken away";
  queue_.pop_front();
  if (!queue_.empty()) return engine_.make_ready(*this);
  auto* watcher = engine_.watcher_or_null();
  if (watcher != nullptr && !idle_listeners_.empty()) watcher->on_idle_seen(engine_.id(*this));
  listeners.insert(listeners.end(), idle_listeners_.begin(), idle_listeners_.end());
  idle_listeners_.clear();
}

void VirtualStream::step(std::unique_lock<std::mutex>& guard) {
  std::vector<EventListener*> listeners;
  EDDY_DCHECK(guard.owns_lock() && !queue_.empty())
      << "an idle stream is moved, or without the lock";
  Item& item = queue_.front();  // stays: only this function pops
  if (item.kind == Item::Kind::kWait && !park_or_go_on(item)) return;
  auto* watcher = engine_.watcher_or_null();
  if (watcher != nullptr) watcher->on_begin(engine_.id(*this), item.number);
  if (item.kind == Item::Kind::kWork) {
    is_killed_ = is_killed_ || engine_.should_fail(FaultKind::kKillLane);
    if (is_killed_) {
      engine_.lose("stream " + std::to_string(engine_.id(*this)) + " of the virtual device died");
    }
    if (!engine_.is_lost()) {
      const Work work = item.work;
      guard.unlock();
      engine_.run(*this, {.run = work.run, .context = work.context});
      guard.lock();
    }
  } else if (item.kind == Item::Kind::kRecord) {
    if (watcher != nullptr) watcher->on_record(engine_.id(*this), {item.event.get(), item.record});
    item.event->complete(engine_, item.record, listeners);
  }
  finish_item(listeners);
  guard.unlock();
  for (EventListener* listener : listeners) listener->on_complete();
}

void VirtualStream::stop_waiting() {
  if (queue_.empty() || queue_.front().kind != Item::Kind::kWait) return;
  if (std::erase(queue_.front().event->parked, this) > 0) engine_.make_ready(*this);
}

std::string VirtualStream::waits_for() const {
  if (queue_.empty()) return "";
  const Item& item = queue_.front();
  if (item.kind != Item::Kind::kWait || item.event->completed >= item.record) return "";
  std::string what = "a gate";
  if (!item.event->is_gate) {
    what =
        "record " + std::to_string(item.record) + " of event " + std::to_string(item.event->number);
  }
  return "stream " + std::to_string(engine_.id(*this)) + " waits for " + what + ", with " +
         std::to_string(queue_.size() - 1) + " commands behind it";
}

}  // namespace eddy
