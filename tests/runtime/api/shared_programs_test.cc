// Claim: sessions of one library, model and options run one program, with one set of constants and
// packed weights, and each keeps to itself what is its own; what differs is never shared, and the
// program goes with the last session.
#include "runtime/api/shared_programs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <numeric>
#include <thread>

#include "graph/base/random.h"
#include "graph/base/sanitizers.h"
#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/session.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/execute/executable.h"

namespace eddy {
namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kDepth = 64;
constexpr int64_t kColumns = 96;

struct Variant {
  float weight = 0.5f;  // of the last element
  int64_t trips = 3;
  std::string input = "x";
  std::string node = "product";
};

std::vector<float> weights_of(const Variant& variant) {
  std::vector<float> weights(kDepth * kColumns);
  Random random(7);
  for (float& each : weights) each = static_cast<float>(random.below(1000)) / 1000.0f;
  weights.back() = variant.weight;
  return weights;
}

// A product with constant weights, then a loop.
Graph make_graph(const Library& library, const Variant& variant = {}) {
  GraphBuilder b(library.ops());
  const Value x = b.input(variant.input, tensor_type(ElementType::kFloat, {kRows, kDepth}));
  const Value w = b.tensor({kDepth, kColumns}, std::span<const float>(weights_of(variant)));
  const Value product = b.op("MatMul", {x, w}, {}, {.name = variant.node});
  const auto loop = b.while_loop(
      {.initial = {product}, .trip_limit = b.scalar(variant.trips)},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) { return std::vector<Value>{b.op("Tanh", {f[0]})}; });
  b.output("y", loop[0]);
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::unique_ptr<Session> make_session(const Library& library, const Variant& variant = {},
                                      const SessionOptions& options = {.num_threads = 2}) {
  auto session = Session::create(library, make_graph(library, variant), options);
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  return std::move(*session);
}

std::vector<float> run(Session& session, int seed = 1) {
  std::vector<float> x(kRows * kDepth);
  std::iota(x.begin(), x.end(), static_cast<float>(seed));
  for (float& each : x) each *= 1e-4f;
  const Tensor given = Tensor::of({kRows, kDepth}, std::span<const float>(x));
  auto outputs = session.run({{session.inputs()[0].name, given}});
  EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const auto y = (*outputs)[0].second.values<float>();
  return {y.begin(), y.end()};
}

bool is_one_program(const Session& a, const Session& b) {
  return &a.graph() == &b.graph() && &a.plan() == &b.plan();
}

TEST(SharedPrograms, TwoSessionsOfOneModelRunOneProgramWithTheBitsOfOneOfItsOwn) {
  const Library library;
  const auto first = make_session(library), second = make_session(library);
  const auto own = make_session(library, {}, {.num_threads = 2, .shares_program = false});
  EXPECT_TRUE(is_one_program(*first, *second));
  EXPECT_FALSE(is_one_program(*first, *own));
  EXPECT_EQ(library.shared_programs().size(), 1u);
  EXPECT_EQ(first->fingerprint(), second->fingerprint());
  EXPECT_EQ(first->fingerprint(), own->fingerprint());
  for (int seed = 1; seed < 5; ++seed) {
    const std::vector<float> y = run(*own, seed);
    EXPECT_EQ(run(*first, seed), y);
    EXPECT_EQ(run(*second, seed), y);
  }
}

TEST(SharedPrograms, AGraphWhoseFingerprintIsKnownFindsTheSameProgram) {
  const Library library;
  const auto first = make_session(library);
  const Graph graph = make_graph(library);
  auto second =
      Session::create(library, graph.copy(), graph_fingerprint(graph), {.num_threads = 2});
  ASSERT_TRUE(second.is_ok()) << second.status().to_string();
  EXPECT_TRUE(is_one_program(*first, **second));
  EXPECT_EQ(run(**second), run(*first));
}

TEST(SharedPrograms, AProgramGoesWithTheLastSession) {
  const Library library;
  std::vector<float> y;
  for (int round = 0; round < 6; ++round) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < 3; ++i) sessions.push_back(make_session(library));
    y = run(*sessions[0]);
    for (int left = 3; left > 0; --left) {
      EXPECT_EQ(library.shared_programs().size(), 1u);
      sessions.erase(sessions.begin() + round % left);
      if (!sessions.empty()) {
        EXPECT_EQ(run(*sessions.back()), y);
      }
    }
    EXPECT_EQ(library.shared_programs().size(), 0u);
  }
}

