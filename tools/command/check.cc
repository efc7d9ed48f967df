// eddy check: lets an installation find its own defects. Seeded campaigns over random graphs: plans
// and their proofs, every way of running on the CPU against an oracle, every order on the virtual
// device, and with --faults everything that can fail.
#include <chrono>
#include <cmath>

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

struct Violation {
  std::string campaign;  // "order", …
  std::string what;
  std::string command;   // that shows it again
  size_t num_nodes = 0;  // of the shrunk graph; 0: there is none
  std::string graph;
};

struct Campaign {
  std::string name;
  Json counts = Json::object();
  int64_t took_ns = 0;
};

class Check {
 public:
  Check(const CheckArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), console_(console), interrupts_(interrupts) {}

  Outcome run() {
    if (Status status = check::add_mixing_ops(library_); !status.is_ok()) return status;
    if (arguments_.faults) {
      run_campaign("faults", 1, [this] { return faults(); });
    } else if (!arguments_.policy.empty()) {
      run_campaign("order", 1, [this] { return orders(); });
    } else {
      run_campaign("proof", 3, [this] { return proofs(); });
      run_campaign("differential", 2, [this] { return differences(); });
      run_campaign("order", 1, [this] { return orders(); });
    }
    report();
    if (!status_.is_ok()) return status_;
    if (!violations_.empty()) {
      return Outcome::differs(fmt::format("{} violation(s); the first: {}; see it again with: {}",
                                          violations_.size(), violations_[0].what,
                                          violations_[0].command));
    }
    if (interrupts_.is_interrupted()) return Outcome(cancelled("interrupted"));
    return Outcome::success();
  }

 private:
  // `share`: how many campaigns are still to come, this one included: each gets its part of the
  // time that is left.
  template <typename Function>
  void run_campaign(const char* name, int share, Function campaign) {
    if (interrupts_.is_interrupted() || !status_.is_ok()) return;
    campaigns_.push_back({name});
    num_done_ = 0;
    const int64_t start_ns = now_ns();
    if (arguments_.minutes > 0) {
      const auto total_ns = static_cast<int64_t>(arguments_.minutes * 60e9);
      end_ns_ = start_ns + (start_ns_ + total_ns - start_ns) / share;
    }
    Json counts = campaign();
    campaigns_.back().counts = std::move(counts);
    campaigns_.back().took_ns = now_ns() - start_ns;
  }

  bool is_time_up() {
    if (++num_done_ % 64 == 0) {
      console_.progress(fmt::format("{}: {} graphs", campaigns_.back().name, num_done_));
    }
    if (interrupts_.is_interrupted()) return true;
    return arguments_.minutes > 0 && now_ns() >= end_ns_;
  }

  uint64_t seeds(uint64_t otherwise) const {
    if (arguments_.seeds > 0) return arguments_.seeds;
    return arguments_.minutes > 0 ? UINT64_MAX - arguments_.first_seed : otherwise;
  }

  std::string again(uint64_t seed, const std::string& options) const {
    return fmt::format("eddy check --seeds 1 --first-seed {}{}", seed, options);
  }

  Json proofs() {
    check::ProofOptions options;
    options.first_seed = arguments_.first_seed;
    options.num_seeds = seeds(kDefaultSeeds);
    options.is_time_up = [this] { return is_time_up(); };
    const check::ProofReport report = check::run_proofs(library_, options);
    for (const check::ProofViolation& violation : report.violations) {
      violations_.push_back({"proof", violation.what, again(violation.seed, ""), 0, {}});
    }
    return {{"plans", report.num_plans},
            {"deleted_records_and_waits", report.num_deletions},
            {"violations", report.violations.size()}};
  }

