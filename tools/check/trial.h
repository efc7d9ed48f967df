// Trial: one graph on a virtual device of its own, with every watcher of this folder: digests
// of each step against the oracle, the race checker, the device's own books.
//
//   EDDY_ASSIGN_OR_RETURN(auto trial, Trial::make(subject, options));
//   std::string what = trial->run(0);  // empty: the run equals the oracle's
//
// The device outlives the session, so that what the session leaves behind can be counted.
//
// With the same options every trial takes the same steps, also with loops that the host drives, as
// long as no other work uses its threads: the scheduler's thread is held while runs are submitted.
//
// Errors: of building, the oracle and the session. Threads: one; the scheduler's beside it when
// the host drives loops.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "graph/base/check.h"
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
  StepObserver* observer_or_null = nullptr;  // around the watchers: first before, last after
  std::function<void(uint64_t tick)> on_tick = {};
  // Stands between session and device; for planting bugs. Empty: nothing does.
  std::function<std::shared_ptr<Device>(std::shared_ptr<VirtualDevice>)> wrap = {};
  bool checks_races = true;
  // In 0..1: nodes on devices beside the CPU, on each of them all but so many
  // (virtual_accelerator.h). Steps are then watched for races, not compared: they are those of
  // another graph. Negative: none.
  double accelerator_cpu_share = -1;
  uint64_t num_accelerators = 1;
  std::shared_ptr<SharedThreads> threads = {};  // null: the session's own
  // How long no progress is made before a run counts as hanging; its session is then left alone,
  // because it could never be destroyed. 0: the trial waits for a run without limit.
  std::chrono::milliseconds patience{0};
};

class Trial {
 public:
  // Takes the subject's graph; the subject must outlive the trial.
  static Result<std::unique_ptr<Trial>> make(Subject& subject, const TrialOptions& options);
  ~Trial();

  Session& session() {
    EDDY_CHECK(session_ != nullptr) << "the trial is closed";
    return *session_;
  }
  VirtualDevice& device() { return *device_; }
  const VirtualDevice& device() const { return *device_; }
  const NamedTensors& inputs(uint64_t variant) { return subject_.expected(variant).inputs; }
  // The oracle's result for a variant of the inputs; computed once.
  const OracleResult& oracle(uint64_t variant) { return subject_.expected(variant).result; }

  // One run; empty, or how it differs from what it should be, in one line.
  std::string run(uint64_t variant);
  // Two runs in flight, of inputs 0 and 1. Their steps are watched for races, not compared.
  std::string run_two();
  // The findings of the watchers since the last call; empty: none.
  std::string findings();
  // While it lives, runs that are submitted do not begin: loops that the host drives would, each in
  // its own moment. Null where nothing begins by itself, and where there is no stack for it.
  std::shared_ptr<const void> hold();
  // Ends the session; empty, or what it has left behind on its device.
  std::string close();
  // A run hangs: from now on only findings() may be called. A caller that can passes the trial and
  // all its inputs to leave_alone(), because the run may still wake up.
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
