// Claim: the fake driver keeps CUDA's contract, and reports each breach of it.
#include "tests/runtime/cuda/fake_cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr CuResult kOk = CuResult::kSuccess;

class FakeCudaTest : public ::testing::Test {
 protected:
  explicit FakeCudaTest(const FakeCudaOptions& options = {}) : fake_(options) {
    api_->device_get(&device_, 0);
    api_->primary_context_retain(&context_, device_);
    api_->context_push(context_);
    fake_.define_kernel("log", sizeof(int), [this](const FakeKernelCall& call) {
      log_.push_back(call.params_as<int>());
    });
    fake_.define_kernel("write", sizeof(uint64_t), [](const FakeKernelCall& call) {
      *reinterpret_cast<int*>(call.params_as<uint64_t>()) = 1;
    });
    api_->module_load(&module_, FakeCuda::kImage);
    CuMemoryPoolProps props;
    api_->pool_create(&pool_, &props);
  }

  CuStream stream() {
    CuStream made = nullptr;
    EXPECT_EQ(api_->stream_create(&made, kCuStreamNonBlocking, 0), kOk);
    return made;
  }
  CuEvent event() {
    CuEvent made = nullptr;
    EXPECT_EQ(api_->event_create(&made, kCuEventDisableTiming), kOk);
    return made;
  }
  CuFunction function(const char* name) {
    CuFunction made = nullptr;
    EXPECT_EQ(api_->module_function(&made, module_, name), kOk);
    return made;
  }
  template <typename T>
  CuResult launch(const char* name, CuStream stream, T param) {
    void* params[] = {&param};
    return api_->launch_kernel(function(name), 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }

  FakeCuda fake_;
  std::shared_ptr<const CudaApi> api_ = fake_.api();
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  CuModule module_ = nullptr;
  CuMemoryPool pool_ = nullptr;
  std::vector<int> log_;
};

TEST_F(FakeCudaTest, NothingRunsBeforeItIsStepped) {
  const CuStream s = stream();
  launch("log", s, 1);
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(fake_.step());
  EXPECT_THAT(log_, ElementsAre(1));
  EXPECT_FALSE(fake_.step());
}

TEST_F(FakeCudaTest, AWaitNamesTheLatestRecordAtTheTimeOfTheCall) {
  const CuStream a = stream();
  const CuStream b = stream();
  const CuEvent e = event();
  EXPECT_EQ(api_->event_query(e), kOk) << "never recorded";
  launch("log", a, 1);
  api_->event_record(e, a);
  api_->stream_wait_event(b, e, 0);
  launch("log", a, 3);
  api_->event_record(e, a);  // later than the wait: it does not count
  launch("log", b, 2);
  EXPECT_EQ(api_->event_query(e), CuResult::kNotReady);
  fake_.run_all();
  EXPECT_EQ(api_->event_query(e), kOk);
  EXPECT_LT(std::find(log_.begin(), log_.end(), 1), std::find(log_.begin(), log_.end(), 2));
}

TEST(FakeCudaOrder, SeedsMakeEveryOrderOfTwoStreamsAndTheSameSeedTheSame) {
  const auto order_of = [](uint64_t seed) {
    FakeCuda fake({.seed = seed});
    std::vector<int> log;
    fake.define_kernel("log", sizeof(int),
                       [&](const FakeKernelCall& call) { log.push_back(call.params_as<int>()); });
    const auto api = fake.api();
    CuContext context = nullptr;
    CuModule module = nullptr;
    CuFunction function = nullptr;
    api->primary_context_retain(&context, 0);
    api->context_push(context);
    api->module_load(&module, FakeCuda::kImage);
    api->module_function(&function, module, "log");
    for (int s = 0; s < 2; ++s) {
      CuStream stream = nullptr;
      api->stream_create(&stream, kCuStreamNonBlocking, 0);
      for (int i = 0; i < 2; ++i) {
        int value = 10 * s + i;
        void* params[] = {&value};
        api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
      }
    }
    fake.run_all();
    return log;
  };
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto order = order_of(seed);
    EXPECT_EQ(order, order_of(seed)) << "seed " << seed;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6u) << "interleavings of two and two";
}

