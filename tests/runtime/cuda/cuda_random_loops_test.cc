// Claim: random loops that a GPU can drive by itself (random_loops.h) are all recorded and driven
// by it, but for those that come when devices drive as many as they may; and give the bits and the
// trip counts that the CPU gives, in whatever order the GPU's streams and graph nodes run. Whatever
// call or kernel fails, and whenever the run is cancelled, the run is right or fails with the
// reason, and nothing is left behind.
//
// EDDY_LOOP_SEEDS=10000 EDDY_LOOP_FIRST=20001 runs as many graphs from that seed on;
// EDDY_LOOP_SEED=17 runs that one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/api/session.h"
#include "runtime/execute/control/device_control.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tests/runtime/cuda/random_loops.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

uint64_t from_environment(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Seeds {
  uint64_t first;
  uint64_t last;
  explicit Seeds(uint64_t count) : first(from_environment("EDDY_LOOP_FIRST", 1)) {
    last = first + from_environment("EDDY_LOOP_SEEDS", count) - 1;
    const uint64_t one = from_environment("EDDY_LOOP_SEED", 0);
    if (one != 0) first = last = one;
  }
};

class Case {
 public:
  Case(const Library& library, uint64_t seed)
      : library_(library), seed_(seed), fake_(library, {.seed = seed}) {}

  // Computes the expected outputs on the CPU.
  Status expect() {
    EDDY_ASSIGN_OR_RETURN(RandomLoops made, make_random_loops(library_, seed_));
    inputs_ = made.inputs;
    EDDY_ASSIGN_OR_RETURN(const auto session, Session::create(library_, std::move(made.graph), {}));
    EDDY_ASSIGN_OR_RETURN(expected_, session->run(inputs_));
    reports_ = session->loop_reports();
    return Status::ok();
  }

  // The device drives every loop that it can. Exceptions: a loop that is empty after unread values
  // have been removed; and a loop that passes on a value that only the host has and the device
  // never reads.
  Result<std::unique_ptr<Session>> make_by_device() {
    auto session = make(Loops::kDevice);
    is_forced_ = session.is_ok();
    const bool is_refused = session.status().code() == StatusCode::kUnsupported;
    return is_refused ? make(Loops::kAuto) : std::move(session);
  }
  bool is_forced() const { return is_forced_; }

  Result<std::unique_ptr<Session>> make(Loops loops) {
    EDDY_ASSIGN_OR_RETURN(RandomLoops made, make_random_loops(library_, seed_));
    SessionOptions options;
    options.num_threads = 1;
    options.loops = loops;
    options.measure_loops = false;
    options.assignment = seed_ % 3 == 0 ? Assignment::kSerial : Assignment::kRank;
    options.locate_faults = seed_ % 4 == 1;
    options.merges_loops = false;
    options.make_devices = {fake_.maker()};
    return Session::create(library_, std::move(made.graph), options);
  }

  // Empty: the outputs are right, and so is how often each loop went round.
  std::string difference(const Session& session, const NamedTensors& outputs) const {
    std::string text = check::difference(expected_, outputs);
    const std::vector<LoopReport> found = session.loop_reports();
    for (size_t i = 0; text.empty() && i < found.size(); ++i) {
      if (found[i].iterations == reports_[i].iterations) continue;
      text = found[i].path + " went round " + std::to_string(found[i].iterations) +
             " times, expected " + std::to_string(reports_[i].iterations);
    }
    return text;
  }
  // Whether each loop that ran was driven by the device.
  size_t num_driven(const Session& session) const {
    const std::vector<LoopReport> reports = session.loop_reports();
    return static_cast<size_t>(std::ranges::count(reports, "device", &LoopReport::driven));
  }

  // Loops that may be active at once, inner ones within outer ones, where those side by side are.
  static int num_at_once(const std::vector<LoopReport>& reports) {
    std::map<std::string, int> depths;  // by the outermost one
    for (const LoopReport& report : reports) {
      int depth = 0;
      std::istringstream path(report.path);
      for (std::string part; std::getline(path, part, '/');) depth += part.starts_with("loop");
      int& deepest = depths[report.path.substr(0, report.path.find('/'))];
      deepest = std::max(deepest, depth);
    }
    int sum = 0;
    for (const auto& [outermost, depth] : depths) sum += depth;
    return sum;
  }
  // Checks the reports of a session that was forced.
  static void expect_all_driven(const std::vector<LoopReport>& reports) {
    for (const LoopReport& report : reports) {
      if (report.driven == "device") continue;
      EXPECT_THAT(report.reason, HasSubstr("devices drive as many loops at once as they may"));
      EXPECT_GT(num_at_once(reports), DeviceControl::kMostAtOnce) << report.path;
    }
  }

  const NamedTensors& inputs() const { return inputs_; }
  FakeAccelerator& fake() { return fake_; }

 private:
  const Library& library_;
  const uint64_t seed_;
  FakeAccelerator fake_;
  NamedTensors inputs_;
  NamedTensors expected_;
  std::vector<LoopReport> reports_;
  bool is_forced_ = false;
};

TEST(CudaRandomLoops, GiveTheCpusBitsDrivenByEither) {
  const Library library;
  const Seeds seeds(400);
  uint64_t num_loops = 0;
  uint64_t num_forced = 0;
  uint64_t num_launches = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    SCOPED_TRACE("EDDY_LOOP_SEED=" + std::to_string(seed));
    Case one(library, seed);
    const Status expected = one.expect();
    ASSERT_TRUE(expected.is_ok()) << expected.to_string();
    for (const Loops loops : {Loops::kHost, Loops::kDevice}) {
      // A seed that is tried alone is tried both ways, so that it shows which of them is wrong.
      const bool is_alone = seeds.first == seeds.last;
      if (loops == Loops::kHost && seed % 4 != 0 && !is_alone) continue;
      auto session = loops == Loops::kHost ? one.make(loops) : one.make_by_device();
      ASSERT_TRUE(session.is_ok()) << session.status().to_string();
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto outputs = (*session)->run(one.inputs());
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        ASSERT_EQ(one.difference(**session, *outputs), "")
            << "driven by the " << (loops == Loops::kHost ? "host" : "device");
      }
      if (loops == Loops::kHost) continue;
      num_forced += one.is_forced() ? 1 : 0;
      if (one.is_forced()) Case::expect_all_driven((*session)->loop_reports());
      num_loops += one.num_driven(**session);
    }
    num_launches += one.fake().cuda().num_graph_launches();
    ASSERT_THAT(one.fake().problems(), IsEmpty());
    ASSERT_EQ(one.fake().cuda().leaks(), "");
  }
  if (seeds.first == seeds.last) return;
  const uint64_t num_seeds = seeds.last - seeds.first + 1;
  EXPECT_GE(10 * num_forced, 9 * num_seeds);
  EXPECT_GE(num_loops, num_seeds);
  EXPECT_GE(num_launches, num_seeds) << "recordings, not single kernels";
}

