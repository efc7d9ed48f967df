// FaultPoint: one graph on the virtual device that can be made to fail, and what must hold
// whenever it was. See fault_campaign.h for the rules.
//
// Threads: as the campaign.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/check/fault_rules.h"
#include "tools/check/trial.h"

namespace eddy::check {

// Defects, for tests of the rules.
struct FaultPlants {
  // As TrialOptions::wrap.
  std::function<std::shared_ptr<Device>(std::shared_ptr<VirtualDevice>)> wrap = {};
  // What a node that has to fail reports in place of its error. Empty: its error.
  std::function<Status(Status)> retell = {};
  // What is called in place of a run's callback. Empty: the callback.
  std::function<RunCallback(RunCallback)> wrap_callback = {};
  // Sees each step before the rules do.
  StepObserver* observer_or_null = nullptr;
};

struct FaultPointOptions {
  Loops loops = Loops::kDevice;
  // How long no progress is made before a run counts as hanging.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
  FaultPlants plants = {};
};

class FaultPoint {
 public:
  FaultPoint(const Recipe& recipe, FaultPointOptions options);
  ~FaultPoint();

  // Makes these faults happen; empty, or the rule that was broken.
  std::string run(const std::vector<Fault>& faults);
  // Whether any fault of the last run() fired.
  bool has_fired() const { return num_fired_ > 0; }
  // A run hangs, and may wake up yet: the point must be left alone, never destroyed.
  bool hangs() const { return trial_ != nullptr && trial_->hangs(); }
  // Ends the session; empty, or what it leaves behind.
  std::string close();

 private:
  // Fails nodes and decisions, and sees that nothing starts too late.
  class Injector : public StepObserver {
   public:
    explicit Injector(FaultPoint& point) : point_(point) {}
    Status before(RunState& state, const ::eddy::Step& step) override;
    void after(RunState& state, const ::eddy::Step& step, int32_t decision) override;

   private:
    FaultPoint& point_;
  };
  // One of the runs in flight.
  struct Flight {
    std::atomic<int> num_callbacks{0};
    Status status;
    NamedTensors outputs;
  };
  // Shared with the callbacks: a callback of a run that hangs may come after the last waiter has
  // left.
  using Flights = std::shared_ptr<std::array<Flight, 2>>;

  std::string start();
  std::string start_cold();
  std::string run_in_flight();
  std::vector<RunHandle> submit(const Flights& flights, Stream* stream_or_null);
  std::string check_flights(std::span<RunHandle> handles, const Flights& flights);
  std::string run_call();
  std::string wait_for(RunHandle& handle);
  std::string check_end(const Status& status, const NamedTensors* outputs_or_null);
  std::string check_next_run();
  Result<int64_t> choose(std::span<const TensorView> inputs);
  Status inject(std::string path);
  void on_tick(uint64_t tick);
  void cancel();
  void pass_deadline();
  void watch(std::optional<RunHandle> first);
  std::optional<RunHandle> watched();
  void disarm();
  void note(std::string violation);
  std::string take_note();
  bool needs_cold_start() const;

  const FaultPointOptions options_;
  Library library_;
  Subject subject_;
  FaultPlan plan_;
  FaultRules rules_{plan_};
  Injector injector_{*this};
  std::unique_ptr<Trial> trial_;
  uint64_t max_stacks_ = 0;  // of the scheduler; 0: no limit
  uint64_t num_fired_ = 0;
  uint64_t num_points_ = 0;
  std::atomic<uint64_t> first_tick_{0};  // of the point; the device's thread reads it

  std::mutex mutex_;
  std::string note_;                // under the mutex: the first rule broken inside a step
  std::optional<RunHandle> first_;  // under the mutex: of the runs in flight
  bool is_call_ = false;            // one prepared run is, on this thread
  RunState* in_call_or_null_ = nullptr;
  // The current step; the thread that advances the device writes and reads it.
  RunState* at_work_or_null_ = nullptr;
  NodeId node_at_work_;
};

}  // namespace eddy::check
