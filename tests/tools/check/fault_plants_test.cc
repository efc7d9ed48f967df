// Claim: what a session could do wrong to its caller when a run ends breaks a rule of the fault
// campaign: to callbacks, to other runs, to outputs and inputs, and in what is left behind.
//
// Each defect is planted where no other rule looks, or looks later.
#include <gtest/gtest.h>

#include "runtime/execute/run_state.h"
#include "runtime/execute/values/output_memory.h"
#include "tests/tools/check/mutants.h"
#include "tools/check/fault_campaign.h"
#include "tools/check/leak_on_purpose.h"

namespace eddy::check {
namespace {

constexpr uint64_t kFirstSeed = 20;
constexpr uint64_t kNumSeeds = 20;

Recipe recipe(uint64_t seed) { return make_recipe(seed, FaultOptions::fault_graphs()); }

// Two runs in flight, the first of which is cancelled at once.
std::string cancel_one(FaultPlants plants) {
  FaultPoint point(recipe(kFirstSeed), {.plants = std::move(plants)});
  return point.run({{FaultKind::kCancel, 1}});
}

void expect_says(const std::string& said, const std::string& rule) {
  EXPECT_NE(said.find(rule), std::string::npos) << "'" << said << "', not '" << rule << "'";
}

TEST(FaultPlantsTest, NothingIsSaidWhereNothingIsPlanted) {
  EXPECT_EQ(cancel_one({}), "");
  EXPECT_EQ(cancel_one({.wrap_callback = [](RunCallback callback) { return callback; }}), "");
}

TEST(FaultPlantsTest, ARunWithoutACallbackBreaksARule) {
  const auto forget = [](const RunCallback&) -> RunCallback { return [](Result<NamedTensors>) {}; };
  expect_says(cancel_one({.wrap_callback = forget}), "0 callbacks of one run");
}

// Both calls have the same end, so that no other rule applies.
TEST(FaultPlantsTest, ASecondCallbackBreaksARule) {
  const auto repeat = [](RunCallback callback) -> RunCallback {
    return [callback = std::move(callback)](Result<NamedTensors> end) {
      if (!end.is_ok()) callback(end.status());
      callback(std::move(end));
    };
  };
  expect_says(cancel_one({.wrap_callback = repeat}), "2 callbacks of one run");
}

TEST(FaultPlantsTest, ACallbackWithAnotherStatusThanTheHandleBreaksARule) {
  const auto other_status = [](RunCallback callback) -> RunCallback {
    return [callback = std::move(callback)](Result<NamedTensors> end) {
      if (end.is_ok()) return callback(std::move(end));
      callback(Status(end.status().code(), "in other words"));
    };
  };
  expect_says(cancel_one({.wrap_callback = other_status}), "handle and callback differ");
}

// The first node that runs fails as planned; then a node of another run fails without a plan.
class SecondFailure : public StepObserver {
 public:
  Status before(RunState& state, const ::eddy::Step& step) override {
    if (!is_armed || step.kind != StepKind::kExec) return Status::ok();
    if (first_or_null_ == nullptr) first_or_null_ = &state;
    if (has_failed || first_or_null_ == &state) return Status::ok();
    has_failed = true;
    return run_failed("since another run has failed");
  }
  void after(RunState&, const ::eddy::Step&, int32_t) override {}

  bool is_armed = false;
  bool has_failed = false;

 private:
  const RunState* first_or_null_ = nullptr;
};

TEST(FaultPlantsTest, AFaultThatEndsAnotherRunAsWellBreaksARule) {
  SecondFailure failure;
  FaultPoint point(recipe(kFirstSeed), {.plants = {.observer_or_null = &failure}});
  ASSERT_EQ(point.run({}), "");
  failure.is_armed = true;
  const std::string said = point.run({{FaultKind::kKernel, 1}});
  ASSERT_TRUE(failure.has_failed);
  expect_says(said, "one fault ended two runs");
}

// Writes a byte of a run's output or input, once, when the run has ended and before any client
// observes the end, or later.
class Meddler : public StepObserver {
 public:
  enum class What { kOutput, kInput, kOutputLater };
  explicit Meddler(What what) : what_(what) {}

