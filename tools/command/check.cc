// eddy check: lets an installation find its own defects. Seeded campaigns over random graphs: plans
// and their proofs, every way of running on the CPU against an oracle, every order on the virtual
// device, and with --faults everything that can fail.
#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "tools/check/fault_campaign.h"
#include "tools/check/mixing_ops.h"
#include "tools/check/order_campaign.h"
#include "tools/check/proof_campaign.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

struct CheckArguments {
  uint64_t seeds = 0;  // 0: as the campaign's default, or as many as fit into --minutes
  uint64_t first_seed = 0;
  std::string policy;
  bool faults = false;
  double minutes = 0;
};

constexpr uint64_t kDefaultSeeds = 1000;
constexpr uint64_t kDefaultFaultSeeds = 200;
constexpr size_t kMaxViolations = 3;  // of a campaign

struct Violation {
  std::string campaign;  // "order", …
  std::string what;
  std::string command;   // that shows it again
  size_t num_nodes = 0;  // of the shrunk graph; 0: there is none
  std::string graph;
};

// One of the campaigns of a run: what it does with a graph, and what it has to say at the end.
struct Campaign {
  std::string name;
  std::function<bool(check::Subject&)> meet;  // false: it has seen enough
  std::function<Json()> counts;
  int64_t took_ns = 0;
  bool is_done = false;
};

class Check {
 public:
  Check(const CheckArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), console_(console), interrupts_(interrupts) {}

  Outcome run() {
    if (Status status = check::add_mixing_ops(library_); !status.is_ok()) return status;
    if (Status status = arguments_.faults ? run_faults() : run_campaigns(); !status.is_ok()) {
      return status;
    }
    report();
    if (!violations_.empty()) {
      return Outcome::differs(fmt::format("{} violation(s); the first: {}; see it again with: {}",
                                          violations_.size(), violations_[0].what,
                                          violations_[0].command));
    }
    if (interrupts_.is_interrupted()) return Outcome(cancelled("interrupted"));
    return Outcome::success();
  }

 private:
  // Each graph is built once and meets all campaigns, so that a run that ends early has tried
  // fewer graphs, none of them less.
  Status run_campaigns() {
    if (arguments_.policy.empty()) {
      add_proofs();
      add_differences();
    }
    EDDY_RETURN_IF_ERROR(add_orders());
    const check::GenerateOptions generate =
        arguments_.policy == "exhaustive" ? check::exhaustive_graphs() : check::GenerateOptions();
    const uint64_t num_seeds = seeds(kDefaultSeeds);
    bool goes_on = true;
    for (uint64_t i = 0; i < num_seeds && goes_on && !is_time_up(); ++i) {
      check::Subject subject(library_, check::make_recipe(arguments_.first_seed + i, generate));
      goes_on = meet_all(subject);
      ++num_met_;
    }
    return Status::ok();
  }

  bool meet_all(check::Subject& subject) {
    bool goes_on = false;
    for (Campaign& campaign : campaigns_) {
      if (campaign.is_done) continue;
      const int64_t start_ns = now_ns();
      campaign.is_done = !campaign.meet(subject);
      campaign.took_ns += now_ns() - start_ns;
      goes_on |= !campaign.is_done;
    }
    return goes_on;
  }

  bool is_time_up() {
    if (++num_done_ % 64 == 0) console_.progress(fmt::format("{} graphs", num_done_));
    if (interrupts_.is_interrupted()) return true;
    return arguments_.minutes > 0 &&
           now_ns() - start_ns_ >= static_cast<int64_t>(arguments_.minutes * 60e9);
  }

  uint64_t seeds(uint64_t otherwise) const {
    if (arguments_.seeds > 0) return arguments_.seeds;
    return arguments_.minutes > 0 ? UINT64_MAX - arguments_.first_seed : otherwise;
  }

  std::string again(uint64_t seed, const std::string& options) const {
    return fmt::format("eddy check --seeds 1 --first-seed {}{}", seed, options);
  }

