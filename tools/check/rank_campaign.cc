#include "tools/check/rank_campaign.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/random.h"
#include "tools/check/rank_graph_maker.h"
#include "tools/check/rank_program.h"
#include "tools/check/rank_runner.h"

namespace eddy::check {
namespace {

using RankInputs = std::vector<std::vector<RankValue>>;  // by rank, and by input

// Where a rank is to be held until somebody has stopped its run.
struct Gate {
  static constexpr uint64_t kNever = 0;
  std::atomic<uint64_t> num_moments{0};
  std::atomic<uint64_t> at{kNever};
  std::atomic<bool> is_held{false};  // releases the moment; partner: cancel_at()

  void pass() {
    const uint64_t moment = num_moments.fetch_add(1, std::memory_order_relaxed) + 1;
    if (moment == at.load(std::memory_order_relaxed)) is_held.store(true);
  }
};

// Counts a rank's moments. While it is held, nothing comes in.
class GatedTransport final : public Transport {
 public:
  GatedTransport(std::unique_ptr<Transport> inner, Gate& gate)
      : inner_(std::move(inner)), gate_(gate) {}

  uint32_t rank() const override { return inner_->rank(); }
  uint32_t num_ranks() const override { return inner_->num_ranks(); }
  std::string describe() const override { return inner_->describe(); }
  bool can_reduce(ElementType element, RankReduction reduction, size_t num_places) const override {
    return inner_->can_reduce(element, reduction, num_places);
  }
  Result<uint32_t> open(std::span<const uint32_t> group, uint32_t number) override {
    return inner_->open(group, number);
  }
  void close(uint32_t communicator) override { inner_->close(communicator); }
  Status start(const Transfer& transfer) override {
    Status status = inner_->start(transfer);
    gate_.pass();
    return status;
  }
  Status send_message(uint32_t to, std::span<const std::byte> bytes) override {
    return inner_->send_message(to, bytes);
  }
  bool poll(Progress& progress) override {
    if (gate_.is_held.load()) return false;
    const size_t before = progress.done.size();
    const bool has_news = inner_->poll(progress);
    for (size_t i = before; i < progress.done.size(); ++i) gate_.pass();
    return has_news;
  }
  void abort(int exit_code) override { inner_->abort(exit_code); }

 private:
  const std::unique_ptr<Transport> inner_;
  Gate& gate_;
};

struct Stop {
  uint32_t rank = 0;
  uint64_t moment = 0;
};

std::string text_of(const std::vector<Stop>& stops) {
  std::vector<std::string> words;
  for (const Stop& stop : stops) {
    words.push_back(fmt::format("rank {} at its moment {}", stop.rank, stop.moment));
  }
  return fmt::format("cancelled on {}", fmt::join(words, " and on "));
}

NamedTensors tensors_of(const std::vector<RankValue>& values) {
  NamedTensors result;
  for (size_t i = 0; i < values.size(); ++i) {
    result.emplace_back("x" + std::to_string(i),
                        Tensor::of<int64_t>({2}, std::span<const int64_t>(values[i])));
  }
  return result;
}

// One program of one seed.
class RankTrial {
 public:
  RankTrial(const RankCampaignOptions& options, uint64_t seed, RankCampaignReport& report)
      : options_(options),
        report_(report),
        random_(seed),
        num_ranks_(options.min_ranks +
                   static_cast<uint32_t>(random_.below(options.max_ranks - options.min_ranks + 1))),
        has_subsets_(random_.below(3) == 0),
        program_(RankProgramMaker(seed, num_ranks_, has_subsets_).make()),
        gates_(num_ranks_),
        ranks_({.num_ranks = num_ranks_,
                .seed = seed,
                .loops = random_.below(2) == 0 ? Loops::kHost : Loops::kAuto,
                .world = {.spin = std::chrono::microseconds(random_.below(3) * 10)},
                .wrap = [this](std::unique_ptr<Transport> inner, uint32_t rank) {
                  if (options_.plant) inner = options_.plant(std::move(inner), rank);
                  return std::make_unique<GatedTransport>(std::move(inner), gates_[rank]);
                }}) {}

  // Empty, or what differs.
  std::string run() {
    const auto build = [&](const Library& library, uint32_t rank) {
      return RankGraphMaker(program_, library.ops(), rank).make();
    };
    const std::string made = ranks_.make(build, [&](SessionOptions& options, uint32_t) {
      add_agreements(program_.root, options.ranks.agree);
      options.ranks.is_one_graph = !has_subsets_;
    });
    if (!made.empty()) return "no session: " + made;
    for (uint32_t i = 0; i < options_.runs; ++i) {
      if (std::string what = compare({}); !what.empty()) return what;
    }
    return stop_everywhere();
  }

