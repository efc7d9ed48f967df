#include "tools/check/proof_campaign.h"

#include "graph/schedule/plan_graph.h"

namespace eddy::check {
namespace {

// Empty, or what the proof let pass.
std::string try_deletions(const Graph& graph, Plan& plan, ProofReport& report) {
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    std::vector<PlanCommand>& commands = plan.regions[r].commands;
    for (size_t c = 0; c < commands.size(); ++c) {
      const PlanCommand deleted = commands[c];
      if (deleted.kind == PlanCommand::Kind::kLaunch) continue;
      commands.erase(commands.begin() + static_cast<ptrdiff_t>(c));
      const bool is_flagged = !prove_plan(graph, plan).is_ok();
      commands.insert(commands.begin() + static_cast<ptrdiff_t>(c), deleted);
      ++report.num_deletions;
      if (is_flagged) continue;
      const bool is_wait = deleted.kind == PlanCommand::Kind::kWait;
      return "the plan proves safe without the " + std::string(is_wait ? "wait for" : "record of") +
             " event " + std::to_string(deleted.event) + " at " + graph.path(deleted.node);
    }
  }
  return {};
}

std::string try_graph(const Graph& graph, AssignPolicy policy, ProofReport& report) {
  PlanOptions options;
  options.is_auto = false;
  options.policy = policy;
  Plan plan = plan_graph(graph, options);
  ++report.num_plans;
  if (Status status = prove_plan(graph, plan); !status.is_ok()) return status.to_string();
  return try_deletions(graph, plan, report);
}

}  // namespace

ProofReport run_proofs(const Library& library, const ProofOptions& options) {
  ProofReport report;
  for (uint64_t i = 0; i < options.num_seeds; ++i) {
    if (options.is_time_up && options.is_time_up()) break;
    const uint64_t seed = options.first_seed + i;
    auto made = generate(seed, library, options.generate);
    const AssignPolicy policy = seed % 2 == 0 ? AssignPolicy::kRank : AssignPolicy::kMatching;
    const std::string what = made.is_ok()
                                 ? try_graph(made->graph, policy, report)
                                 : "the graph does not build: " + made.status().to_string();
    if (what.empty()) continue;
    report.violations.push_back({seed, what});
    if (report.violations.size() >= options.max_violations) break;
  }
  return report;
}

}  // namespace eddy::check
