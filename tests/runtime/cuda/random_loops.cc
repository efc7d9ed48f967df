#include "tests/runtime/cuda/random_loops.h"

#include <string>
#include <vector>

namespace eddy::testing {
namespace {

constexpr int64_t kWidth = 4;
constexpr int kMostDepth = 3;

class Maker {
 public:
  Maker(GraphBuilder& builder, uint64_t seed) : b_(builder), random_(seed) {}

  void make() {
    std::vector<Value> known;
    for (int i = 0; i < 3; ++i) {
      known.push_back(
          b_.input("x" + std::to_string(i), tensor_type(ElementType::kFloat, {kWidth})));
    }
    const size_t num_loops = 1 + random_.below(2);
    for (size_t i = 0; i < num_loops; ++i) {
      append(known, loop(known, 1));
      if (random_.below(2) == 0) known.push_back(step(known));
    }
    for (int i = 0; i < 3; ++i) {
      // By a node of its own: an output may not be an input, nor one value twice.
      b_.output("y" + std::to_string(i), b_.op("Neg", {i == 0 ? known.back() : any(known)}));
    }
  }

 private:
  static void append(std::vector<Value>& to, const std::vector<Value>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  std::string name(const char* what) { return what + std::to_string(num_names_++); }
  // The newer ones more often.
  Value any(const std::vector<Value>& known) {
    const size_t from = random_.below(2) == 0 ? known.size() / 2 : 0;
    return known[from + random_.below(known.size() - from)];
  }
  std::vector<Value> some(const std::vector<Value>& known, size_t count) {
    std::vector<Value> values;
    for (size_t i = 0; i < count; ++i) values.push_back(any(known));
    return values;
  }
  Value number(float low, float high) { return b_.scalar(random_.uniform(low, high)); }

  // One element of a vector's kind.
  Value reduced(Value value) {
    static constexpr const char* kOps[] = {"ReduceMax", "ReduceMin", "ReduceSum"};
    return b_.op(kOps[random_.below(3)], {value}, {{"keepdims", int64_t{0}}});
  }
  Value step(const std::vector<Value>& known) {
    static constexpr const char* kUnary[] = {"Tanh", "Neg", "Abs", "Sigmoid"};
    static constexpr const char* kBinary[] = {"Add", "Sub", "Mul", "Max", "Min"};
    switch (random_.below(4)) {
      case 0:
        return b_.op(kUnary[random_.below(4)], {any(known)});
      case 1:
        return b_.op(kBinary[random_.below(5)], {any(known), reduced(any(known))});
      case 2:
        return b_.op(kBinary[random_.below(5)], {any(known), number(-1.5f, 1.5f)});
      default:
        return b_.op(kBinary[random_.below(5)], {any(known), any(known)});
    }
  }
  Value test(const std::vector<Value>& known) {
    const Value value = reduced(any(known));
    return b_.op(random_.below(2) == 0 ? "Less" : "Greater", {value, number(-4, 4)});
  }

  // Steps, loops and branches of a region; `known` grows by what they make.
  void fill(std::vector<Value>& known, int depth) {
    const size_t num_steps = 1 + random_.below(3);
    for (size_t i = 0; i < num_steps; ++i) known.push_back(step(known));
    if (depth >= kMostDepth) return;
    if (random_.below(3) == 0) append(known, loop(known, depth + 1));
    if (random_.below(3) == 0) append(known, branches(known, depth + 1));
  }

  std::vector<Value> loop(const std::vector<Value>& known, int depth) {
    const size_t num_carried = 1 + random_.below(3);
    const bool is_carried_test = random_.below(3) == 0;
    WhileOptions options{.name = name("loop"), .initial = some(known, num_carried)};
    options.trip_limit = b_.scalar(static_cast<int64_t>(random_.below(depth == 1 ? 8 : 4)));
    if (is_carried_test) options.initial.push_back(test(known));
    const auto before = [&](Value, ValueSpan carried) {
      std::vector<Value> inner = known;
      for (size_t k = 0; k < num_carried; ++k) inner.push_back(carried[k]);
      if (is_carried_test) {
        std::vector<Value> forwarded(carried.begin(), carried.end());
        return WhileTest{carried[num_carried], std::move(forwarded)};
      }
      const size_t num_steps = random_.below(3);
      for (size_t i = 0; i < num_steps; ++i) inner.push_back(step(inner));
      std::vector<Value> forwarded = some(inner, num_carried);
      forwarded[0] = carried[0];
      return WhileTest{random_.below(5) == 0 ? b_.scalar(true) : test(inner), std::move(forwarded)};
    };
    const auto after = [&](Value iteration, ValueSpan forwarded) {
      std::vector<Value> inner = known;
      for (size_t k = 0; k < num_carried; ++k) inner.push_back(forwarded[k]);
      if (random_.below(3) == 0) {
        const Value count = b_.op("Cast", {iteration}, {{"to", int64_t{1}}});
        inner.push_back(b_.op("Add", {any(inner), count}));
      }
      fill(inner, depth);
      std::vector<Value> next = some(inner, num_carried);
      next[0] = step(inner);  // something of it is needed
      if (is_carried_test) next.push_back(test(inner));
      return next;
    };
    std::vector<Value> results = b_.while_loop(options, before, after);
    results.resize(num_carried);  // a carried test has no reader
    return results;
  }

  std::vector<Value> branches(const std::vector<Value>& known, int depth) {
    const size_t num_results = 1 + random_.below(2);
    const size_t num_branches = 2 + random_.below(3);
    const bool is_bool = num_branches == 2 && random_.below(2) == 0;
    const int64_t to = random_.below(2) == 0 ? 6 : 7;  // int32, int64
    CaseOptions options{
        .name = name("case"),
        .selector = is_bool ? test(known) : b_.op("Cast", {reduced(any(known))}, {{"to", to}})};
    if (!is_bool && random_.below(2) == 0) {
      options.default_region = static_cast<int>(random_.below(num_branches));
    } else if (!is_bool) {
      options.pass_through = some(known, num_results);
    }
    std::vector<CaseBody> bodies;
    for (size_t i = 0; i < num_branches; ++i) {
      bodies.push_back([&, depth] {
        std::vector<Value> inner = known;
        fill(inner, depth);
        return some(inner, num_results);
      });
    }
    return b_.case_of(options, bodies);
  }

  GraphBuilder& b_;
  Random random_;
  int num_names_ = 0;
};

}  // namespace

Result<RandomLoops> make_random_loops(const Library& library, uint64_t seed) {
  GraphBuilder builder(library.ops());
  Maker(builder, seed).make();
  EDDY_ASSIGN_OR_RETURN(Graph graph, builder.finish());
  Random random(seed + 1);
  NamedTensors inputs;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> values;
    for (int64_t k = 0; k < kWidth; ++k) values.push_back(random.uniform(-2.0f, 2.0f));
    inputs.emplace_back("x" + std::to_string(i), Tensor::of<float>({kWidth}, values));
  }
  return RandomLoops{std::move(graph), std::move(inputs)};
}

}  // namespace eddy::testing
