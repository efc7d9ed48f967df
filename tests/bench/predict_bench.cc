// Predicted against measured time of CPU plans: how well the fluid model predicts, before a run,
// the time of each of several plans of one model.
//
//   bazel run //tests/bench:predict_bench -- [--filter NAME] [--rounds N] [--silero FILE]
//
// Sixteen models, six of them held out (predict_models.h), each kind with a sum of its own. For
// each: the steps of a plan of one stream are measured in their place (run after
// run, beside the plans themselves), each plan (serial, rank and matching on at most one and two
// streams) is simulated with these costs on the machine that micrographs have measured, and run.
// So for plans of one stream what is tested is that steps and overheads add up; those of two
// streams are predicted from costs that no second stream had a part in.
//
// Measured is the best of all runs. Plans that are equal command for command are run once. Two
// plans differ where the better time is better by more than 3 % and the middle halves of their
// runs do not overlap; their order is preserved when they are predicted in the same order.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "graph/compile/predict_plan.h"
#include "tests/bench/predict_machine.h"
#include "tests/bench/predict_models.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

struct BenchArguments {
  std::string filter;
  std::string silero;
  std::string models = "tests/bench/models";
  int rounds = 15;
  double budget_s = 10;  // of one model
  bool is_verbose = false;
};

struct PlanKind {
  const char* name;
  Assignment assignment;
  uint32_t cap;
};
constexpr int kMinRounds = 3;

constexpr PlanKind kKinds[] = {{"serial", Assignment::kSerial, 1},
                               {"rank 1", Assignment::kRank, 1},
                               {"rank 2", Assignment::kRank, 2},
                               {"matching 1", Assignment::kMatching, 1},
                               {"matching 2", Assignment::kMatching, 2}};

// A session of a model with a run prepared.
struct Runner {
  std::unique_ptr<Session> session;
  std::unique_ptr<Call> call;
};

Result<Runner> make_runner(const Library& library, const PredictModel& model, const PlanKind& kind,
                           StepObserver* observer, const std::vector<HostValue>* feed) {
  EDDY_ASSIGN_OR_RETURN(Graph graph, model.build(library));
  SessionOptions options;
  options.num_threads = 2;
  options.assignment = kind.assignment;
  options.max_streams = kind.cap;
  options.observer_or_null = observer;
  Runner runner;
  EDDY_ASSIGN_OR_RETURN(runner.session, Session::create(library, std::move(graph), options));
  EDDY_ASSIGN_OR_RETURN(runner.call, runner.session->prepare());
  for (size_t i = 0; feed != nullptr && i < feed->size(); ++i) {
    EDDY_RETURN_IF_ERROR(runner.call->bind_input(i, (*feed)[i].view()));
  }
  return runner;
}

bool are_equal(const Plan& a, const Plan& b) {
  return std::ranges::equal(a.program.blocks, b.program.blocks, [](const auto& x, const auto& y) {
    return x.streams == y.streams && x.steps == y.steps;
  });
}

struct PlanResult {
  const PlanKind* kind = nullptr;
  size_t same_as = SIZE_MAX;  // an earlier one
  uint32_t num_streams = 1;
  double predicted_ns = 0;
  double measured_ns = 0;
  double low_ns = 0;  // the middle half of all runs
  double high_ns = 0;

  double error() const { return predicted_ns / measured_ns - 1; }
};

// The steps of the watched run that took least.
class BestRun {
 public:
  void add(const StepProfile& profile, const Graph& graph, const LookingCosts& looking) {
    if (profile.total_ticks() >= least_ticks_) return;
    least_ticks_ = profile.total_ticks();
    work_ = profile.work(graph, looking);
  }
  const NodeWork& work() const { return work_; }

 private:
  uint64_t least_ticks_ = UINT64_MAX;
  NodeWork work_;
};

class PredictBench {
 public:
  PredictBench(const BenchArguments& arguments, const MeasuredMachine& machine)
      : arguments_(arguments), machine_(machine) {}