  void add_proofs() {
    const auto campaign = std::make_shared<check::ProofCampaign>(kMaxViolations);
    campaigns_.push_back(
        {"proof", [campaign](check::Subject& subject) { return campaign->meet(subject); },
         [this, campaign]() -> Json {
           const check::ProofReport& report = campaign->report();
           for (const check::ProofViolation& violation : report.violations) {
             violations_.push_back({"proof", violation.what, again(violation.seed, ""), 0, {}});
           }
           return {{"plans", report.num_plans},
                   {"deleted_records_and_waits", report.num_deletions},
                   {"violations", report.violations.size()}};
         }});
  }

  // Every contestant meets every seed when there is only one.
  std::shared_ptr<check::DifferentialCampaign> compare(std::vector<check::Contestant> contestants) {
    check::DifferentialOptions options;
    options.max_mismatches = kMaxViolations;
    if (arguments_.seeds == 1) options.contestants_per_seed = contestants.size();
    return std::make_shared<check::DifferentialCampaign>(std::move(contestants), options);
  }

  void note(const check::DifferentialReport& report, const char* campaign,
            const std::string& again_options) {
    for (const check::Mismatch& mismatch : report.mismatches) {
      violations_.push_back({campaign, mismatch.contestant + ": " + mismatch.what,
                             again(mismatch.seed, again_options), mismatch.num_nodes,
                             mismatch.graph_text});
    }
  }

  void add_differences() {
    constexpr int kThreads = 2;
    const auto campaign = compare(check::cpu_contestants(kThreads));
    campaigns_.push_back({"differential",
                          [campaign](check::Subject& subject) { return campaign->meet(subject); },
                          [this, campaign]() -> Json {
                            const check::DifferentialReport& report = campaign->report();
                            note(report, "differential", "");
                            return {{"graphs", report.num_graphs},
                                    {"nodes", report.num_nodes},
                                    {"comparisons", report.num_comparisons},
                                    {"mismatches", report.mismatches.size()}};
                          }});
  }

  Status add_orders() {
    const auto counts = std::make_shared<check::OrderCounts>();
    EDDY_ASSIGN_OR_RETURN(auto contestants, check::order_contestants(arguments_.policy, *counts));
    const auto campaign = compare(std::move(contestants));
    campaigns_.push_back(
        {"order", [campaign](check::Subject& subject) { return campaign->meet(subject); },
         [this, campaign, counts] { return order_counts(campaign->report(), *counts); }});
    return Status::ok();
  }

  Json order_counts(const check::DifferentialReport& report, const check::OrderCounts& counts) {
    note(report, "order", arguments_.policy.empty() ? "" : " --policy " + arguments_.policy);
    Json json = {{"graphs", report.num_graphs},
                 {"orders", counts.num_orders},
                 {"steps", counts.num_steps},
                 {"accesses", counts.num_accesses},
                 {"violations", report.mismatches.size()}};
    if (arguments_.policy == "exhaustive") json["graphs_explored_whole"] = counts.num_explored;
    return json;
  }

  Status run_faults() {
    Campaign campaign{"faults", {}, {}};
    Json counts = faults();
    campaign.took_ns = now_ns() - start_ns_;
    campaign.counts = [counts = std::move(counts)] { return counts; };
    campaigns_.push_back(std::move(campaign));
    return Status::ok();
  }

  Json faults() {
    check::FaultOptions options;
    options.first_seed = arguments_.first_seed;
    options.num_seeds = seeds(kDefaultFaultSeeds);
    options.is_time_up = [this] { return is_time_up(); };
    const check::FaultReport report = check::run_faults(options);
    for (const check::FaultViolation& violation : report.violations) {
      violations_.push_back({"faults", violation.faults + ": " + violation.what,
                             again(violation.seed, " --faults"), violation.num_nodes,
                             violation.graph_text});
    }
    Json fired = Json::object();
    for (size_t kind = 0; kind < kNumFaultKinds; ++kind) {
      fired[std::string(fault_kind_name(static_cast<FaultKind>(kind)))] = report.fired[kind];
    }
    return {{"graphs", report.num_graphs},
            {"points", report.num_points},
            {"fired", std::move(fired)},
            {"violations", report.violations.size()}};
  }

