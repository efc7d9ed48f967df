// Claim: exact gradients have the same bits whatever loops keep, on one stream or several, driven
// by the device or the host, with one thread or more; `grow` takes memory for the root of the
// number of trips; and a tape over the limit ends in a line that says which loop, where, how much
// of each iteration, and how it keeps less. Iterations that draw random numbers are made again with
// the same ones, so all this holds of them, too, and a training that is resumed draws what it would
// have drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"
#include "tests/graph/differentiate/gradient_inputs.h"
#include "tests/runtime/testing/ways.h"

namespace eddy::testing {
namespace {

using ::testing::EndsWith;

constexpr std::string_view kPolicies[] = {"all", "carried", "every:3", "grow"};

class SavePoliciesTest : public ::testing::Test {
 protected:
  SavePoliciesTest() { EXPECT_TRUE(add_standard_gradients(rules_).is_ok()); }

  Result<std::unique_ptr<Session>> session(const Graph& graph, std::string_view policy,
                                           const SessionOptions& options) {
    EDDY_ASSIGN_OR_RETURN(const SavePolicy save, parse_save_policy(policy));
    EDDY_ASSIGN_OR_RETURN(
        GradientGraph made,
        differentiate(graph.copy(), library_.ops(), rules_,
                      {.loss = "loss", .save = {.others = save, .loops = {}}, .exact = true}));
    return Session::create(library_, std::move(made.graph), options);
  }

  static void expect_same_bits(const NamedTensors& found, const NamedTensors& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const TensorView a = found[i].second.view(), b = expected[i].second.view();
      ASSERT_EQ(a.size_bytes(), b.size_bytes()) << expected[i].first;
      EXPECT_EQ(std::memcmp(a.data, b.data, b.size_bytes()), 0) << expected[i].first;
    }
  }

  // h <- tanh(h W) + x, 16 wide; `trips` is an input.
  Graph recurrent(bool has_trained_weights, bool has_open_rows = false) {
    GraphBuilder b(library_.ops());
    const int64_t rows = has_open_rows ? b.symbol("rows") : 1;
    Random random(1);
    std::vector<float> numbers(256);
    for (float& number : numbers) number = static_cast<float>(random.uniform() * 0.5 - 0.25);
    const Value h = b.input("h", tensor_type(ElementType::kFloat, {rows, 16}));
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {rows, 16}));
    const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
    const Value w = b.tensor<float>({16, 16}, std::span<const float>(numbers));
    b.set_name(w, has_trained_weights ? "w" : "");
    const auto made = b.while_loop(
        {.name = "recur", .initial = {h}},
        [&](Value i, ValueSpan c) {
          return WhileTest{b.op("Less", {i, trips}), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {b.op("Tanh", {b.op("MatMul", {f[0], w})}), x})};
        });
    b.output("loss", b.op("ReduceSum", {made[0]}, {{"keepdims", int64_t{0}}}));
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }

  static NamedTensors inputs(int64_t trips) {
    std::vector<float> h(16), x(16);
    for (int i = 0; i < 16; ++i) {
      h[i] = 0.1f * static_cast<float>(i);
      x[i] = 0.05f * static_cast<float>(i - 8);
    }
    const int64_t dims[] = {1, 16};
    return {{"h", Tensor::copy_of({h.data(), dims, 2, ElementType::kFloat})},
            {"x", Tensor::copy_of({x.data(), dims, 2, ElementType::kFloat})},
            {"trips", Tensor::scalar(trips)}};
  }

  Library library_;
  GradientTable rules_;
};

