// Claim: whatever whiles and case-ofs are combined into, every way of running a graph gives what
// the graph means. Random programs are built as graphs and interpreted plainly beside; each
// session runs several inputs, and all outputs are kept and compared when the session has gone.
// Calls with outputs in the caller's memory, in one place or two, give the same.
//
// EDDY_RANDOM_SEED=N runs that program alone and prints its graph; EDDY_RANDOM_COUNT=N runs N.
#include <algorithm>
#include <cstdlib>
#include <deque>

#include "graph/ir/print.h"
#include "tests/runtime/testing/random_program.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using namespace testing;

constexpr int kRuns = 3;

// The same program as a graph.
class Emitter {
 public:
  explicit Emitter(GraphBuilder& builder) : b(builder) {}

  std::vector<Value> emit(const Block& block, ValueSpan arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) at(block.parameters[i]) = arguments[i];
    for (const Step& step : block.steps) {
      const std::vector<Value> made = emit(step);
      for (size_t i = 0; i < made.size(); ++i) at(step.makes[i]) = made[i];
    }
    return read(block.results);
  }

 private:
  Value& at(Var var) {
    if (values_.size() <= var) values_.resize(var + 1);
    return values_[var];
  }
  std::vector<Value> read(const std::vector<Var>& vars) {
    std::vector<Value> values;
    for (Var var : vars) values.push_back(at(var));
    return values;
  }
  Value modulo(Value x, int64_t m) { return b.op("Mod", {x, b.scalar(m)}); }
  Value row(Value pair) { return b.op("Reshape", {pair, b.int64s({1, 2})}); }
  Value concat(Value x, Value y) { return b.op("Concat", {x, y}, {{"axis", int64_t{0}}}); }
  Value insert(Value list, Value pair) { return b.op("SequenceInsert", {list, pair}); }

  std::vector<Value> emit(const Step& step) {
    const std::vector<Value> in = read(step.reads);
    if (step.what == Do::kWhile) return loop(step, in);
    if (step.what != Do::kCase) return {formula(step.what, in)};
    CaseOptions options{.selector = modulo(in[0], kMaxSelector + 1)};
    if (step.flag) options.pass_through.assign(in.begin() + 1, in.end());
    if (!step.flag) options.default_region = 0;
    std::vector<CaseBody> bodies;
    for (const Block& block : step.blocks) bodies.push_back([&] { return emit(block, {}); });
    return b.case_of(options, bodies);
  }

  std::vector<Value> loop(const Step& step, ValueSpan in) {
    WhileOptions options{.initial = {in.begin() + 1, in.end()}, .num_scan_outputs = step.num_scans};
    if (step.flag) options.trip_limit = modulo(in[0], kMaxTrips);
    const auto run = [&](size_t region, Value iteration, ValueSpan given) {
      std::vector<Value> arguments = {iteration};
      arguments.insert(arguments.end(), given.begin(), given.end());
      return emit(step.blocks[region], arguments);
    };
    return b.while_loop(
        options,
        [&](Value iteration, ValueSpan carried) {
          const std::vector<Value> r = run(0, iteration, carried);
          const Value until = modulo(r[0], kMaxTrips + 1);
          return WhileTest{b.op("Less", {iteration, until}), {r.begin() + 1, r.end()}};
        },
        [&](Value iteration, ValueSpan forwarded) { return run(1, iteration, forwarded); });
  }

  Value formula(Do what, ValueSpan in) {
    const Value zero = b.scalar<int64_t>(0);
    switch (what) {
      case Do::kNeg:
        return b.op("Neg", {in[0]});
      case Do::kMax:
        return b.op("Max", {in[0], in[1]});
      case Do::kMean:
        return b.op("Mul", {b.op("Add", {in[0], in[1]}), b.scalar(0.5f)});
      case Do::kShift:
        return formula(Do::kMean, std::vector{in[0], b.cast(in[1], ElementType::kFloat)});
      case Do::kFlat:
        return b.op("Reshape", {in[0], b.int64s({-1})});
      case Do::kFirst:
        return b.op("SequenceAt", {insert(in[0], in[1]), zero});
      case Do::kLast:
        return b.op("Gather", {concat(row(in[1]), in[0]), b.scalar<int64_t>(-1)});
      case Do::kAppend:
        return concat(in[0], row(in[1]));
      case Do::kJoin:
        return b.op("Slice",
                    {concat(in[0], in[1]), b.int64s({-5}), b.int64s({INT64_MAX}), b.int64s({0})});
      case Do::kSame:
        return b.op("Reshape", {in[0], b.int64s({-1, 2})});
      case Do::kStack:
        return b.op("ConcatFromSequence", {insert(in[0], in[1])},
                    {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}});
      case Do::kAdd:
        return modulo(b.op("Add", {in[0], in[1]}), 7);
      case Do::kCount:
        return b.op("Gather", {b.op("Shape", {in[0]}), zero});
      case Do::kLength:
        return b.op("SequenceLength", {in[0]});
      case Do::kAsk:
        return b.op("HostPredicate", {in[0]},
                    {{"name", "next"}, {"type", tensor_type(ElementType::kInt64, {})}},
                    {.domain = "eddy"});
      case Do::kInsert:
        return insert(in[0], in[1]);
      case Do::kErase:
        return b.op("SequenceErase", {insert(in[0], in[1]), zero});
      default:
        return b.op("Identity", {in[0]});
    }
  }

  GraphBuilder& b;
  std::vector<Value> values_;
};

