#include "tools/check/gradient_campaign.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "graph/differentiate/differentiate.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/virtual/virtual_device.h"
#include "tools/check/dual_oracle.h"
#include "tools/check/gradient_program.h"

namespace eddy::check {
namespace {

constexpr double kTolerance = 1e-9;

bool agree(double expected, double found) {
  return std::abs(expected - found) <= kTolerance * std::max(1.0, std::abs(expected));
}

// Values of a program's inputs.
DualInputs draw_inputs(uint64_t seed) {
  Random random(seed + 0x0d0a1);
  const auto draw = [&](size_t count) {
    std::vector<Dual> numbers(count);
    for (Dual& number : numbers) number.x = random.uniform() * 2.4 - 1.2;
    return numbers;
  };
  DualInputs inputs;
  for (const char* name : {"a", "b", "c"}) inputs[name] = draw(1);
  inputs["v"] = draw(static_cast<size_t>(kGradientRows));
  return inputs;
}

NamedTensors tensors_of(const DualInputs& inputs) {
  NamedTensors tensors;
  for (const auto& [name, numbers] : inputs) {
    std::vector<double> values;
    for (const Dual& number : numbers) values.push_back(number.x);
    tensors.emplace_back(name, name == "v" ? Tensor::of<double>({kGradientRows}, values)
                                           : Tensor::scalar(values[0]));
  }
  return tensors;
}

}  // namespace

// Of a session on the CPU, or one on a virtual device.
struct GradientRun {
  NamedTensors outputs;
  std::vector<LoopReport> loops;
  std::string way;

  std::span<const double> of(const std::string& name) const {
    for (const auto& [output, tensor] : outputs) {
      if (output == name) return tensor.values<double>();
    }
    EDDY_CHECK(false) << "no output " << name;
    return {};
  }
};

namespace {

Result<GradientRun> run_in_some_way(const Library& library, const CheckThreads& threads,
                                    Graph graph, const NamedTensors& inputs, uint64_t seed) {
  SessionWay way = SessionWay::draw(seed, SessionUse::kInTurn);
  std::string text = way.text();
  if (seed % 3 == 0) {
    constexpr SchedulePolicy kPolicies[] = {SchedulePolicy::kUniform, SchedulePolicy::kPct,
                                            SchedulePolicy::kStarve, SchedulePolicy::kLate,
                                            SchedulePolicy::kEarly};
    const SchedulePolicy policy = kPolicies[seed / 3 % std::size(kPolicies)];
    text += fmt::format(", in the order {}", schedule_policy_name(policy));
    way.options.make_device = [policy, seed]() -> Result<std::shared_ptr<Device>> {
      VirtualDeviceOptions device;
      device.engine.order = {.policy = policy, .seed = seed};
      return std::shared_ptr<Device>(std::make_shared<VirtualDevice>(device));
    };
  } else {
    const CheckThreads::Pool& pool = threads.with(way.num_workers);
    way.options.threads = pool.threads;
    way.options.make_device = [&pool]() -> Result<std::shared_ptr<Device>> { return pool.device; };
  }
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), way.options));
  EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run(inputs));
  GradientRun run{std::move(outputs), session->loop_reports(), std::move(text)};
  session->close();
  return run;
}

bool is_flat(const Status& status) {
  return status.message().find("depends on no input") != std::string::npos;
}

// One for each loop, of any kind.
SavePolicies draw_policies(const Graph& program, uint64_t seed) {
  Random random(seed + 0x5a7e);
  SavePolicies policies;
  for (uint32_t n = 0; n < program.num_nodes(); ++n) {
    if (program.node(NodeId(n)).kind != NodeKind::kWhile) continue;
    SavePolicy& policy = policies.loops[program.path(NodeId(n))];
    policy.kind = static_cast<SavePolicy::Kind>(random.below(4));
    policy.every = static_cast<int64_t>(1 + random.below(4));
  }
  return policies;
}

std::string text_of(const SavePolicies& policies) {
  std::string text;
  for (const auto& [path, policy] : policies.loops) {
    text += (text.empty() ? "" : ", ") + path + " saves " + to_string(policy);
  }
  return text;
}

std::string compare_trips(const DualRun& expected, const GradientRun& run) {
  for (const LoopReport& loop : run.loops) {
    const auto at = expected.trips.find(loop.path);
    if (at == expected.trips.end() || at->second < 0 || at->second == loop.iterations) continue;
    return fmt::format("loop {} made {} trips, dual numbers {} ({})", loop.path, loop.iterations,
                       at->second, run.way);
  }
  return {};
}

}  // namespace

GradientCampaign::GradientCampaign(GradientCampaignOptions options) : options_(std::move(options)) {
  const Status status = add_standard_gradients(rules_);
  EDDY_CHECK(status.is_ok()) << status.to_string();
}

bool GradientCampaign::meet(uint64_t seed) {
  size_t num_nodes = 0;
  std::string what = difference(seed, num_nodes);
  ++report_.num_programs;
  if (!what.empty()) report_.mismatches.push_back({seed, std::move(what), num_nodes});
  return report_.mismatches.size() < options_.max_mismatches;
}

std::string GradientCampaign::difference(uint64_t seed, size_t& num_nodes) {
  GraphBuilder b(library_.ops());
  // Small ones as well: their sessions are plain, their defects short.
  const GradientProgramOptions shape{.depth = static_cast<int>(1 + seed % 3),
                                     .has_branches = seed % 5 != 0,
                                     .has_sequences = seed % 2 == 0};
  add_gradient_program(b, seed, shape);
  auto program = b.finish();
  if (!program.is_ok()) return "the program does not build: " + program.status().to_string();
  num_nodes = program->num_nodes();
  return compare_first(*program, seed);
}

