// CudaSessionFixture: sessions beside a fake GPU, by seed; when a test ends, nothing may be left
// behind and no contract broken.
//
//   use_fake({.cpu_share = 0.3});
//   auto session = create(std::move(graph), {.loops = Loops::kHost});
//
// Sessions go before their fake does: reset them before another one is made.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_accelerator.h"

namespace eddy::testing {

struct CudaSessionSetup {
  int num_threads = 1;
  Loops loops = Loops::kAuto;
  bool measures_loops = false;  // else the device drives whatever it can
  int ordinal = 0;
  bool locates_faults = false;
};

class CudaSessionFixture : public ::testing::TestWithParam<uint64_t> {
 protected:
  ~CudaSessionFixture() override {
    if (fake_ == nullptr) return;
    EXPECT_THAT(fake_->problems(), ::testing::IsEmpty());
    EXPECT_EQ(fake_->cuda().leaks(), "");
  }
  // A new one, of the test's seed.
  void use_fake(FakeAcceleratorOptions options = {}) {
    options.seed = GetParam();
    fake_ = std::make_unique<FakeAccelerator>(library_, options);
  }
  Result<std::unique_ptr<Session>> create(Graph graph, const CudaSessionSetup& setup) {
    SessionOptions options;
    options.num_threads = setup.num_threads;
    options.loops = setup.loops;
    options.measure_loops = setup.measures_loops;
    options.assignment = Assignment::kRank;
    options.locate_faults = setup.locates_faults;
    options.merges_loops = merges_loops_;
    options.make_devices = {fake_->maker(setup.ordinal)};
    return Session::create(library_, std::move(graph), options);
  }
  // The same; null after a failure of the test.
  std::unique_ptr<Session> make_or_null(Graph graph, const CudaSessionSetup& setup) {
    auto session = create(std::move(graph), setup);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return session.is_ok() ? std::move(*session) : nullptr;
  }

  Library library_;
  bool merges_loops_ = false;  // else tests look at each loop
  std::unique_ptr<FakeAccelerator> fake_;
};

}  // namespace eddy::testing
