// Chooser: which of the lanes that could go on goes on next: the whole order of a virtual device.
//
//   uniform   any of them, equally likely
//   pct       random priorities; at `depth` random moments the lane that leads falls behind all
//             others. Finds a bug that needs depth + 1 orderings with a probability that does not
//             fall with the length of the run (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A
//             randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).
//   starve    one lane moves only when no other can
//   late      lanes that were made first go first: further strands run as late as they can
//   early     the other way round: a strand runs to its end before what has woken it goes on
//
// Same policy, seed and calls: same choices. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace eddy {

// A stream, or a strand; counted by its device from 1. 0 is the host.
using LaneNumber = uint32_t;

class Chooser {
 public:
  virtual ~Chooser() = default;
  // The position of the lane that moves. Called only where there are two or more.
  virtual size_t choose(std::span<const LaneNumber> ready) = 0;
};

enum class SchedulePolicy : uint8_t { kUniform, kPct, kStarve, kLate, kEarly };

// "uniform", "pct", "starve", "late", "early".
std::string_view schedule_policy_name(SchedulePolicy policy);
std::optional<SchedulePolicy> find_schedule_policy(std::string_view name);

struct ChooserOptions {
  SchedulePolicy policy = SchedulePolicy::kUniform;
  uint64_t seed = 0;
  uint32_t depth = 3;              // pct
  uint64_t expected_choices = 64;  // pct: the moments lie below this; it doubles when passed
};
std::unique_ptr<Chooser> make_chooser(const ChooserOptions& options);

// Makes choices that it was given, then always the first; remembers what there was to choose from.
class ReplayChooser : public Chooser {
 public:
  struct Choice {
    uint32_t chosen;
    uint32_t num_ready;
  };
  explicit ReplayChooser(std::vector<uint32_t> given = {}) : given_(std::move(given)) {}
  size_t choose(std::span<const LaneNumber> ready) override;
  const std::vector<Choice>& made() const { return made_; }

 private:
  std::vector<uint32_t> given_;
  std::vector<Choice> made_;
};

// Walks through every order that a deterministic run can take: run with a ReplayChooser of
// next_or_null(), hand over what it made, until there is no next.
class Explorer {
 public:
  // The choices of the next run; null when all orders have been taken.
  const std::vector<uint32_t>* next_or_null();
  void made(std::span<const ReplayChooser::Choice> choices);

 private:
  bool has_next_ = true;
  std::vector<uint32_t> given_;
};

}  // namespace eddy