TEST(SharedPrograms, AnythingThatDecidesTheProgramKeepsItApart) {
  const Library library;
  const SessionOptions two = {.num_threads = 2};
  const auto first = make_session(library, {}, two);
  std::vector<std::unique_ptr<Session>> others;
  others.push_back(make_session(library, {.weight = 0.25f}, two));
  others.push_back(make_session(library, {.trips = 4}, two));
  others.push_back(make_session(library, {.input = "other"}, two));
  others.push_back(make_session(library, {.node = "other"}, two));
  const auto add = [&](const std::function<void(SessionOptions&)>& change) {
    SessionOptions options = two;
    change(options);
    others.push_back(make_session(library, {}, options));
  };
  add([](SessionOptions& o) { o.num_threads = 3; });
  add([](SessionOptions& o) { o.loops = Loops::kHost; });
  add([](SessionOptions& o) { o.assignment = Assignment::kMatching; });
  add([](SessionOptions& o) { o.max_streams = 1; });
  add([](SessionOptions& o) { o.simplify = false; });
  add([](SessionOptions& o) { o.folds_norms = true; });
  add([](SessionOptions& o) { o.blocks_channels = false; });
  add([](SessionOptions& o) { o.release_constants = false; });
  add([](SessionOptions& o) { o.rank_by_costs = true; });
  add([](SessionOptions& o) { o.input_dims = {{"x", Dims{kRows, kDepth}}}; });
  others.push_back(make_session(library, {}, {.num_threads = 2, .shares_program = false}));
  const std::vector<float> y = run(*first);
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_FALSE(is_one_program(*first, *others[i])) << i;
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(is_one_program(*others[j], *others[i])) << i << j;
    EXPECT_EQ(run(*others[i]) == y, i > 1) << "weights and trips alone change the result: " << i;
    EXPECT_EQ(others[i]->inputs()[0].name, i == 2 ? "other" : "x");
  }
  EXPECT_EQ(library.shared_programs().size(), others.size());
  // What decides nothing.
  SessionOptions limited = two;
  limited.memory_limit_bytes = size_t{1} << 30;
  limited.max_runs_in_flight = 2;
  limited.use_arenas = false;
  const auto same = make_session(library, {}, limited);
  EXPECT_TRUE(is_one_program(*first, *same));
  EXPECT_EQ(run(*same), y);
}

TEST(SharedPrograms, AnExecutableThatIsGivenKernelsPacksNothing) {
  const Library library;
  const Graph graph = make_graph(library);
  Plan plan = plan_graph(graph, {});
  ASSERT_TRUE(prove_plan(graph, plan).is_ok());
  struct Packed : KernelState {
    std::shared_ptr<const int> weights;
  };
  int num_bound = 0, num_packed = 0;
  auto registry = std::make_shared<KernelRegistry>(library.cpu_kernels());
  registry->add({.op = "MatMul", .bind = [&](const KernelInit& init) -> Result<BoundKernel> {
                   ++num_bound;
                   auto state = std::make_unique<Packed>();
                   state->weights = init.pack<int>(init.constants[1].data, "counted", [&] {
                     return std::make_shared<const int>(++num_packed);
                   });
                   BoundKernel kernel;
                   kernel.run = [](const KernelArgs&) { return true; };
                   kernel.state = std::move(state);
                   kernel.unread_constants = 1 << 1;
                   return kernel;
                 }});
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{.num_threads = 1});
  const auto make = [&](std::shared_ptr<const BoundKernels> kernels) {
    ExecutableOptions options;
    options.kernels = std::move(kernels);
    auto made = Executable::create(graph, plan, {{device, registry}}, std::move(options));
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
  };
  auto first = make(nullptr);
  EXPECT_EQ(num_bound, 1);
  EXPECT_EQ(num_packed, 1);
  const auto second = make(first->shared_kernels_or_null());
  first.reset();
  const auto third = make(second->shared_kernels_or_null());
  EXPECT_EQ(num_bound, 1);
  EXPECT_EQ(num_packed, 1);
  EXPECT_EQ(third->unread_constants(), second->unread_constants());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    EXPECT_EQ(&second->kernel(NodeId(n)), &third->kernel(NodeId(n))) << n;
  }
  make(nullptr);
  EXPECT_EQ(num_packed, 2);
}

struct Counter : KernelState {
  explicit Counter(std::atomic<int>& n) : num_live(n) { ++num_live; }
  ~Counter() override { --num_live; }
  std::atomic<int>& num_live;
  mutable float num_calls = 0;
};

// y = x + how often this node has been called.
void add_counter(Library& library, std::atomic<int>& num_live, uint64_t unread_constants = 0) {
  OpDef def;
  def.name = "Count";
  def.domain = "test";
  def.inputs = {{"x", kFloatTypes, InputFlag::kNone}, {"by", kFloatTypes, InputFlag::kNone}};
  def.infer = [](InferContext& context) {
    context.set_output(0, context.input(0));
    return Status::ok();
  };
  const auto bind = [&num_live, unread_constants](const KernelInit& init) -> Result<BoundKernel> {
    EXPECT_NE(init.constants[1].data, nullptr);
    BoundKernel kernel;
    kernel.state = std::make_unique<Counter>(num_live);
    kernel.unread_constants = unread_constants;
    kernel.run = [](const KernelArgs& args) {
      const float calls = ++static_cast<const Counter&>(*args.state).num_calls;
      args.outputs[0].mutable_as<float>()[0] = args.inputs[0].as<float>()[0] + calls;
      return true;
    };
    return kernel;
  };
  ASSERT_TRUE(library.add_operator(std::move(def), bind).is_ok());
}

