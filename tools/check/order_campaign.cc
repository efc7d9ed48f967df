#include "tools/check/order_campaign.h"

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "runtime/api/shared_threads.h"
#include "tools/check/trial.h"

namespace eddy::check {
namespace {

constexpr uint64_t kMaxOrders = 2000;  // of one graph, explored

// The chooser of the explorer's next run.
class SwitchedChooser : public Chooser {
 public:
  size_t choose(std::span<const LaneNumber> ready) override {
    EDDY_CHECK(now != nullptr) << "a lane is chosen before the first run";
    return now->choose(ready);
  }
  ReplayChooser* now = nullptr;
};

struct Way {
  const char* name;
  SchedulePolicy policy;
  Assignment assignment;
  Loops loops;
  bool has_accelerator = false;
};

void count(OrderCounts& counts, const Trial& trial, uint64_t num_orders) {
  counts.num_orders += num_orders;
  counts.num_steps += trial.device().now();
  counts.num_accesses += trial.num_accesses();
  counts.digest = counts.digest * 31 + trial.device().digest();
}

std::string try_orders(Subject& subject, const Way& way,
                       const std::shared_ptr<SharedThreads>& threads, OrderCounts& counts) {
  TrialOptions options;
  options.order = {.policy = way.policy, .seed = subject.recipe().seed * 31 + 7};
  options.assignment = way.assignment;
  options.loops = way.loops;
  options.threads = threads;
  // Every third seed under a cap, every other with two runs in flight.
  Random random(subject.recipe().seed + 0x0c4d);
  constexpr double kCpuShares[] = {0, 0.3, 0.7};
  if (way.has_accelerator) options.accelerator_cpu_share = kCpuShares[random.below(3)];
  if (random.below(3) == 0) options.max_streams = static_cast<uint32_t>(1 + random.below(3));
  const bool has_two = random.below(2) == 0;
  auto trial = Trial::make(subject, options);
  if (!trial.is_ok()) return "no session: " + trial.status().to_string();
  std::string text = has_two ? (*trial)->run_two() : (*trial)->run(0);
  if (text.empty() && !has_two) text = (*trial)->run(1);
  if (text.empty()) text = (*trial)->run(0);
  count(counts, **trial, 3);
  return text.empty() ? (*trial)->close() : text;
}

std::string try_all_orders(Subject& subject, OrderCounts& counts) {
  SwitchedChooser chooser;
  TrialOptions options;
  options.chooser_or_null = &chooser;
  auto trial = Trial::make(subject, options);
  if (!trial.is_ok()) return "no session: " + trial.status().to_string();
  Explorer explorer;
  uint64_t num_orders = 0;
  std::string text;
  const std::vector<uint32_t>* given = nullptr;
  while (text.empty() && num_orders < kMaxOrders && (given = explorer.next_or_null()) != nullptr) {
    ReplayChooser replay(*given);
    chooser.now = &replay;
    text = (*trial)->run(0);
    explorer.made(replay.made());
    ++num_orders;
  }
  counts.num_explored += text.empty() && explorer.next_or_null() == nullptr ? 1 : 0;
  count(counts, **trial, num_orders);
  return text.empty() ? (*trial)->close() : text;
}

}  // namespace

GenerateOptions exhaustive_graphs() {
  GenerateOptions options;
  options.min_steps = 2;
  options.max_steps = 6;
  options.max_depth = 2;
  options.max_repeats = 2;
  return options;
}

Result<std::vector<Contestant>> order_contestants(const std::string& policy_or_empty,
                                                  OrderCounts& counts) {
  static constexpr Way kWays[] = {
      {"rank/device", SchedulePolicy::kUniform, Assignment::kRank, Loops::kDevice},
      {"matching/device", SchedulePolicy::kUniform, Assignment::kMatching, Loops::kDevice},
      {"rank/host", SchedulePolicy::kUniform, Assignment::kRank, Loops::kHost},
      {"rank/two-devices", SchedulePolicy::kUniform, Assignment::kRank, Loops::kHost, true},
      {"matching/two-devices", SchedulePolicy::kUniform, Assignment::kMatching, Loops::kHost,
       true}};
  std::vector<Contestant> contestants;
  if (policy_or_empty == "exhaustive") {
    contestants.push_back({"virtual/exhaustive", [&counts](Subject& subject) {
                             return try_all_orders(subject, counts);
                           }});
    return contestants;
  }
  const auto threads = std::make_shared<SharedThreads>(1);  // one scheduler for all sessions
  const auto only = find_schedule_policy(policy_or_empty);
  if (!only && !policy_or_empty.empty()) {
    return invalid_argument("there is no policy '" + policy_or_empty +
                            "'; there are uniform, pct, starve, late, early and exhaustive");
  }
  for (Way way : kWays) {
    for (SchedulePolicy policy :
         {SchedulePolicy::kUniform, SchedulePolicy::kPct, SchedulePolicy::kStarve,
          SchedulePolicy::kLate, SchedulePolicy::kEarly}) {
      if (only && policy != *only) continue;
      // The host's own order is the scheduler's: one policy suffices there when all policies are
      // selected.
      if (!only && way.loops == Loops::kHost && policy != SchedulePolicy::kUniform) continue;
      way.policy = policy;
      contestants.push_back(
          {"virtual/" + std::string(schedule_policy_name(policy)) + "/" + way.name,
           [&counts, threads, way](Subject& subject) {
             return try_orders(subject, way, threads, counts);
           }});
    }
  }
  return contestants;
}

}  // namespace eddy::check