std::string GradientCampaign::compare_first(const Graph& program, uint64_t seed) {
  auto gradient =
      differentiate(program.copy(), library_.ops(), rules_, {.loss = "loss", .exact = true});
  if (!gradient.is_ok()) {
    report_.num_flat += is_flat(gradient.status());
    return is_flat(gradient.status()) ? "" : "no gradient: " + gradient.status().to_string();
  }
  const Graph whole = gradient->graph.copy();
  if (options_.plant) {
    auto planted = options_.plant(std::move(gradient->graph));
    if (!planted.is_ok()) return "a planted defect: " + planted.status().to_string();
    gradient->graph = std::move(*planted);
  }
  DualInputs inputs = draw_inputs(seed);
  const auto run =
      run_in_some_way(library_, threads_, std::move(gradient->graph), tensors_of(inputs), seed);
  if (!run.is_ok()) return "the run failed: " + run.status().to_string();
  for (const GradientOutput& of : gradient->report.gradients) {
    const std::span<const double> found = run->of(of.output);
    std::vector<Dual>& numbers = inputs.at(of.parameter);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i].a = 1;
      const auto dual = interpret_dual(program, inputs);
      numbers[i].a = 0;
      if (!dual.is_ok()) return "the oracle failed: " + dual.status().to_string();
      if (i == 0 && &of == &gradient->report.gradients[0]) {
        report_.num_iterations += dual->num_iterations;
        report_.num_loops_without_trip += dual->num_loops_without_trip;
        if (std::string text = compare_trips(*dual, *run); !text.empty()) return text;
        if (!agree(dual->loss.x, run->of("loss")[0])) {
          return fmt::format("the loss is {}, dual numbers say {} ({})", run->of("loss")[0],
                             dual->loss.x, run->way);
        }
      }
      ++report_.num_derivatives;
      if (found.size() == numbers.size() && agree(dual->loss.a, found[i])) continue;
      return fmt::format("{}[{}] is {}, dual numbers say {} ({})", of.output, i,
                         i < found.size() ? found[i] : NAN, dual->loss.a, run->way);
    }
  }
  if (options_.plant) return {};
  const SavePolicies policies = draw_policies(program, seed);
  auto less = differentiate(program.copy(), library_.ops(), rules_,
                            {.loss = "loss", .save = policies, .exact = true});
  if (!less.is_ok())
    return "no gradient where " + text_of(policies) + ": " + less.status().to_string();
  const Graph& twice = seed % 2 == 0 ? whole : less->graph;
  const Graph differentiated = twice.copy();
  for (const LoopSaving& loop : less->report.loops)
    report_.num_loops_made_again += loop.policy != "all";
  std::string text = compare_policies(std::move(less->graph), *run, tensors_of(inputs), seed);
  if (!text.empty()) return text + ", where " + text_of(policies);
  if (options_.twice_every == 0 || seed / 2 % options_.twice_every != 0) return {};
  for (const GradientOutput& of : gradient->report.gradients) {
    if (of.parameter == "v") continue;  // not one element
    text = compare_second(differentiated, program, of.parameter, seed);
    if (!text.empty())
      return text + ", where " + (seed % 2 == 0 ? "all is saved" : text_of(policies));
  }
  return {};
}

// The same bits as where all is kept, in another way of running.
std::string GradientCampaign::compare_policies(Graph gradient, const GradientRun& all,
                                               const NamedTensors& inputs, uint64_t seed) {
  const auto run = run_in_some_way(library_, threads_, std::move(gradient), inputs, seed + 2);
  if (!run.is_ok()) return "the run failed: " + run.status().to_string();
  for (const auto& [name, tensor] : all.outputs) {
    const std::span<const double> expected = tensor.values<double>(), found = run->of(name);
    ++report_.num_compared_by_bits;
    const bool is_same = expected.size() == found.size() &&
                         std::memcmp(expected.data(), found.data(), expected.size_bytes()) == 0;
    if (is_same) continue;
    return fmt::format("{} has other bits ({}) than where all is saved ({})", name, run->way,
                       all.way);
  }
  return {};
}

std::string GradientCampaign::compare_second(const Graph& gradient, const Graph& program,
                                             const std::string& parameter, uint64_t seed) {
  auto second = differentiate(gradient.copy(), library_.ops(), rules_,
                              {.loss = parameter + ".grad", .suffix = ".grad2"});
  if (!second.is_ok()) {
    return is_flat(second.status()) ? "" : "no second gradient: " + second.status().to_string();
  }
  DualInputs inputs = draw_inputs(seed);
  const auto run =
      run_in_some_way(library_, threads_, std::move(second->graph), tensors_of(inputs), seed + 1);
  if (!run.is_ok()) return "the run of the second gradient failed: " + run.status().to_string();
  inputs.at(parameter)[0].b = 1;
  for (const GradientOutput& of : second->report.gradients) {
    const std::span<const double> found = run->of(of.output);
    std::vector<Dual>& numbers = inputs.at(of.parameter);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i].a = 1;
      const auto dual = interpret_dual(program, inputs);
      numbers[i].a = 0;
      if (!dual.is_ok()) return "the oracle failed: " + dual.status().to_string();
      ++report_.num_second_derivatives;
      if (found.size() == numbers.size() && agree(dual->loss.ab, found[i])) continue;
      return fmt::format("the second derivative for {} and {}[{}] is {}, dual numbers say {} ({})",
                         parameter, of.parameter, i, i < found.size() ? found[i] : NAN,
                         dual->loss.ab, run->way);
    }
  }
  return {};
}

}  // namespace eddy::check
