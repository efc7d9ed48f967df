// Claim: the source of a persistent loop computes its program's results, bit for bit, in as many
// iterations: sources of seeded random loops, compiled by the host's compiler, against an
// interpreter, for limits of 0, 1, 2 and 17, stopped and not; compiled by nvcc, too, where it is,
// and by NVRTC where that is found. A loop that a block cannot hold is refused with its size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/cuda/compiled/kernel_compiler.h"
#include "ops/cuda/text/persistent_text.h"
#include "tests/ops/cuda/compiled/fused_sources.h"
#include "tests/ops/cuda/compiled/random_expressions.h"
#include "tests/ops/cuda/compiled/random_loop_programs.h"
#include "tests/ops/cuda/host/kernel_fixture.h"
#include "tests/ops/cuda/host/loop_interpreter.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

// In the order in which write_fused_sources makes them.
std::vector<LoopProgram> loops() {
  Random random(kFusedSourcesSeed);
  for (int i = 0; i < kNumFusedHostKernels; ++i) random_program(random);
  std::vector<LoopProgram> all;
  for (int i = 0; i < kNumLoopHostKernels; ++i) all.push_back(random_loop_program(random));
  return all;
}

// The results of one launch.
struct Answer {
  std::vector<TestTensor> results;
  int64_t progress[2] = {-1, -1};
};

Answer run(const LoopProgram& program, std::span<const TestTensor> inputs, cuda::LoopParams params,
           const std::function<void(const cuda::LoopParams&)>& launch) {
  Answer answer;
  for (size_t i = 0; i < inputs.size(); ++i) params.in[i] = inputs[i].view().data;
  for (const uint32_t result : program.results) {
    answer.results.emplace_back(program.values[result].element, program.values[result].dims);
  }
  for (size_t r = 0; r < answer.results.size(); ++r) params.out[r] = answer.results[r].view().data;
  params.progress = answer.progress;
  launch(params);
  return answer;
}

// NaNs are equal: their signs and payloads are the compiler's choice.
bool is_same(const TestTensor& a, const TestTensor& b) {
  for (int64_t i = 0; i < a.view().count(); ++i) {
    const float x = a.view().as<float>()[i], y = b.view().as<float>()[i];
    if (std::memcmp(&x, &y, sizeof(x)) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

TEST(PersistentKernels, SourcesOfRandomLoopsComputeWhatTheirProgramsSay) {
  Random random(3);
  const std::vector<LoopProgram> all = loops();
  int num_long = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const LoopProgram& program = all[i];
    const LoopInterpreter interpreter(program, run_row_kernel);
    std::vector<TestTensor> inputs;
    for (uint32_t v = 0; v < program.num_inputs; ++v) {
      inputs.push_back(
          TestTensor::random(program.values[v].element, program.values[v].dims, random, -2, 2));
    }
    for (const int64_t limit : {0, 1, 2, 17}) {
      for (const uint32_t stop : {0u, 1u}) {
        for (const uint64_t given : {uint64_t{1}, uint64_t{0}}) {
          SCOPED_TRACE("seed " + std::to_string(kFusedSourcesSeed) + ", loop " + std::to_string(i) +
                       ", limit " + std::to_string(limit));
          cuda::LoopParams params{};
          params.given = given;
          params.limit = limit;
          params.stop = &stop;
          const Answer expected = run(program, inputs, params,
                                      [&](const cuda::LoopParams& p) { interpreter.run(p, {}); });
          const Answer actual = run(program, inputs, params, [&](const cuda::LoopParams& p) {
            kLoopHostKernels[i](&p, 0, 1);
          });
          EXPECT_EQ(actual.progress[0], expected.progress[0]);
          EXPECT_EQ(actual.progress[1], 1);
          EXPECT_LE(actual.progress[0], stop != 0 ? 0 : limit);
          num_long += actual.progress[0] == 17 ? 1 : 0;
          for (size_t r = 0; r < actual.results.size(); ++r) {
            EXPECT_TRUE(is_same(actual.results[r], expected.results[r])) << "result " << r;
          }
        }
      }
    }
  }
  EXPECT_GT(num_long, 5) << "too few loops go round to show anything";
}

TEST(PersistentKernels, AProgramIsReadFromItsText) {
  for (const LoopProgram& program : loops()) {
    const auto source = cuda::persistent_kernel_source(program);
    ASSERT_TRUE(source.is_ok()) << source.status().to_string();
    const auto read = LoopInterpreter::read(source->text, run_row_kernel);
    EXPECT_TRUE(read.is_ok()) << read.status().to_string();
  }
}

// x := tanh(x) while flag, of so many elements.
LoopProgram tanh_loop(ElementType element, int64_t count) {
  LoopProgram program;
  program.num_inputs = 1;
  program.num_given = 1;
  const Dims dims{count};
  program.values = {
      {element, dims, 0}, {ElementType::kBool, {}, 1}, {element, dims, 2}, {element, dims, 3}};
  LoopProgram::Step step;
  step.expression = std::move(
      *parse_expression(element == ElementType::kDouble ? "Tanh_f64 0" : "Tanh_f32 0", 1));
  step.arguments = {2};
  step.result = 3;
  program.after = {step};
  program.carried = {{2, 0, 3}};
  program.predicate = 1;
  program.results = {2};
  return program;
}

TEST(PersistentKernels, WhatABlockCannotHoldIsRefusedWithItsSize) {
  const auto refusal = [](const LoopProgram& program) {
    const auto source = cuda::persistent_kernel_source(program);
    return source.is_ok() ? std::string("accepted") : source.status().message();
  };
  EXPECT_EQ(refusal(tanh_loop(ElementType::kFloat, 4000)), "accepted");
  EXPECT_THAT(refusal(tanh_loop(ElementType::kFloat, 4100)),
              HasSubstr("its values take 32808 bytes, a block has 32768"));
  EXPECT_THAT(refusal(tanh_loop(ElementType::kFloat, 9000)), HasSubstr("9000 elements"));
  EXPECT_THAT(refusal(tanh_loop(ElementType::kFloat, 0)), HasSubstr("no elements"));
  LoopProgram sums = tanh_loop(ElementType::kDouble, 4);
  sums.after[0].expression = {};
  sums.after[0].axes = 0;
  sums.after[0].reduction = "ReduceL2";
  EXPECT_THAT(refusal(sums), HasSubstr("ReduceL2_f64 is not done"));
  sums.after[0].reduction = "ReduceSum; abort()";
  EXPECT_THAT(refusal(sums), HasSubstr("is not done in a persistent loop"));
}

TEST(PersistentKernels, NvrtcTakesTheSources) {
  auto api = load_nvrtc();
  if (!api.is_ok()) api = load_nvrtc_from("/usr/local/cuda/lib64/libnvrtc.so");
  if (!api.is_ok()) GTEST_SKIP() << api.status().message();
  KernelCompiler compiler(*api, "");
  const std::vector<LoopProgram> all = loops();
  for (size_t i = 0; i < all.size(); i += 8) {
    SCOPED_TRACE("loop " + std::to_string(i));
    const auto source = cuda::persistent_kernel_source(all[i]);
    ASSERT_TRUE(source.is_ok()) << source.status().to_string();
    for (const int compute_capability : {80, 90}) {
      const auto code = compiler.compile(*source, compute_capability);
      ASSERT_TRUE(code.is_ok()) << code.status().to_string();
      EXPECT_THAT(*code, HasSubstr(source->name));
    }
  }
}

}  // namespace
}  // namespace eddy::testing
