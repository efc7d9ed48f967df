#include "graph/simulate/scenario.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "graph/simulate/decision_draw.h"
#include "graph/simulate/full_simulation.h"
#include "graph/simulate/scenario_program.h"
#include "graph/simulate/scenario_sample.h"

namespace eddy {
namespace {

using Choices = std::vector<int64_t>;  // in the order of the walk

// What the entries' records say, run by run.
class Record {
 public:
  // Finds the runs. Where no entry has a trace there is one, which reads nothing.
  Status find_runs(const ScenarioProgram& program, uint64_t limit) {
    std::vector<size_t> next(program.controls().size());
    if (!program.has_traces()) {
      starts_.push_back(next);
      return Status::ok();
    }
    for (;;) {
      const std::vector<size_t> start = next;
      uint32_t short_of = UINT32_MAX;
      EDDY_RETURN_IF_ERROR(program.walk(
          [&](uint32_t control, int64_t& value) {
            const ScenarioEntry& entry = *program.controls()[control].entry;
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
      if (short_of == UINT32_MAX) {
        starts_.push_back(start);
        continue;
      }
      if (!starts_.empty()) return Status::ok();
      return invalid_argument(fmt::format("the trace of '{}' is too short for one run",
                                          program.controls()[short_of].entry->name));
    }
  }

  size_t num_runs() const { return starts_.size(); }
  const std::vector<size_t>& start(size_t run) const { return starts_[run]; }

 private:
  std::vector<std::vector<size_t>> starts_;  // by run and control
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
    std::vector<std::pair<Choices, double>> all;
    for (size_t run = 0; run < record_.num_runs(); ++run) {
      ChoiceTree tree;
      do {
        if (all.size() == options_.max_exact) return false;
        EDDY_RETURN_IF_ERROR(go_on(all.size() + 1));
        Choices choices;
        double probability = 1 / static_cast<double>(record_.num_runs());
        EDDY_RETURN_IF_ERROR(
            program_.walk(enumerator(run, tree, choices, probability), options_.max_tasks));
        all.emplace_back(std::move(choices), probability);
      } while (tree.advance());
    }
    for (const auto& [choices, probability] : all) {
      EDDY_RETURN_IF_ERROR(go_on(all.size()));
      EDDY_ASSIGN_OR_RETURN(const double makespan, simulate(choices));
      sample_.add(makespan, probability);
      ++num_done_;
    }
    report_.num_scenarios = all.size();
    return true;
  }

  // Says how far it is, unless it is to stop.
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
    const auto known = makespans_.find(choices);
    if (known != makespans_.end()) return known->second;
    expansion_.specs.clear();
    expansion_.edges.clear();
    EDDY_RETURN_IF_ERROR(program_.expand(
        [&choices, next = size_t{0}](uint32_t, int64_t& value) mutable {
          value = choices[next++];
          return true;
        },
        options_.max_tasks, expansion_));
    graph_.assign(expansion_.specs, expansion_.edges);
    if (simulation_.run(graph_, timeline_).end == SimulationEnd::kOverflow) {
      return invalid_argument("the times of a scenario add up to more than a number holds");
    }
    return makespans_[choices] = timeline_.makespan;
  }

  const ScenarioProgram& program_;
  const ScenarioOptions& options_;
  Record record_;
  ScenarioSample sample_;
  ScenarioReport report_;
  uint64_t num_done_ = 0;
  std::map<Choices, double> makespans_;
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
  ExpandedScenario scenario;
  scenario.graph.assign(expansion.specs, expansion.edges);
  scenario.names = std::move(expansion.names);
  scenario.is_decision = std::move(expansion.is_decision);
  return scenario;
}

}  // namespace eddy
