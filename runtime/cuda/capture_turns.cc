#include "runtime/cuda/capture_turns.h"

#include <map>

#include "graph/base/check.h"

namespace eddy {

std::shared_ptr<CaptureTurns> CaptureTurns::of(CuContext context) {
  static std::mutex mutex;
  static auto& known = *new std::map<CuContext, std::weak_ptr<CaptureTurns>>();  // to the end
  std::lock_guard lock(mutex);
  std::weak_ptr<CaptureTurns>& entry = known[context];
  std::shared_ptr<CaptureTurns> turns = entry.lock();
  if (turns == nullptr) {
    turns = std::make_shared<CaptureTurns>();
    entry = turns;
  }
  return turns;
}

void CaptureTurns::enter(int& ours, const int& others) {
  std::unique_lock lock(mutex_);
  has_left_.wait_for(lock, kPatience, [&] { return others == 0; });
  ++ours;
}

void CaptureTurns::leave(int& ours) {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(ours > 0) << "more leave than have entered";
  --ours;
  has_left_.notify_all();
}

}  // namespace eddy
