// FaultPoint: one graph on the virtual device that can be made to fail, and what must hold
// whenever it was. See fault_campaign.h for the rules.
//
// Threads: as the campaign.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/check/trial.h"

namespace eddy::check {

class FaultPoint {
 public:
  FaultPoint(const Recipe& recipe, Loops loops);
  ~FaultPoint();

  // Makes these faults happen; empty, or the rule that was broken.
  std::string run(const std::vector<Fault>& faults);
  // Whether any fault of the last run() fired.
  bool has_fired() const { return num_fired_ > 0; }
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

  std::string start();
  std::string start_cold();
  std::string run_in_flight();
  std::string run_call();
  std::string wait_for(RunHandle& handle);
  std::string check_end(const Status& status, const NamedTensors* outputs_or_null);
  std::string check_status(const Status& status) const;
  std::string check_next_run();
  Result<int64_t> choose(std::span<const TensorView> inputs);
  void on_tick(uint64_t tick);
  void pass_deadline();
  void watch(std::optional<RunHandle> first);
  std::optional<RunHandle> watched();
  void note(std::string violation);
  std::string take_note();
  bool is_armed(FaultKind kind) const;
  bool may_lose_device() const;
  bool needs_cold_start() const;

  const Loops loops_;
  Library library_;
  Subject subject_;
  FaultPlan plan_;
  Injector injector_{*this};
  std::unique_ptr<Trial> trial_;
  std::vector<Fault> armed_;
  uint64_t num_fired_ = 0;
  uint64_t num_points_ = 0;
  std::atomic<uint64_t> first_tick_{0};  // of the point; whoever moves the device reads it

  std::mutex mutex_;
  std::string note_;                         // under the mutex: the first rule broken inside a step
  std::vector<std::string> injected_paths_;  // under the mutex: of the nodes that were failed
  std::optional<RunHandle> first_;           // under the mutex: of the runs in flight
  bool is_call_ = false;                     // one prepared run is, on this thread
  RunState* in_call_or_null_ = nullptr;
};

}  // namespace eddy::check
