// What every device promises (runtime/device/device.h), tested once for all of them:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance, testing::Values(make_cpu_device));
//
// What differs from device to device is in a TestedDevice: how a function becomes work of a stream
// (a driver wants it as a kernel), and what moves the device on while a test waits. No work waits
// for the test: gates hold streams.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/strand_runner.h"

namespace eddy::testing {

// A device under test and what a test needs besides. This one fits devices that run a Work's
// function as the work itself, on threads of their own.
class TestedDevice {
 public:
  explicit TestedDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  virtual ~TestedDevice() = default;
  Device& device() { return *device_; }
  // Issues `function` to `stream`; it outlives the stream.
  virtual void launch(Stream& stream, std::function<bool()>& function, bool is_cheap) {
    stream.launch({&call, &function, is_cheap});
  }
  // Called again and again by a test that waits.
  virtual void progress() { std::this_thread::yield(); }

 protected:
  static bool call(void* function) { return (*static_cast<std::function<bool()>*>(function))(); }
  std::shared_ptr<Device> device_;
};

using DeviceFactory = std::unique_ptr<TestedDevice> (*)();

class DeviceConformance : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  void launch(Stream& stream, std::function<bool()> function, bool is_cheap) {
    functions_.push_back(std::make_unique<std::function<bool()>>(std::move(function)));
    tested_->launch(stream, *functions_.back(), is_cheap);
  }
  void drain(Stream& stream) {
    while (!stream.is_idle()) tested_->progress();
  }
  // Long enough for what may run to have run.
  void settle() {
    for (int i = 0; i < 20; ++i) {
      tested_->progress();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

  std::vector<std::unique_ptr<std::function<bool()>>> functions_;  // outlive the device's streams
  std::unique_ptr<TestedDevice> tested_ = GetParam()();
  Device* const device_ = &tested_->device();
};

// What a device has of them has a suite of its own: staging_conformance.h, capture_conformance.h,
// compile_conformance.h.
TEST_P(DeviceConformance, AnOptionalInterfaceIsThereForGoodOrNever) {
  EXPECT_EQ(device_->staging_or_null(), device_->staging_or_null());
  EXPECT_EQ(device_->compile_or_null(), device_->compile_or_null());
  const auto one = device_->create_capture_or_null(), other = device_->create_capture_or_null();
  EXPECT_EQ(one == nullptr, other == nullptr);
  EXPECT_TRUE(one == nullptr || one != other);
  EXPECT_TRUE(one != nullptr || !can_decide_loops(*device_));
}

TEST_P(DeviceConformance, AStreamRunsItsWorkInOrder) {
  auto stream = std::move(*device_->create_stream());
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) {
    launch(
        *stream,
        [&order, i] {
          order.push_back(i);
          return true;
        },
        i % 3 != 0);
  }
  drain(*stream);
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST_P(DeviceConformance, AWaitHoldsAStreamUntilTheRecordIsReached) {
  auto producer = std::move(*device_->create_stream());
  auto consumer = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> value{0};
    int seen = -1;
    launch(
        *producer,
        [&] {
          pause();
          value = 7;
          return true;
        },
        false);
    producer->record(*event);
    consumer->wait(*event);
    launch(
        *consumer,
        [&] {
          seen = value;
          return true;
        },
        true);
    drain(*consumer);
    drain(*producer);
    EXPECT_EQ(seen, 7);
  }
}

TEST_P(DeviceConformance, AnEventNeverRecordedIsComplete) {
  auto stream = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  EXPECT_TRUE(event->is_complete());
  bool has_run = false;
  stream->wait(*event);
  launch(
      *stream, [&] { return has_run = true; }, true);
  drain(*stream);
  EXPECT_TRUE(has_run);
}

TEST_P(DeviceConformance, AWaitBindsToTheLatestRecordAtTheTimeOfTheCall) {
  auto producer = std::move(*device_->create_stream());
  auto consumer = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  auto gate = std::move(*device_->create_gate());
  std::atomic<bool> has_consumed{false};
  producer->record(*event);
  consumer->wait(*event);  // bound to the first record, which is complete
  producer->hold(gate);
  producer->record(*event);
  EXPECT_FALSE(event->is_complete());
  launch(
      *consumer,
      [&] {
        has_consumed = true;
        return true;
      },
      false);
  drain(*consumer);
  EXPECT_TRUE(has_consumed) << "the second record must not hold the earlier wait";
  gate->open();
  drain(*producer);
  EXPECT_TRUE(event->is_complete());
}

TEST_P(DeviceConformance, AGateHoldsItsStreamUntilItIsOpenedAndStaysOpen) {
  auto stream = std::move(*device_->create_stream());
  auto gate = std::move(*device_->create_gate());
  std::atomic<bool> before{false};
  std::atomic<bool> behind{false};
  launch(
      *stream, [&] { return before = true; }, true);
  stream->hold(gate);
  launch(
      *stream, [&] { return behind = true; }, true);
  while (!before) tested_->progress();
  settle();
  EXPECT_FALSE(behind);
  EXPECT_FALSE(stream->is_idle());
  gate->open();
  drain(*stream);
  EXPECT_TRUE(behind);
  stream->hold(std::move(gate));
  drain(*stream);
}

class CountingListener : public EventListener {
 public:
  void on_complete() override { ++count; }
  std::atomic<int> count{0};
};

TEST_P(DeviceConformance, AListenerIsCalledOnceOrNotKept) {
  auto stream = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  CountingListener listener;
  EXPECT_TRUE(event->listen_or_complete(listener)) << "complete: not kept";
  auto gate = std::move(*device_->create_gate());
  stream->hold(gate);
  stream->record(*event);
  EXPECT_FALSE(event->listen_or_complete(listener));
  CountingListener idle;
  EXPECT_FALSE(stream->listen_or_idle(idle));
  gate->open();
  drain(*stream);
  while (idle.count == 0 || listener.count == 0) tested_->progress();
  EXPECT_EQ(listener.count, 1);
  EXPECT_EQ(idle.count, 1);
}

TEST_P(DeviceConformance, FailedWorkDoesNotStopItsStream) {
  auto stream = std::move(*device_->create_stream());
  bool has_run = false;
  launch(
      *stream, [] { return false; }, false);
  launch(
      *stream, [&] { return has_run = true; }, false);
  drain(*stream);
  EXPECT_TRUE(has_run);
}

TEST_P(DeviceConformance, MemoryIsAlignedCountedAndGivenBack) {
  const size_t before = device_->allocator().statistics().used_bytes;
  {
    std::vector<BufferRef> buffers;
    for (size_t size : {0u, 1u, 63u, 64u, 65u, 4096u, 1000000u}) {
      auto buffer = device_->allocator().allocate(size);
      ASSERT_TRUE(buffer.is_ok());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
      EXPECT_GE(buffer->capacity_bytes(), size);
      buffers.push_back(std::move(*buffer));
    }
    EXPECT_GE(device_->allocator().statistics().used_bytes, before + 1004289);
  }
  EXPECT_EQ(device_->allocator().statistics().used_bytes, before);
}

TEST_P(DeviceConformance, AnImpossibleAllocationIsAnErrorThatSaysHowMuch) {
  const auto buffer = device_->allocator().allocate(size_t{1} << 60);
  ASSERT_FALSE(buffer.is_ok());
  EXPECT_EQ(buffer.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(buffer.status().message().find("1152921504606846976"), std::string::npos);
}

}  // namespace eddy::testing