TEST_F(FakeCudaTest, MemoryUsedOutsideItsLifeIsNoticed) {
  const CuStream s = stream();
  CuDevicePointer memory = 0;
  api_->memory_allocate(&memory, 64, pool_, s);
  launch("write", s, memory);
  fake_.run_all();
  EXPECT_THAT(fake_.violations(), IsEmpty());
  api_->memory_free(memory, s);
  launch("log", s, 0);
  fake_.run_all();
  EXPECT_THAT(fake_.violations(), IsEmpty());
  api_->fill(memory, 0, 64, s);
  fake_.run_all();
  EXPECT_THAT(fake_.violations(),
              ElementsAre("a fill of stream 0 uses a block of 64 bytes after its free"));
}

TEST_F(FakeCudaTest, AKernelThatDoesNotWaitForItsMemoryIsNoticed) {
  fake_.define_kernel("touch", sizeof(uint64_t), [](const FakeKernelCall&) {});
  const CuStream a = stream();
  const CuStream b = stream();
  CuDevicePointer memory = 0;
  api_->memory_allocate(&memory, 64, pool_, a);
  api_->memory_free(memory, a);
  launch("touch", b, memory);
  fake_.run_all();
  ASSERT_EQ(fake_.violations().size(), 1u);
  EXPECT_THAT(fake_.violations()[0],
              HasSubstr("kernel touch of stream 1 uses a block of 64 bytes"));
}

TEST_F(FakeCudaTest, TheHostCannotTouchDeviceMemory) {
  const CuStream s = stream();
  CuDevicePointer memory = 0;
  api_->memory_allocate(&memory, 64, pool_, s);
  fake_.run_all();
  EXPECT_DEATH(*reinterpret_cast<int*>(memory) = 1, "");
}

TEST_F(FakeCudaTest, ACopyFromPageableMemoryIsNoticedBecauseItBlocks) {
  const CuStream s = stream();
  CuDevicePointer memory = 0;
  api_->memory_allocate(&memory, 64, pool_, s);
  std::vector<char> pageable(64);
  api_->copy(memory, reinterpret_cast<uint64_t>(pageable.data()), 64, s);
  fake_.run_all();
  EXPECT_THAT(fake_.violations(), ElementsAre(HasSubstr("pageable")));
}

TEST_F(FakeCudaTest, ACallWithoutAContextFailsAndIsNoticed) {
  CuContext popped = nullptr;
  api_->context_pop(&popped);
  CuStream s = nullptr;
  EXPECT_EQ(api_->stream_create(&s, kCuStreamNonBlocking, 0), CuResult::kInvalidContext);
  EXPECT_THAT(fake_.violations(), ElementsAre(HasSubstr("without a current context")));
}

