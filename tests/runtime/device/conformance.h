// What every device promises (runtime/device/device.h), tested once for all of them:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance, testing::Values(make_cpu_device));
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/device/command_buffer.h"
#include "runtime/device/device.h"

namespace eddy::testing {

using DeviceFactory = std::unique_ptr<Device> (*)();

class DeviceConformance : public ::testing::TestWithParam<DeviceFactory> {
 protected:
  // Work from a lambda; lives as long as the test.
  Work work(std::function<bool()> function, bool is_cheap) {
    functions_.push_back(std::make_unique<std::function<bool()>>(std::move(function)));
    return {&call, functions_.back().get(), is_cheap};
  }
  void* keep(std::function<bool()> function) {
    functions_.push_back(std::make_unique<std::function<bool()>>(std::move(function)));
    return functions_.back().get();
  }
  static bool call(void* function) { return (*static_cast<std::function<bool()>*>(function))(); }

  static void drain(Stream& stream) {
    while (!stream.is_idle()) std::this_thread::yield();
  }
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

  std::vector<std::unique_ptr<std::function<bool()>>> functions_;  // outlive the device's streams
  std::unique_ptr<Device> device_ = GetParam()();
};

TEST_P(DeviceConformance, AStreamRunsItsWorkInOrder) {
  auto stream = std::move(*device_->create_stream());
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) {
    stream->launch(work([&order, i] { order.push_back(i); return true; }, i % 3 != 0));
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
    producer->launch(work([&] { pause(); value = 7; return true; }, false));
    producer->record(*event);
    consumer->wait(*event);
    consumer->launch(work([&] { seen = value; return true; }, true));
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
  stream->launch(work([&] { return has_run = true; }, true));
  drain(*stream);
  EXPECT_TRUE(has_run);
}

TEST_P(DeviceConformance, AWaitBindsToTheLatestRecordAtTheTimeOfTheCall) {
  auto producer = std::move(*device_->create_stream());
  auto consumer = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  std::atomic<bool> go{false};
  std::atomic<bool> has_consumed{false};
  producer->record(*event);
  consumer->wait(*event);  // bound to the first record, which is complete
  producer->launch(work([&] { while (!go) std::this_thread::yield(); return true; }, false));
  producer->record(*event);
  EXPECT_FALSE(event->is_complete());
  consumer->launch(work([&] { has_consumed = true; return true; }, false));
  drain(*consumer);
  EXPECT_TRUE(has_consumed) << "the second record must not hold the earlier wait";
  go = true;
  drain(*producer);
  EXPECT_TRUE(event->is_complete());
}

TEST_P(DeviceConformance, AGateHoldsItsStreamUntilItIsOpenedAndStaysOpen) {
  auto stream = std::move(*device_->create_stream());
  auto gate = std::move(*device_->create_gate());
  std::atomic<bool> before{false};
  std::atomic<bool> behind{false};
  stream->launch(work([&] { return before = true; }, true));
  stream->hold(gate);
  stream->launch(work([&] { return behind = true; }, true));
  pause();
  EXPECT_TRUE(before);
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
  std::atomic<bool> go{false};
  stream->launch(work([&] { while (!go) std::this_thread::yield(); return true; }, false));
  stream->record(*event);
  EXPECT_FALSE(event->listen_or_complete(listener));
  CountingListener idle;
  EXPECT_FALSE(stream->listen_or_idle(idle));
  go = true;
  drain(*stream);
  while (idle.count == 0) std::this_thread::yield();
  EXPECT_EQ(listener.count, 1);
  EXPECT_EQ(idle.count, 1);
}

TEST_P(DeviceConformance, FailedWorkDoesNotStopItsStream) {
  auto stream = std::move(*device_->create_stream());
  bool has_run = false;
  stream->launch(work([] { return false; }, false));
  stream->launch(work([&] { return has_run = true; }, false));
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
