#include "tools/check/differential_campaign.h"

#include <cerrno>
#include <system_error>

#include "tools/check/session_way.h"
#include "tools/check/shrink.h"

namespace eddy::check {
namespace {

Mismatch make_mismatch(const Library& library, Recipe recipe, const Contestant& contestant,
                       std::string what, const DifferentialOptions& options) {
  Mismatch mismatch{recipe.seed, contestant.name, std::move(what), {}};
  const auto fails = [&](const Recipe& smaller) {
    Subject subject(library, smaller);
    return !contestant.difference(subject).empty();
  };
  // Twice, because what depends on threads may not fail each time.
  const auto fails_in_two = [&](const Recipe& smaller) {
    if (options.is_time_up && options.is_time_up()) return false;
    return fails(smaller) || fails(smaller);
  };
  mismatch.smallest = smallest_failing(library, std::move(recipe),
                                       options.shrinks ? StillFails(fails_in_two) : StillFails());
  return mismatch;
}

// No session of the campaign has a limit of its own: what it lacks, the system has refused.
void end_if_system_refuses(uint64_t seed, const std::string& what) {
  static const std::string lacks =
      std::string(status_code_name(StatusCode::kResourceExhausted)) + ": ";
  if (what.find(lacks) == std::string::npos) return;
  throw std::system_error(EAGAIN, std::generic_category(),
                          "seed " + std::to_string(seed) + ": " + what);
}

}  // namespace

Contestant session_contestant(std::string name, MakeSessionOptions make_options) {
  return {std::move(name), [make_options](Subject& subject) {
            return run_in_turn(subject, make_options(subject.recipe()));
          }};
}

std::vector<Contestant> cpu_contestants() {
  const auto threads = std::make_shared<const CheckThreads>();
  std::vector<Contestant> contestants;
  for (size_t u = 0; u < kNumSessionUses; ++u) {
    const auto use = static_cast<SessionUse>(u);
    contestants.push_back(
        {std::string("cpu ") + session_use_name(use), [threads, use](Subject& subject) {
           return difference(subject, SessionWay::draw(subject.recipe().seed, use), *threads);
         }});
  }
  return contestants;
}

bool DifferentialCampaign::meet(Subject& subject) {
  if (contestants_.empty() || report_.mismatches.size() >= options_.max_mismatches) return false;
  ++report_.num_graphs;
  const Graph* const graph = subject.graph_or_null();
  report_.num_nodes += graph == nullptr ? 0 : graph->num_nodes();
  const uint64_t per_seed = options_.contestants_per_seed;
  for (uint64_t c = 0; c < per_seed; ++c) {
    const uint64_t turn = subject.recipe().seed * per_seed + c;
    const Contestant& contestant = contestants_[turn % contestants_.size()];
    ++report_.num_comparisons;
    const Subject::Met before = subject.met;
    std::string what = contestant.difference(subject);
    report_.met.num_fed_back += subject.met.num_fed_back - before.num_fed_back;
    report_.met.num_ended_early += subject.met.num_ended_early - before.num_ended_early;
    if (what.empty()) continue;
    end_if_system_refuses(subject.recipe().seed, what);
    report_.mismatches.push_back(
        make_mismatch(subject.library(), subject.recipe(), contestant, std::move(what), options_));
    if (report_.mismatches.size() >= options_.max_mismatches) return false;
  }
  return true;
}

DifferentialReport run_differential(const Library& library,
                                    const std::vector<Contestant>& contestants,
                                    const DifferentialOptions& options) {
  DifferentialCampaign campaign(contestants, options);
  for (uint64_t i = 0; i < options.num_seeds; ++i) {
    if (options.is_time_up && options.is_time_up()) break;
    Subject subject(library, make_recipe(options.first_seed + i, options.generate));
    if (!campaign.meet(subject)) break;
  }
  return campaign.report();
}

}  // namespace eddy::check
