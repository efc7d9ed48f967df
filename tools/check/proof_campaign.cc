#include "tools/check/proof_campaign.h"

#include "graph/proof/program_proof.h"
#include "graph/proof/reaching_writes.h"
#include "graph/schedule/plan_graph.h"

namespace eddy::check {
namespace {

constexpr uint64_t kDeletionsASample = 16;

// Empty, or what the proof let pass.
std::string try_deletions(const Graph& graph, Plan& plan, ProofReport& report) {
  Program nested = plan.program;
  const ReachingWrites contents = find_reaching_writes(nested);
  ProgramProver prover(nested, contents, 1);
  if (!prover.prove().is_safe()) return prove_plan(graph, plan).to_string();
  for (size_t r = 0; r < nested.blocks.size(); ++r) {
    std::vector<Program::Step>& commands = nested.blocks[r].steps;
    for (size_t c = 0; c < commands.size(); ++c) {
      const Program::Step deleted = commands[c];
      const bool is_wait = deleted.op != Program::Op::kRecord;
      if (!is_sync(deleted.op)) continue;
      commands.erase(commands.begin() + static_cast<ptrdiff_t>(c));
      const bool is_flagged = !prover.prove_again(static_cast<uint32_t>(r)).is_safe();
      // At some deletions the whole proof checks the same claim.
      const bool is_sample = report.num_deletions % kDeletionsASample == 0;
      const bool differs = is_sample && prove_program(nested, contents, 1).is_safe() == is_flagged;
      commands.insert(commands.begin() + static_cast<ptrdiff_t>(c), deleted);
      ++report.num_deletions;
      if (differs) return "the proof of one region and of all say different things";
      if (is_flagged) continue;
      return "the plan proves safe without the " + std::string(is_wait ? "wait for" : "record of") +
             " event " + std::to_string(deleted.operand) + " of region " + std::to_string(r);
    }
  }
  return {};
}

std::string try_graph(Subject& subject, const ProofOptions& proof, ProofReport& report) {
  const Graph* const graph = subject.graph_or_null();
  if (graph == nullptr) return "the graph does not build: " + subject.status().to_string();
  PlanOptions options;
  options.is_auto = false;
  options.policy = subject.recipe().seed % 2 == 0 ? AssignPolicy::kRank : AssignPolicy::kMatching;
  Plan plan = plan_graph(*graph, options);
  if (proof.spoil) proof.spoil(*graph, plan);
  ++report.num_plans;
  return try_deletions(*graph, plan, report);
}

}  // namespace

bool ProofCampaign::meet(Subject& subject) {
  if (report_.violations.size() >= options_.max_violations) return false;
  std::string what = try_graph(subject, options_, report_);
  if (what.empty()) return true;
  const auto fails = [&](const Recipe& smaller) {
    if (options_.is_time_up && options_.is_time_up()) return false;
    Subject small(subject.library(), smaller);
    ProofReport ignored;
    return !try_graph(small, options_, ignored).empty();
  };
  report_.violations.push_back({subject.recipe().seed, std::move(what),
                                smallest_failing(subject.library(), subject.recipe(), fails)});
  return report_.violations.size() < options_.max_violations;
}

ProofReport run_proofs(const Library& library, const ProofOptions& options) {
  ProofCampaign campaign(options);
  for (uint64_t i = 0; i < options.num_seeds; ++i) {
    if (options.is_time_up && options.is_time_up()) break;
    Subject subject(library, make_recipe(options.first_seed + i, options.generate));
    if (!campaign.meet(subject)) break;
  }
  return campaign.report();
}

}  // namespace eddy::check
