// CpuCommandBuffer: command buffers as flat code, run by the workers themselves.
//
// Recording resolves while, case-of and forks into jumps, so running is one switch in a loop:
// nested loops cost no stack, and a strand can stop and go on at any command (to wait, to give
// way, to end). A loop in steady state takes no lock and allocates nothing.
//
// Giving way: a strand counts the rounds of all its loops; after kSliceRounds of them, or when
// kSliceCycles of the time-stamp counter have passed since it was picked up, it goes to the end
// of the worker pool's queue if anybody waits there.
//
// Cost: a command about 1–2 ns plus its function.
#pragma once

#include <deque>
#include <vector>

#include "runtime/cpu/strand.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/command_buffer.h"

namespace eddy {

class CpuCommandBuffer : public CommandBuffer {
 public:
  explicit CpuCommandBuffer(WorkerPool& pool);

  void launch(WorkFunction run, void* context) override;
  void begin_while() override;
  void test_while(DecideFunction decide, void* context) override;
  void end_while() override;
  void begin_case(DecideFunction decide, void* context, uint32_t num_branches) override;
  void begin_branch() override;
  void end_case() override;
  void begin_fork() override;
  void end_fork() override;
  uint32_t add_event() override;
  void reset(uint32_t event) override;
  void record(uint32_t event) override;
  void wait(uint32_t event) override;
  void finish() override;

  void start(RunControl& control) override;
  void run_here(RunControl& control) override;

 private:
  enum class Op : uint32_t {
    kLaunch,  // run(context)
    kTest,    // decide(context) == 0: jump to target
    kRepeat,  // jump back to target; the place where stopping and giving way are looked at
    kJump,    // jump to target
    kSwitch,  // jump to targets_[target + decide(context)]
    kFork,    // start strands_[target]
    kReset,   // events_[target]
    kRecord,
    kWait,
    kEnd,
  };
  struct Command {
    Op op = Op::kEnd;
    uint32_t target = 0;
    union {
      WorkFunction run;
      DecideFunction decide = nullptr;
    };
    void* context = nullptr;
  };
  static_assert(sizeof(Command) == 24, "two and two thirds commands to a cache line");

  // What recording leaves open until the matching end.
  struct OpenScope {
    enum class Kind { kWhile, kCase, kFork } kind;
    uint32_t start = 0;                // while: first command; fork: the jump around it
    uint32_t test = 0;                 // while: its kTest
    uint32_t table = 0;                // case: first entry in targets_
    uint32_t num_branches = 0;         // case: as announced
    uint32_t next_branch = 0;          // case: how many have begun
    std::vector<uint32_t> branch_ends; // case: jumps to the end
  };

  uint32_t here() const { return static_cast<uint32_t>(code_.size()); }
  void emit(Op op, uint32_t target = 0, void* context = nullptr);
  OpenScope& innermost(OpenScope::Kind kind, const char* caller);
  void prepare(RunControl& control);
  void execute(Strand& strand, bool is_pool_thread);
  void enqueue(Strand& strand);
  void enqueue_all(Strand* list);
  void end_strand();
  void release_waits();

  WorkerPool& pool_;
  std::vector<Command> code_;
  std::vector<uint32_t> targets_;
  std::deque<Strand> strands_;   // [0] is the main one; addresses are stable
  std::deque<CpuEvent> events_;  // likewise
  std::vector<OpenScope> open_;
  bool is_finished_ = false;

  RunControl* control_ = nullptr;         // of the launch in progress
  std::atomic<uint32_t> num_live_{0};     // strands not ended; the last one acquires all others
};

}  // namespace eddy
