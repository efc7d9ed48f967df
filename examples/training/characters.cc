// An LSTM learns a sentence, character by character, and writes it down until its full stop.
//
// Shows: gradients through a while loop whose length the data decide. Each step reads a stretch of
// the sentence, of another length each time, from eight places at once; the state that its loop
// ends with is where the next step begins, so gradients reach as far back as the stretch does
// (truncated backpropagation through time). What was trained then stands in another loop, which
// writes.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/report.h"
#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"

namespace eddy {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int64_t kHidden = 32, kPlaces = 8, kSteps = 320, kLongest = 16;
constexpr std::string_view kLetters = " .abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kText =
    "an eddy is a loop in a stream that turns until the water lets it go on down the river. ";
constexpr auto kCount = static_cast<int64_t>(kLetters.size());

int64_t code_of(char letter) { return static_cast<int64_t>(kLetters.find(letter)); }

// The parameters' names and shapes.
struct Parameter {
  const char* name;
  Dims dims;
};
const Parameter kParameters[] = {{"wx", {kCount, 4 * kHidden}},
                                 {"wh", {kHidden, 4 * kHidden}},
                                 {"b", {4 * kHidden}},
                                 {"wy", {kHidden, kCount}},
                                 {"by", {kCount}}};

struct State {
  Value h, c;
};

// One step of the network, with parameters of a graph.
class Cell {
 public:
  Cell(GraphBuilder& b, std::vector<Value> parameters) : b_(b), p_(std::move(parameters)) {}

  State next(Value letters, State from) const {
    const Value sum =
        b_.op("Add", {b_.op("Gather", {p_[0], letters}), b_.op("MatMul", {from.h, p_[1]})});
    const Value inputs[] = {b_.op("Add", {sum, p_[2]}),
                            b_.int64s({kHidden, kHidden, kHidden, kHidden})};
    OpOptions four;
    four.num_outputs = 4;
    const std::vector<Value> gates = b_.ops("Split", inputs, {{"axis", -1}}, four);
    const Value kept = b_.op("Mul", {b_.op("Sigmoid", {gates[0]}), from.c});
    const Value added = b_.op("Mul", {b_.op("Sigmoid", {gates[1]}), b_.op("Tanh", {gates[2]})});
    const Value c = b_.op("Add", {kept, added});
    return {b_.op("Mul", {b_.op("Sigmoid", {gates[3]}), b_.op("Tanh", {c})}), c};
  }
  Value scores(Value h) const { return b_.op("Add", {b_.op("MatMul", {h, p_[3]}), p_[4]}); }

