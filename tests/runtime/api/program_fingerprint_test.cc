// Claim: a program's fingerprint is the same for the same program, whatever the number of threads
// and whatever else runs, and another for another constant, attribute, type, kernel, plan or
// driver.
#include "runtime/api/program_fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/reference/reference_kernels.h"
#include "runtime/api/session.h"
#include "runtime/cpu/cpu_device.h"

namespace eddy {
namespace {

struct Variant {
  float factor = 2;
  int64_t axis = 1;
  ElementType element = ElementType::kFloat;
  std::string name = "left";
};

// Two branches of a diamond around a loop.
Graph make_graph(const Library& library, const Variant& variant) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(variant.element, {4, 4}));
  const Value factor = b.cast(b.scalar(variant.factor), variant.element);
  const Value left = b.op("Mul", {x, factor}, {}, {.name = variant.name});
  const Value right = b.op("Softmax", {x}, {{"axis", variant.axis}});
  const auto loop = b.while_loop(
      {.initial = {right}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Add", {f[0], factor})};
      });
  b.output("y", b.op("Add", {left, loop[0]}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::string fingerprint(const Variant& variant, const SessionOptions& options) {
  const Library library;
  auto session = Session::create(library, make_graph(library, variant), options);
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  EXPECT_EQ((*session)->fingerprint(), (*session)->fingerprint());
  return (*session)->fingerprint();
}

SessionOptions with(Assignment assignment) {
  SessionOptions options;
  options.assignment = assignment;
  options.num_threads = 2;
  return options;
}

TEST(ProgramFingerprint, TheSameProgramHasTheSame) {
  const std::string first = fingerprint({}, with(Assignment::kRank));
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  for (const int num_threads : {1, 3, 8}) {
    SessionOptions options = with(Assignment::kRank);
    options.num_threads = num_threads;
    options.memory_limit_bytes = size_t{1} << 30;
    EXPECT_EQ(fingerprint({}, options), first);
  }
  EXPECT_EQ(fingerprint({.name = "renamed"}, with(Assignment::kRank)), first);
}

TEST(ProgramFingerprint, TheSameProgramHasTheSameUnderLoad) {
  const std::string first = fingerprint({}, with(Assignment::kMatching));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(fingerprint({}, with(Assignment::kMatching)), first); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProgramFingerprint, WhatDecidesTheProgramChangesIt) {
  std::set<std::string> seen;
  const auto expect_new = [&](const Variant& variant, const SessionOptions& options,
                              const char* what) {
    EXPECT_TRUE(seen.insert(fingerprint(variant, options)).second) << what;
  };
  expect_new({}, with(Assignment::kRank), "the first");
  expect_new({}, with(Assignment::kSerial), "one stream");
  expect_new({.factor = 2.0000002f}, with(Assignment::kRank), "a constant's last bit");
  expect_new({.axis = 0}, with(Assignment::kRank), "an attribute");
  expect_new({.element = ElementType::kDouble}, with(Assignment::kRank), "a type");
  SessionOptions host = with(Assignment::kRank);
  host.loops = Loops::kHost;
  expect_new({}, host, "who drives loops");
  SessionOptions plain = with(Assignment::kRank);
  plain.simplify = false;
  expect_new({}, plain, "what was folded");
}

// Dequantized, they are folded to floats, which are larger than what is read of a simplified graph.
TEST(ProgramFingerprint, EveryWeightCountsAlsoWhereItIsFolded) {
  const Library library;
  const auto of = [&](const std::vector<int8_t>& weights, bool simplify) {
    GraphBuilder b(library.ops());
    const auto rows = static_cast<int64_t>(weights.size()) / 64;
    const Value w =
        b.op("DequantizeLinear", {b.tensor<int8_t>({rows, 64}, weights), b.scalar(0.5f)});
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {rows, 64}));
    b.output("y", b.op("Add", {x, w}));
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    SessionOptions options;
    options.simplify = simplify;
    auto session = Session::create(library, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return (*session)->fingerprint();
  };
  for (const bool simplify : {false, true}) {
    std::vector<int8_t> weights(64 * 64, 1);
    std::set<std::string> seen = {of(weights, simplify)};
    for (const size_t i : {size_t{0}, size_t{1000}, weights.size() - 1}) {
      weights[i] = 2;
      EXPECT_TRUE(seen.insert(of(weights, simplify)).second) << simplify << ' ' << i;
      EXPECT_EQ(of(weights, simplify), of(weights, simplify));
    }
  }
}

TEST(ProgramFingerprint, OtherKernelsHaveAnother) {
  const Library library;
  const Graph graph = make_graph(library, {});
  Plan plan = plan_graph(graph, {});
  ASSERT_TRUE(prove_plan(graph, plan).is_ok());
  CpuDevice device({.num_threads = 1});
  const auto of = [&](const std::function<void(KernelRegistry&)>& add) {
    KernelRegistry registry;
    add(registry);
    ExecutableOptions options;
    options.make_runner = [&](const StrandCode& code, const Bindings& bindings, Recorder*) {
      return device.create_runner_or_null(code, bindings);
    };
    auto program = Executable::create(graph, plan, device, registry, std::move(options));
    EXPECT_TRUE(program.is_ok()) << program.status().to_string();
    return program_fingerprint(graph_fingerprint(graph), **program, false);
  };
  EXPECT_EQ(of(add_cpu_kernels), of(add_cpu_kernels));
  EXPECT_NE(of(add_cpu_kernels), of(add_reference_kernels));
}

}  // namespace
}  // namespace eddy
