#include "graph/simulate/fluid_scenarios.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/base/text_hash.h"
#include "graph/simulate/decision_draw.h"
#include "graph/simulate/scenario_sample.h"

namespace eddy {
namespace {

// A loop or case, by the dense number loops first, then cases.
struct Control {
  const Decision* decision = nullptr;
  uint64_t name_hash = 0;
  std::vector<Decision::Likely> likely;  // those above probability 0
  double total = 0;                      // of their probabilities
  int64_t extreme = 0;
  uint64_t num_read = 0;  // of its trace, by the runs before this one
};

int64_t draw(const Control& control, double at) {
  EDDY_CHECK(!control.likely.empty() && control.total > 0) << "nothing is likely";
  at *= control.total;
  for (const Decision::Likely& likely : control.likely) {
    if (at < likely.probability) return likely.value;
    at -= likely.probability;
  }
  return control.likely.back().value;
}

// The work of each block, inner loops at their most trips.
class BlockWork {
 public:
  BlockWork(const Program& program, const FluidCosts& costs, const std::vector<Control>& controls)
      : program_(program), costs_(costs), controls_(controls), work_(program.blocks.size()) {
    // Inner blocks behind those they stand in.
    std::vector<uint32_t> order = {0};
    for (size_t i = 0; i < order.size(); ++i) {
      for (const Program::Step& step : program.blocks[order[i]].steps) {
        for (const uint32_t inner : blocks_of(step)) order.push_back(inner);
      }
    }
    for (size_t i = order.size(); i-- > 0;) {
      for (const Program::Step& step : program.blocks[order[i]].steps) {
        work_[order[i]] += work_of(step);
      }
    }
  }

  double operator[](uint32_t block) const { return work_[block]; }

 private:
  std::vector<uint32_t> blocks_of(const Program::Step& step) const {
    if (step.op == Program::Op::kCase) return program_.cases[step.operand].blocks;
    if (step.op != Program::Op::kLoop) return {};
    return {program_.loops[step.operand].before, program_.loops[step.operand].after};
  }

  double work_of(const Program::Step& step) const {
    if (step.op == Program::Op::kLaunch) return costs_.launches[step.operand].solo_ns;
    if (step.op == Program::Op::kLoop) {
      const Program::Loop& loop = program_.loops[step.operand];
      const auto trips = static_cast<double>(controls_[step.operand].extreme);
      return (trips + 1) * work_[loop.before] + trips * work_[loop.after];
    }
    double most = 0;
    for (const uint32_t block : blocks_of(step)) most = std::max(most, work_[block]);
    return most;
  }

  const Program& program_;
  const FluidCosts& costs_;
  const std::vector<Control>& controls_;
  std::vector<double> work_;
};

class Evaluation {
 public:
  Evaluation(const Program& program, const FluidCosts& costs, const FluidMachine& machine,
             const ScenarioOptions& options, const FluidOptions& fluid)
      : program_(program), costs_(costs), machine_(machine), options_(options), fluid_(fluid) {}

  Result<ScenarioReport> run() {
    EDDY_RETURN_IF_ERROR(check_fluid_costs(program_, costs_, machine_));
    find_controls();
    report_.seed = options_.seed;
    if (!has_draws_) {
      EDDY_RETURN_IF_ERROR(read_record());
    } else {
      if (!has_traces_) {
        EDDY_ASSIGN_OR_RETURN(report_.is_exact, try_all());
      }
      if (!report_.is_exact) EDDY_RETURN_IF_ERROR(take_samples());
    }
    sample_.fill(options_.quantiles, report_);
    return std::move(report_);
  }

 private:
  void find_controls() {
    for (const FluidCosts::Loop& loop : costs_.loops) add_control(loop.name, loop.decision);
    for (const FluidCosts::Case& branch : costs_.cases) add_control(branch.name, branch.decision);
    for (size_t i = 0; i < program_.loops.size(); ++i) {
      controls_[i].extreme = std::ranges::max(values_of(controls_[i]));
    }
    const BlockWork work(program_, costs_, controls_);
    for (size_t i = 0; i < program_.cases.size(); ++i) {
      const std::vector<uint32_t>& blocks = program_.cases[i].blocks;
      const auto work_in = [&](int64_t value) {
        const bool is_block = value >= 0 && static_cast<uint64_t>(value) < blocks.size();
        return is_block ? work[blocks[static_cast<size_t>(value)]] : 0;
      };
      Control& control = controls_[program_.loops.size() + i];
      control.extreme = std::ranges::max(values_of(control), {}, work_in);
    }
  }

