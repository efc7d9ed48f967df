#include "tools/command/check_campaigns.h"

#include <fmt/format.h>

#include "tools/check/fault_campaign.h"
#include "tools/check/gradient_campaign.h"
#include "tools/check/hash_ops.h"
#include "tools/check/order_campaign.h"
#include "tools/check/proof_campaign.h"
#include "tools/check/rank_campaign.h"
#include "tools/command/crash_report.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

std::string again(uint64_t seed, const std::string& options) {
  return fmt::format("eddy check --seeds 1 --first-seed {}{}", seed, options);
}

// Adds `remark` after the difference.
void note(std::vector<CheckViolation>& violations, const check::DifferentialReport& report,
          const char* campaign, const std::string& again_options, const char* remark = "") {
  for (const check::Mismatch& mismatch : report.mismatches) {
    violations.push_back({campaign, mismatch.contestant + ": " + mismatch.what + remark,
                          mismatch.seed, again(mismatch.seed, again_options),
                          mismatch.smallest.num_nodes, mismatch.smallest.text});
  }
}

// Each graph is built once and meets all campaigns, so that a run that ends early has tried fewer
// graphs, none of them less.
class GraphCampaigns : public CheckCampaigns {
 public:
  GraphCampaigns(const CheckArguments& arguments, const std::function<bool()>& is_time_up)
      : arguments_(arguments), is_time_up_(is_time_up) {}

  Status start() {
    EDDY_RETURN_IF_ERROR(check::add_hash_ops(library_));
    generate_.may_have_floats = true;
    if (arguments_.policy == "exhaustive") generate_ = check::exhaustive_graphs();
    if (arguments_.policy.empty()) {
      proofs_ = std::make_unique<check::ProofCampaign>(
          check::ProofOptions{.max_violations = kMaxViolations,
                              .is_time_up = is_time_up_,
                              .spoil = arguments_.plants.plan});
      differences_ = compare(check::cpu_contestants());
      add("proof", [this](check::Subject& subject) { return proofs_->meet(subject); });
      add("differential", [this](check::Subject& subject) { return differences_->meet(subject); });
    }
    const std::string policy = arguments_.policy == "all" ? std::string() : arguments_.policy;
    EDDY_ASSIGN_OR_RETURN(auto contestants, check::order_contestants(policy, orders_));
    order_differences_ = compare(std::move(contestants));
    add("order", [this](check::Subject& subject) { return order_differences_->meet(subject); });
    return Status::ok();
  }

  bool meet(uint64_t seed) override {
    check::Subject subject(library_, check::make_recipe(seed, generate_));
    bool goes_on = false;
    for (Campaign& campaign : campaigns_) {
      if (campaign.is_done) continue;
      const int64_t start_ns = now_ns();
      note_.set(fmt::format("{} of {}", campaign.name, again(seed, again_options())));
      campaign.is_done = !campaign.meet(subject);
      campaign.took_ns += now_ns() - start_ns;
      goes_on |= !campaign.is_done;
    }
    return goes_on;
  }

  Json counts() const override {
    Json all = Json::object();
    if (proofs_ != nullptr) {
      const check::ProofReport& report = proofs_->report();
      all["proof"] = {{"plans", report.num_plans},
                      {"deleted_records_and_waits", report.num_deletions},
                      {"violations", report.violations.size()}};
      const check::DifferentialReport& differences = differences_->report();
      all["differential"] = {{"graphs", differences.num_graphs},
                             {"nodes", differences.num_nodes},
                             {"comparisons", differences.num_comparisons},
                             {"mismatches", differences.mismatches.size()}};
    }
    const check::DifferentialReport& report = order_differences_->report();
    all["order"] = {{"graphs", report.num_graphs},
                    {"orders", orders_.num_orders},
                    {"steps", orders_.num_steps},
                    {"accesses", orders_.num_accesses},
                    {"violations", report.mismatches.size()}};
    if (arguments_.policy == "exhaustive") {
      all["order"]["graphs_explored_whole"] = orders_.num_explored;
    }
    for (const Campaign& campaign : campaigns_) all[campaign.name]["took_ns"] = campaign.took_ns;
    return all;
  }

