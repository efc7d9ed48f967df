// Claim: each question to the driver is answered in a row of its own: on the fake driver, whose
// rules are known, with the answer that they give; a driver that breaks a rule of Eddy's fails its
// row; a question that hangs or dies costs its own row alone.
#include "tools/gpu/driver_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>

#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tools/gpu/run_apart.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

DriverQuestion question(const std::string& name) {
  for (const DriverQuestion& each : driver_questions()) {
    if (name == each.name) return each;
  }
  ADD_FAILURE() << "no question " << name;
  return {};
}

// The device of the fake: a spin ends at once, as if its word had come.
struct FakeProbe {
  const FakeKernelCall& call;
  uint64_t now_ns() const { return 0; }
  void fence() const {}
  void set(uint64_t handle, uint32_t value) const { call.set_conditional(handle, value); }
  void trap() const {}
};

class DriverTest : public ::testing::Test {
 protected:
  // The answer of a fresh fake driver; what it notes is in violations_. Where it breaks rules, a
  // handle keeps its first value for nine rounds, and a spin does not see its word.
  Json ask(const std::string& name, bool breaks_rules = false) {
    FakeCuda fake({.seed = 5, .takes_any_image = true});
    Random random{5};
    define_host_kernels(fake, random);
    fake.define_kernel("eddy_probe", sizeof(cuda::ProbeParams), [=](const FakeKernelCall& call) {
      cuda::ProbeParams params = call.params_as<cuda::ProbeParams>();
      if (params.op == cuda::ProbeOp::kSpin) {
        *params.result = breaks_rules ? 0 : 1;
      } else if (params.op == cuda::ProbeOp::kDecide && breaks_rules) {
        call.set_conditional(params.handle, ++*params.counter < 9 ? 1 : 0);
      } else {
        cuda::probe(params, FakeProbe{call});
      }
    });
    if (name == "after_a_trap") fake.fault_kernel(2, CuResult::kLaunchFailed);
    Json row;
    {
      const auto device = std::move(*CudaDevice::create(fake.api(), {}));
      const auto module = std::move(*CudaModule::load(device->context(), FakeCuda::kImages));
      row = ask_driver(question(name), {*device, *module, [&] { fake.step(); }}, extras_,
                       FakeCuda::kImage);
    }
    violations_ = fake.violations();
    return row;
  }

  DriverExtras extras_;
  std::vector<std::string> violations_;
};

TEST_F(DriverTest, EveryQuestionHasAnAnswer) {
  for (const DriverQuestion& each : driver_questions()) {
    if (each.may_die) continue;
    const Json row = ask(each.name);
    EXPECT_EQ(row["status"], each.name == std::string("edges") ? "skipped" : "passed") << row;
    EXPECT_GT(row.size(), 3u) << "only that it passed: " << row;
    EXPECT_THAT(violations_, IsEmpty()) << each.name;
  }
}

TEST_F(DriverTest, TheFakesRulesAreTheAnswers) {
  EXPECT_EQ(ask("decided_twice")["rounds"], 5);
  EXPECT_EQ(ask("early_words")["early"], 0);
  EXPECT_EQ(ask("gates")["of_eddys_nine"], 9);
  EXPECT_EQ(ask("many_launches")["first_that_waits"], 0);
  EXPECT_EQ(ask("set_by_ptx")["text_that_decides"], "loads");
  EXPECT_THAT(ask("what_spoils")["cuCtxSynchronize"].get<std::string>(), HasSubstr("spoils it"));
  const Json spoilt = ask("spoilt_body");
  EXPECT_THAT(spoilt["end"].get<std::string>(), HasSubstr("cuStreamEndCapture"));
}