TEST_F(FakeCudaTest, AFaultIsStickyAndEndsEveryQueue) {
  const CuStream a = stream();
  const CuStream b = stream();
  const CuEvent e = event();
  api_->event_record(e, b);
  fake_.fault_kernel(1);
  int value = 1;
  void* params[] = {&value};
  const CuFunction log = function("log");
  const auto launch_log = [&](CuStream stream) {
    return api_->launch_kernel(log, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  };
  launch_log(a);
  launch_log(a);
  fake_.run_all();
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(api_->event_query(e), CuResult::kIllegalAddress);
  EXPECT_EQ(launch_log(b), CuResult::kIllegalAddress);
  EXPECT_TRUE(fake_.is_idle());
}

TEST_F(FakeCudaTest, AStreamWaitsForAWordThatTheHostWrites) {
  void* page = nullptr;
  api_->host_allocate(&page, 4096, kCuHostAllocMapped | kCuHostAllocPortable);
  auto* word = static_cast<uint32_t*>(page);
  *word = 0;
  const CuStream s = stream();
  api_->stream_wait_value32(s, reinterpret_cast<uint64_t>(word), 1, kCuWaitValueGreaterOrEqual);
  launch("log", s, 1);
  EXPECT_FALSE(fake_.step());
  *word = 1;
  fake_.run_all();
  EXPECT_THAT(log_, ElementsAre(1));
}

class FakeGraphTest : public FakeCudaTest {
 protected:
  void SetUp() override { ASSERT_EQ(api_->graph_create(&graph_, 0), kOk); }

  CuGraphNode kernel(CuGraph graph, const char* name, const void* param,
                     std::vector<CuGraphNode> after = {}) {
    CuGraphNodeParams params;
    params.type = CuGraphNodeType::kKernel;
    params.kernel = {};
    void* values[] = {const_cast<void*>(param)};
    params.kernel.function = function(name);
    params.kernel.params = values;
    CuGraphNode node = nullptr;
    EXPECT_EQ(api_->graph_add_node(&node, graph, after.data(), nullptr, after.size(), &params),
              kOk);
    return node;
  }
  CuGraph conditional(CuGraph graph, CuConditionalType type, CuConditionalHandle handle,
                      std::vector<CuGraphNode> after = {}, CuGraphNode* made = nullptr) {
    CuGraphNodeParams params;
    params.type = CuGraphNodeType::kConditional;
    params.conditional = {};
    params.conditional.handle = handle;
    params.conditional.type = type;
    CuGraphNode node = nullptr;
    EXPECT_EQ(api_->graph_add_node(&node, graph, after.data(), nullptr, after.size(), &params),
              kOk);
    if (made != nullptr) *made = node;
    return params.conditional.bodies_out[0];
  }
  CuConditionalHandle handle(unsigned value, CuGraph graph_or_null = nullptr) {
    CuConditionalHandle made = 0;
    CuGraph graph = graph_or_null != nullptr ? graph_or_null : graph_;
    EXPECT_EQ(
        api_->graph_conditional_handle(&made, graph, context_, value, kCuConditionalAssignDefault),
        kOk);
    return made;
  }
  // A kernel that counts down from `rounds` and sets the handle while rounds are left.
  void define_countdown(const char* name, CuConditionalHandle of, int& left) {
    fake_.define_kernel(name, 0, [of, &left](const FakeKernelCall& call) {
      call.set_conditional(of, --left > 0 ? 1 : 0);
    });
  }
  CuGraphExec instantiate() {
    CuGraphExec made = nullptr;
    EXPECT_EQ(api_->graph_instantiate(&made, graph_, 0), kOk);
    return made;
  }

  CuGraph graph_ = nullptr;
};

TEST_F(FakeGraphTest, AWhileRunsItsBodyUntilAKernelClearsItsHandle) {
  const CuConditionalHandle h = handle(1);
  int left = 5;
  define_countdown("count", h, left);
  const CuGraph body = conditional(graph_, CuConditionalType::kWhile, h);
  const int one = 1;
  const CuGraphNode first = kernel(body, "log", &one);
  kernel(body, "count", &one, {first});
  const CuStream s = stream();
  const CuGraphExec executable = instantiate();
  api_->graph_launch(executable, s);
  fake_.run_all();
  EXPECT_EQ(log_.size(), 5u);
  left = 2;
  api_->graph_launch(executable, s);
  fake_.run_all();
  EXPECT_EQ(log_.size(), 7u) << "the default is assigned at each launch";
}

TEST_F(FakeGraphTest, AnInnerWhileThatNobodyRearmsRunsOnlyInTheFirstRound) {
  const CuConditionalHandle outer = handle(1);
  int outer_left = 3;
  int inner_left = 2;
  const CuGraph body = conditional(graph_, CuConditionalType::kWhile, outer);
  const CuConditionalHandle inner = handle(1, body);
  define_countdown("outer", outer, outer_left);
  define_countdown("inner", inner, inner_left);
  CuGraphNode loop = nullptr;
  const CuGraph inner_body = conditional(body, CuConditionalType::kWhile, inner, {}, &loop);
  const int one = 1;
  const CuGraphNode logged = kernel(inner_body, "log", &one);
  kernel(inner_body, "inner", &one, {logged});
  kernel(body, "outer", &one, {loop});
  api_->graph_launch(instantiate(), stream());
  fake_.run_all();
  EXPECT_EQ(outer_left, 0);
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(FakeGraphTest, AGraphWithConditionalsHasOneExecutableAtATime) {
  conditional(graph_, CuConditionalType::kIf, handle(0));
  const CuGraphExec first = instantiate();
  CuGraphExec second = nullptr;
  EXPECT_NE(api_->graph_instantiate(&second, graph_, 0), kOk);
  EXPECT_THAT(fake_.violations(), ElementsAre(HasSubstr("instantiated twice")));
  EXPECT_EQ(api_->graph_exec_destroy(first), kOk);
  EXPECT_EQ(api_->graph_instantiate(&second, graph_, 0), kOk);
}

TEST_F(FakeGraphTest, SixLoopsAtOnceLoseTheDevice) {
  const CuConditionalHandle h = handle(1);
  int left = 1000;
  define_countdown("count", h, left);
  kernel(conditional(graph_, CuConditionalType::kWhile, h), "count", &left);
  const CuGraphExec executable = instantiate();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(api_->graph_launch(executable, stream()), kOk);
  EXPECT_EQ(api_->graph_launch(executable, stream()), CuResult::kLaunchFailed);
}

TEST_F(FakeGraphTest, AnEndlessLoopIsNoticed) {
  conditional(graph_, CuConditionalType::kWhile, handle(1));
  api_->graph_launch(instantiate(), stream());
  fake_.run_all();
  EXPECT_THAT(fake_.violations(), ElementsAre(HasSubstr("does not end")));
}

class FakeCaptureTest : public FakeGraphTest {
 protected:
  void begin(CuStream stream, CuGraph graph) {
    ASSERT_EQ(
        api_->stream_begin_capture(stream, graph, nullptr, nullptr, 0, CuCaptureMode::kRelaxed),
        kOk);
  }
};

TEST_F(FakeCaptureTest, WhatSynchronizesTheContextSpoilsEveryCaptureInIt) {
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"synchronizing", [&] { api_->context_synchronize(); }},
      {"unloading a module", [&] { EXPECT_EQ(api_->module_unload(module_), kOk); }},
      {"the end of a pool", [&] { EXPECT_EQ(api_->pool_destroy(pool_), kOk); }},
      {"a library's handle", [&] { fake_.spoil_captures(); }},
  };
  const CuStream streams[] = {stream(), stream()};
  for (const auto& [what, call] : calls) {
    for (CuStream each : streams) {
      CuGraph graph = nullptr;
      api_->graph_create(&graph, 0);
      begin(each, graph);
    }
    call();
    for (CuStream each : streams) {
      CuGraph ended = graph_;
      EXPECT_EQ(api_->stream_end_capture(each, &ended), CuResult::kCaptureInvalidated) << what;
      EXPECT_EQ(ended, nullptr);
    }
  }
  EXPECT_EQ(fake_.num_spoilt(), 2 * calls.size());
}

