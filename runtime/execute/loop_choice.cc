#include "runtime/execute/loop_choice.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

const char* name_of(LoopChoice::Way way) {
  switch (way) {
    case LoopChoice::Way::kKernel:
      return "as one kernel";
    case LoopChoice::Way::kRecording:
      return "by a recording";
    case LoopChoice::Way::kUnrolled:
      return "unrolled";
    case LoopChoice::Way::kHost:
      break;
  }
  return "by the host";
}

}  // namespace

LoopChoice::LoopChoice(const Has& has) {
  tried(Way::kKernel).is_out = !has.kernel;
  tried(Way::kUnrolled).is_out = !has.unrolled;
}

LoopChoice::Advice LoopChoice::next() {
  const int settled = settled_.load(std::memory_order_acquire);
  const bool holds = settled != kOpen && uses_left_.fetch_sub(1, std::memory_order_relaxed) > 0;
  if (holds) return {static_cast<Way>(settled), false};
  std::lock_guard lock(mutex_);
  if (uses_left_.load(std::memory_order_relaxed) <= 0) open_again();
  for (const Way way : kWays) {
    if (!tried(way).is_out && tried(way).times < kTries) return {way, true};
  }
  // Another thread has settled it meanwhile.
  EDDY_DCHECK(settled_.load(std::memory_order_relaxed) != kOpen) << "nothing is left to try";
  return {static_cast<Way>(settled_.load(std::memory_order_relaxed)), false};
}

// Under the mutex.
void LoopChoice::open_again() {
  if (settled_.load(std::memory_order_relaxed) == kOpen) return;
  for (Tried& tried : tried_) tried.times = 0;
  settled_.store(kOpen, std::memory_order_relaxed);
}

void LoopChoice::report(Way way, int64_t elapsed_ns, int64_t iterations) {
  std::lock_guard lock(mutex_);
  if (settled_.load(std::memory_order_relaxed) != kOpen) return;
  Tried& tried = this->tried(way);
  const double each_ns =
      static_cast<double>(elapsed_ns) / static_cast<double>(std::max<int64_t>(iterations, 1));
  if (++tried.times == 2 || (tried.times > 2 && each_ns < tried.best_ns)) tried.best_ns = each_ns;
  settle_if_tried();
}

void LoopChoice::rule_out(Way way, std::string why) {
  EDDY_CHECK(way != Way::kHost) << "the host can drive every loop";
  std::lock_guard lock(mutex_);
  if (settled_.load(std::memory_order_relaxed) != kOpen) return;
  tried(way).is_out = true;
  tried(way).why_out = std::move(why);
  settle_if_tried();
}

void LoopChoice::settle_if_tried() {
  std::optional<Way> best;
  for (const Way way : kWays) {
    if (tried(way).is_out) continue;
    if (tried(way).times < kTries) return;
    const double margin = best && way == Way::kHost ? kHostsMargin : 1;
    if (!best || margin * tried(way).best_ns < tried(*best).best_ns) best = way;
  }
  EDDY_DCHECK(best.has_value()) << "not even the host can drive the loop";
  const int settled = static_cast<int>(*best);
  const auto is_in = [](const Tried& tried) { return !tried.is_out; };
  hold_ = settled == last_ ? std::min(2 * hold_, kLongestHold) : kFirstHold;
  last_ = settled;
  text_ = describe();
  const bool has_choice = std::ranges::count_if(tried_, is_in) > 1;
  uses_left_.store(has_choice ? hold_ : INT64_MAX, std::memory_order_relaxed);
  settled_.store(settled, std::memory_order_release);
}

// Under the mutex.
std::string LoopChoice::describe() const {
  std::string text = "measured, µs an iteration:";
  for (const Way way : kWays) {
    if (tried(way).is_out) continue;
    char one[48];
    std::snprintf(one, sizeof(one), " %.1f %s", tried(way).best_ns / 1e3, name_of(way));
    text += (text.ends_with(':') ? "" : ",") + std::string(one);
  }
  for (const Way way : kWays) {
    const std::string& why_out = tried(way).why_out;
    if (!why_out.empty()) text += "; not " + std::string(name_of(way)) + ": " + why_out;
  }
  return text;
}

}  // namespace eddy