  std::vector<CheckViolation> violations() const override {
    std::vector<CheckViolation> all;
    if (proofs_ != nullptr) {
      for (const check::ProofViolation& violation : proofs_->report().violations) {
        all.push_back({"proof", violation.what, violation.seed, again(violation.seed, ""),
                       violation.smallest.num_nodes, violation.smallest.text});
      }
      note(all, differences_->report(), "differential", "",
           " (workers of the machine take part, so it may need several tries)");
    }
    note(all, order_differences_->report(), "order", again_options());
    return all;
  }

 private:
  struct Campaign {
    std::string name;
    std::function<bool(check::Subject&)> meet;  // false: it has seen enough
    int64_t took_ns = 0;
    bool is_done = false;
  };

  std::string again_options() const {
    return arguments_.policy.empty() ? "" : " --policy " + arguments_.policy;
  }

  void add(std::string name, std::function<bool(check::Subject&)> meet) {
    campaigns_.push_back({std::move(name), std::move(meet)});
  }

  // Every contestant meets every seed when there is only one.
  std::unique_ptr<check::DifferentialCampaign> compare(std::vector<check::Contestant> contestants) {
    check::DifferentialOptions options;
    options.max_mismatches = kMaxViolations;
    options.is_time_up = is_time_up_;
    if (arguments_.seeds == 1) options.contestants_per_seed = contestants.size();
    return std::make_unique<check::DifferentialCampaign>(std::move(contestants), options);
  }

  const CheckArguments& arguments_;
  const std::function<bool()>& is_time_up_;
  Library library_;
  check::GenerateOptions generate_;
  check::OrderCounts orders_;
  std::unique_ptr<check::ProofCampaign> proofs_;              // null: only orders are tried
  std::unique_ptr<check::DifferentialCampaign> differences_;  // likewise
  std::unique_ptr<check::DifferentialCampaign> order_differences_;
  std::vector<Campaign> campaigns_;
  WorkNote note_;
};

class FaultCampaigns : public CheckCampaigns {
 public:
  FaultCampaigns(const CheckArguments& arguments, const std::function<bool()>& is_time_up)
      : campaign_({.max_violations = kMaxViolations,
                   .is_time_up = is_time_up,
                   .before_point =
                       [this](uint64_t seed, const std::string& faults) {
                         note_.set(faults + " of " + again(seed, " --faults"));
                       },
                   .plants = arguments.plants.faults}) {}

  bool meet(uint64_t seed) override {
    const int64_t start_ns = now_ns();
    const bool goes_on = campaign_.meet(seed);
    took_ns_ += now_ns() - start_ns;
    return goes_on;
  }

  Json counts() const override {
    const check::FaultReport& report = campaign_.report();
    Json fired = Json::object();
    for (size_t kind = 0; kind < kNumFaultKinds; ++kind) {
      fired[std::string(fault_kind_name(static_cast<FaultKind>(kind)))] = report.fired[kind];
    }
    return {{"faults",
             {{"graphs", report.num_graphs},
              {"points", report.num_points},
              {"fired", std::move(fired)},
              {"violations", report.violations.size()},
              {"took_ns", took_ns_}}}};
  }

  std::vector<CheckViolation> violations() const override {
    std::vector<CheckViolation> all;
    for (const check::FaultViolation& violation : campaign_.report().violations) {
      all.push_back({"faults", violation.faults + ": " + violation.what, violation.seed,
                     again(violation.seed, " --faults"), violation.smallest.num_nodes,
                     violation.smallest.text});
    }
    return all;
  }

 private:
  WorkNote note_;
  check::FaultCampaign campaign_;
  int64_t took_ns_ = 0;
};

class GradientCampaigns : public CheckCampaigns {
 public:
  GradientCampaigns() : campaign_({.max_mismatches = kMaxViolations}) {}

  bool meet(uint64_t seed) override {
    const int64_t start_ns = now_ns();
    note_.set(again(seed, " --gradients"));
    const bool goes_on = campaign_.meet(seed);
    took_ns_ += now_ns() - start_ns;
    return goes_on;
  }

