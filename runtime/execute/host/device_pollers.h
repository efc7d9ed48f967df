// DevicePollers: the devices that one scheduler polls, each once, however many sessions use it.
//
// A device is polled from its first add() to its last remove(), and its wakers wake the scheduler.
//
// Contract: each add() is followed by one remove(), before the device goes; when the last one has
// returned, the device is not being polled from here. Threads: any, but not inside a poll. Cost: a
// round of the scheduler polls each device once.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/coroutine/scheduler.h"
#include "runtime/device/device.h"

namespace eddy {

class DevicePollers {
 public:
  explicit DevicePollers(Scheduler& scheduler) : scheduler_(scheduler) {}
  ~DevicePollers();  // nothing is polled any more

  void add(Device& device);
  void remove(Device& device);

 private:
  struct Polled {
    Device& device;
    size_t num_users = 0;
    PollerId poller = {};
  };
  Scheduler& scheduler_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Polled>> polled_;  // under the mutex
};

}  // namespace eddy