// A call, a kernel, or a cancel.
TEST(CudaRandomLoops, WhateverFailsTheRunIsRightOrSaysWhy) {
  const Library library;
  const Seeds seeds(220);
  uint64_t num_failed = 0;
  uint64_t num_cancelled = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    std::string trace = "EDDY_LOOP_SEED=" + std::to_string(seed);
    Random random(seed);
    Case one(library, seed);
    ASSERT_TRUE(one.expect().is_ok());
    const bool is_by_host = random.below(4) == 0;
    auto session = is_by_host ? one.make(Loops::kHost) : one.make_by_device();
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    FakeCuda& cuda = one.fake().cuda();
    bool has_pushed = true;  // a context that could not be: nothing can be freed then
    for (int repeat = 0; repeat < 3; ++repeat) {
      const uint64_t at = 1 + random.below(120);
      const uint64_t kind = random.below(4);
      if (kind == 0) cuda.fault_kernel(at, CuResult::kIllegalAddress);
      if (kind == 1) cuda.fail_call(at, CuResult::kOutOfMemory);
      if (kind == 2) cuda.fail_call(at, CuResult::kInvalidValue);
      RunHandle handle = (*session)->run_async(one.inputs(), {});
      if (kind == 3) {
        for (uint64_t spins = random.below(40); spins > 0; --spins) std::this_thread::yield();
        handle.cancel();
      }
      const Status status = handle.wait();
      cuda.fail_call(0, CuResult::kSuccess);
      has_pushed &= cuda.failed_call() != "context_push";
      trace += ", " + std::to_string(kind) + " at " + std::to_string(at) + " " +
               cuda.failed_call() + ": " + status.to_string();
      if (status.is_ok()) {
        ASSERT_FALSE(cuda.is_lost(0)) << trace;  // a kernel has faulted, so values are missing
        continue;
      }
      num_cancelled += status.code() == StatusCode::kCancelled ? 1 : 0;
      if (status.code() == StatusCode::kCancelled) continue;
      ++num_failed;
      ASSERT_THAT(status.to_string(), AnyOf(HasSubstr("CUDA_ERROR_"), HasSubstr("lost")));
      if (status.code() == StatusCode::kDeviceLost) break;
    }
    session->reset();
    if (!has_pushed) continue;
    SCOPED_TRACE(trace);
    ASSERT_THAT(one.fake().problems(), IsEmpty());
    ASSERT_EQ(cuda.leaks(), "");
  }
  if (seeds.first == seeds.last) return;
  EXPECT_GT(num_failed, 100u) << "too few failures to show anything";
  EXPECT_GT(num_cancelled, 0u);
}

}  // namespace
}  // namespace eddy::testing
