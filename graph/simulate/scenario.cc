#include "graph/simulate/scenario.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/fingerprint.h"
#include "graph/simulate/decision_draw.h"
#include "graph/simulate/full_simulation.h"
#include "graph/simulate/scenario_program.h"
#include "graph/simulate/scenario_sample.h"

namespace eddy {
namespace {

using Choices = std::vector<int64_t>;  // in the order of the walk

// The content of the entries' records, run by run.
class Record {
 public:
  // Finds the runs. Where no entry has a trace there is one, which reads nothing.
  Status find_runs(const ScenarioProgram& program, uint64_t limit) {
    num_controls_ = program.controls().size();
    for (uint32_t control = 0; control < num_controls_; ++control) {
      if (!program.controls()[control].entry->decision.trace.empty()) traced_.push_back(control);
    }
    if (traced_.empty()) {
      num_runs_ = 1;
      return Status::ok();
    }
    std::vector<uint32_t> next(num_controls_);
    uint64_t num_followed = 0;
    for (;;) {
      for (const uint32_t control : traced_) starts_.push_back(next[control]);
      uint32_t short_of = UINT32_MAX;
      EDDY_RETURN_IF_ERROR(program.walk(
          [&](uint32_t control, int64_t& value) {
            const ScenarioEntry& entry = *program.controls()[control].entry;
            ++num_followed;
            if (entry.decision.trace.empty()) {
              // Nothing with a trace stands inside, so any value will do to find the runs.
              value = entry.kind == ScenarioEntry::Kind::kLoop
                          ? 0
                          : entry.decision.distribution[0].value;
              return true;
            }
            if (next[control] == entry.decision.trace.size()) {
              short_of = control;
              return false;
            }
            value = entry.decision.trace[next[control]++];
            return true;
          },
          limit));
      if (starts_.size() + num_followed > kMaxFollowed) {
        return resource_exhausted(fmt::format(
            "the traces hold more than {} runs, with more decisions than can be followed; give "
            "fewer runs, or distributions",
            num_runs_));
      }
      if (short_of == UINT32_MAX) {
        ++num_runs_;
        continue;
      }
      if (num_runs_ > 0) return Status::ok();
      return invalid_argument(fmt::format("the trace of '{}' is too short for one run",
                                          program.controls()[short_of].entry->name));
    }
  }

  size_t num_runs() const { return num_runs_; }
  // By control: the place in its trace.
  std::vector<uint32_t> start(size_t run) const {
    EDDY_CHECK(run < num_runs_) << "run " << run << " of " << num_runs_;
    std::vector<uint32_t> next(num_controls_);
    const size_t first = run * traced_.size();
    for (size_t t = 0; t < traced_.size(); ++t) next[traced_[t]] = starts_[first + t];
    return next;
  }

 private:
  // Decisions, and places kept.
  static constexpr uint64_t kMaxFollowed = 50'000'000;

  size_t num_controls_ = 0;
  size_t num_runs_ = 0;
  std::vector<uint32_t> traced_;  // controls with a trace
  std::vector<uint32_t> starts_;  // by run, and one more; and by traced control
};

class Evaluation {
 public:
  Evaluation(const ScenarioProgram& program, const ScenarioOptions& options)
      : program_(program), options_(options) {}

  Result<ScenarioReport> run() {
    EDDY_RETURN_IF_ERROR(record_.find_runs(program_, options_.max_tasks));
    report_.seed = options_.seed;
    EDDY_ASSIGN_OR_RETURN(report_.is_exact, try_all());
    if (!report_.is_exact) {
      sample_.clear();
      EDDY_RETURN_IF_ERROR(take_samples());
      EDDY_RETURN_IF_ERROR(add_extreme());
    }
    sample_.fill(options_.quantiles, report_);
    return std::move(report_);
  }

  // The first run of the record, other choices by sample 0.
  Status expand_first(ScenarioProgram::Expansion& expansion) {
    EDDY_RETURN_IF_ERROR(record_.find_runs(program_, options_.max_tasks));
    return program_.expand(sampler(0, 0), options_.max_tasks, expansion);
  }