  Status run() {
    std::printf("%-18s %-12s %7s %12s %12s %22s %8s\n", "model", "plan", "streams", "predicted µs",
                "measured µs", "middle half", "error");
    for (const PredictModel& model : predict_models(arguments_.models, arguments_.silero)) {
      if (model.name.find(arguments_.filter) == std::string::npos) continue;
      Status status = run_model(model);
      if (!status.is_ok()) return std::move(status.prepend_message(model.name));
    }
    say_sums("models that the model was made with", seen_);
    say_sums("held-out models", held_out_);
    return Status::ok();
  }

 private:
  struct Sums {
    double error = 0, parallel_error = 0;
    int plans = 0, parallel_plans = 0, models = 0, pairs = 0, wrong_pairs = 0;
  };

  static void say_sums(const char* which, const Sums& sums) {
    if (sums.models == 0) return;
    std::printf(
        "mean error %.1f %% over %d plans of %d %s (%.1f %% over those of two streams); "
        "order preserved in %d of %d pairs that differ\n",
        100 * sums.error / std::max(1, sums.plans), sums.plans, sums.models, which,
        100 * sums.parallel_error / std::max(1, sums.parallel_plans), sums.pairs - sums.wrong_pairs,
        sums.pairs);
  }

  Status run_model(const PredictModel& model) {
    const Library library;
    StepProfile profile;
    EDDY_ASSIGN_OR_RETURN(Runner watched,
                          make_runner(library, model, kKinds[0], &profile, nullptr));
    EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> feed, model.feed(watched.session->inputs()));
    for (size_t i = 0; i < feed.size(); ++i) {
      EDDY_RETURN_IF_ERROR(watched.call->bind_input(i, feed[i].view()));
    }
    std::vector<Runner> runners;
    std::vector<PlanResult> results;
    for (const PlanKind& kind : kKinds) {
      EDDY_ASSIGN_OR_RETURN(Runner runner, make_runner(library, model, kind, nullptr, &feed));
      PlanResult result{.kind = &kind, .num_streams = runner.session->plan().num_streams};
      for (size_t i = 0; i < runners.size() && result.same_as == SIZE_MAX; ++i) {
        const bool is_first = results[i].same_as == SIZE_MAX;
        if (is_first && are_equal(runner.session->plan(), runners[i].session->plan())) {
          result.same_as = i;
        }
      }
      runners.push_back(std::move(runner));
      results.push_back(result);
    }
    BestRun best;
    EDDY_RETURN_IF_ERROR(measure(watched, profile, best, runners, results));
    for (size_t i = 0; i < results.size(); ++i) {
      EDDY_ASSIGN_OR_RETURN(const FluidTimeline timeline,
                            predict_plan(watched.session->graph(), runners[i].session->plan(),
                                         best.work(), machine_.machine));
      results[i].predicted_ns = timeline.makespan_ns;
    }
    report(model, results);
    return Status::ok();
  }

  // Rounds of all plans and of the watched one. In its turn each runs once to have its data near,
  // then as often as the clock needs, every run timed.
  Status measure(Runner& watched, StepProfile& profile, BestRun& best, std::vector<Runner>& runners,
                 std::vector<PlanResult>& results) {
    const Graph& graph = watched.session->graph();
    std::vector<std::vector<double>> times(runners.size());
    const int64_t start_ns = now_ns();
    for (int round = 0; round < arguments_.rounds; ++round) {
      if (round >= kMinRounds && now_ns() - start_ns > arguments_.budget_s * 1e9) break;
      EDDY_RETURN_IF_ERROR(take_turn([&](bool is_timed) {
        profile.begin(graph.num_nodes());
        EDDY_RETURN_IF_ERROR(watched.call->run());
        if (is_timed) best.add(profile, graph, machine_.looking);
        return Status::ok();
      }));
      for (size_t i = 0; i < runners.size(); ++i) {
        if (results[i].same_as != SIZE_MAX) continue;
        EDDY_RETURN_IF_ERROR(take_turn([&](bool is_timed) {
          const int64_t run_start_ns = now_ns();
          EDDY_RETURN_IF_ERROR(runners[i].call->run());
          if (is_timed) times[i].push_back(static_cast<double>(now_ns() - run_start_ns));
          return Status::ok();
        }));
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      std::vector<double>& all = times[results[i].same_as == SIZE_MAX ? i : results[i].same_as];
      std::ranges::sort(all);
      results[i].measured_ns = all.front();
      results[i].low_ns = all[all.size() / 4];
      results[i].high_ns = all[all.size() - 1 - all.size() / 4];
    }
    return Status::ok();
  }

  template <typename Run>
  static Status take_turn(const Run& run) {
    constexpr int64_t kTurnNs = 4'000'000;
    EDDY_RETURN_IF_ERROR(run(false));
    const int64_t start_ns = now_ns();
    do {
      EDDY_RETURN_IF_ERROR(run(true));
    } while (now_ns() - start_ns < kTurnNs);
    return Status::ok();
  }

  void report(const PredictModel& model, const std::vector<PlanResult>& results) {
    Sums& sums = model.is_held_out ? held_out_ : seen_;
    ++sums.models;
    for (const PlanResult& result : results) {
      const bool is_same = result.same_as != SIZE_MAX;
      std::printf("%-18s %-12s %7u %12.1f %12.1f %10.1f .. %8.1f %7.1f%%%s%s\n", model.name.c_str(),
                  result.kind->name, result.num_streams, result.predicted_ns / 1e3,
                  result.measured_ns / 1e3, result.low_ns / 1e3, result.high_ns / 1e3,
                  100 * result.error(), is_same ? "  = " : "",
                  is_same ? results[result.same_as].kind->name : "");
      if (is_same) continue;
      sums.error += std::abs(result.error());
      ++sums.plans;
      if (result.num_streams == 1) continue;
      sums.parallel_error += std::abs(result.error());
      ++sums.parallel_plans;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (results[i].same_as == SIZE_MAX && results[j].same_as == SIZE_MAX) {
          compare(results[j], results[i], sums);
        }
      }
    }
    std::fflush(stdout);
  }

  static void compare(const PlanResult& a, const PlanResult& b, Sums& sums) {
    const PlanResult& faster = a.measured_ns < b.measured_ns ? a : b;
    const PlanResult& slower = a.measured_ns < b.measured_ns ? b : a;
    const bool differs =
        slower.measured_ns > 1.03 * faster.measured_ns && faster.high_ns < slower.low_ns;
    if (!differs) return;
    ++sums.pairs;
    if (slower.predicted_ns > faster.predicted_ns) return;
    ++sums.wrong_pairs;
    std::printf("  order of %s and %s is not preserved\n", a.kind->name, b.kind->name);
  }

  const BenchArguments& arguments_;
  const MeasuredMachine& machine_;
  Sums seen_;
  Sums held_out_;
};

Status run_bench(const BenchArguments& arguments) {
  EDDY_ASSIGN_OR_RETURN(const MeasuredMachine machine, measure_machine(arguments.rounds));
  std::fputs(to_text(machine).c_str(), stdout);
  return PredictBench(arguments, machine).run();
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  eddy::BenchArguments arguments;
  CLI::App app("Predicted against measured time of CPU plans.", "predict_bench");
  app.add_option("--filter", arguments.filter, "only models with this in their names");
  app.add_option("--silero", arguments.silero, "the voice model's file, as one more");
  app.add_option("--models", arguments.models, "folder of the ONNX files of tests/bench/models");
  app.add_option("--rounds", arguments.rounds, "of measurement")->check(CLI::Range(3, 1000));
  app.add_option("--budget", arguments.budget_s, "seconds of one model");
  CLI11_PARSE(app, argc, argv);
  const eddy::Status status = eddy::run_bench(arguments);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "predict_bench: %s\n", status.to_string().c_str());
  return 1;
}