TEST_F(FakeCaptureTest, TheEndOfASpoiltCaptureFreesItsGraphWhoeverHasIt) {
  const CuGraph body = conditional(graph_, CuConditionalType::kIf, handle(0));
  const CuStream s = stream();
  begin(s, body);
  api_->context_synchronize();
  CuGraph ended = nullptr;
  EXPECT_EQ(api_->stream_end_capture(s, &ended), CuResult::kCaptureInvalidated);
  EXPECT_THAT(fake_.violations(), IsEmpty());
  api_->graph_destroy(graph_);
  EXPECT_THAT(fake_.violations(), ElementsAre(HasSubstr("the process crashes")));
  CuGraph root = nullptr;
  api_->graph_create(&root, 0);
  begin(s, root);
  EXPECT_EQ(api_->stream_query(s), CuResult::kCaptureUnsupported);
  EXPECT_EQ(api_->stream_end_capture(s, &ended), CuResult::kCaptureInvalidated);
  EXPECT_EQ(api_->graph_destroy(root), CuResult::kInvalidValue);
  EXPECT_EQ(fake_.violations().size(), 2u);
}

TEST_F(FakeCaptureTest, ThatAnEdgeHasDataIsToldToWhoAsksForItAlone) {
  fake_.trigger_early("log");
  const CuStream s = stream();
  begin(s, graph_);
  launch("log", s, 1);
  CuCaptureStatus status = CuCaptureStatus::kNone;
  uint64_t id = 0;
  CuGraph graph = nullptr;
  const CuGraphNode* last = nullptr;
  const CuGraphEdgeData* edges = nullptr;
  size_t num_last = 0;
  EXPECT_EQ(api_->stream_capture_info(s, &status, &id, &graph, &last, &num_last),
            CuResult::kLossyQuery);
  EXPECT_EQ(api_->stream_capture_info_edges(s, &status, &id, &graph, &last, &edges, &num_last),
            kOk);
  ASSERT_EQ(num_last, 1u);
  ASSERT_NE(edges, nullptr);
  EXPECT_NE(edges[0].from_port, 0);
  EXPECT_EQ(api_->stream_end_capture(s, &graph), kOk);
}

TEST_F(FakeCudaTest, LeaksAreCounted) {
  const CuStream a = stream();
  CuDevicePointer memory = 0;
  api_->memory_allocate(&memory, 64, pool_, a);
  EXPECT_EQ(fake_.leaks(),
            "1 stream, 1 memory pool, 1 module, 1 device block, 1 retained context, 1 pushed "
            "context");
}

}  // namespace
}  // namespace eddy::testing
