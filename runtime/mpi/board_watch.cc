#include "runtime/mpi/board_watch.h"

#include <utility>

namespace eddy {
namespace {

using Stage = JobBoard::Stage;

// Ranks that run find out by themselves within `stall`, and have this much more to end.
constexpr std::chrono::seconds kOwnWatch{5};

}  // namespace

std::string BoardWatch::look(Clock::time_point now) {
  const bool was_away = now - std::exchange(last_, now) > std::chrono::seconds(1);
  num_running_ = 0;
  for (uint32_t r = 0; r < beats_.size(); ++r) {
    const JobBoard::Rank& rank = board_.rank(r);
    if (rank.stage.load(std::memory_order_acquire) >= Stage::kRunning) ++num_running_;
    const uint32_t beats = rank.beats.load(std::memory_order_relaxed);
    if (was_away || beats != std::exchange(beats_[r], beats)) seen_[r] = now;
  }
  const bool is_starting = num_running_ < beats_.size();
  const auto limit = stall_ + (is_starting || !is_own_ ? Clock::duration(0) : kOwnWatch);
  for (uint32_t r = 0; r < beats_.size(); ++r) {
    const Stage stage = board_.rank(r).stage.load(std::memory_order_acquire);
    if (stage == Stage::kGone || now - seen_[r] < limit) continue;
    if (stage == Stage::kAbsent && !counts_absent_) continue;
    const auto s = std::chrono::duration<double>(now - seen_[r]).count();
    return "rank " + std::to_string(r) + " has " +
           (stage == Stage::kAbsent ? "not begun for " : "given no sign of life for ") +
           std::to_string(static_cast<int>(s)) + " s" + (is_starting ? ", while ranks start" : "");
  }
  return "";
}

}  // namespace eddy
