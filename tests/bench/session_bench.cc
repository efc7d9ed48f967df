// The runtime's own cost: loops with bodies that do next to nothing, and runs of one node.
//
//   bazel run //tests/bench:session_bench
#include <benchmark/benchmark.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

constexpr int64_t kTrips = 100'000;
const ValueType kScalar = tensor_type(ElementType::kFloat, {});

bool bump(const KernelArgs& args) {
  args.outputs[0].mutable_as<float>()[0] = args.inputs[0].as<float>()[0] + 1;
  return true;
}

Result<BoundKernel> bind_bump(const KernelInit&) {
  BoundKernel kernel;
  kernel.run = bump;
  return kernel;
}

void add_bump(Library& library) {
  OpDef def;
  def.name = "Bump";
  def.domain = "bench";
  def.inputs = {{"x", kFloatTypes, InputFlag::kNone}};
  def.infer = [](InferContext& context) {
    context.set_output(0, context.input(0));
    return Status::ok();
  };
  EDDY_CHECK(library.add_operator(std::move(def), bind_bump).is_ok());
}

using Body = std::function<Value(GraphBuilder&, Value, Value)>;

// kTrips rounds of `body` on one carried scalar, with a trip limit and a constant predicate.
std::unique_ptr<Session> make_loop(const Library& library, Loops loops, const Body& body,
                                   bool has_predicate) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", kScalar);
  const Value limit = b.input("limit", kScalar);
  const Value yes = b.scalar(true);
  const auto results = b.while_loop(
      {.name = "loop", .initial = {x, yes}, .trip_limit = b.scalar(kTrips)},
      [&](Value, std::span<const Value> carried) {
        return WhileTest{carried[1], {carried[0], carried[1]}};
      },
      [&](Value, std::span<const Value> forwarded) {
        const Value next = body(b, forwarded[0], limit);
        const Value go_on = has_predicate ? b.op("Less", {next, limit}) : forwarded[1];
        return std::vector<Value>{next, go_on};
      });
  b.output("y", results[0]);
  auto graph = b.finish();
  EDDY_CHECK(graph.is_ok()) << graph.status().to_string();
  SessionOptions options;
  options.loops = loops;
  auto session = Session::create(library, std::move(*graph), options);
  EDDY_CHECK(session.is_ok()) << session.status().to_string();
  return std::move(*session);
}

void run_loop(benchmark::State& state, Session& session) {
  auto call = std::move(*session.prepare());
  float x = 0;
  float limit = 1e30f;
  EDDY_CHECK(call->bind_input(0, {&x, nullptr, 0, ElementType::kFloat}).is_ok());
  EDDY_CHECK(call->bind_input(1, {&limit, nullptr, 0, ElementType::kFloat}).is_ok());
  for (auto _ : state) EDDY_CHECK(call->run().is_ok());
  state.counters["ns/iteration"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kTrips,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void while_of_one_trivial_node(benchmark::State& state) {
  Library library;
  add_bump(library);
  const auto body = [](GraphBuilder& b, Value x, Value) {
    return b.op("Bump", {x}, {}, {.domain = "bench"});
  };
  const Loops loops = state.range(0) != 0 ? Loops::kHost : Loops::kDevice;
  run_loop(state, *make_loop(library, loops, body, false));
}
BENCHMARK(while_of_one_trivial_node)
    ->Arg(0)
    ->Arg(1)
    ->ArgName("host")
    ->Unit(benchmark::kMicrosecond);

void while_of_add_and_less(benchmark::State& state) {
  Library library;
  const auto body = [](GraphBuilder& b, Value x, Value) {
    return b.op("Add", {x, b.scalar(1.0f)});
  };
  const Loops loops = state.range(0) != 0 ? Loops::kHost : Loops::kDevice;
  run_loop(state, *make_loop(library, loops, body, true));
}
BENCHMARK(while_of_add_and_less)->Arg(0)->Arg(1)->ArgName("host")->Unit(benchmark::kMicrosecond);

void one_run_of_a_chain(benchmark::State& state) {
  Library library;
  GraphBuilder b(library.ops());
  Value x = b.input("x", kScalar);
  const Value one = b.input("one", kScalar);
  for (int64_t i = 0; i < state.range(0); ++i) x = b.op("Add", {x, one});
  b.output("y", x);
  auto graph = b.finish();
  auto session = Session::create(library, std::move(*graph), {});
  EDDY_CHECK(session.is_ok()) << session.status().to_string();
  auto call = std::move(*(*session)->prepare());
  float values[2] = {0, 1};
  for (size_t i = 0; i < 2; ++i) {
    EDDY_CHECK(call->bind_input(i, {&values[i], nullptr, 0, ElementType::kFloat}).is_ok());
  }
  for (auto _ : state) EDDY_CHECK(call->run().is_ok());
  state.counters["ns/node"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(one_run_of_a_chain)->Arg(1)->Arg(1000);

}  // namespace
}  // namespace eddy

BENCHMARK_MAIN();