 private:
  // Every scenario with its probability: the last choice that has another value moves on, those
  // behind it start over. False where they are too many.
  Result<bool> try_all() {
    uint64_t count = 0;
    const auto counting = [&](const Choices&, double) -> Result<bool> {
      EDDY_RETURN_IF_ERROR(go_on(++count));
      return count <= options_.max_exact;
    };
    EDDY_ASSIGN_OR_RETURN(const bool are_few, for_each_scenario(counting));
    if (!are_few) return false;
    report_.num_scenarios = count;
    return for_each_scenario([&](const Choices& choices, double probability) -> Result<bool> {
      EDDY_RETURN_IF_ERROR(go_on(count));
      EDDY_ASSIGN_OR_RETURN(const double makespan, simulate(choices));
      sample_.add(makespan, probability);
      ++num_done_;
      return true;
    });
  }
  // One at a time: the choices of all would fill the memory. Returns false as soon as `visit` does.
  template <typename Visit>
  Result<bool> for_each_scenario(Visit visit) {
    Choices choices;
    for (size_t run = 0; run < record_.num_runs(); ++run) {
      ChoiceTree tree;
      do {
        choices.clear();
        double probability = 1 / static_cast<double>(record_.num_runs());
        EDDY_RETURN_IF_ERROR(
            program_.walk(enumerator(run, tree, choices, probability), options_.max_tasks));
        EDDY_ASSIGN_OR_RETURN(const bool goes_on, visit(choices, probability));
        if (!goes_on) return false;
      } while (tree.advance());
    }
    return true;
  }

  // Reports its progress, unless it is to stop.
  Status go_on(uint64_t count) const {
    if (options_.should_stop && options_.should_stop()) {
      return cancelled(fmt::format("interrupted after {} of {} scenarios", num_done_, count));
    }
    if (options_.on_progress) options_.on_progress(num_done_, count);
    return Status::ok();
  }

  ScenarioProgram::Choose enumerator(size_t run, ChoiceTree& tree, Choices& choices,
                                     double& probability) {
    return [&, next = record_.start(run)](uint32_t control, int64_t& value) mutable {
      const auto& about = program_.controls()[control];
      if (about.likely.empty()) {
        EDDY_DCHECK(next[control] < about.entry->decision.trace.size())
            << "the record of '" << about.entry->name << "' is at its end";
        value = about.entry->decision.trace[next[control]++];
      } else {
        const size_t pick = tree.pick(about.likely.size());
        value = about.likely[pick].value;
        probability *= about.probabilities[pick];
      }
      choices.push_back(value);
      return true;
    };
  }

  // Draws that depend on seed, sample, name and execution only.
  ScenarioProgram::Choose sampler(size_t run, uint64_t sample) {
    return [this, sample, next = record_.start(run),
            executions = std::vector<uint64_t>(program_.controls().size())](
               uint32_t control, int64_t& value) mutable {
      const auto& about = program_.controls()[control];
      if (about.likely.empty()) {
        EDDY_DCHECK(next[control] < about.entry->decision.trace.size())
            << "no run of the record goes on in '" << about.entry->name << "'";
        value = about.entry->decision.trace[next[control]++];
        return true;
      }
      const double draw =
          draw_uniform(options_.seed, sample, about.name_hash, executions[control]++);
      const auto place =
          std::ranges::upper_bound(about.likely, draw, {}, &Decision::Likely::probability);
      value = (place == about.likely.end() ? about.likely.back() : *place).value;
      return true;
    };
  }