 private:
  std::string stop_everywhere() {
    std::vector<Stop> moments;
    for (uint32_t r = 0; r < num_ranks_; ++r) {
      for (uint64_t m = 1; m <= num_moments_[r]; ++m) moments.push_back({r, m});
    }
    report_.num_moments += moments.size();
    for (uint32_t i = 0; i < options_.stops && !moments.empty(); ++i) {
      if (options_.is_time_up()) return {};
      ++report_.num_stops;
      if (std::string what = stop({moments[random_.below(moments.size())]}); !what.empty()) {
        return what;
      }
    }
    for (uint32_t i = 0; i < options_.pairs && !moments.empty(); ++i) {
      if (options_.is_time_up()) return {};
      const Stop first = moments[random_.below(moments.size())];
      const Stop second = moments[random_.below(moments.size())];
      if (first.rank == second.rank) continue;
      ++report_.num_pairs;
      if (std::string what = stop({first, second}); !what.empty()) return what;
    }
    return {};
  }

  std::string stop(const std::vector<Stop>& stops) {
    std::string what = compare(stops);
    if (what.empty()) what = compare({});
    return what.empty() ? what : text_of(stops) + ": " + what;
  }

  RankInputs draw_inputs() {
    RankInputs inputs(num_ranks_);
    for (auto& of_rank : inputs) {
      for (size_t i = 0; i < program_.inputs.size(); ++i) {
        of_rank.push_back(
            {static_cast<int64_t>(random_.below(50)), static_cast<int64_t>(random_.below(50))});
      }
    }
    return inputs;
  }

  // A run on all ranks, with these stops.
  std::string compare(const std::vector<Stop>& stops) {
    const RankInputs inputs = draw_inputs();
    for (Gate& gate : gates_) {
      gate.num_moments = 0;
      gate.at = Gate::kNever;
    }
    for (const Stop& stop : stops) gates_[stop.rank].at = stop.moment;
    std::vector<Result<NamedTensors>> results;
    auto handles = ranks_.submit([&](uint32_t r) { return tensors_of(inputs[r]); }, results);
    for (RunHandle& handle : handles) {
      while (!stops.empty() && !handle.wait_for(std::chrono::microseconds(20))) {
        cancel_held(handles);
      }
      (void)handle.wait();
    }
    for (Gate& gate : gates_) gate.is_held = false;
    ++report_.num_runs;
    std::string what = judge(inputs, results, !stops.empty());
    if (what.empty() && ranks_.net().num_under_way() > 0) what = "transfers are left under way";
    if (what.empty() && !ranks_.net().violations().empty()) what = ranks_.net().violations()[0];
    if (!stops.empty()) return what;
    num_moments_.clear();
    for (const Gate& gate : gates_) num_moments_.push_back(gate.num_moments);
    return what;
  }

  void cancel_held(std::vector<RunHandle>& handles) {
    for (uint32_t r = 0; r < num_ranks_; ++r) {
      if (!gates_[r].is_held.load()) continue;
      handles[r].cancel();
      gates_[r].is_held.store(false);
    }
  }

  std::string judge(const RankInputs& inputs, const std::vector<Result<NamedTensors>>& results,
                    bool may_stop) {
    const auto text = [&](uint32_t r) {
      return results[r].is_ok() ? "ok" : results[r].status().to_string();
    };
    for (uint32_t r = 1; r < num_ranks_; ++r) {
      if (text(r) == text(0)) continue;
      return fmt::format("rank 0 ends with '{}', rank {} with '{}'", text(0), r, text(r));
    }
    if (!results[0].is_ok()) {
      ++report_.num_stopped;
      const bool is_right = may_stop && results[0].status().code() == StatusCode::kCancelled;
      return is_right ? "" : "the run ends with: " + text(0);
    }
    const RankOracle oracle(program_, inputs);
    report_.num_collectives += oracle.num_collectives();
    for (uint32_t r = 0; r < num_ranks_; ++r) {
      for (size_t i = 0; i < program_.root.results.size(); ++i) {
        const auto values = (*results[r])[i].second.values<int64_t>();
        const RankValue expected = oracle.result(r, i);
        if (std::ranges::equal(values, expected)) continue;
        return fmt::format("output {} on rank {} of {} is {}, in step {}", i, r, num_ranks_, values,
                           expected);
      }
    }
    return {};
  }

  const RankCampaignOptions& options_;
  RankCampaignReport& report_;
  Random random_;
  const uint32_t num_ranks_;
  const bool has_subsets_;
  const RankProgram program_;
  std::vector<Gate> gates_;
  std::vector<uint64_t> num_moments_;  // by rank, of the last run without stops
  RankRunner ranks_;
};

}  // namespace

bool RankCampaign::meet(uint64_t seed) {
  ++report_.num_programs;
  std::string what = RankTrial(options_, seed, report_).run();
  if (!what.empty()) report_.mismatches.push_back({seed, std::move(what)});
  return report_.mismatches.size() < options_.max_mismatches;
}

}  // namespace eddy::check