  void add_control(const std::string& name, const Decision& decision) {
    Control& control = controls_.emplace_back();
    control.decision = &decision;
    control.name_hash = text_hash(name);
    for (const Decision::Likely& likely : decision.distribution) {
      if (likely.probability > 0) control.likely.push_back(likely);
      control.total += likely.probability;
    }
    (control.likely.empty() ? has_traces_ : has_draws_) = true;
  }

  static std::vector<int64_t> values_of(const Control& control) {
    std::vector<int64_t> values = control.decision->trace;
    EDDY_CHECK(!values.empty() || !control.likely.empty()) << "a control that is never decided";
    for (const Decision::Likely& likely : control.likely) values.push_back(likely.value);
    return values;
  }

  // The runs of the record.
  Status read_record() {
    bool has_ended = false;
    while (!has_ended && report_.num_scenarios < options_.max_exact) {
      EDDY_ASSIGN_OR_RETURN(const double makespan, simulate([](const Control& control, uint64_t k) {
                              return read_trace(control, k);
                            }));
      sample_.add(makespan, 1);
      ++report_.num_scenarios;
      has_ended = std::ranges::all_of(controls_, [](const Control& control) {
        return control.num_read == 0 || control.num_read >= control.decision->trace.size();
      });
    }
    report_.is_exact = has_ended;
    return Status::ok();
  }

  static int64_t read_trace(const Control& control, uint64_t execution) {
    const std::vector<int64_t>& trace = control.decision->trace;
    EDDY_CHECK(!trace.empty()) << "a control without a record";
    return trace[(control.num_read + execution) % trace.size()];
  }

  // False where the scenarios are too many.
  Result<bool> try_all() {
    ChoiceTree tree;
    do {
      if (report_.num_scenarios == options_.max_exact) return false;
      double probability = 1;
      EDDY_ASSIGN_OR_RETURN(const double makespan, simulate([&](const Control& control, uint64_t) {
                              const auto& pick = control.likely[tree.pick(control.likely.size())];
                              probability *= pick.probability / control.total;
                              return pick.value;
                            }));
      sample_.add(makespan, probability);
      ++report_.num_scenarios;
    } while (tree.advance());
    return true;
  }

  Status take_samples() {
    sample_.clear();
    for (uint64_t sample = 0; sample < options_.num_samples; ++sample) {
      EDDY_ASSIGN_OR_RETURN(
          const double makespan, simulate([&](const Control& control, uint64_t execution) {
            if (control.likely.empty()) return read_trace(control, execution);
            return draw(control, draw_uniform(options_.seed, sample, control.name_hash, execution));
          }));
      sample_.add(makespan, 1);
    }
    report_.num_scenarios = options_.num_samples;
    auto extreme = simulate([](const Control& control, uint64_t) { return control.extreme; });
    if (extreme.is_ok()) report_.worst = *extreme;
    // Else it is longer than any that was drawn.
    return Status::ok();
  }

  // choose(control, which of its executions in this run)
  template <typename Choose>
  Result<double> simulate(const Choose& choose) {
    std::vector<uint64_t> num_executed(controls_.size());
    FluidOptions options = fluid_;
    options.wants_spans = false;
    options.choose = [&](bool is_case, uint32_t id, uint64_t execution) {
      const size_t number = is_case ? program_.loops.size() + id : id;
      EDDY_DCHECK(number < controls_.size()) << "control " << number;
      num_executed[number] = execution + 1;
      return choose(controls_[number], execution);
    };
    EDDY_ASSIGN_OR_RETURN(const FluidTimeline timeline,
                          simulate_fluid(program_, costs_, machine_, options));
    for (size_t i = 0; i < controls_.size(); ++i) controls_[i].num_read += num_executed[i];
    return timeline.makespan_ns;
  }

  const Program& program_;
  const FluidCosts& costs_;
  const FluidMachine& machine_;
  const ScenarioOptions& options_;
  const FluidOptions& fluid_;
  std::vector<Control> controls_;
  bool has_traces_ = false;
  bool has_draws_ = false;
  ScenarioSample sample_;
  ScenarioReport report_;
};

}  // namespace

Result<ScenarioReport> evaluate_fluid_scenarios(const Program& program, const FluidCosts& costs,
                                                const FluidMachine& machine,
                                                const ScenarioOptions& options,
                                                const FluidOptions& fluid) {
  EDDY_RETURN_IF_ERROR(check_scenario_options(options));
  return Evaluation(program, costs, machine, options, fluid).run();
}

}  // namespace eddy