std::vector<float> floats_of(const Tensor& value) {
  if (value.is_tensor()) return {value.values<float>().begin(), value.values<float>().end()};
  std::vector<float> all;
  for (const Tensor& element : value.elements()) {
    for (float v : element.values<float>()) all.push_back(v);
  }
  return all;
}

class RandomGraphTest : public WaysTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_
                    .add_host_function("next",
                                       [](std::span<const TensorView> in) -> Result<int64_t> {
                                         return (*in[0].as<int64_t>() + 1) % 7;
                                       })
                    .is_ok());
  }

  static std::vector<Plain> make_arguments(Random& random) {
    const auto pairs = [&](size_t n) {
      Plain plain;
      for (size_t i = 0; i < 2 * n; ++i)
        plain.floats.push_back(static_cast<float>(random.below(64)));
      return plain;
    };
    const auto number = [&] { return Plain{{}, static_cast<int64_t>(random.below(7))}; };
    return {pairs(1), pairs(1), pairs(random.below(4)), number(), number(), pairs(random.below(3))};
  }

  static NamedTensors to_inputs(const std::vector<Plain>& in) {
    std::vector<Tensor> list;
    for (size_t i = 0; i < in[5].floats.size(); i += 2) {
      list.push_back(Tensor::of<float>({2}, std::span(&in[5].floats[i], 2)));
    }
    const int64_t rows = static_cast<int64_t>(in[2].floats.size() / 2);
    return {{"p", Tensor::of<float>({2}, std::span(in[0].floats))},
            {"q", Tensor::of<float>({2}, std::span(in[1].floats))},
            {"rows", Tensor::of<float>({rows, 2}, std::span(in[2].floats))},
            {"n", Tensor::scalar(in[3].number)},
            {"m", Tensor::scalar(in[4].number)},
            {"list", Tensor::sequence(ElementType::kFloat, list)}};
  }

  void check(uint64_t seed) {
    const Block program = Maker(seed).program();
    GraphBuilder b(library_.ops());
    const ValueType pair = tensor_type(ElementType::kFloat, {2});
    const ValueType number = tensor_type(ElementType::kInt64, {});
    int num_outputs = 0;
    const std::vector<Value> inputs = {
        b.input("p", pair),
        b.input("q", pair),
        b.input("rows", tensor_type(ElementType::kFloat, {b.symbol("n"), 2})),
        b.input("n", number),
        b.input("m", number),
        b.input("list", ValueType::sequence_of(pair))};
    for (Value value : Emitter(b).emit(program, inputs)) {
      b.output("o" + std::to_string(num_outputs++), value);
    }
    auto session = make_session(b);
    ASSERT_NE(session, nullptr);
    const std::string text =
        std::getenv("EDDY_RANDOM_SEED") != nullptr ? print_text(session->graph()) : std::string();
    Random random(seed);
    std::vector<std::vector<Plain>> expected;
    std::vector<NamedTensors> outputs;
    std::vector<std::vector<bool>> dropped;
    std::vector<std::unique_ptr<Call>> calls;  // used again, with what an earlier run has left
    for (int c = 0; c < 2; ++c) calls.push_back(std::move(*session->prepare()));
    for (int r = 0; r < kRuns; ++r) {
      const std::vector<Plain> arguments = make_arguments(random);
      expected.push_back(Interpreter().run(program, arguments));
      auto made = session->run(to_inputs(arguments));
      ASSERT_TRUE(made.is_ok()) << made.status().to_string() << "\n" << text;
      compare(*made, expected.back(), {}, text);
      if (HasFatalFailure()) return;
      call_bound(*calls[random.below(calls.size())], to_inputs(arguments), *made, random);
      if (HasFatalFailure()) FAIL() << text;
      // Memory of what is dropped serves the next run; what is kept must not notice.
      std::vector<bool>& gone = dropped.emplace_back(made->size(), false);
      for (size_t i = 0; i < made->size(); ++i) {
        gone[i] = random.below(2) == 0;
        if (gone[i]) (*made)[i].second = Tensor();
      }
      outputs.push_back(std::move(*made));
    }
    calls.clear();
    session.reset();
    for (size_t r = 0; r < outputs.size(); ++r) {
      compare(outputs[r], expected[r], dropped[r], "kept\n" + text);
    }
  }

  // As `made`, but in memory of ours: each tensor in one place or two, now and then the input's
  // own.
  static void call_bound(Call& call, const NamedTensors& inputs, const NamedTensors& made,
                         Random& random) {
    std::vector<float> own(inputs[0].second.values<float>().begin(),
                           inputs[0].second.values<float>().end());
    TensorView first = inputs[0].second.view();
    first.data = own.data();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Status status =
          i == 0 ? call.bind_input(0, first) : call.bind_input(i, inputs[i].second);
      ASSERT_TRUE(status.is_ok()) << status.to_string();
    }
    std::deque<Tensor> places;
    size_t in_own = random.below(2 * made.size());
    for (size_t o = 0; o < made.size(); ++o) {
      if (!made[o].second.is_tensor()) continue;
      TensorView place[2];
      for (TensorView& each : place) {
        const Tensor& memory = made[o].second;
        each = places.emplace_back(Tensor::zeros(memory.element_type(), memory.dims())).view();
      }
      const bool is_like_first =
          place[0].element == first.element && std::ranges::equal(place[0].shape(), first.shape());
      if (o >= in_own && is_like_first) {
        place[0].data = own.data();
        in_own = made.size();
      }
      const Status status = random.below(2) == 0 ? call.bind_output(o, place[0])
                                                 : call.bind_output(o, place[0], place[1]);
      ASSERT_TRUE(status.is_ok()) << status.to_string();
    }
    const Status status = call.run();
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    for (size_t o = 0; o < made.size(); ++o) {
      const Tensor& should = made[o].second;
      if (should.is_tensor()) {
        const TensorView found = call.output(o);
        ASSERT_TRUE(std::ranges::equal(found.shape(), should.view().shape()));
        ASSERT_EQ(std::memcmp(found.data, should.view().data, found.size_bytes()), 0)
            << "bound " << made[o].first;
      } else {
        ASSERT_EQ(floats_of(call.value(o)), floats_of(should)) << "beside bound " << made[o].first;
      }
    }
  }

  // `is_dropped`: outputs that are no longer there; none where it is empty.
  static void compare(const NamedTensors& made, const std::vector<Plain>& expected,
                      const std::vector<bool>& is_dropped, const std::string& text) {
    ASSERT_EQ(made.size(), expected.size()) << text;
    for (size_t i = 0; i < made.size(); ++i) {
      const Tensor& value = made[i].second;
      if (!is_dropped.empty() && is_dropped[i]) continue;
      ASSERT_NE(value.kind(), ValueKind::kNone) << made[i].first << "\n" << text;
      if (value.is_tensor() && value.element_type() == ElementType::kInt64) {
        ASSERT_EQ(value.values<int64_t>().size(), 1u) << made[i].first << "\n" << text;
        ASSERT_EQ(value.values<int64_t>()[0], expected[i].number) << made[i].first << "\n" << text;
      } else {
        ASSERT_EQ(floats_of(value), expected[i].floats) << made[i].first << "\n" << text;
      }
    }
  }
};

TEST_P(RandomGraphTest, GivesWhatTheProgramMeans) {
  const auto number = [](const char* variable, uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  const uint64_t first = number("EDDY_RANDOM_SEED", 0);
  const bool is_one = std::getenv("EDDY_RANDOM_SEED") != nullptr;
  const uint64_t last = is_one ? first + 1 : number("EDDY_RANDOM_COUNT", 600);
  for (uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("EDDY_RANDOM_SEED=" + std::to_string(seed));
    check(seed);
    if (HasFatalFailure()) return;
  }
}

EDDY_IN_ALL_WAYS(RandomGraphTest);

}  // namespace
}  // namespace eddy
