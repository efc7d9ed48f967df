#include "tools/gpu/control_cases.h"

#include <utility>

#include "graph/base/random.h"
#include "graph/ir/builder.h"

namespace eddy {
namespace {

const ValueType kScalar = tensor_type(ElementType::kFloat, {});

GpuCase make_case(std::string name, std::function<void(GraphBuilder&)> build, int64_t num_rounds,
                  std::string counted_loop) {
  GpuCase one;
  one.name = std::move(name);
  one.build = [build](const OpTable& ops) {
    GraphBuilder b(ops);
    build(b);
    return b.finish();
  };
  one.num_rounds = num_rounds;
  one.counted_loop = std::move(counted_loop);
  return one;
}

// Counts from `from` to `to`; the body may carry more.
Value count_to(GraphBuilder& b, const std::string& name, Value from, float to) {
  return b.while_loop(
      {.name = name, .initial = {from}},
      [&](Value, ValueSpan v) {
        return WhileTest{b.op("Less", {v[0], b.scalar(to)}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{b.op("Add", {v[0], b.scalar(1.0f)})};
      })[0];
}

// Rows of about ±1 that each round moves on by one place and gives other signs: w is a shift by ±4
// and small numbers. What is rounded dies away, and a round more or less has other signs.
NamedTensors matmul_inputs(int64_t width) {
  Random random(20);
  const auto sign = [&] { return random.below(2) == 0 ? -1.0f : 1.0f; };
  std::vector<float> x(static_cast<size_t>(width * width)), w(x.size());
  for (float& value : x) value = sign() * random.uniform(0.5f, 1.0f);
  for (float& value : w) value = random.uniform(-0.05f, 0.05f);
  for (int64_t i = 0; i < width; ++i) {
    w[static_cast<size_t>(i * width + (i + 1) % width)] = 4 * sign();
  }
  return {{"x", Tensor::of<float>({width, width}, x)}, {"w", Tensor::of<float>({width, width}, w)}};
}

}  // namespace

GpuCase counters(std::string name, int num_loops, int64_t num_trips) {
  const auto build = [=](GraphBuilder& b) {
    const Value x = b.input("x", kScalar);
    for (int i = 0; i < num_loops; ++i) {
      const std::string number = std::to_string(i);
      b.output("y" + number, count_to(b, "loop" + number, x, static_cast<float>(num_trips)));
    }
  };
  GpuCase one = make_case(std::move(name), build, num_trips * num_loops, "loop0");
  one.inputs = {{"x", Tensor::scalar(0.0f)}};
  return one;
}

GpuCase matmuls(std::string name, int num_loops, int64_t num_trips, int64_t fewer, int64_t width) {
  const ValueType square = tensor_type(ElementType::kFloat, {width, width});
  const auto build = [=](GraphBuilder& b) {
    const Value x = b.input("x", square);
    const Value w = b.input("w", square);
    for (int i = 0; i < num_loops; ++i) {
      const auto last = static_cast<float>(num_trips - i * fewer);
      const auto results = b.while_loop(
          {.name = "loop" + std::to_string(i), .initial = {x, b.scalar(0.0f)}},
          [&](Value, ValueSpan v) {
            return WhileTest{b.op("Less", {v[1], b.scalar(last)}), {v[0], v[1]}};
          },
          [&](Value, ValueSpan v) {
            return std::vector<Value>{b.op("Tanh", {b.op("MatMul", {v[0], w})}),
                                      b.op("Add", {v[1], b.scalar(1.0f)})};
          });
      b.output("y" + std::to_string(i), results[0]);
    }
  };
  GpuCase one = make_case(std::move(name), build, num_trips, "loop0");
  one.inputs = matmul_inputs(width);
  one.has_products = true;
  return one;
}

GpuCase nested(int64_t outer, int64_t inner) {
  const auto build = [=](GraphBuilder& b) {
    const Value x = b.input("x", kScalar);
    const auto results = b.while_loop(
        {.name = "outer", .initial = {x, b.scalar(0.0f)}},
        [&](Value, ValueSpan v) {
          const Value test = b.op("Less", {v[1], b.scalar(static_cast<float>(outer))});
          return WhileTest{test, {v[0], v[1]}};
        },
        [&](Value, ValueSpan v) {
          const Value turns = count_to(b, "inner", b.scalar(0.0f), static_cast<float>(inner));
          return std::vector<Value>{b.op("Add", {v[0], turns}),
                                    b.op("Add", {v[1], b.scalar(1.0f)})};
        });
    b.output("y", results[0]);
  };
  GpuCase one = make_case("nested " + std::to_string(outer) + " x " + std::to_string(inner), build,
                          outer * inner, "outer");
  one.inputs = {{"x", Tensor::scalar(0.0f)}};
  return one;
}

GpuCase with_case(int64_t num_trips) {
  const auto build = [=](GraphBuilder& b) {
    const Value x = b.input("x", kScalar);
    const auto results = b.while_loop(
        {.name = "loop", .initial = {x, b.scalar(0.0f), b.scalar(0.0f)}},
        [&](Value, ValueSpan v) {
          const Value test = b.op("Less", {v[2], b.scalar(static_cast<float>(num_trips))});
          return WhileTest{test, {v[0], v[1], v[2]}};
        },
        [&](Value, ValueSpan v) {
          const Value selector = b.op("Cast", {v[1]}, {{"to", int64_t{7}}});
          std::vector<CaseBody> bodies;
          for (int64_t branch = 0; branch < 4; ++branch) {
            bodies.push_back([&, branch] {
              const auto step = static_cast<float>(1 + branch);
              return std::vector<Value>{b.op("Add", {v[0], b.scalar(step)}),
                                        b.op("Add", {v[1], b.scalar(branch < 3 ? 1.0f : -3.0f)})};
            });
          }
          const auto next = b.case_of({.name = "pick", .selector = selector}, bodies);
          return std::vector<Value>{next[0], next[1], b.op("Add", {v[2], b.scalar(1.0f)})};
        });
    b.output("y", results[0]);
  };
  GpuCase one = make_case("while with a 4-way case", build, num_trips, "loop");
  one.inputs = {{"x", Tensor::scalar(0.0f)}};
  return one;
}

GpuCase roundings(int64_t num_trips) {
  const auto build = [=](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {64}));
    const auto results = b.while_loop(
        {.name = "loop", .initial = {x, b.scalar(0.0f)}},
        [&](Value, ValueSpan v) {
          const Value test = b.op("Less", {v[1], b.scalar(static_cast<float>(num_trips))});
          return WhileTest{test, {v[0], v[1]}};
        },
        [&](Value, ValueSpan v) {
          const Value scaled = b.op("Add", {b.op("Mul", {v[0], b.scalar(1.7f)}), b.scalar(0.1f)});
          return std::vector<Value>{b.op("Tanh", {scaled}), b.op("Add", {v[1], b.scalar(1.0f)})};
        });
    b.output("y", results[0]);
  };
  GpuCase one = make_case("rounding while", build, num_trips, "loop");
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 64 - 0.5f;
  one.inputs = {{"x", Tensor::of<float>({64}, x)}};
  return one;
}

GpuCase host_decides(int num_kernels, int64_t num_trips) {
  const auto build = [=](GraphBuilder& b) {
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {64}));
    const auto results = b.while_loop(
        {.name = "loop", .initial = {x}},
        [&](Value iteration, ValueSpan v) {
          const Value again = b.op("HostPredicate", {iteration, b.scalar(num_trips), v[0]},
                                   {{"name", "again?"}}, {.domain = "eddy"});
          return WhileTest{again, {v[0]}};
        },
        [&](Value, ValueSpan v) {
          Value value = v[0];
          for (int i = 0; i < num_kernels; ++i) value = b.op("Tanh", {value});
          return std::vector<Value>{value};
        });
    b.output("y", results[0]);
  };
  GpuCase one = make_case("host predicate, " + std::to_string(num_kernels) + "-kernel body", build,
                          num_trips, "loop");
  one.inputs = {{"x", Tensor::of<float>({64}, std::vector<float>(64, 0.5f))}};
  return one;
}

Status add_predicate(Library& library) {
  return library.add_host_function("again?",
                                   [](std::span<const TensorView> inputs) -> Result<int64_t> {
                                     const int64_t iteration = inputs[0].as<int64_t>()[0];
                                     const bool is_sound = inputs[2].as<float>()[0] < 2;
                                     return is_sound && iteration < inputs[1].as<int64_t>()[0];
                                   });
}

}  // namespace eddy
