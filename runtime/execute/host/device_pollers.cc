#include "runtime/execute/host/device_pollers.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

DevicePollers::~DevicePollers() {
  EDDY_CHECK(polled_.empty()) << "a device is still polled when its scheduler goes";
}

void DevicePollers::add(Device& device) {
  std::lock_guard lock(mutex_);
  const auto is_it = [&](const auto& polled) { return &polled->device == &device; };
  auto found = std::ranges::find_if(polled_, is_it);
  if (found == polled_.end()) {
    found = polled_.insert(found, std::make_unique<Polled>(Polled{device}));
    const auto slack = [&device] {
      return device.wants_polling() ? PollSet::kNow : PollSet::Slack();
    };
    (*found)->poller = scheduler_.add_poller([&device] { return device.poll(); }, slack);
    device.add_waker(found->get(), [this] { scheduler_.poke(); });
  }
  ++(*found)->num_users;
}

void DevicePollers::remove(Device& device) {
  std::unique_ptr<Polled> last;
  {
    std::lock_guard lock(mutex_);
    const auto is_it = [&](const auto& polled) { return &polled->device == &device; };
    const auto found = std::ranges::find_if(polled_, is_it);
    EDDY_CHECK(found != polled_.end()) << "a device that is not polled is removed";
    if (--(*found)->num_users > 0) return;
    last = std::move(*found);
    polled_.erase(found);
  }
  // Without the mutex: this waits for a poll that is under way.
  scheduler_.remove_poller(last->poller);
  device.remove_waker(last.get());
}

}  // namespace eddy