TEST_F(SavePoliciesTest, RandomNestsHaveTheSameBitsInAllWays) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    GraphBuilder b(library_.ops());
    check::add_gradient_program(b, seed, {.has_sequences = false});
    const auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    NamedTensors given;
    for (const auto& [name, value] : random_inputs(seed)) {
      given.emplace_back(name, Tensor::copy_of(value.tensor().view()));
    }
    NamedTensors expected;
    for (const std::string_view policy : kPolicies) {
      for (const Way& way : all_ways()) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(policy) + ", " + way.name);
        SessionOptions options;
        options.loops = way.loops;
        options.assignment = way.assignment;
        options.simplify = way.simplify;
        options.use_arenas = way.use_arenas;
        options.num_threads = way.assignment == Assignment::kSerial ? 1 : 3;
        auto made = session(*graph, policy, options);
        if (!made.is_ok()) {
          ASSERT_NE(made.status().message().find("depends on no input"), std::string::npos)
              << made.status().to_string();
          continue;
        }
        const auto outputs = (*made)->run(given);
        ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
        if (expected.empty()) expected = *outputs;
        expect_same_bits(*outputs, expected);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
        ++compared;
      }
    }
  }
  printf("seeds 1..12: %d runs compared\n", compared);
  EXPECT_GE(compared, 200);
}

// h <- dropout(tanh(h w)) + noise, with numbers that each iteration of each step draws anew.
TEST_F(SavePoliciesTest, IterationsThatDrawRandomNumbersAreMadeAgainWithThem) {
  GraphBuilder b(library_.ops());
  const Value h = b.input("h", tensor_type(ElementType::kFloat, {2, 8}));
  const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
  std::vector<float> numbers(64);
  Random random(3);
  for (float& number : numbers) number = static_cast<float>(random.uniform() - 0.5);
  const Value w = b.tensor<float>({8, 8}, std::span<const float>(numbers));
  b.set_name(w, "w");
  const auto made = b.while_loop(
      {.name = "recur", .initial = {h}},
      [&](Value i, ValueSpan c) {
        const Value noise = b.op("RandomNormalLike", {c[0]}, {{"scale", 0.25f}});
        return WhileTest{b.op("Less", {i, trips}), {b.op("Add", {c[0], noise})}};
      },
      [&](Value, ValueSpan f) {
        const Value next = b.op("Tanh", {b.op("MatMul", {f[0], w})});
        return std::vector<Value>{b.op("Dropout", {next, b.scalar(0.25f), b.scalar(true)})};
      });
  b.output("loss", b.op("ReduceSumSquare", {made[0]}, {{"keepdims", int64_t{0}}}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const std::vector<float> start(16, 0.5f);
  const int64_t dims[] = {2, 8};
  const NamedTensors given = {
      {"h", Tensor::copy_of({const_cast<float*>(start.data()), dims, 2, ElementType::kFloat})},
      {"trips", Tensor::scalar(int64_t{7})}};
  const std::string path = ::testing::TempDir() + "/drawn.state.onnx";
  std::vector<double> expected, weights;
  for (const std::string_view policy : kPolicies) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(std::string(policy) + ", threads " + std::to_string(threads));
      TrainingOptions options{.loss = "loss", .seed = 11};
      options.save.others = *parse_save_policy(policy);
      options.exact = true;
      const auto make = [&] {
        auto trainer =
            Trainer::create(library_, graph->copy(), rules_, options, {.num_threads = threads});
        EXPECT_TRUE(trainer.is_ok()) << trainer.status().to_string();
        return std::move(*trainer);
      };
      auto trainer = make();
      EXPECT_EQ(trainer->report().loops.at(0).policy, policy);
      std::vector<double> losses;
      for (int i = 0; i < 6; ++i) {
        if (i == 3) {  // another process would go on
          ASSERT_TRUE(trainer->save_state(path).is_ok());
          trainer = make();
          ASSERT_TRUE(trainer->load_state(path).is_ok());
        }
        const auto loss = trainer->step(given, 0.125f);
        ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
        losses.push_back(*loss);
      }
      if (expected.empty()) expected = losses;
      EXPECT_EQ(losses, expected);
      const auto last = trainer->parameter("w").as<float>();
      losses.assign(last, last + 64);
      if (weights.empty()) weights = losses;
      EXPECT_EQ(losses, weights);
    }
  }
}

