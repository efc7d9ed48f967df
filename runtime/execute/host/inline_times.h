// InlineTimes: how long commands that run at once on the scheduler's thread take, so that it comes
// back to its loop in time although estimates may be wrong.
//
//   times.begin_batch();
//   while (<a command that is_short() is next>) {
//     times.before(command);  <it runs>  if (!times.after(command)) break;
//   }
//   times.end_batch();
//
// A batch is over once it has taken kLongestNs, by the clock. The first kTimings executions of each
// command are timed by themselves: one that never took less than kLongestCommandNs is not cheap,
// whatever was estimated, and is not run here for its next kSlowUses executions; then it is
// timed anew. (The fastest of them counts, because the system may take the thread away in any.)
// Known ones are timed several at once, as many as take a small part of a batch; where that many
// have taken much longer, all are timed anew.
//
// So one batch outlasts its time by the few executions in which a command is found out.
// Threads: one. Cost: a read of the clock for each command at first, then for up to 64.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

namespace eddy {

class InlineTimes {
 public:
  using Now = int64_t (*)();  // nanoseconds
  static int64_t steady_now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }

  // For devices on which the order of steps must not depend on time: no batch takes any.
  static int64_t no_time() { return 0; }

  static constexpr int64_t kLongestNs = 100'000;
  static constexpr int64_t kLongestCommandNs = 20'000;
  static constexpr uint8_t kTimings = 3;
  static constexpr uint32_t kSlowUses = 1000;

  explicit InlineTimes(Now now = steady_now) : now_(now) {}
  void resize(size_t num_commands) { commands_.resize(num_commands); }

  int64_t now() const { return now_(); }
  // As far as known.
  bool is_short(size_t command) const { return commands_[command].slow_uses == 0; }
  // It is done by others this time.
  void run_elsewhere(size_t command);
  void begin_batch();
  void end_batch();
  void before(size_t command);
  // False: the batch is over.
  bool after(size_t command);

 private:
  static constexpr uint32_t kMostAtOnce = 64;
  static constexpr int64_t kShortNs = kLongestNs / 10;

  struct Command {
    int64_t fastest_ns = std::numeric_limits<int64_t>::max();
    uint32_t slow_uses = 0;  // still to come
    uint8_t num_timed = 0;
    bool is_known() const { return num_timed == kTimings; }
  };
  void note(Command& command, int64_t elapsed_ns);
  void note_untimed(int64_t elapsed_ns);

  const Now now_;
  std::vector<Command> commands_;
  int64_t began_ns_ = 0;      // the batch
  int64_t last_ns_ = 0;       // when the clock was read last
  uint32_t num_untimed_ = 0;  // since
  uint32_t num_at_once_ = 4;  // known ones between two looks at the clock
};

}  // namespace eddy
