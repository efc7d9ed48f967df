// Trial: one graph on a virtual device of its own, with every watcher of this folder: digests
// of each step against the oracle, the race checker, the device's own books.
//
//   EDDY_ASSIGN_OR_RETURN(auto trial, Trial::make(subject, options));
//   std::string what = trial->run(0);  // empty: the run was as the oracle says
//
// The device lives on when the session has gone, so that what is left behind can be counted.
//
// With the same options every trial takes the same steps, with loops that the host drives, too, as
// long as nothing else uses its threads: the scheduler's thread is held while runs are submitted.
//
// Errors: of building, the oracle and the session. Threads: one; the scheduler's beside it when
// the host drives loops.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/api/session.h"
#include "runtime/virtual/virtual_device.h"
#include "tools/check/race_checker.h"
#include "tools/check/step_digests.h"
#include "tools/check/subject.h"

namespace eddy::check {

struct TrialOptions {
  ChooserOptions order = {};
  Chooser* chooser_or_null = nullptr;  // instead of `order`
  Assignment assignment = Assignment::kRank;
  Loops loops = Loops::kDevice;
  uint32_t max_streams = 0;  // 0: no cap
  FaultPlan* faults_or_null = nullptr;
  StepObserver* observer_or_null = nullptr;  // first in before(), last in after()
  std::function<void(uint64_t tick)> on_tick = {};
  // Stands between session and device; for planting bugs. Empty: nothing does.
  std::function<std::shared_ptr<Device>(std::shared_ptr<VirtualDevice>)> wrap = {};
  bool checks_races = true;
  // In 0..1: nodes on an accelerator beside the CPU, but for so many (virtual_accelerator.h). Steps
  // are then watched for races, not compared: they are those of another graph. Negative: none.
  double accelerator_cpu_share = -1;
  std::shared_ptr<SharedThreads> threads = {};  // null: the session's own
  // How long nothing moves before a run is said to hang; its session is then left alone, for it
  // could never be destroyed. 0: a run is waited for, however long.
  std::chrono::milliseconds patience{0};
};

class Trial {
 public:
  // Takes the subject's graph; the subject must outlive the trial.
  static Result<std::unique_ptr<Trial>> make(Subject& subject, const TrialOptions& options);
  ~Trial();

  Session& session() { return *session_; }
  VirtualDevice& device() { return *device_; }
  const VirtualDevice& device() const { return *device_; }
  const NamedTensors& inputs(uint64_t variant) { return subject_.expected(variant).inputs; }
  // The oracle's result for a variant of the inputs; computed once.
  const OracleResult& oracle(uint64_t variant) { return subject_.expected(variant).result; }

  // One run; empty, or how it differs from what it should be, in one line.
  std::string run(uint64_t variant);
  // Two runs in flight, of inputs 0 and 1. Their steps are watched for races, not compared.
  std::string run_two();
  // What the watchers have found since they were asked last; empty: nothing.
  std::string findings();
  // While it lives, runs that are submitted do not begin: loops that the host drives would, each in
  // its own moment. Null where nothing begins by itself, and where there is no stack for it.
  std::shared_ptr<const void> hold();
  // Ends the session; empty, or what it has left behind on its device.
  std::string close();
  // A run hangs: only findings() may be called, and the trial is best leaked, with all that it was
  // given, because the run may wake up yet.
  void note_hang() { hangs_ = true; }
  bool hangs() const { return hangs_; }

  uint64_t num_accesses() const { return races_.num_accesses(); }

 private:
  // Calls all watchers.
  class Chain : public StepObserver {
   public:
    explicit Chain(Trial& trial) : trial_(trial) {}
    Status before(RunState& state, const ::eddy::Step& step) override;
    void after(RunState& state, const ::eddy::Step& step, int32_t decision) override;

   private:
    Trial& trial_;
  };

  Trial(Subject& subject, const TrialOptions& options);
  bool has_accelerator() const { return options_.accelerator_cpu_share >= 0; }
  bool is_host_driven() const { return options_.loops == Loops::kHost || has_accelerator(); }
  Status start();
  Result<NamedTensors> run_watched(uint64_t variant);
  SessionOptions session_options();

  Subject& subject_;
  const TrialOptions options_;
  const std::shared_ptr<SharedThreads> threads_;  // null: the session's own
  Chain chain_{*this};
  RaceChecker races_;
  StepDigests digests_;
  std::shared_ptr<VirtualDevice> device_;
  std::unique_ptr<Session> session_;
  size_t num_violations_seen_ = 0;
  size_t num_races_seen_ = 0;
  bool hangs_ = false;
};

}  // namespace eddy::check