TEST_F(SavePoliciesTest, GrowTakesMemoryForTheRootOfTheTrips) {
  const Graph graph = recurrent(false);
  constexpr int64_t kTrips = 20'000;  // 200 states, and 200 iterations of 128 bytes at a time
  NamedTensors expected;
  size_t peak_all = 0;
  for (const std::string_view policy : {"all", "carried", "grow"}) {
    SCOPED_TRACE(policy);
    auto made = session(graph, policy, {.num_threads = 1});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    const auto outputs = (*made)->run(inputs(kTrips));
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    if (expected.empty()) expected = *outputs;
    expect_same_bits(*outputs, expected);
    const size_t peak = (*made)->memory().peak_bytes;
    printf("%s: %zu bytes at the peak\n", policy.data(), peak);
    if (policy == "all") {
      peak_all = peak;
      EXPECT_GE(peak, kTrips * 64u);
    } else if (policy == "carried") {
      EXPECT_LT(peak, kTrips * 64u * 2);
    } else {
      EXPECT_LT(peak, std::min<size_t>(192 << 10, peak_all / 8));
    }
  }
}

TEST_F(SavePoliciesTest, ATapeOverTheLimitSaysWhatItKeepsAndHowItKeepsLess) {
  const auto step = [&](std::string_view policy) -> Result<double> {
    TrainingOptions options{.loss = "loss"};
    options.save.others = *parse_save_policy(policy);
    EDDY_ASSIGN_OR_RETURN(const auto trainer,
                          Trainer::create(library_, recurrent(true), rules_, options,
                                          {.num_threads = 1, .memory_limit_bytes = 1 << 20}));
    return trainer->step(inputs(20'000), 0.0f);
  };
  const Status status = step("all").status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
  EXPECT_EQ(status.path(), "recur") << status.to_string();
  EXPECT_NE(status.message().find("the scan row of iteration "), std::string::npos)
      << status.to_string();
  EXPECT_NE(status.message().find("; the way back keeps 128 bytes of each iteration of 'recur': "
                                  "keep less with --save grow"),
            std::string::npos)
      << status.to_string();
  // Segments that are too long, and too short.
  const auto message = [&](std::string_view policy) { return step(policy).status().message(); };
  EXPECT_THAT(message("every:5000"),
              EndsWith("; the way back keeps 128 bytes of each iteration of a segment of 'recur': "
                       "keep less with shorter segments, or --save grow"));
  EXPECT_THAT(message("every:3"),
              EndsWith("; the way back keeps 72 bytes of each segment of 'recur': keep less with "
                       "longer segments, or --save grow"));
  const auto grown = step("grow");
  EXPECT_TRUE(grown.is_ok()) << grown.status().to_string();

  // Of a gradient that comes from a file, its graph says it.
  auto plain = session(recurrent(false), "all", {.num_threads = 1, .memory_limit_bytes = 1 << 20});
  ASSERT_TRUE(plain.is_ok()) << plain.status().to_string();
  const Status bare = (*plain)->run(inputs(20'000)).status();
  const Status advised = with_saving_advice(bare, (*plain)->graph());
  EXPECT_NE(advised.message().find("; the way back keeps 64 bytes of each iteration of 'recur': "
                                   "keep less with --save grow"),
            std::string::npos)
      << advised.to_string();

  // Where types leave a size open, the run's inputs say it; shapes are kept then, too.
  auto open = session(recurrent(false, /*has_open_rows=*/true), "all",
                      {.num_threads = 1, .memory_limit_bytes = 1 << 20});
  ASSERT_TRUE(open.is_ok()) << open.status().to_string();
  const NamedTensors given = inputs(20'000);
  const Status full = (*open)->run(given).status();
  ASSERT_EQ(full.code(), StatusCode::kResourceExhausted) << full.to_string();
  const auto told = [&](const std::map<std::string, Dims>& shapes) {
    return with_saving_advice(full, (*open)->graph(), shapes).message();
  };
  EXPECT_NE(told(shapes_of(given)).find("keeps 96 bytes of each iteration of 'recur'"),
            std::string::npos)
      << told(shapes_of(given));
  EXPECT_NE(told({}).find("keeps tensors of unknown size of each iteration"), std::string::npos);
}

}  // namespace
}  // namespace eddy::testing