  // Every contestant meets every seed when there is only one.
  check::DifferentialReport compare(const std::vector<check::Contestant>& contestants,
                                    const char* campaign, const std::string& again_options) {
    check::DifferentialOptions options;
    options.first_seed = arguments_.first_seed;
    options.num_seeds = seeds(kDefaultSeeds);
    if (arguments_.policy == "exhaustive") options.generate = check::exhaustive_graphs();
    if (options.num_seeds == 1) options.contestants_per_seed = contestants.size();
    options.is_time_up = [this] { return is_time_up(); };
    check::DifferentialReport report = check::run_differential(library_, contestants, options);
    for (const check::Mismatch& mismatch : report.mismatches) {
      violations_.push_back({campaign, mismatch.contestant + ": " + mismatch.what,
                             again(mismatch.seed, again_options), mismatch.num_nodes,
                             mismatch.graph_text});
    }
    return report;
  }

  Json differences() {
    constexpr int kThreads = 2;
    const auto report = compare(check::cpu_contestants(library_, kThreads), "differential", "");
    return {{"graphs", report.num_graphs},
            {"nodes", report.num_nodes},
            {"comparisons", report.num_comparisons},
            {"mismatches", report.mismatches.size()}};
  }

  Json orders() {
    check::OrderCounts counts;
    auto contestants = check::order_contestants(library_, arguments_.policy, counts);
    if (!contestants.is_ok()) {
      status_ = contestants.take_status();
      return {};
    }
    const std::string policy = arguments_.policy.empty() ? "" : " --policy " + arguments_.policy;
    const auto report = compare(*contestants, "order", policy);
    Json json = {{"graphs", report.num_graphs},
                 {"orders", counts.num_orders},
                 {"steps", counts.num_steps},
                 {"accesses", counts.num_accesses},
                 {"violations", report.mismatches.size()}};
    if (arguments_.policy == "exhaustive") json["graphs_explored_whole"] = counts.num_explored;
    return json;
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
    if (console_.is_json()) return print_json();
    for (const Campaign& campaign : campaigns_) {
      std::string line = campaign.name + ":";
      for (const auto& [name, count] : campaign.counts.items()) {
        if (count.is_number()) line += fmt::format(" {} {},", count.get<uint64_t>(), spaced(name));
      }
      console_.say(line + " " + duration_text(static_cast<double>(campaign.took_ns)));
      if (!campaign.counts.contains("fired")) continue;
      for (const auto& [name, count] : campaign.counts["fired"].items()) {
        console_.say(fmt::format("  {:14} {}", name, count.get<uint64_t>()));
      }
    }
    for (const Violation& violation : violations_) {
      console_.say(fmt::format("{} violation: {}", violation.campaign, violation.what));
      console_.say("  again: " + violation.command);
      if (violation.graph.empty()) continue;
      console_.say(fmt::format("  shrunk to {} nodes:\n{}", violation.num_nodes, violation.graph));
    }
  }

  static std::string spaced(std::string name) {
    for (char& c : name) c = c == '_' ? ' ' : c;
    return name;
  }

  void print_json() {
    Json campaigns = Json::object();
    for (const Campaign& campaign : campaigns_) {
      campaigns[campaign.name] = campaign.counts;
      campaigns[campaign.name]["took_ns"] = campaign.took_ns;
    }
    Json violations = Json::array();
    for (const Violation& violation : violations_) {
      violations.push_back({{"campaign", violation.campaign},
                            {"what", violation.what},
                            {"command", violation.command},
                            {"nodes", violation.num_nodes},
                            {"graph", violation.graph}});
    }
    if (status_.is_ok()) {
      console_.print({{"campaigns", std::move(campaigns)}, {"violations", std::move(violations)}});
    }
  }

  const CheckArguments& arguments_;
  Console& console_;
  Interrupts& interrupts_;
  Library library_;
  const int64_t start_ns_ = now_ns();
  int64_t end_ns_ = 0;  // of this campaign
  uint64_t num_done_ = 0;
  std::vector<Campaign> campaigns_;
  std::vector<Violation> violations_;
  Status status_;
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
