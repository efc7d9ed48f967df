#include "runtime/execute/host/inline_times.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

void InlineTimes::run_elsewhere(size_t command) {
  EDDY_DCHECK(command < commands_.size()) << "command " << command << " of " << commands_.size();
  Command& self = commands_[command];
  if (self.slow_uses > 0 && --self.slow_uses == 0) self = {};
}

void InlineTimes::begin_batch() {
  began_ns_ = last_ns_ = now_();
  num_untimed_ = 0;
}

void InlineTimes::before(size_t command) {
  if (commands_[command].is_known() || num_untimed_ == 0) return;
  last_ns_ = now_();
  num_untimed_ = 0;
}

void InlineTimes::note(Command& command, int64_t elapsed_ns) {
  EDDY_DCHECK(!command.is_known()) << "a known command is timed by itself";
  command.fastest_ns = std::min(command.fastest_ns, elapsed_ns);
  ++command.num_timed;
  if (command.is_known() && command.fastest_ns > kLongestCommandNs) command.slow_uses = kSlowUses;
}

// Of known ones, since the clock was read last.
void InlineTimes::note_untimed(int64_t elapsed_ns) {
  EDDY_DCHECK(num_untimed_ > 0 && num_untimed_ <= num_at_once_)
      << num_untimed_ << " at once, of at most " << num_at_once_;
  if (elapsed_ns > static_cast<int64_t>(num_untimed_) * kLongestCommandNs) {
    for (Command& each : commands_) {
      if (each.is_known() && each.slow_uses == 0) each = {};
    }
    num_at_once_ = 1;
  } else if (elapsed_ns > kShortNs) {
    num_at_once_ = std::max(num_at_once_ / 2, 1u);
  } else if (num_untimed_ == num_at_once_) {
    num_at_once_ = std::min(2 * num_at_once_, kMostAtOnce);
  }
}

bool InlineTimes::after(size_t command) {
  EDDY_DCHECK(command < commands_.size()) << "command " << command << " of " << commands_.size();
  Command& self = commands_[command];
  const bool is_known = self.is_known();
  if (is_known && ++num_untimed_ < num_at_once_) return true;
  const int64_t now_ns = now_();
  is_known ? note_untimed(now_ns - last_ns_) : note(self, now_ns - last_ns_);
  last_ns_ = now_ns;
  num_untimed_ = 0;
  return now_ns - began_ns_ < kLongestNs;
}

void InlineTimes::end_batch() {
  if (num_untimed_ > 0) note_untimed(now_() - last_ns_);
  num_untimed_ = 0;
}

}  // namespace eddy
