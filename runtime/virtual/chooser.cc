#include "runtime/virtual/chooser.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/base/check.h"
#include "graph/base/random.h"

namespace eddy {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"uniform", "pct", "starve", "late", "early"};
static_assert(kNames.size() == static_cast<size_t>(SchedulePolicy::kEarly) + 1, "a name for each");

uint64_t mix(uint64_t seed, uint64_t value) { return Random(seed ^ (value << 32)).next(); }

class Uniform : public Chooser {
 public:
  explicit Uniform(uint64_t seed) : random_(seed) {}
  size_t choose(std::span<const LaneNumber> ready) override { return random_.below(ready.size()); }

 private:
  Random random_;
};

// The lane with the greatest value of a function moves.
template <typename Value>
size_t greatest(std::span<const LaneNumber> ready, Value value_of) {
  EDDY_DCHECK(!ready.empty()) << "there is nothing to choose from";
  size_t best = 0;
  for (size_t i = 1; i < ready.size(); ++i) {
    if (value_of(ready[i]) > value_of(ready[best])) best = i;
  }
  return best;
}

class Pct : public Chooser {
 public:
  explicit Pct(const ChooserOptions& options)
      : options_(options), random_(options.seed), horizon_(options.expected_choices) {
    plan_changes(0);
  }

  size_t choose(std::span<const LaneNumber> ready) override {
    const auto leads = [this](LaneNumber lane) { return priority(lane); };
    size_t best = greatest(ready, leads);
    if (std::find(changes_.begin(), changes_.end(), num_choices_) != changes_.end()) {
      priorities_[ready[best]] = next_low_--;
      best = greatest(ready, leads);
    }
    if (++num_choices_ == horizon_) {
      horizon_ *= 2;
      plan_changes(num_choices_);
    }
    return best;
  }

 private:
  void plan_changes(uint64_t from) {
    EDDY_CHECK(from < horizon_) << "no choice is expected between " << from << " and " << horizon_;
    changes_.clear();
    for (uint32_t i = 0; i < options_.depth; ++i) {
      changes_.push_back(from + random_.below(horizon_ - from));
    }
  }
  int64_t priority(LaneNumber lane) {
    const auto [it, is_new] = priorities_.try_emplace(lane, 0);
    if (is_new) it->second = static_cast<int64_t>(mix(options_.seed, lane) >> 2);
    return it->second;
  }

  const ChooserOptions options_;
  Random random_;
  uint64_t horizon_;
  uint64_t num_choices_ = 0;
  std::vector<uint64_t> changes_;
  std::map<LaneNumber, int64_t> priorities_;
  int64_t next_low_ = -1;
};

class Starve : public Chooser {
 public:
  explicit Starve(uint64_t seed) : random_(seed), seed_(seed) {}

  size_t choose(std::span<const LaneNumber> ready) override {
    for (LaneNumber lane : ready) {
      if (victim_ == 0 || mix(seed_, lane) < mix(seed_, victim_)) victim_ = lane;
    }
    const size_t i = random_.below(ready.size());
    return ready[i] != victim_ ? i : (i + 1) % ready.size();
  }

 private:
  Random random_;
  const uint64_t seed_;
  LaneNumber victim_ = 0;  // of all lanes seen so far
};

class Late : public Chooser {
 public:
  size_t choose(std::span<const LaneNumber> ready) override {
    return greatest(ready, [](LaneNumber lane) { return -static_cast<int64_t>(lane); });
  }
};

class Early : public Chooser {
 public:
  size_t choose(std::span<const LaneNumber> ready) override {
    return greatest(ready, [](LaneNumber lane) { return lane; });
  }
};

}  // namespace

std::string_view schedule_policy_name(SchedulePolicy policy) {
  EDDY_CHECK(static_cast<size_t>(policy) < kNames.size()) << "no such policy";
  return kNames[static_cast<size_t>(policy)];
}

std::optional<SchedulePolicy> find_schedule_policy(std::string_view name) {
  const auto it = std::find(kNames.begin(), kNames.end(), name);
  if (it == kNames.end()) return std::nullopt;
  return static_cast<SchedulePolicy>(it - kNames.begin());
}

std::unique_ptr<Chooser> make_chooser(const ChooserOptions& options) {
  switch (options.policy) {
    case SchedulePolicy::kUniform:
      return std::make_unique<Uniform>(options.seed);
    case SchedulePolicy::kPct:
      return std::make_unique<Pct>(options);
    case SchedulePolicy::kStarve:
      return std::make_unique<Starve>(options.seed);
    case SchedulePolicy::kLate:
      return std::make_unique<Late>();
    case SchedulePolicy::kEarly:
      return std::make_unique<Early>();
  }
  EDDY_CHECK(false) << "policy " << static_cast<int>(options.policy) << " has no chooser";
  return nullptr;
}

size_t ReplayChooser::choose(std::span<const LaneNumber> ready) {
  const uint32_t num_ready = static_cast<uint32_t>(ready.size());
  EDDY_CHECK(num_ready > 0) << "there is nothing to choose from";
  const uint32_t wanted = made_.size() < given_.size() ? given_[made_.size()] : 0;
  const uint32_t chosen = std::min(wanted, num_ready - 1);
  made_.push_back({chosen, num_ready});
  return chosen;
}

const std::vector<uint32_t>* Explorer::next_or_null() { return has_next_ ? &given_ : nullptr; }

void Explorer::made(std::span<const ReplayChooser::Choice> choices) {
  EDDY_CHECK(has_next_) << "all orders have been taken";
  EDDY_CHECK(std::ranges::all_of(choices, [](const ReplayChooser::Choice& choice) {
    return choice.chosen < choice.num_ready;
  })) << "a choice of what was not ready";
  size_t last = choices.size();
  while (last > 0 && choices[last - 1].chosen + 1 == choices[last - 1].num_ready) --last;
  has_next_ = last > 0;
  given_.clear();
  for (size_t i = 0; i < last; ++i) given_.push_back(choices[i].chosen);
  if (has_next_) ++given_.back();
}

}  // namespace eddy