  FaultPlants plants() {
    const auto wrap = [this](std::shared_ptr<VirtualDevice> device) -> std::shared_ptr<Device> {
      stream_ = std::move(*device->create_stream());
      return std::make_shared<MutantDevice>(std::move(device),
                                            Mutation{.at_end = [this] { meddle(); }});
    };
    const auto note = [this](RunCallback callback) {
      has_callbacks_ = true;
      return callback;
    };
    return {.wrap = wrap, .wrap_callback = note, .observer_or_null = this};
  }
  Status before(RunState& state, const ::eddy::Step&) override {
    state_or_null_ = &state;
    return Status::ok();
  }
  void after(RunState&, const ::eddy::Step&, int32_t) override {}
  void arm() {
    is_armed_ = true;
    has_callbacks_ = false;
  }
  bool has_meddled() const { return has_meddled_; }
  // The device's owner goes next.
  void let_go() { stream_.reset(); }

 private:
  // A prepared call has no callback; its inputs are the caller's own, its outputs may be.
  bool may_write(const Slot& slot) const {
    if (slot.kind != ValueKind::kTensor || slot.view.size_bytes() == 0) return false;
    switch (what_) {
      case What::kOutput:
        return static_cast<bool>(slot.buffer);
      case What::kInput:
        return !has_callbacks_;
      case What::kOutputLater:
        return is_callers_memory(slot.buffer);
    }
    return false;
  }
  void meddle() {
    if (!is_armed_ || has_meddled_ || state_or_null_ == nullptr) return;
    const Graph& graph = state_or_null_->graph();
    for (ValueId value : what_ == What::kInput ? graph.inputs() : graph.outputs()) {
      const Slot& slot = state_or_null_->slot(value);
      if (!may_write(slot)) continue;
      byte_ = static_cast<unsigned char*>(slot.view.data);
      has_meddled_ = true;
      if (what_ == What::kOutputLater) return write_later();
      return (void)write(this);
    }
  }
  // Writes after more work than there is until the caller observes the run's end.
  void write_later() {
    constexpr int kNumBefore = 100;
    const auto nothing = [](void*) { return true; };
    bool is_queued = true;
    for (int i = 0; i < kNumBefore; ++i) is_queued &= stream_->launch({.run = nothing});
    is_queued &= stream_->launch({.run = write, .context = this});
    EXPECT_TRUE(is_queued);
  }
  static bool write(void* meddler) {
    *static_cast<Meddler*>(meddler)->byte_ ^= 1;
    return true;
  }

  const What what_;
  bool is_armed_ = false;
  bool has_meddled_ = false;
  bool has_callbacks_ = false;
  RunState* state_or_null_ = nullptr;
  std::unique_ptr<Stream> stream_;
  unsigned char* byte_ = nullptr;
};

// Takes the first graph that has such a byte. Every fourth point is a prepared call.
std::string say_of(Meddler::What what, int point_number) {
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumSeeds; ++seed) {
    Meddler meddler(what);
    FaultPoint point(recipe(seed), {.plants = meddler.plants()});
    for (int i = 1; i < point_number; ++i) EXPECT_EQ(point.run({}), "") << "seed " << seed;
    meddler.arm();
    std::string said = point.run({});
    meddler.let_go();
    if (meddler.has_meddled()) return said;
  }
  return "no graph has such a byte";
}

TEST(FaultPlantsTest, AWrongOutputBreaksARule) {
  expect_says(say_of(Meddler::What::kOutput, 2), "a run that succeeded: ");
  expect_says(say_of(Meddler::What::kOutput, 4), "a run that succeeded: ");
}

TEST(FaultPlantsTest, AnInputThatIsWrittenBreaksARule) {
  EXPECT_EQ(say_of(Meddler::What::kInput, 4), "an input was written");
}

TEST(FaultPlantsTest, AnOutputThatIsWrittenAfterItsRunBreaksARule) {
  expect_says(say_of(Meddler::What::kOutputLater, 4), "was written after its run had ended");
}

// Its gate has gone, so that only the stream itself is left to be noticed.
TEST(FaultPlantsTest, AStreamThatStillWaitsBreaksARule) {
  std::shared_ptr<VirtualDevice> device;
  const auto wrap = [&](std::shared_ptr<VirtualDevice> made) -> std::shared_ptr<Device> {
    return device = std::move(made);
  };
  FaultPoint point(recipe(kFirstSeed), {.plants = {.wrap = wrap}});
  ASSERT_EQ(point.run({}), "");
  auto stream = device->create_stream();
  auto gate = device->create_gate();
  ASSERT_TRUE(stream.is_ok() && gate.is_ok());
  ASSERT_TRUE((*stream)->hold(*gate));
  gate->reset();
  expect_says(point.close(), "somebody still waits");
  leak_on_purpose(std::move(*stream));  // nothing can open its gate, and it would not go before
  leak_on_purpose(std::make_unique<std::shared_ptr<VirtualDevice>>(std::move(device)));
}

}  // namespace
}  // namespace eddy::check
