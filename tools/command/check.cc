// eddy check: lets an installation find its own defects. Seeded campaigns over random graphs: plans
// and their proofs, every way of running on the CPU against an oracle, every order on the virtual
// device, with --faults everything that can fail, with --gradients gradients against dual
// numbers, with --ranks programs of several ranks in a virtual world, also stopped anywhere.
//
// --jobs shares the seeds out to threads, each with campaigns of its own; their counts are summed.
// Ctrl-C, SIGTERM and --minutes end it between graphs (faults: points); the counts so far are
// printed in any case. A defect that ends the process is printed with the seed, and of faults the
// point, that each job was at.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "tools/check/fault_campaign.h"
#include "tools/command/check_campaigns.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

constexpr uint64_t kDefaultSeeds = 1000;
constexpr uint64_t kDefaultFaultSeeds = 200;
constexpr uint32_t kMaxRanks = 64;

class Check {
 public:
  Check(const CheckArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), console_(console), interrupts_(interrupts) {}

  Outcome run() {
    const Interrupts::Patience patience(interrupts_);
    const size_t num_descriptors = check::count_descriptors();
    for (uint32_t job = 0; job < arguments_.jobs; ++job) {
      auto campaigns = CheckCampaigns::make(arguments_, is_time_up_);
      if (!campaigns.is_ok()) return campaigns.status();
      jobs_.push_back({std::move(*campaigns)});
    }
    run_jobs();
    sum_up();
    if (arguments_.faults) note_descriptors(num_descriptors);
    Outcome ended = outcome();
    report(ended);
    return ended;
  }

 private:
  struct Job {
    std::unique_ptr<CheckCampaigns> campaigns;
    std::exception_ptr failure = {};
  };

  // Runs the first job on this thread, which prints the progress of all.
  void run_jobs() {
    std::vector<std::thread> threads;
    try {
      for (size_t j = 1; j < jobs_.size(); ++j) {
        threads.emplace_back([this, j] { run_job(jobs_[j], /*has_terminal=*/false); });
      }
    } catch (...) {  // no more threads: those there are end first
      jobs_[0].failure = std::current_exception();
      has_failed_ = true;
    }
    run_job(jobs_[0], /*has_terminal=*/true);
    for (std::thread& thread : threads) thread.join();
    for (const Job& job : jobs_) {
      if (job.failure != nullptr) std::rethrow_exception(job.failure);
    }
  }

  void run_job(Job& job, bool has_terminal) {
    try {
      while (!has_failed_ && !is_time_up_()) {
        const uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
        if (i >= num_seeds()) return;
        const bool goes_on = job.campaigns->meet(arguments_.first_seed + i);
        const uint64_t num_met = num_met_.fetch_add(1, std::memory_order_relaxed) + 1;
        const bool is_slow = arguments_.faults || arguments_.min_ranks > 0;
        if (has_terminal && (is_slow || num_met % 64 == 0)) {
          console_.progress(progress_text(num_met, arguments_.first_seed + i));
        }
        if (!goes_on) return;
      }
    } catch (...) {
      job.failure = std::current_exception();
      has_failed_ = true;
    }
  }

  std::string progress_text(uint64_t num_met, uint64_t seed) const {
    const std::string all =
        arguments_.minutes > 0 ? std::string() : fmt::format(" of {}", num_seeds());
    return fmt::format("{}{} graphs, the last of seed {}", num_met, all, seed);
  }

  uint64_t num_seeds() const {
    if (arguments_.seeds > 0) return arguments_.seeds;
    if (arguments_.minutes > 0) return UINT64_MAX - arguments_.first_seed;
    const bool is_slow = arguments_.faults || arguments_.min_ranks > 0;
    return is_slow ? kDefaultFaultSeeds : kDefaultSeeds;
  }

  bool is_past_deadline() const {
    return arguments_.minutes > 0 &&
           now_ns() - start_ns_ >= static_cast<int64_t>(arguments_.minutes * 60e9);
  }

  void sum_up() {
    took_ns_ = now_ns() - start_ns_;
    for (const Job& job : jobs_) {
      add_counts(counts_, job.campaigns->counts());
      for (CheckViolation& violation : job.campaigns->violations()) {
        violations_.push_back(std::move(violation));
      }
    }
    std::ranges::stable_sort(violations_, {}, &CheckViolation::seed);
    jobs_.clear();
  }

  void note_descriptors(size_t before) {
    std::string text = check::descriptors_left(before);
    if (text.empty()) return;
    counts_["faults"]["violations"] = counts_["faults"]["violations"].get<uint64_t>() + 1;
    violations_.push_back({"faults",
                           std::move(text),
                           arguments_.first_seed,
                           fmt::format("eddy check --faults --first-seed {} --seeds {}",
                                       arguments_.first_seed, num_met_.load()),
                           0,
                           {}});
  }

  Outcome outcome() const {
    if (!violations_.empty()) {
      return Outcome::differs(fmt::format("{} violation(s); the first: {}; see it again with: {}",
                                          violations_.size(), violations_[0].what,
                                          violations_[0].command));
    }
    const uint64_t num_met = num_met_.load();
    if (interrupts_.is_interrupted()) {
      return Outcome(cancelled(fmt::format("interrupted after {} graphs", num_met)));
    }
    if (arguments_.seeds > num_met) {
      return Outcome(deadline_exceeded(
          fmt::format("--minutes were over after {} of {} graphs; give more, or fewer --seeds",
                      num_met, arguments_.seeds)));
    }
    return Outcome::success();
  }

