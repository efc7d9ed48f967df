#include "runtime/virtual/virtual_stream.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

VirtualEvent::VirtualEvent(VirtualEngine& engine) : engine_(engine) {
  auto guard = engine_.lock();
  number_ = engine_.next_number();
}

bool VirtualEvent::is_complete() const {
  auto guard = engine_.lock();
  if (completed_ < issued_) return false;
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_point_seen({this, issued_});
  return true;
}

bool VirtualEvent::listen_or_complete(EventListener& listener) {
  auto guard = engine_.lock();
  if (completed_ >= issued_) {
    if (auto* watcher = engine_.watcher_or_null()) watcher->on_point_seen({this, issued_});
    return true;
  }
  listeners_.push_back({issued_, &listener});
  return false;
}

void VirtualEvent::complete(uint64_t record, std::vector<EventListener*>& listeners) {
  completed_ = std::max(completed_, record);
  auto* watcher = engine_.watcher_or_null();
  if (watcher != nullptr && !listeners_.empty()) watcher->on_point_seen({this, completed_});
  std::erase_if(listeners_, [&](const Waiting& waiting) {
    if (waiting.record > completed_) return false;
    listeners.push_back(waiting.listener);
    return true;
  });
  for (VirtualStream* stream : parked_) engine_.make_ready(*stream);
  parked_.clear();
}

VirtualGate::VirtualGate(VirtualEngine& engine) : engine_(engine), event_(engine) {
  event_.issued_ = 1;
}

void VirtualGate::open() {
  std::vector<EventListener*> listeners;
  auto guard = engine_.lock();
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_record(engine_.current_lane(), {&event_, 1});
  }
  event_.complete(1, listeners);
}

VirtualStream::VirtualStream(VirtualEngine& engine) : engine_(engine) {
  auto guard = engine_.lock();
  engine_.add_lane(*this);
}

VirtualStream::~VirtualStream() {
  auto guard = engine_.lock();
  EDDY_CHECK(queue_.empty()) << "a stream is destroyed while it has work";
  engine_.remove_lane(*this);
}

bool VirtualStream::may_enqueue(FaultKind kind, const char* what) {
  if (!engine_.is_lost() && engine_.should_fail(kind)) {
    engine_.lose(std::string("the virtual device was told to refuse a ") + what + " on stream " +
                 std::to_string(engine_.id(*this)));
  }
  return !engine_.is_lost();
}

void VirtualStream::push(Item item) {
  item.number = engine_.next_number();
  if (auto* watcher = engine_.watcher_or_null()) watcher->on_issue(engine_.id(*this), item.number);
  queue_.push_back(std::move(item));
  if (queue_.size() == 1) engine_.make_ready(*this);
}

bool VirtualStream::launch(const Work& work) {
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kEnqueue, "launch")) return false;
  push({.kind = Item::Kind::kWork, .work = work});
  return true;
}

bool VirtualStream::record(Event& event) {
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kRecord, "record")) return false;
  auto& mine = static_cast<VirtualEvent&>(event);
  push({.kind = Item::Kind::kRecord, .event = &mine, .record = ++mine.issued_});
  return true;
}

bool VirtualStream::wait(Event& event) {
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kWait, "wait")) return false;
  auto& mine = static_cast<VirtualEvent&>(event);
  push({.kind = Item::Kind::kWait, .event = &mine, .record = mine.issued_});
  return true;
}

bool VirtualStream::hold(std::shared_ptr<Gate> gate) {
  auto guard = engine_.lock();
  if (!may_enqueue(FaultKind::kWait, "hold")) return false;
  auto& mine = static_cast<VirtualGate&>(*gate);
  push({.kind = Item::Kind::kWait,
        .event = &mine.event_,
        .record = mine.event_.issued_,
        .keep_alive = std::move(gate)});
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
  if (item.event->completed_ < item.record && !engine_.is_lost()) {
    item.event->parked_.push_back(this);
    return false;
  }
  if (auto* watcher = engine_.watcher_or_null()) {
    watcher->on_wait(engine_.id(*this), {item.event, item.record});
  }
  return true;
}

// Behind the item: the next one, or nobody may touch the stream any more once it is idle.
void VirtualStream::finish_item(std::vector<EventListener*>& listeners) {
  queue_.pop_front();
  if (!queue_.empty()) return engine_.make_ready(*this);
  auto* watcher = engine_.watcher_or_null();
  if (watcher != nullptr && !idle_listeners_.empty()) watcher->on_idle_seen(engine_.id(*this));
  listeners.insert(listeners.end(), idle_listeners_.begin(), idle_listeners_.end());
  idle_listeners_.clear();
}

void VirtualStream::step() {
  std::vector<EventListener*> listeners;
  std::shared_ptr<Gate> gate;  // goes after the lock: its event may be the last of its kind
  auto guard = engine_.lock();
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
      work.run(work.context);
      guard.lock();
    }
  } else if (item.kind == Item::Kind::kRecord) {
    if (watcher != nullptr) watcher->on_record(engine_.id(*this), {item.event, item.record});
    item.event->complete(item.record, listeners);
  }
  gate = std::move(item.keep_alive);
  finish_item(listeners);
  guard.unlock();
  for (EventListener* listener : listeners) listener->on_complete();
}

void VirtualStream::stop_waiting() {
  if (queue_.empty() || queue_.front().kind != Item::Kind::kWait) return;
  if (std::erase(queue_.front().event->parked_, this) > 0) engine_.make_ready(*this);
}

std::string VirtualStream::waits_for() const {
  if (queue_.empty()) return "";
  const Item& item = queue_.front();
  if (item.kind != Item::Kind::kWait || item.event->completed_ >= item.record) return "";
  const std::string what = item.keep_alive ? "a gate"
                                           : "record " + std::to_string(item.record) +
                                                 " of event " + std::to_string(item.event->number_);
  return "stream " + std::to_string(engine_.id(*this)) + " waits for " + what + ", with " +
         std::to_string(queue_.size() - 1) + " commands behind it";
}

}  // namespace eddy
