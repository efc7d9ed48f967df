// A network learns how long to think: it reads numbers until it finds that it has read enough.
//
// Shows: adaptive computation time (Graves 2016) as a while loop with work on both sides of its
// check. Each iteration reads one more number, changes the state and says with which probability it
// would halt; the loop is left once these add up to nearly one, so data and weights decide its
// trips. The answer is the mean of what each iteration would have answered, by these probabilities;
// so a gradient reaches the decision to halt, though the number of trips has none.
//
// To be learned: the sum of the numbers up to the one that is marked. What comes behind it is
// noise, and thinking has a price.
#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/report.h"
#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"

namespace eddy {
namespace {

constexpr int64_t kLength = 10;
constexpr double kEnough = 0.95, kPrice = 0.002;

Value parameter(GraphBuilder& b, const char* name, double value) {
  const Value made = b.scalar(value);
  b.set_name(made, name);
  return made;
}

Result<Graph> build_model(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {kLength}));
  const Value mark = b.input("mark", tensor_type(ElementType::kDouble, {kLength}));
  const Value target = b.input("target", tensor_type(ElementType::kDouble, {}));
  const Value keep = parameter(b, "keep", 0.5), add = parameter(b, "add", 0.5);
  const Value slope = parameter(b, "slope", 0.0), bias = parameter(b, "bias", -1.0);
  const Value zero = b.scalar(0.0), one = b.scalar(1.0), last = b.scalar(kLength - 1);
  const std::vector<Value> thought = b.while_loop(
      {.name = "think", .initial = {zero, zero, zero}},
      [&](Value iteration, ValueSpan carried) {  // state, halted, answer
        const Value read = b.op("Gather", {x, iteration});
        const Value state =
            b.op("Add", {b.op("Mul", {carried[0], keep}), b.op("Mul", {read, add})});
        const Value is_marked = b.op("Gather", {mark, iteration});
        const Value halt = b.op("Sigmoid", {b.op("Add", {b.op("Mul", {is_marked, slope}), bias})});
        const Value is_short = b.op("Less", {b.op("Add", {carried[1], halt}), b.scalar(kEnough)});
        const Value has_more = b.op("Less", {iteration, last});
        return WhileTest{b.op("And", {is_short, has_more}),
                         {state, carried[1], carried[2], halt, iteration}};
      },
      [&](Value, ValueSpan given) {
        const Value part = b.op("Mul", {given[3], given[0]});
        return std::vector<Value>{given[0], b.op("Add", {given[1], given[3]}),
                                  b.op("Add", {given[2], part})};
      });
  const Value rest = b.op("Sub", {one, thought[1]});  // the last iteration's probability
  const Value answer = b.op("Add", {thought[2], b.op("Mul", {rest, thought[0]})});
  const Value away = b.op("Sub", {answer, target});
  const Value price = b.op("Mul", {rest, b.scalar(kPrice)});
  b.output("loss", b.op("Add", {b.op("Mul", {away, away}), price}));
  b.output("answer", answer);
  b.output("trips", thought[4]);
  return b.finish();
}

struct Sample {
  NamedTensors inputs;
  double sum = 0;
  int64_t place = 0;  // of the mark
};

Sample draw(Random& random) {
  Sample sample;
  std::vector<double> x(kLength), mark(kLength, 0.0);
  for (double& number : x) number = 2 * random.uniform() - 1;
  sample.place = 1 + static_cast<int64_t>(random.below(kLength - 2));
  mark[static_cast<size_t>(sample.place)] = 1;
  for (int64_t i = 0; i <= sample.place; ++i) sample.sum += x[static_cast<size_t>(i)];
  sample.inputs = {{"x", Tensor::of<double>({kLength}, x)},
                   {"mark", Tensor::of<double>({kLength}, mark)},
                   {"target", Tensor::scalar(sample.sum)}};
  return sample;
}

// On samples that training does not see. Hard ones need more thought: their mark is far away.
Status examine(const Library& library, const Trainer& trainer, const char* when) {
  constexpr int kSamples = 500;
  EDDY_ASSIGN_OR_RETURN(Graph model, trainer.model());
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(model), {}));
  Random random(99);
  double error = 0;
  int64_t num_right = 0;
  struct Kind {
    int64_t samples = 0, read = 0;
    double mean() const { return static_cast<double>(read) / static_cast<double>(samples); }
  } easy, hard;
  for (int i = 0; i < kSamples; ++i) {
    const Sample sample = draw(random);
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run(sample.inputs));
    const int64_t trips = outputs[2].second.values<int64_t>()[0];
    error += std::abs(outputs[1].second.values<double>()[0] - sample.sum) / kSamples;
    num_right += trips == sample.place;
    Kind& kind = sample.place < kLength / 2 ? easy : hard;
    kind.samples += 1;
    kind.read += trips + 1;
  }
  std::printf(
      "%s: error %.2f, halts at the mark %3.0f %%, reads %.1f numbers if it is near, "
      "%.1f if it is far\n",
      when, error, 100.0 * static_cast<double>(num_right) / kSamples, easy.mean(), hard.mean());
  return Status::ok();
}

Status run() {
  const Library library;
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  EDDY_ASSIGN_OR_RETURN(Graph model, build_model(library));
  EDDY_ASSIGN_OR_RETURN(auto trainer,
                        Trainer::create(library, std::move(model), rules,
                                        {.loss = "loss", .optimizer = Optimizer::kAdam}, {}));
  EDDY_RETURN_IF_ERROR(examine(library, *trainer, "at first"));
  Random random(7);
  for (int step = 1; step <= 12000; ++step) {
    const float rate = step <= 9000 ? 0.02f : 0.005f;
    EDDY_RETURN_IF_ERROR(trainer->step(draw(random).inputs, rate).status());
  }
  return examine(library, *trainer, "trained ");
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