  void report(const Outcome& ended) {
    if (console_.is_json()) return print_json(ended);
    for (const auto& [campaign, counts] : counts_.items()) {
      std::string line = campaign + ":";
      for (const auto& [name, count] : counts.items()) {
        if (!count.is_number() || name == "took_ns") continue;
        line += fmt::format(" {} {},", count.get<uint64_t>(), spaced(name));
      }
      console_.say(line + " " + duration_text(counts["took_ns"].get<double>()));
      if (!counts.contains("fired")) continue;
      for (const auto& [name, count] : counts["fired"].items()) {
        console_.say(fmt::format("  {:14} {}", name, count.get<uint64_t>()));
      }
    }
    say_rate();
    for (const CheckViolation& violation : violations_) {
      console_.say(fmt::format("{} violation: {}", violation.campaign, violation.what));
      console_.say("  again: " + violation.command);
      if (violation.graph.empty()) continue;
      console_.say(fmt::format("  shrunk to {} nodes:\n{}", violation.num_nodes, violation.graph));
    }
  }

  void say_rate() {
    if (arguments_.faults) return;
    const double seconds = std::max(static_cast<double>(took_ns_) * 1e-9, 1e-9);
    const uint64_t num_met = num_met_.load();
    console_.say(fmt::format(
        "{} graphs, {:.0f} a second{}", num_met, static_cast<double>(num_met) / seconds,
        arguments_.jobs > 1 ? fmt::format(" in {} jobs", arguments_.jobs) : std::string()));
  }

  static std::string spaced(std::string name) {
    for (char& c : name) c = c == '_' ? ' ' : c;
    return name;
  }

  void print_json(const Outcome& ended) {
    Json violations = Json::array();
    for (const CheckViolation& violation : violations_) {
      violations.push_back({{"campaign", violation.campaign},
                            {"what", violation.what},
                            {"command", violation.command},
                            {"nodes", violation.num_nodes},
                            {"graph", violation.graph}});
    }
    Json document = {{"graphs", num_met_.load()},
                     {"campaigns", counts_},
                     {"took_ns", took_ns_},
                     {"violations", std::move(violations)}};
    const bool is_whole =
        ended.exit_code() == ExitCode::kSuccess || ended.exit_code() == ExitCode::kDiffers;
    if (!is_whole) document["error"] = Console::error_json(ended);
    console_.print(document);
  }

  const CheckArguments& arguments_;
  Console& console_;
  Interrupts& interrupts_;
  const int64_t start_ns_ = now_ns();
  const std::function<bool()> is_time_up_ = [this] {
    return interrupts_.is_interrupted() || is_past_deadline();
  };
  std::vector<Job> jobs_;
  std::atomic<uint64_t> next_{0};     // seed, from the first
  std::atomic<uint64_t> num_met_{0};  // graphs that all campaigns have met
  std::atomic<bool> has_failed_{false};
  int64_t took_ns_ = 0;
  Json counts_;
  std::vector<CheckViolation> violations_;
};

}  // namespace

Outcome run_check(const CheckArguments& arguments, Console& console, Interrupts& interrupts) {
  return Check(arguments, console, interrupts).run();
}

namespace {

// "3" or "2..6"; false: it is neither.
bool parse_ranks(const std::string& text, CheckArguments& arguments) {
  const size_t dots = text.find("..");
  const std::string first = text.substr(0, dots);
  const std::string last = dots == std::string::npos ? first : text.substr(dots + 2);
  const auto parse = [](const std::string& word, uint32_t& number) {
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, number);
    return error == std::errc() && stop == end && number >= 2 && number <= kMaxRanks;
  };
  return parse(first, arguments.min_ranks) && parse(last, arguments.max_ranks) &&
         arguments.min_ranks <= arguments.max_ranks;
}

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
  app.add_option("--jobs", arguments->jobs, "graphs at once; the same graphs are met")
      ->check(CLI::Range(uint32_t{1}, uint32_t{256}))
      ->capture_default_str();
  CLI::Option* policy =
      app.add_option("--policy", arguments->policy,
                     "only the order campaign, under this policy: uniform, pct, starve, late, "
                     "early, exhaustive; or under all but the last in turn: all")
          ->check(
              CLI::IsMember({"uniform", "pct", "starve", "late", "early", "exhaustive", "all"}));
  CLI::Option* faults =
      app.add_flag("--faults", arguments->faults, "the fault campaign instead of the others")
          ->excludes(policy);
  CLI::Option* gradients =
      app.add_flag("--gradients", arguments->gradients,
                   "gradients of random programs against dual numbers, instead of the others")
          ->excludes(policy)
          ->excludes(faults);
  app.add_option_function<std::string>(
         "--ranks",
         [arguments](const std::string& text) {
           if (parse_ranks(text, *arguments)) return;
           throw CLI::ValidationError("--ranks", "'" + text + "' is no number from 2 to 64, nor " +
                                                     "two of them as in 2..6");
         },
         "random programs of so many ranks in a virtual world, as 3 or 2..6, instead of the others")
      ->excludes(policy)
      ->excludes(faults)
      ->excludes(gradients);
  app.add_option("--minutes", arguments->minutes,
                 "ends after that time; with --seeds as well, exits with 5 when they were too many")
      ->check(check_number("minutes from 0.001 to 1e6", 1e-3, 1e6));
  return [arguments](Console& console, Interrupts& interrupts) {
    return run_check(*arguments, console, interrupts);
  };
}

}  // namespace eddy
