// The mass of a sun is found from where its planet was seen, through the steps of a solver.
//
// Shows: gradients through a while loop that decides for itself how far each step goes. The solver
// tries a step by two formulas (Euler's and Heun's); where they differ too much it throws the step
// away and tries a shorter one, else it goes on with a longer one. How many steps it tries follows
// from the mass, so each step of the training runs another number of iterations. The lengths are
// named as a stop: they are how the solver works, not what is searched. The loop saves `grow`: a
// few of its states, from which the way back makes the steps between again, so memory grows with
// the root of their number, which nobody knows before; the numbers found have the same bits.
//
// What was seen is made by other code, with many short steps of a formula of the fourth order.
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"

namespace eddy {
namespace {

constexpr double kMass = 1.2, kGuess = 0.7;
constexpr double kTolerance = 2e-4, kEnd = 2.0;
constexpr std::array<double, 4> kStart = {1.0, 0.0, 0.0, 1.0};  // place, velocity

using State = std::array<double, 4>;

State slope(const State& s, double mass) {
  const double pull = -mass / std::pow(s[0] * s[0] + s[1] * s[1], 1.5);
  return {s[2], s[3], pull * s[0], pull * s[1]};
}

State moved(const State& s, const State& along, double by) {
  State next;
  for (size_t i = 0; i < next.size(); ++i) next[i] = s[i] + by * along[i];
  return next;
}

// Runge and Kutta's formula.
State seen_at_the_end() {
  constexpr int kSteps = 20'000;
  constexpr double h = kEnd / kSteps;
  State s = kStart;
  for (int i = 0; i < kSteps; ++i) {
    const State a = slope(s, kMass), b = slope(moved(s, a, h / 2), kMass),
                c = slope(moved(s, b, h / 2), kMass), d = slope(moved(s, c, h), kMass);
    s = moved(moved(moved(moved(s, a, h / 6), b, h / 3), c, h / 3), d, h / 6);
  }
  return s;
}

// The slope of a state, in the graph.
Value slope(GraphBuilder& b, Value state, Value mass) {
  const std::vector<Value> parts =
      b.ops("Split", std::span(&state, 1), {{"num_outputs", 2}}, {.num_outputs = 2});
  const Value square = b.op("ReduceSumSquare", {parts[0]}, {{"keepdims", 0}});
  const Value pull = b.op("Neg", {b.op("Div", {mass, b.op("Pow", {square, b.scalar(1.5)})})});
  const Value ends[] = {parts[1], b.op("Mul", {parts[0], pull})};
  return b.op("Concat", ends, {{"axis", 0}});
}

// loss: the squared distance from `seen` at the end of the time.
Result<Graph> build_model(const Library& library) {
  GraphBuilder b(library.ops());
  const Value seen = b.input("seen", tensor_type(ElementType::kDouble, {2}));
  const Value mass = b.scalar(kGuess);
  b.set_name(mass, "mass");
  const Value start = b.tensor<double>({4}, kStart);
  const Value end = b.scalar(kEnd);
  const std::vector<Value> ended = b.while_loop(
      {.name = "solve", .initial = {start, b.scalar(0.0), b.scalar(0.1)}},
      [&](Value iteration, ValueSpan carried) {
        const Value goes_on = b.op("Less", {carried[1], b.scalar(kEnd - 1e-9)});
        return WhileTest{goes_on, {carried[0], carried[1], carried[2], iteration}};
      },
      [&](Value, ValueSpan given) {
        const Value state = given[0], time = given[1];
        const Value h = b.op("Min", {given[2], b.op("Sub", {end, time})});
        const Value first = slope(b, state, mass);
        const Value euler = b.op("Add", {state, b.op("Mul", {h, first})});
        const Value second = slope(b, euler, mass);
        const Value mean = b.op("Mul", {b.op("Add", {first, second}), b.scalar(0.5)});
        const Value heun = b.op("Add", {state, b.op("Mul", {h, mean})});
        const Value error =
            b.op("ReduceMax", {b.op("Abs", {b.op("Sub", {heun, euler})})}, {{"keepdims", 0}});
        const Value fits = b.op("Less", {error, b.scalar(kTolerance)});
        const Value ratio = b.op("Sqrt", {b.op("Div", {b.scalar(kTolerance), error})});
        const Value by =
            b.op("Clip", {b.op("Mul", {ratio, b.scalar(0.9)}), b.scalar(0.2), b.scalar(2.0)});
        const Value next = b.op("Mul", {h, by}, {}, {.output_names = {"step.length"}});
        return std::vector<Value>{b.op("Where", {fits, heun, state}),
                                  b.op("Where", {fits, b.op("Add", {time, h}), time}), next};
      });
  const std::vector<Value> parts =
      b.ops("Split", std::span(ended.data(), 1), {{"num_outputs", 2}}, {.num_outputs = 2});
  const Value away = b.op("Sub", {parts[0], seen});
  b.output("loss", b.op("ReduceSumSquare", {away}, {{"keepdims", 0}}));
  b.output("tried", ended[3]);
  return b.finish();
}

Status run() {
  const Library library;
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  EDDY_ASSIGN_OR_RETURN(Graph model, build_model(library));
  TrainingOptions options{.loss = "loss", .stop = {"step.length"}, .optimizer = Optimizer::kAdam};
  EDDY_ASSIGN_OR_RETURN(options.save.others, parse_save_policy("grow"));
  EDDY_ASSIGN_OR_RETURN(auto trainer,
                        Trainer::create(library, std::move(model), rules, options, {}));
  const State truth = seen_at_the_end();
  const Tensor seen = Tensor::of<double>({2}, {truth[0], truth[1]});
  constexpr int kSteps = 120;
  for (int step = 1; step <= kSteps; ++step) {
    EDDY_ASSIGN_OR_RETURN(const double loss,
                          trainer->step({{"seen", seen}}, step <= 80 ? 0.02f : 0.005f));
    if (step % 40 != 1 && step != kSteps) continue;
    std::printf("step %3d: %3lld steps of the solver, distance %.2f\n", step,
                static_cast<long long>(*trainer->output("tried").as<int64_t>()), std::sqrt(loss));
  }
  std::printf("mass %.2f, in truth %.2f\n", *trainer->parameter("mass").as<double>(), kMass);
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
