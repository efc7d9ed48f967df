// Claim: a device that several sessions use on one scheduler is polled once a round, until the last
// of them has let go of it.
#include "runtime/execute/host/device_pollers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/device/strand_runner.h"

namespace eddy {
namespace {

class CountingDevice : public Device {
 public:
  std::string_view kind() const override { return "counting"; }
  Allocator& allocator() override { std::abort(); }
  Result<std::unique_ptr<Stream>> create_stream() override { return unsupported("none"); }
  Result<std::unique_ptr<Event>> create_event() override { return unsupported("none"); }
  Result<std::shared_ptr<Gate>> create_gate() override { return unsupported("none"); }
  std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode&, const Bindings&) override {
    return nullptr;
  }
  bool needs_polling() const override { return true; }
  bool poll() override {
    ++num_polls;
    return false;
  }
  void add_waker(const void*, std::function<void()>) override { ++num_wakers; }
  void remove_waker(const void*) override { --num_wakers; }

  std::atomic<int> num_polls{0};
  std::atomic<int> num_wakers{0};
};

TEST(DevicePollers, ADeviceOfSeveralSessionsIsPolledOnceARound) {
  Scheduler scheduler;
  DevicePollers pollers(scheduler);
  CountingDevice device;
  CountingDevice other;
  for (int session = 0; session < 3; ++session) pollers.add(device);
  pollers.add(other);
  EXPECT_EQ(device.num_wakers, 1);
  std::atomic<int> num_rounds{0};
  int polls_before = 0;
  std::atomic<int> most_a_round{0};
  const PollerId rounds = scheduler.add_poller([&] {
    const int polls = device.num_polls;
    if (num_rounds++ > 0) most_a_round = std::max<int>(most_a_round, polls - polls_before);
    polls_before = polls;
    return false;
  });
  const auto await_rounds = [&](int more) {
    const int wanted = num_rounds + more;
    while (num_rounds < wanted) std::this_thread::yield();
  };
  await_rounds(100);
  EXPECT_EQ(most_a_round, 1);
  pollers.remove(device);
  pollers.remove(device);
  const int polls = device.num_polls;
  await_rounds(10);
  EXPECT_GT(device.num_polls, polls) << "one session has it still";
  pollers.remove(device);
  EXPECT_EQ(device.num_wakers, 0);
  const int last = device.num_polls;
  await_rounds(10);
  EXPECT_EQ(device.num_polls, last);
  EXPECT_EQ(other.num_wakers, 1);
  pollers.remove(other);
  scheduler.remove_poller(rounds);
}

}  // namespace
}  // namespace eddy