std::unique_ptr<Session> make_counting_session(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  b.output("y", b.op("Count", {x, b.scalar(2.0f)}, {}, {.domain = "test"}));
  auto session = Session::create(library, std::move(*b.finish()), {.num_threads = 1});
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  return std::move(*session);
}

float count(Session& session) {
  auto outputs = session.run({{"x", Tensor::scalar(10.0f)}});
  EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  return (*outputs)[0].second.values<float>()[0];
}

TEST(SharedPrograms, CustomOperatorsHaveAStateForEachSession) {
  std::atomic<int> num_live{0};
  Library library;
  add_counter(library, num_live);
  auto first = make_counting_session(library);
  auto second = make_counting_session(library);
  EXPECT_TRUE(is_one_program(*first, *second));
  EXPECT_EQ(num_live, 2);
  EXPECT_EQ(count(*first), 11.0f);
  EXPECT_EQ(count(*first), 12.0f);
  EXPECT_EQ(count(*second), 11.0f);
  first.reset();
  EXPECT_EQ(num_live, 1);
  EXPECT_EQ(count(*second), 12.0f);
  second.reset();
  EXPECT_EQ(num_live, 0);
}

TEST(SharedPrograms, ACustomOperatorThatLetsGoOfAConstantKeepsItsProgramToItself) {
  std::atomic<int> num_live{0};
  Library library;
  add_counter(library, num_live, 1 << 1);
  const auto first = make_counting_session(library);
  const auto second = make_counting_session(library);
  EXPECT_FALSE(is_one_program(*first, *second));
  EXPECT_EQ(library.shared_programs().size(), 0u);
  EXPECT_EQ(count(*first), 11.0f);
  EXPECT_EQ(count(*second), 11.0f);
}

TEST(SharedPrograms, HostFunctionsAreAskedByTheSessionThatRuns) {
  Library library;
  std::atomic<int> num_asked{0};
  ASSERT_TRUE(library
                  .add_host_function("more?",
                                     [&](std::span<const TensorView> inputs) -> Result<int64_t> {
                                       ++num_asked;
                                       return inputs[0].as<float>()[0] < 3 ? 1 : 0;
                                     })
                  .is_ok());
  const auto make = [&] {
    GraphBuilder b(library.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
    const auto loop = b.while_loop(
        {.initial = {x}},
        [&](Value, ValueSpan c) {
          return WhileTest{b.op("HostPredicate", {c[0]}, {{"name", "more?"}}, {.domain = "eddy"}),
                           {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
        });
    b.output("y", loop[0]);
    auto session = Session::create(library, std::move(*b.finish()), {.num_threads = 1});
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  };
  auto first = make();
  auto second = make();
  EXPECT_TRUE(is_one_program(*first, *second));
  first.reset();
  auto outputs = second->run({{"x", Tensor::scalar(0.0f)}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ((*outputs)[0].second.values<float>()[0], 3.0f);
  EXPECT_EQ(num_asked, 4);
}

TEST(SharedPrograms, ThreadsThatMakeSessionsAtOnceEndWithOneProgram) {
  constexpr int kThreads = 6;
  const Library library;
  const std::vector<float> y = run(*make_session(library));
  for (int round = 0; round < 8; ++round) {
    std::vector<std::unique_ptr<Session>> sessions(kThreads);
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        // Some go before others come.
        if (t % 3 == 2) {
          EXPECT_EQ(run(*make_session(library)), y);
        }
        sessions[static_cast<size_t>(t)] = make_session(library);
        EXPECT_EQ(run(*sessions[static_cast<size_t>(t)]), y);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(library.shared_programs().size(), 1u);
    for (const auto& each : sessions) EXPECT_TRUE(is_one_program(*sessions[0], *each));
    sessions.clear();
    EXPECT_EQ(library.shared_programs().size(), 0u);
  }
}

TEST(SharedPrograms, RunsOfSeveralSessionsDoNotMeet) {
  const Library library;
  const auto own = make_session(library, {}, {.num_threads = 2, .shares_program = false});
  std::vector<std::vector<float>> wanted;
  for (int seed = 0; seed < 4; ++seed) wanted.push_back(run(*own, seed));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto session = make_session(library);
      for (int i = 0; i < 50; ++i) EXPECT_EQ(run(*session, t), wanted[static_cast<size_t>(t)]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedPrograms, AFailureIsNotShared) {
  const Library library;
  SessionOptions options = {.num_threads = 2};
  int num_checks = 0;
  options.check = [&] { return ++num_checks > 1 ? cancelled("enough") : Status::ok(); };
  EXPECT_FALSE(Session::create(library, make_graph(library), options).is_ok());
  EXPECT_EQ(library.shared_programs().size(), 0u);
  run(*make_session(library));
}

#ifndef EDDY_SANITIZER  // their runtimes do not survive a fork of a process with threads
TEST(SharedPrograms, AChildMakesProgramsOfItsOwn) {
  const Library library;
  const auto session = make_session(library);
  const std::vector<float> y = run(*session);
  const pid_t child = fork();
  if (child == 0) {
    const auto own = make_session(library);
    const bool is_right = !is_one_program(*session, *own) && run(*own) == y;
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

}  // namespace
}  // namespace eddy