 private:
  GraphBuilder& b_;
  const std::vector<Value> p_;
};

// letters[row, place] for rows 0 to length, the last of them only to be foretold.
Result<Graph> build_model(const Library& library, Random& random) {
  GraphBuilder b(library.ops());
  std::vector<Value> parameters;
  for (const Parameter& each : kParameters) {
    std::vector<float> values(static_cast<size_t>(*each.dims.count()));
    for (float& value : values) value = random.uniform(-0.25f, 0.25f);
    parameters.push_back(b.constant(
        {values.data(), each.dims.data(), each.dims.rank(), ElementType::kFloat}, each.name));
  }
  const Cell cell(b, std::move(parameters));
  const Value letters = b.input("letters", tensor_type(ElementType::kInt64, {-1, kPlaces}));
  const Value length = b.input("length", tensor_type(ElementType::kInt64, {}));
  const ValueType state = tensor_type(ElementType::kFloat, {kPlaces, kHidden});
  const Value h = b.input("h", state), c = b.input("c", state);
  const std::vector<Value> ended = b.while_loop(
      {.name = "read", .initial = {h, c, b.scalar(0.0f)}},
      [&](Value iteration, ValueSpan carried) {
        return WhileTest{b.op("Less", {iteration, length}), {carried.begin(), carried.end()}};
      },
      [&](Value iteration, ValueSpan carried) {
        const State next =
            cell.next(b.op("Gather", {letters, iteration}), {carried[0], carried[1]});
        const Value behind = b.op("Add", {iteration, b.scalar(int64_t{1})});
        const Value loss = b.op("SoftmaxCrossEntropyLoss",
                                {cell.scores(next.h), b.op("Gather", {letters, behind})});
        return std::vector<Value>{next.h, next.c, b.op("Add", {carried[2], loss})};
      });
  b.output("loss", b.op("Div", {ended[2], b.cast(length, ElementType::kFloat)}));
  b.output("h.end", ended[0]);
  b.output("c.end", ended[1]);
  return b.finish();
}

// From the given letters to its full stop, at most 200 letters.
Result<Graph> build_writer(const Library& library, const Trainer& trainer) {
  GraphBuilder b(library.ops());
  std::vector<Value> parameters;
  for (const Parameter& each : kParameters) {
    parameters.push_back(b.constant(trainer.parameter(each.name), each.name));
  }
  const Cell cell(b, std::move(parameters));
  const Value given = b.input("given", tensor_type(ElementType::kInt64, {-1, 1}));
  const Value count = b.op("Squeeze", {b.op("Shape", {given}, {{"end", 1}})});
  const std::vector<float> zeros(kHidden);
  const Value start = b.tensor<float>({1, kHidden}, zeros);
  const std::vector<Value> written = b.while_loop(
      {.name = "write",
       .initial = {b.int64s({code_of(' ')}), start, start},
       .trip_limit = b.scalar(int64_t{200}),
       .num_scan_outputs = 1},
      [&](Value, ValueSpan carried) {
        const Value at_end = b.op("Equal", {carried[0], b.int64s({code_of('.')})});
        return WhileTest{b.op("Not", {at_end}), {carried.begin(), carried.end()}};
      },
      [&](Value iteration, ValueSpan carried) {
        const Value last = b.op("Sub", {count, b.scalar(int64_t{1})});
        const Value own = b.op("Gather", {given, b.op("Min", {iteration, last})});
        const Value letter = b.op("Where", {b.op("Less", {iteration, count}), own, carried[0]});
        const State next = cell.next(letter, {carried[1], carried[2]});
        const Value best = b.op("ArgMax", {cell.scores(next.h)}, {{"axis", 1}, {"keepdims", 0}});
        return std::vector<Value>{best, next.h, next.c, letter};
      });
  b.output("letters", written[3]);
  return b.finish();
}

Status train(Trainer& trainer, Random& random) {
  Tensor h = Tensor::zeros(ElementType::kFloat, {kPlaces, kHidden}), c = h;
  size_t at = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto length = static_cast<int64_t>(8 + random.below(kLongest - 7));
    Tensor letters = Tensor::zeros(ElementType::kInt64, {length + 1, kPlaces});
    auto* codes = letters.view().mutable_as<int64_t>();
    for (int64_t row = 0; row <= length; ++row) {
      for (int64_t place = 0; place < kPlaces; ++place) {
        const size_t apart = static_cast<size_t>(place) * kText.size() / kPlaces;
        *codes++ = code_of(kText[(at + static_cast<size_t>(row) + apart) % kText.size()]);
      }
    }
    at += static_cast<size_t>(length);
    EDDY_ASSIGN_OR_RETURN(
        const double loss,
        trainer.step({{"letters", letters}, {"length", Tensor::scalar(length)}, {"h", h}, {"c", c}},
                     step < kSteps * 3 / 4 ? 0.02f : 0.005f));
    if (step % 80 == 0 || step + 1 == kSteps) {
      std::printf("step %3lld: loss %.2f\n", static_cast<long long>(step + 1), loss);
    }
    h = Tensor::copy_of(trainer.output("h.end"));
    c = Tensor::copy_of(trainer.output("c.end"));
  }
  return Status::ok();
}

Status run() {
  const Library library;
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  Random random(kSeed);
  EDDY_ASSIGN_OR_RETURN(Graph model, build_model(library, random));
  EDDY_ASSIGN_OR_RETURN(
      auto trainer,
      Trainer::create(library, std::move(model), rules,
                      {.loss = "loss", .optimizer = Optimizer::kAdam, .clip_norm = 5}, {}));
  EDDY_RETURN_IF_ERROR(train(*trainer, random));
  EDDY_ASSIGN_OR_RETURN(Graph writer, build_writer(library, *trainer));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(writer), {}));
  std::vector<int64_t> first;
  for (const char letter : kText.substr(0, 7)) first.push_back(code_of(letter));
  const Tensor given = Tensor::of<int64_t>({7, 1}, std::span<const int64_t>(first));
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run({{"given", given}}));
  std::string text;
  for (const int64_t code : outputs[0].second.values<int64_t>()) {
    text += kLetters[static_cast<size_t>(code)];
  }
  std::printf("%s.\n", text.c_str());
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
