// CommandCode: the recording half of a command buffer: flat code with jumps.
//
// Recording resolves while, case-of and forks into jumps, so whoever runs the code needs one
// switch in a loop: nested loops cost no stack, and a strand can stop and go on at any command.
// Command buffers that interpret their commands on a host thread derive from it.
//
// Errors: misuse of the recording calls is a programmer error (CHECK).
#pragma once

#include <vector>

#include "runtime/device/command_buffer.h"

namespace eddy {

class CommandCode : public CommandBuffer {
 public:
  void launch(WorkFunction run, void* context, bool is_cheap = true) override;
  void begin_while() override;
  void test_while(DecideFunction decide, void* context) override;
  void end_while() override;
  void begin_case(DecideFunction decide, void* context, uint32_t num_branches) override;
  void begin_branch() override;
  void end_case() override;
  void begin_fork(uint32_t stream) override;
  void end_fork() override;
  uint32_t add_event() override;
  void reset(uint32_t event) override;
  void record(uint32_t event) override;
  void wait(uint32_t event) override;
  void finish() override;

  enum class Op : uint16_t {
    kLaunch,  // run(context)
    kTest,    // decide(context) == 0: jump to target
    kRepeat,  // jump back to target
    kJump,    // jump to target
    kSwitch,  // jump to targets()[target + decide(context)]
    kFork,    // start strand `target`
    kReset,   // event `target`
    kRecord,
    kWait,
    kEnd,
  };
  struct Command {
    Op op = Op::kEnd;
    bool is_cheap = true;
    uint32_t target = 0;
    union {
      WorkFunction run;
      DecideFunction decide = nullptr;
    };
    void* context = nullptr;
  };
  static_assert(sizeof(Command) == 24, "commands are walked in order; keep them dense");

  // All that has been recorded, once recording has ended.
  struct View {
    const std::vector<Command>& code;
    const std::vector<uint32_t>& targets;
    const std::vector<uint32_t>& strand_entries;
    const std::vector<uint32_t>& strand_streams;
    uint32_t num_events;
  };
  View view() const { return {code_, targets_, strand_entries_, strand_streams_, num_events_}; }

 protected:
  CommandCode() = default;

  bool is_finished() const { return is_finished_; }
  const std::vector<Command>& code() const { return code_; }
  const std::vector<uint32_t>& targets() const { return targets_; }
  // First command of each strand; [0] is the main one.
  const std::vector<uint32_t>& strand_entries() const { return strand_entries_; }
  // By strand: its stream.
  const std::vector<uint32_t>& strand_streams() const { return strand_streams_; }
  uint32_t num_streams() const { return num_streams_; }
  uint32_t num_events() const { return num_events_; }

 private:
  // What recording leaves open until the matching end.
  struct OpenScope {
    enum class Kind { kWhile, kCase, kFork } kind;
    uint32_t start = 0;                 // while: first command; fork: the jump around it
    std::vector<uint32_t> tests;        // while: its kTests
    uint32_t table = 0;                 // case: first entry in targets_
    uint32_t num_branches = 0;          // case: as announced
    uint32_t next_branch = 0;           // case: how many have begun
    std::vector<uint32_t> branch_ends;  // case: jumps to the end
  };

  uint32_t here() const { return static_cast<uint32_t>(code_.size()); }
  void emit(Op op, uint32_t target = 0, void* context = nullptr);
  OpenScope& innermost(OpenScope::Kind kind, const char* caller);

  std::vector<Command> code_;
  std::vector<uint32_t> targets_;
  std::vector<uint32_t> strand_entries_ = {0};
  std::vector<uint32_t> strand_streams_ = {0};
  uint32_t num_streams_ = 1;
  uint32_t num_events_ = 0;
  std::vector<OpenScope> open_;
  bool is_finished_ = false;
};

}  // namespace eddy
