#include "runtime/execute/loop_choice.h"

#include <algorithm>
#include <cstdio>

namespace eddy {

LoopChoice::Advice LoopChoice::next() const {
  const int settled = settled_.load(std::memory_order_acquire);
  if (settled != kOpen) return {static_cast<Way>(settled), false};
  std::lock_guard lock(mutex_);
  return {tried(Way::kDevice).times < kTries ? Way::kDevice : Way::kHost, true};
}

void LoopChoice::report(Way way, int64_t elapsed_ns, int64_t iterations) {
  std::lock_guard lock(mutex_);
  if (settled_.load(std::memory_order_relaxed) != kOpen) return;
  Tried& tried = tried_[static_cast<size_t>(way)];
  const double each_ns =
      static_cast<double>(elapsed_ns) / static_cast<double>(std::max<int64_t>(iterations, 1));
  if (++tried.times == 2 || (tried.times > 2 && each_ns < tried.best_ns)) tried.best_ns = each_ns;
  if (tried_[0].times < kTries || tried_[1].times < kTries) return;
  const Way best = tried_[static_cast<size_t>(Way::kHost)].best_ns <
                           tried_[static_cast<size_t>(Way::kDevice)].best_ns
                       ? Way::kHost
                       : Way::kDevice;
  settled_.store(static_cast<int>(best), std::memory_order_release);
}

std::string LoopChoice::text() const {
  if (!is_settled()) return "";
  char text[96];
  std::snprintf(text, sizeof(text),
                "measured: %.1f µs an iteration by the device, %.1f by the host",
                tried(Way::kDevice).best_ns / 1e3, tried(Way::kHost).best_ns / 1e3);
  return text;
}

}  // namespace eddy
