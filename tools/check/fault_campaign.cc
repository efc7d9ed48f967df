#include "tools/check/fault_campaign.h"

#include <algorithm>
#include <filesystem>

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "tools/check/hash_ops.h"
#include "tools/check/leak_on_purpose.h"

namespace eddy::check {
namespace {

std::string faults_text(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) {
    text += (text.empty() ? "" : ", ") + std::string(fault_kind_name(fault.kind)) + " " +
            std::to_string(fault.kth);
  }
  return text;
}

// Sweeps one recipe. Ends at the first rule that is broken.
class Sweep {
 public:
  Sweep(const Recipe& recipe, const FaultOptions& options, FaultReport& report)
      : recipe_(recipe),
        options_(options),
        report_(report),
        point_(std::make_unique<FaultPoint>(
            recipe, FaultPointOptions{.loops = recipe.seed % 4 == 3 ? Loops::kHost : Loops::kDevice,
                                      .patience = options.patience,
                                      .plants = options.plants})) {}
  ~Sweep() {
    if (point_->hangs()) leak_on_purpose(std::move(point_));
  }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  // False: a rule was broken. Ends early, and well, when the time is up.
  bool run() {
    std::array<uint64_t, kNumFaultKinds> counts = {};
    for (size_t kind = 0; kind < kNumFaultKinds; ++kind) {
      for (uint64_t kth = 1; kth <= options_.max_kth; ++kth) {
        if (is_time_up()) return check({}, point_->close());
        if (!try_faults({{static_cast<FaultKind>(kind), kth}})) return false;
        if (!point_->has_fired()) break;
        counts[kind] = kth;
      }
    }
    return try_pairs(counts) && check({}, point_->close());
  }
  const std::string& what() const { return what_; }
  const std::vector<Fault>& faults() const { return faults_; }

 private:
  bool try_pairs(const std::array<uint64_t, kNumFaultKinds>& counts) {
    Random random(recipe_.seed);
    for (uint64_t i = 0; i < options_.pairs_per_graph; ++i) {
      std::vector<Fault> pair;
      for (int f = 0; f < 2; ++f) {
        const uint64_t kind = random.below(kNumFaultKinds);
        if (counts[kind] == 0) continue;
        pair.push_back({static_cast<FaultKind>(kind), 1 + random.below(counts[kind])});
      }
      if (is_time_up()) return true;
      if (pair.size() == 2 && !try_faults(pair)) return false;
    }
    return true;
  }

  bool is_time_up() const { return options_.is_time_up && options_.is_time_up(); }

  bool try_faults(const std::vector<Fault>& faults) {
    EDDY_CHECK(!faults.empty()) << "a point without a fault";
    ++report_.num_points;
    if (options_.before_point) options_.before_point(recipe_.seed, faults_text(faults));
    if (!check(faults, point_->run(faults))) return false;
    if (point_->has_fired()) ++report_.fired[static_cast<size_t>(faults[0].kind)];
    return true;
  }

  bool check(const std::vector<Fault>& faults, std::string what) {
    if (what.empty()) return true;
    faults_ = faults;
    what_ = std::move(what);
    return false;
  }

  const Recipe& recipe_;
  const FaultOptions& options_;
  FaultReport& report_;
  std::unique_ptr<FaultPoint> point_;
  std::vector<Fault> faults_;
  std::string what_;
};

// While a hang is shrunk: each smaller graph that hangs as well costs this time.
constexpr std::chrono::milliseconds kShortPatience = std::chrono::seconds(1);

FaultViolation make_violation(Recipe recipe, FaultOptions options, const Sweep& sweep) {
  FaultViolation violation{recipe.seed, faults_text(sweep.faults()), sweep.what(), {}};
  Library library;
  if (!add_hash_ops(library).is_ok()) return violation;
  FaultReport ignored;
  StillFails fails;
  if (sweep.what().find("hangs") != std::string::npos) {
    options.patience = std::min(options.patience, kShortPatience);
  }
  if (options.shrinks) {
    fails = [&](const Recipe& smaller) { return !Sweep(smaller, options, ignored).run(); };
  }
  violation.smallest = smallest_failing(library, std::move(recipe), fails, {.max_attempts = 300});
  return violation;
}

}  // namespace

GenerateOptions FaultOptions::fault_graphs() {
  GenerateOptions options;
  options.min_steps = 2;
  options.max_steps = 10;
  options.max_depth = 3;
  options.max_repeats = 4;
  return options;
}

bool FaultCampaign::meet(uint64_t seed) {
  if (report_.violations.size() >= options_.max_violations) return false;
  EDDY_CHECK(options_.max_kth > 0) << "no fault is ever tried";
  const Recipe recipe = make_recipe(seed, options_.generate);
  ++report_.num_graphs;
  Sweep sweep(recipe, options_, report_);
  if (sweep.run()) return true;
  report_.violations.push_back(make_violation(recipe, options_, sweep));
  return report_.violations.size() < options_.max_violations;
}

size_t count_descriptors() {
  size_t count = 0;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++count;
  }
  return count;
}

std::string descriptors_left(size_t before) {
  const size_t now = count_descriptors();
  if (now == before) return {};
  return std::to_string(before) + " descriptors were open before, " + std::to_string(now) +
         " are now";
}

FaultReport run_faults(const FaultOptions& options) {
  const size_t num_descriptors = count_descriptors();
  FaultCampaign campaign(options);
  for (uint64_t i = 0; i < options.num_seeds; ++i) {
    if (options.is_time_up && options.is_time_up()) break;
    if (!campaign.meet(options.first_seed + i)) return campaign.report();
  }
  FaultReport report = campaign.report();
  if (std::string text = descriptors_left(num_descriptors); !text.empty()) {
    report.violations.push_back({options.first_seed, "all", std::move(text), {}});
  }
  return report;
}

}  // namespace eddy::check