  Json counts() const override {
    const check::GradientCampaignReport& report = campaign_.report();
    return {{"gradients",
             {{"programs", report.num_programs},
              {"flat", report.num_flat},
              {"derivatives", report.num_derivatives},
              {"second_derivatives", report.num_second_derivatives},
              {"iterations", report.num_iterations},
              {"loops_made_again", report.num_loops_made_again},
              {"outputs_compared_by_bits", report.num_compared_by_bits},
              {"loops_without_trip", report.num_loops_without_trip},
              {"violations", report.mismatches.size()},
              {"took_ns", took_ns_}}}};
  }

  std::vector<CheckViolation> violations() const override {
    std::vector<CheckViolation> all;
    for (const check::GradientMismatch& mismatch : campaign_.report().mismatches) {
      all.push_back({"gradients",
                     mismatch.what,
                     mismatch.seed,
                     again(mismatch.seed, " --gradients"),
                     mismatch.num_nodes,
                     {}});
    }
    return all;
  }

 private:
  WorkNote note_;
  check::GradientCampaign campaign_;
  int64_t took_ns_ = 0;
};

class RankCampaigns : public CheckCampaigns {
 public:
  RankCampaigns(const CheckArguments& arguments, const std::function<bool()>& is_time_up)
      : options_(fmt::format(" --ranks {}..{}", arguments.min_ranks, arguments.max_ranks)),
        campaign_({.min_ranks = arguments.min_ranks,
                   .max_ranks = arguments.max_ranks,
                   .max_mismatches = kMaxViolations,
                   .is_time_up = is_time_up,
                   .plant = arguments.plants.ranks}) {}

  bool meet(uint64_t seed) override {
    const int64_t start_ns = now_ns();
    note_.set(again(seed, options_));
    const bool goes_on = campaign_.meet(seed);
    took_ns_ += now_ns() - start_ns;
    return goes_on;
  }

  Json counts() const override {
    const check::RankCampaignReport& report = campaign_.report();
    return {{"ranks",
             {{"programs", report.num_programs},
              {"runs", report.num_runs},
              {"collectives", report.num_collectives},
              {"moments", report.num_moments},
              {"stops", report.num_stops},
              {"pairs_of_stops", report.num_pairs},
              {"stopped_runs", report.num_stopped},
              {"violations", report.mismatches.size()},
              {"took_ns", took_ns_}}}};
  }

  std::vector<CheckViolation> violations() const override {
    std::vector<CheckViolation> all;
    for (const check::RankMismatch& mismatch : campaign_.report().mismatches) {
      all.push_back({"ranks", mismatch.what, mismatch.seed, again(mismatch.seed, options_), 0, {}});
    }
    return all;
  }

 private:
  const std::string options_;
  WorkNote note_;
  check::RankCampaign campaign_;
  int64_t took_ns_ = 0;
};

}  // namespace

Result<std::unique_ptr<CheckCampaigns>> CheckCampaigns::make(
    const CheckArguments& arguments, const std::function<bool()>& is_time_up) {
  if (arguments.faults) {
    return std::unique_ptr<CheckCampaigns>(std::make_unique<FaultCampaigns>(arguments, is_time_up));
  }
  if (arguments.gradients) {
    return std::unique_ptr<CheckCampaigns>(std::make_unique<GradientCampaigns>());
  }
  if (arguments.min_ranks > 0) {
    return std::unique_ptr<CheckCampaigns>(std::make_unique<RankCampaigns>(arguments, is_time_up));
  }
  auto made = std::make_unique<GraphCampaigns>(arguments, is_time_up);
  EDDY_RETURN_IF_ERROR(made->start());
  return std::unique_ptr<CheckCampaigns>(std::move(made));
}

void add_counts(Json& sums, const Json& more) {
  if (sums.is_null()) {
    sums = more;
  } else if (more.is_object()) {
    for (const auto& [name, value] : more.items()) add_counts(sums[name], value);
  } else {
    sums = sums.get<int64_t>() + more.get<int64_t>();
  }
}

}  // namespace eddy