  void report() {
    std::vector<Json> counts;
    for (const Campaign& campaign : campaigns_) counts.push_back(campaign.counts());
    const int64_t took_ns = now_ns() - start_ns_;
    if (console_.is_json()) return print_json(counts, took_ns);
    for (size_t i = 0; i < campaigns_.size(); ++i) {
      std::string line = campaigns_[i].name + ":";
      for (const auto& [name, count] : counts[i].items()) {
        if (count.is_number()) line += fmt::format(" {} {},", count.get<uint64_t>(), spaced(name));
      }
      console_.say(line + " " + duration_text(static_cast<double>(campaigns_[i].took_ns)));
      if (!counts[i].contains("fired")) continue;
      for (const auto& [name, count] : counts[i]["fired"].items()) {
        console_.say(fmt::format("  {:14} {}", name, count.get<uint64_t>()));
      }
    }
    say_rate(took_ns);
    for (const Violation& violation : violations_) {
      console_.say(fmt::format("{} violation: {}", violation.campaign, violation.what));
      console_.say("  again: " + violation.command);
      if (violation.graph.empty()) continue;
      console_.say(fmt::format("  shrunk to {} nodes:\n{}", violation.num_nodes, violation.graph));
    }
  }

  void say_rate(int64_t took_ns) {
    if (arguments_.faults) return;
    const double seconds = static_cast<double>(took_ns) * 1e-9;
    console_.say(fmt::format("{} graphs, {:.0f} a second", num_met_,
                             static_cast<double>(num_met_) / std::max(seconds, 1e-9)));
  }

  static std::string spaced(std::string name) {
    for (char& c : name) c = c == '_' ? ' ' : c;
    return name;
  }

  void print_json(const std::vector<Json>& counts, int64_t took_ns) {
    Json campaigns = Json::object();
    for (size_t i = 0; i < campaigns_.size(); ++i) {
      campaigns[campaigns_[i].name] = counts[i];
      campaigns[campaigns_[i].name]["took_ns"] = campaigns_[i].took_ns;
    }
    Json violations = Json::array();
    for (const Violation& violation : violations_) {
      violations.push_back({{"campaign", violation.campaign},
                            {"what", violation.what},
                            {"command", violation.command},
                            {"nodes", violation.num_nodes},
                            {"graph", violation.graph}});
    }
    console_.print({{"campaigns", std::move(campaigns)},
                    {"took_ns", took_ns},
                    {"violations", std::move(violations)}});
  }

  const CheckArguments& arguments_;
  Console& console_;
  Interrupts& interrupts_;
  Library library_;
  const int64_t start_ns_ = now_ns();
  uint64_t num_done_ = 0;  // graphs
  uint64_t num_met_ = 0;   // graphs that all campaigns have met
  std::vector<Campaign> campaigns_;
  std::vector<Violation> violations_;
};

}  // namespace

Action add_check(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  app.add_option("--seeds", arguments->seeds,
                 "random graphs for each campaign (1000; of faults 200; with --minutes as many as "
                 "fit)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  app.add_option("--first-seed", arguments->first_seed, "where to start")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  CLI::Option* policy =
      app.add_option("--policy", arguments->policy,
                     "only the order campaign, under this policy: uniform, pct, starve, late, "
                     "early, exhaustive")
          ->check(CLI::IsMember({"uniform", "pct", "starve", "late", "early", "exhaustive"}));
  app.add_flag("--faults", arguments->faults, "the fault campaign instead of the others")
      ->excludes(policy);
  app.add_option("--minutes", arguments->minutes, "ends after that time")
      ->check(check_number("minutes from 0.001 to 1e6", 1e-3, 1e6));
  return [arguments](Console& console, Interrupts& interrupts) {
    return Check(*arguments, console, interrupts).run();
  };
}

}  // namespace eddy