TEST_F(DriverTest, EdgesAreCountedByTheirPorts) {
  // As a driver that makes the first of two edges programmatic.
  extras_.graph_edges = [](CuGraph, CuGraphNode*, CuGraphNode*, CuGraphEdgeData* data,
                           size_t* num_edges) {
    *num_edges = 2;
    if (data != nullptr) data[0].from_port = 1;
    return CuResult::kSuccess;
  };
  const Json row = ask("edges");
  EXPECT_EQ(row["status"], "passed") << row;
  EXPECT_EQ(row["chain"], "1 of 2 begin early");
  EXPECT_EQ(row["in a body, conditional between"], "1 of 2 begin early");
  EXPECT_THAT(violations_, IsEmpty());
}

TEST_F(DriverTest, ABrokenRuleFailsItsRow) {
  const Json twice = ask("decided_twice", true);
  EXPECT_EQ(twice["status"], "failed");
  EXPECT_THAT(twice["reason"].get<std::string>(), HasSubstr("9 rounds of 5"));
  const Json word = ask("device_word", true);
  EXPECT_EQ(word["status"], "failed");
  EXPECT_THAT(word["reason"].get<std::string>(), HasSubstr("does not see"));
}

TEST_F(DriverTest, WithoutAToolkitNothingIsAsked) {
  FakeCuda fake({.seed = 5});
  const auto device = std::move(*CudaDevice::create(fake.api(), {}));
  const auto module = std::move(*CudaModule::load(device->context(), FakeCuda::kImages));
  const Json row = ask_driver(question("calls"), {*device, *module}, {}, nullptr);
  EXPECT_EQ(row["status"], "skipped");
  EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("without a toolkit"));
}

// ---------------------------------------------------------------- processes

TEST(DriverReport, EachQuestionLivesOrDiesAlone) {
  const Json report = report_driver({}, "", [](const DriverQuestion& asked) -> Json {
    if (asked.name == std::string("spoilt_body") || asked.name == std::string("calls")) {
      raise(SIGKILL);
    }
    if (asked.name == std::string("ends")) _exit(3);
    return {{"question", asked.name}, {"process", getpid()}, {"status", "passed"}};
  });
  ASSERT_EQ(report["rows"].size(), driver_questions().size());
  EXPECT_EQ(report["failed"], 2);
  for (const Json& row : report["rows"]) {
    if (row["question"] == "calls") {
      EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("signal 9"));
    } else if (row["question"] == "ends") {
      EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("ended with 3"));
    } else if (row["question"] == "spoilt_body") {
      EXPECT_EQ(row["status"], "passed") << "dying is an answer, too";
      EXPECT_THAT(row["answer"].get<std::string>(), HasSubstr("signal 9"));
    } else {
      EXPECT_NE(row["process"], getpid());
    }
  }
}

TEST(DriverReport, OneQuestionIsAskedByName) {
  const Json report = report_driver({}, "reads", [](const DriverQuestion& asked) -> Json {
    return {{"question", asked.name}, {"status", "passed"}};
  });
  ASSERT_EQ(report["rows"].size(), 1u);
  EXPECT_EQ(report["rows"][0]["question"], "reads");
}

TEST(DriverReport, WithoutAGpuTheFirstQuestionEndsIt) {
  const Json report = report_driver({}, "", [](const DriverQuestion&) -> Json {
    return {{"no_gpu", "no CUDA driver"}};
  });
  EXPECT_THAT(report["rows"], IsEmpty());
  EXPECT_THAT(report["error"].get<std::string>(), HasSubstr("no CUDA driver"));
}

TEST(RunApart, AnswersOfAnyLengthCome) {
  for (const size_t length : {0u, 1u, 5000u, 1u << 20}) {
    const auto answer =
        run_apart([=] { return std::string(length, 'x'); }, std::chrono::seconds(60));
    ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
    EXPECT_EQ(answer->size(), length);
  }
}

TEST(RunApart, WhatHangsIsKilled) {
  const auto answer = run_apart(
      []() -> std::string {
        for (;;) pause();
      },
      std::chrono::seconds(1));
  EXPECT_EQ(answer.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(answer.status().message(), HasSubstr("not over after 1 s"));
}

}  // namespace
}  // namespace eddy::testing
