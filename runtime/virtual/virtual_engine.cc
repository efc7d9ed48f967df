#include "runtime/virtual/virtual_engine.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

// What this thread is stepping, innermost first: work may step another device.
struct Stepping {
  const VirtualEngine* engine;
  LaneNumber lane;
  const Stepping* outer;
};
thread_local const Stepping* stepping = nullptr;

uint64_t digest_of(uint64_t before, LaneNumber lane, size_t num_ready) {
  const uint64_t mixed = (before ^ (uint64_t{lane} << 32 | num_ready)) * 0x9e3779b97f4a7c15u;
  return mixed ^ mixed >> 32;
}

}  // namespace

VirtualEngine::VirtualEngine(VirtualEngineOptions options)
    : options_(std::move(options)),
      own_chooser_(options_.chooser_or_null == nullptr ? make_chooser(options_.order) : nullptr),
      chooser_(own_chooser_ ? *own_chooser_ : *options_.chooser_or_null) {}

VirtualEngine::~VirtualEngine() {
  EDDY_CHECK(lanes_.empty()) << lanes_.size() << " streams or strands outlive their device";
}

VirtualLane* VirtualEngine::choose() {
  if (ready_.empty()) return nullptr;
  size_t chosen = 0;
  if (ready_.size() > 1) chosen = chooser_.choose(ready_ids_);
  EDDY_CHECK(chosen < ready_.size())
      << "lane " << chosen << " of " << ready_.size() << " is chosen";
  EDDY_DCHECK(ready_ids_.size() == ready_.size() && ready_ids_[chosen] == ready_[chosen]->id_)
      << "the lanes that are ready and their numbers differ";
  VirtualLane* lane = ready_[chosen];
  digest_.store(digest_of(digest(), lane->id_, ready_.size()), std::memory_order_relaxed);
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(chosen));
  ready_ids_.erase(ready_ids_.begin() + static_cast<ptrdiff_t>(chosen));
  EDDY_DCHECK(lane->is_ready_) << "lane " << lane->id_ << " is listed and not ready";
  lane->is_ready_ = false;
  return lane;
}

bool VirtualEngine::step() {
  if (is_stepping_.exchange(true, std::memory_order_acquire)) return false;
  auto guard = lock();
  take_woken();
  VirtualLane* lane = choose();
  if (lane != nullptr) {
    const Stepping here{this, lane->id_, stepping};
    if (options_.on_tick) {
      guard.unlock();
      options_.on_tick(now());
      guard.lock();
    }
    if (should_fail(FaultKind::kLoseDevice)) {
      lose("the virtual device was told to be lost at tick " + std::to_string(now()));
    }
    now_.fetch_add(1, std::memory_order_relaxed);
    stepping = &here;
    lane->step(guard);
    EDDY_DCHECK(stepping == &here) << "a step inside this one has not ended";
    stepping = here.outer;
  }
  is_stepping_.store(false, std::memory_order_release);
  return lane != nullptr;
}

LaneNumber VirtualEngine::current_lane() const {
  for (const Stepping* at = stepping; at != nullptr; at = at->outer) {
    if (at->engine == this) return at->lane;
  }
  return 0;
}

LaneNumber VirtualEngine::add_lane(VirtualLane& lane) {
  EDDY_CHECK(lane.id_ == 0) << "lane " << lane.id_ << " is added twice";
  lane.id_ = ++last_lane_;
  lanes_.push_back(&lane);
  return lane.id_;
}

void VirtualEngine::remove_lane(VirtualLane& lane) {
  EDDY_CHECK(!lane.is_ready_) << "lane " << lane.id_ << " goes while it has something to do";
  const size_t num_erased = std::erase(lanes_, &lane);
  EDDY_CHECK(num_erased == 1) << "lane " << lane.id_ << " is of another device";
}

void VirtualEngine::make_ready(VirtualLane& lane) {
  EDDY_DCHECK(lane.id_ != 0) << "a lane goes on before it is added";
  if (lane.is_ready_) return;
  lane.is_ready_ = true;
  ready_.push_back(&lane);
  ready_ids_.push_back(lane.id_);
}

void VirtualEngine::wake(VirtualLane& lane) {
  const std::lock_guard lock(woken_mutex_);
  woken_.push_back(&lane);
}

void VirtualEngine::take_woken() {
  const std::lock_guard lock(woken_mutex_);
  for (VirtualLane* lane : woken_) make_ready(*lane);
  woken_.clear();
}

Status VirtualEngine::health() const {
  if (!is_lost()) return Status::ok();
  auto guard = lock();
  return lost_;
}

void VirtualEngine::lose(std::string why) {
  if (is_lost()) return;
  lost_ = device_lost(std::move(why));
  is_lost_.store(true, std::memory_order_release);
  for (VirtualLane* lane : lanes_) lane->stop_waiting();
}

std::string VirtualEngine::wait_graph() const {
  auto guard = lock();
  std::string text;
  for (const VirtualLane* lane : lanes_) {
    const std::string waits = lane->waits_for();
    if (!waits.empty()) text += "  " + waits + "\n";
  }
  return text;
}

std::vector<std::string> VirtualEngine::violations() const {
  auto guard = lock();
  return violations_;
}

}  // namespace eddy