  Status take_samples() {
    for (uint64_t sample = 0; sample < options_.num_samples; ++sample) {
      EDDY_RETURN_IF_ERROR(go_on(options_.num_samples));
      const auto runs = static_cast<double>(record_.num_runs());
      const auto run = static_cast<size_t>(draw_uniform(options_.seed, sample, 0, 0) * runs);
      Choices choices;
      const ScenarioProgram::Choose choose = sampler(run, sample);
      EDDY_RETURN_IF_ERROR(program_.walk(
          [&](uint32_t control, int64_t& value) {
            choose(control, value);
            choices.push_back(value);
            return true;
          },
          options_.max_tasks));
      EDDY_ASSIGN_OR_RETURN(const double makespan, simulate(choices));
      sample_.add(makespan, 1);
      ++num_done_;
    }
    report_.num_scenarios = options_.num_samples;
    return Status::ok();
  }

  Status add_extreme() {
    Choices choices;
    const Status status = program_.walk(
        [&](uint32_t control, int64_t& value) {
          value = program_.controls()[control].extreme;
          choices.push_back(value);
          return true;
        },
        options_.max_tasks);
    if (!status.is_ok()) return Status::ok();  // longer than any that was drawn
    EDDY_ASSIGN_OR_RETURN(report_.worst, simulate(choices));
    return Status::ok();
  }

  // Equal choices make equal tasks, so each is simulated once.
  Result<double> simulate(const Choices& choices) {
    Fingerprint print;
    print.add_bytes(choices.data(), choices.size() * sizeof(choices[0]));
    const std::string key = print.text();
    const auto known = makespans_.find(key);
    if (known != makespans_.end()) return known->second;
    expansion_.specs.clear();
    expansion_.edges.clear();
    EDDY_RETURN_IF_ERROR(program_.expand(
        [&choices, next = size_t{0}](uint32_t, int64_t& value) mutable {
          EDDY_DCHECK(next < choices.size()) << "a walk asks more than the one before";
          value = choices[next++];
          return true;
        },
        options_.max_tasks, expansion_));
    graph_.assign(expansion_.specs, expansion_.edges);
    const SimulationEnd end = simulation_.run(graph_, timeline_).end;
    EDDY_CHECK(end != SimulationEnd::kCycle) << "entries were put in order, and their tasks wait";
    if (end == SimulationEnd::kOverflow) {
      return invalid_argument("the times of a scenario add up to more than a number holds");
    }
    return makespans_[key] = timeline_.makespan;
  }

  const ScenarioProgram& program_;
  const ScenarioOptions& options_;
  Record record_;
  ScenarioSample sample_;
  ScenarioReport report_;
  uint64_t num_done_ = 0;
  std::unordered_map<std::string, double> makespans_;  // by fingerprint of the choices
  ScenarioProgram::Expansion expansion_;
  TaskGraph<double> graph_;
  FullSimulation<double> simulation_;
  Timeline<double> timeline_;
};

}  // namespace

Result<ScenarioReport> evaluate_scenarios(const ScenarioRegion& root,
                                          const ScenarioOptions& options) {
  EDDY_RETURN_IF_ERROR(check_scenario_options(options));
  EDDY_ASSIGN_OR_RETURN(const ScenarioProgram program, ScenarioProgram::create(root));
  return Evaluation(program, options).run();
}

Result<ExpandedScenario> expand_scenario(const ScenarioRegion& root,
                                         const ScenarioOptions& options) {
  EDDY_RETURN_IF_ERROR(check_scenario_options(options));
  EDDY_ASSIGN_OR_RETURN(const ScenarioProgram program, ScenarioProgram::create(root));
  ScenarioProgram::Expansion expansion;
  expansion.wants_names = true;
  EDDY_RETURN_IF_ERROR(Evaluation(program, options).expand_first(expansion));
  EDDY_CHECK(expansion.names.size() == expansion.specs.size() &&
             expansion.is_decision.size() == expansion.specs.size())
      << expansion.names.size() << " names for " << expansion.specs.size() << " tasks";
  ExpandedScenario scenario;
  scenario.graph.assign(expansion.specs, expansion.edges);
  scenario.names = std::move(expansion.names);
  scenario.is_decision = std::move(expansion.is_decision);
  return scenario;
}

}  // namespace eddy
