#include "runtime/coroutine/idle_pace.h"

#include <algorithm>

namespace eddy {
namespace {

constexpr IdlePace::Duration kShortestNap{2'000};
constexpr IdlePace::Duration kLongestNapOfLongWait{1'000'000};

}  // namespace

void IdlePace::begin(Time now) {
  is_idle_ = true;
  has_lost_turn_ = false;
  since_ = last_yield_ = now;
  next_nap_ = kShortestNap;
}

// What is due keeps the thread spinning.
bool IdlePace::is_worth_spinning(const Seen& seen) const {
  return !has_lost_turn_ && seen.now < seen.due && seen.now - since_ < kLongestSpin;
}

IdlePace::Step IdlePace::next(const Seen& seen) {
  if (!is_idle_) begin(seen.now);
  const Duration idle = seen.now - since_;
  // Pollers alone, with no task that waits for what they find, are in no hurry.
  const bool is_urgent = seen.is_polling && seen.has_tasks;
  if (idle < (is_urgent ? options_.poll_spin : options_.spin)) return {Kind::kSpin};
  if (is_urgent && is_worth_spinning(seen)) {
    if (seen.now - last_yield_ < kYieldEvery) return {Kind::kSpin};
    last_yield_ = seen.now;
    return {Kind::kYield};
  }
  if (!seen.is_polling) return {Kind::kSleep};
  const Step nap{Kind::kNap, seen.now + next_nap_};
  const auto longest =
      std::max({options_.longest_nap, kShortestNap, std::min(idle / 64, kLongestNapOfLongWait)});
  next_nap_ = std::min(2 * next_nap_, longest);
  return nap;
}

}  // namespace eddy
