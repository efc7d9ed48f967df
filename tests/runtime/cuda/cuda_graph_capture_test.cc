// Claim: what is issued to capture streams is captured and runs when the graph is launched,
// each time, in the order that events say and in no other; loops and cases in it are decided by the
// device; a capture that the driver would refuse is refused, and whatever call fails, nothing is
// left behind and the next recording works.
#include "runtime/cuda/cuda_graph_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ops/cuda/images/loop_control.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CaptureFixture {
 public:
  explicit CaptureFixture(uint64_t seed) : CaptureFixture(FakeCudaOptions{.seed = seed}) {}
  explicit CaptureFixture(const FakeCudaOptions& options) : fake_(options) {
    fake_.define_kernel("add", sizeof(AddParams), [](const FakeKernelCall& call) {
      const auto& p = call.params_as<AddParams>();
      *p.to = *p.to * p.factor + p.term;
    });
    fake_.define_kernel("below", sizeof(BelowParams), [](const FakeKernelCall& call) {
      const auto& p = call.params_as<BelowParams>();
      *p.to = *p.number < p.limit ? 1 : 0;
    });
    fake_.define_kernel("step", sizeof(cuda::LoopStepParams), [](const FakeKernelCall& call) {
      cuda::loop_step(
          call.params_as<cuda::LoopStepParams>(),
          [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); },
          fake_time_ns);
    });
    fake_.define_kernel("choice", sizeof(cuda::CaseChoiceParams), [](const FakeKernelCall& call) {
      cuda::case_choice(
          call.params_as<cuda::CaseChoiceParams>(),
          [&](uint64_t handle, uint32_t value) { call.set_conditional(handle, value); });
    });
  }

  struct AddParams {
    int64_t* to;
    int64_t factor;
    int64_t term;
  };
  struct BelowParams {
    uint8_t* to;
    const int64_t* number;
    int64_t limit;
  };

  // Makes the device, calls `use`, and takes all of it down again.
  Status run(const std::function<Status()>& use) {
    EDDY_ASSIGN_OR_RETURN(device_, CudaDevice::create(fake_.api(), {}));
    Status status = load();
    if (status.is_ok()) status = use();
    capture_.reset();
    stream_.reset();
    host_ = BufferRef();
    words_ = BufferRef();
    if (module_ != nullptr) {
      const CudaContext::Use use_context(device_->context());
      fake_.api()->module_unload(module_);
      module_ = nullptr;
    }
    device_.reset();
    return status;
  }

  Status add(uint32_t stream, int64_t* to, int64_t factor, int64_t term) {
    EDDY_ASSIGN_OR_RETURN(void* const native, capture_->stream(stream));
    const AddParams params{to, factor, term};
    return launch("add", &params, native);
  }
  Status below(uint8_t* to, const int64_t* number, int64_t limit) {
    EDDY_ASSIGN_OR_RETURN(void* const native, capture_->stream(0));
    const BelowParams params{to, number, limit};
    return launch("below", &params, native);
  }
  Status launch(const char* name, const void* params, void* stream) {
    CudaContext& context = device_->context();
    const CudaContext::Use use(context);
    CuFunction function = nullptr;
    EDDY_RETURN_IF_ERROR(context.check(fake_.api()->module_function(&function, module_, name),
                                       "cuModuleGetFunction"));
    void* values[] = {const_cast<void*>(params)};
    return context.check(fake_.api()->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0,
                                                    static_cast<CuStream>(stream), values, nullptr),
                         "cuLaunchKernel");
  }
  // Launches and waits.
  Status play(CapturedGraph& recording) {
    EDDY_RETURN_IF_ERROR(recording.launch(stream_->native()));
    const CudaContext::Use use(device_->context());
    return device_->context().check(
        fake_.api()->stream_synchronize(static_cast<CuStream>(stream_->native())),
        "cuStreamSynchronize");
  }
  // In host memory that the device sees, and in device memory.
  int64_t* host() const { return static_cast<int64_t*>(host_.data()); }
  int64_t* words() const { return static_cast<int64_t*>(words_.data()); }
  LoopWords loop_words(int at) const {
    return {words() + 2 * at, words() + 2 * at + 1, reinterpret_cast<const uint32_t*>(host() + 7),
            host() + 10 + 2 * at};
  }

  FakeCuda fake_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaGraphCapture> capture_;

 private:
  Status load() {
    CudaContext& context = device_->context();
    CudaLoopKernels kernels;
    {
      const CudaContext::Use use(context);
      const CudaApi& api = *fake_.api();
      EDDY_RETURN_IF_ERROR(
          context.check(api.module_load(&module_, FakeCuda::kImage), "cuModuleLoadData"));
      EDDY_RETURN_IF_ERROR(context.check(api.module_function(&kernels.step, module_, "step"),
                                         "cuModuleGetFunction"));
      EDDY_RETURN_IF_ERROR(context.check(api.module_function(&kernels.choice, module_, "choice"),
                                         "cuModuleGetFunction"));
    }
    EDDY_ASSIGN_OR_RETURN(host_, device_->staging().allocate(16 * sizeof(int64_t)));
    EDDY_ASSIGN_OR_RETURN(words_, device_->allocator().allocate(8 * sizeof(int64_t)));
    std::fill_n(host(), 16, 0);
    EDDY_ASSIGN_OR_RETURN(stream_, device_->create_stream());
    capture_ = CudaGraphCapture::create_or_null(context, kernels);
    return capture_ != nullptr ? Status::ok() : unsupported("no capture");
  }

  CuModule module_ = nullptr;
  std::unique_ptr<Stream> stream_;
  BufferRef host_;
  BufferRef words_;
};

class CudaGraphCaptureTest : public ::testing::TestWithParam<uint64_t>, protected CaptureFixture {
 protected:
  CudaGraphCaptureTest() : CaptureFixture(GetParam()) {}
  ~CudaGraphCaptureTest() override {
    EXPECT_EQ(fake_.leaks(), "");
    EXPECT_THAT(fake_.violations(), IsEmpty());
  }
};

// host[0] = host[0] * 2 + 1; then host[0] *= 10 on stream 1 beside host[1] += 5 on stream 0; then
// host[0] = 3 * host[0] + 1.
Status record_diamond(CaptureFixture& f) {
  EDDY_RETURN_IF_ERROR(f.capture_->begin());
  EDDY_RETURN_IF_ERROR(f.add(0, f.host(), 2, 1));
  EDDY_ASSIGN_OR_RETURN(const uint32_t forked, f.capture_->record(0));
  EDDY_RETURN_IF_ERROR(f.capture_->wait(1, forked));
  EDDY_RETURN_IF_ERROR(f.add(1, f.host(), 10, 0));
  EDDY_RETURN_IF_ERROR(f.add(0, f.host() + 1, 1, 5));
  EDDY_ASSIGN_OR_RETURN(const uint32_t joined, f.capture_->record(1));
  EDDY_RETURN_IF_ERROR(f.capture_->wait(0, joined));
  return f.add(0, f.host(), 3, 1);
}

TEST_P(CudaGraphCaptureTest, StreamsRunInTheOrderOfTheirEventsAtEachLaunch) {
  const Status status = run([&]() -> Status {
    EDDY_RETURN_IF_ERROR(record_diamond(*this));
    EDDY_ASSIGN_OR_RETURN(const auto recording, capture_->finish());
    EXPECT_EQ(host()[0], 0) << "recording runs nothing";
    EDDY_RETURN_IF_ERROR(play(*recording));
    EXPECT_EQ(host()[0], 31);
    EDDY_RETURN_IF_ERROR(play(*recording));
    EXPECT_EQ(host()[0], (31 * 2 + 1) * 10 * 3 + 1);
    EXPECT_EQ(host()[1], 10);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

// for (i = 0; i < outer; ++i) { for (j = 0; [0] < 3 * (i + 1); ++j) [0] += 1; [1] += [0] by a case
// }
Status record_loops(CaptureFixture& f, int64_t outer) {
  GraphCapture& r = *f.capture_;
  auto* const flag = reinterpret_cast<uint8_t*>(f.host() + 8);
  EDDY_RETURN_IF_ERROR(r.begin());
  f.host()[6] = outer;
  f.host()[9] = 100;
  EDDY_RETURN_IF_ERROR(r.copy(f.loop_words(0).limit, f.host() + 6, sizeof(int64_t)));
  EDDY_RETURN_IF_ERROR(r.copy(f.loop_words(1).limit, f.host() + 9, sizeof(int64_t)));
  EDDY_RETURN_IF_ERROR(r.start_counter(f.loop_words(0)));
  EDDY_RETURN_IF_ERROR(f.below(flag, f.host(), 1000));
  EDDY_RETURN_IF_ERROR(r.begin_while({f.loop_words(0), flag}));
  {
    EDDY_RETURN_IF_ERROR(r.start_counter(f.loop_words(1)));
    EDDY_RETURN_IF_ERROR(f.below(flag, f.loop_words(1).counter, 3));
    EDDY_RETURN_IF_ERROR(r.begin_while({f.loop_words(1), flag}));
    EDDY_RETURN_IF_ERROR(f.add(0, f.host(), 1, 1));
    EDDY_RETURN_IF_ERROR(r.advance_counter(f.loop_words(1)));
    EDDY_RETURN_IF_ERROR(f.below(flag, f.loop_words(1).counter, 3));
    EDDY_RETURN_IF_ERROR(r.end_while());
    // Branch 0 in the first round, 1 in the second, none and a failure from the third on.
    CaseChoice choice;
    choice.type = CaseChoice::Type::kInt64;
    choice.selector = f.loop_words(0).counter;
    choice.num_choices = 2;
    choice.stop = f.loop_words(0).stop;
    choice.failure = f.host() + 2;
    EDDY_RETURN_IF_ERROR(r.begin_case(choice, 2));
    EDDY_RETURN_IF_ERROR(r.begin_branch());
    EDDY_RETURN_IF_ERROR(f.add(0, f.host() + 1, 1, 100));
    EDDY_RETURN_IF_ERROR(r.begin_branch());
    EDDY_RETURN_IF_ERROR(f.add(0, f.host() + 1, 1, 1000));
    EDDY_RETURN_IF_ERROR(r.end_case());
  }
  EDDY_RETURN_IF_ERROR(r.advance_counter(f.loop_words(0)));
  EDDY_RETURN_IF_ERROR(f.below(flag, f.host(), 1000));
  return r.end_while();
}

TEST_P(CudaGraphCaptureTest, LoopsAndCasesAreDecidedByTheDevice) {
  const Status status = run([&]() -> Status {
    EDDY_RETURN_IF_ERROR(record_loops(*this, 2));
    EDDY_ASSIGN_OR_RETURN(const auto recording, capture_->finish());
    for (int repeat = 1; repeat <= 2; ++repeat) {
      EDDY_RETURN_IF_ERROR(play(*recording));
      EXPECT_EQ(host()[0], repeat * 6) << "three rounds of the inner loop in each of the outer";
      EXPECT_EQ(host()[1], repeat * 1100);
      EXPECT_EQ(host()[10], 2) << "the outer loop's progress";
      EXPECT_EQ(host()[12], 3) << "the inner loop's progress";
    }
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_P(CudaGraphCaptureTest, AStopWordEndsALoopAndIsSetWhereACaseHasNoBranch) {
  const Status status = run([&]() -> Status {
    EDDY_RETURN_IF_ERROR(record_loops(*this, 100));
    EDDY_ASSIGN_OR_RETURN(const auto recording, capture_->finish());
    EDDY_RETURN_IF_ERROR(play(*recording));
    EXPECT_EQ(host()[10], 2) << "round 2, the third, has no branch";
    EXPECT_EQ(host()[2], 1);
    EXPECT_EQ(host()[3], 2) << "the selector";
    EXPECT_NE(host()[7], 0) << "stopped";
    EDDY_RETURN_IF_ERROR(play(*recording));
    EXPECT_EQ(host()[10], 0) << "no round begins while the word stands";
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_P(CudaGraphCaptureTest, WhatCapturesCannotHoldEndsThem) {
  const Status status = run([&]() -> Status {
    const CudaApi& api = *fake_.api();
    const std::vector<std::pair<const char*, std::function<void(CuStream)>>> offences = {
        {"synchronizing a stream", [&](CuStream stream) { api.stream_synchronize(stream); }},
        {"asking after a stream", [&](CuStream stream) { api.stream_query(stream); }},
        {"synchronizing all", [&](CuStream) { api.context_synchronize(); }},
    };
    for (const auto& [what, offend] : offences) {
      EDDY_RETURN_IF_ERROR(record_diamond(*this));
      EDDY_ASSIGN_OR_RETURN(void* const stream, capture_->stream(0));
      {
        const CudaContext::Use use(device_->context());
        offend(static_cast<CuStream>(stream));
      }
      EXPECT_FALSE(capture_->finish().is_ok()) << what;
      capture_->abandon();
    }
    // A stream that nobody waits for.
    EDDY_RETURN_IF_ERROR(record_diamond(*this));
    EDDY_ASSIGN_OR_RETURN(const uint32_t event, capture_->record(0));
    EDDY_RETURN_IF_ERROR(capture_->wait(2, event));
    EDDY_RETURN_IF_ERROR(add(2, host(), 1, 1));
    EXPECT_FALSE(capture_->finish().is_ok()) << "an unjoined stream";
    capture_->abandon();
    EXPECT_THAT(capture_->stream(0).status().message(), HasSubstr("outside a capture"));
    EDDY_RETURN_IF_ERROR(capture_->begin());
    EXPECT_THAT(capture_->stream(3).status().message(), HasSubstr("before it waits"));
    capture_->abandon();
    EXPECT_EQ(host()[0], 0);
    EDDY_RETURN_IF_ERROR(record_diamond(*this));
    EDDY_ASSIGN_OR_RETURN(const auto recording, capture_->finish());
    EDDY_RETURN_IF_ERROR(play(*recording));
    EXPECT_EQ(host()[0], 31);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

// So that a library has what it keeps for a stream before there is a capture, which that would
// spoil.
TEST_P(CudaGraphCaptureTest, StreamsOfRecordingsAreToldOfOutsideOfCaptures) {
  std::vector<CuStream> told;
  bool is_capturing = false;
  const Status status = run([&]() -> Status {
    StreamKeepers& keepers = device_->context().recording_streams();
    keepers.add(&told, [&](CuStream stream) {
      told.push_back(stream);
      is_capturing |= !told.empty() && fake_.is_capturing(told.front());
    });
    EDDY_RETURN_IF_ERROR(capture_->make_streams(2));
    EXPECT_EQ(told.size(), 2u);
    EDDY_RETURN_IF_ERROR(record_diamond(*this));
    EXPECT_FALSE(capture_->make_streams(3).is_ok());
    EDDY_ASSIGN_OR_RETURN(void* const first, capture_->stream(0));
    EXPECT_EQ(first, told[0]);
    EDDY_ASSIGN_OR_RETURN(const uint32_t event, capture_->record(0));
    EDDY_RETURN_IF_ERROR(capture_->wait(2, event));  // one more, inside
    capture_->abandon();
    EXPECT_EQ(told.size(), 2u);
    EDDY_RETURN_IF_ERROR(capture_->make_streams(4));
    EXPECT_EQ(told.size(), 3u) << "the third was made inside";
    keepers.remove(&told);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_FALSE(is_capturing);
}

// The driver frees a body whose capture fails, and its root with it: both are left alone then.
TEST_P(CudaGraphCaptureTest, ACaptureThatIsSpoiltInABodyIsGivenUp) {
  const auto spoil = [&]() -> Status {
    EDDY_ASSIGN_OR_RETURN(void* const stream, capture_->stream(0));
    const CudaContext::Use use(device_->context());
    fake_.api()->stream_synchronize(static_cast<CuStream>(stream));
    return Status::ok();
  };
  const auto begin_loop = [&](int at) -> Status {
    auto* const flag = reinterpret_cast<uint8_t*>(host() + 8);
    EDDY_RETURN_IF_ERROR(capture_->start_counter(loop_words(at)));
    EDDY_RETURN_IF_ERROR(below(flag, host(), 1000));
    return capture_->begin_while({loop_words(at), flag});
  };
  const auto begin_branch = [&]() -> Status {
    CaseChoice choice;
    choice.selector = loop_words(0).counter;
    choice.stop = loop_words(0).stop;
    choice.failure = host() + 2;
    EDDY_RETURN_IF_ERROR(capture_->begin_case(choice, 2));
    return capture_->begin_branch();
  };
  const std::vector<std::pair<const char*, std::function<Status()>>> places = {
      {"a loop", [&] { return begin_loop(0); }},
      {"a loop in a loop",
       [&]() -> Status {
         EDDY_RETURN_IF_ERROR(begin_loop(0));
         return begin_loop(1);
       }},
      {"a branch", begin_branch},
  };
  const Status status = run([&]() -> Status {
    for (const auto& [what, begin] : places) {
      EDDY_RETURN_IF_ERROR(capture_->begin());
      EDDY_RETURN_IF_ERROR(add(0, host(), 1, 1));
      EDDY_RETURN_IF_ERROR(begin());
      EDDY_RETURN_IF_ERROR(add(0, host(), 1, 1));
      EDDY_RETURN_IF_ERROR(spoil());
      EXPECT_FALSE(add(0, host(), 1, 1).is_ok()) << what;
      capture_->abandon();
      EXPECT_THAT(fake_.violations(), IsEmpty()) << what;
    }
    EXPECT_EQ(host()[0], 0);
    EDDY_RETURN_IF_ERROR(record_loops(*this, 2));
    EDDY_ASSIGN_OR_RETURN(const auto recording, capture_->finish());
    EDDY_RETURN_IF_ERROR(play(*recording));
    EXPECT_EQ(host()[0], 6);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaGraphCaptureTest, ::testing::Range(uint64_t{1}, uint64_t{7}));

// A library's kernel that lets the next one begin early leaves an edge with data, which an older
// driver cannot tell of. Only what is behind it and no stream's has to know.
TEST(CudaGraphCaptureEdges, AreAskedForBeforeDecisionsAloneAndAreThenPlain) {
  for (const bool has_edge_data : {true, false}) {
    bool has_played = false;
    CaptureFixture f({.seed = 3, .has_edge_data = has_edge_data});
    f.fake_.trigger_early("add");
    f.fake_.trigger_early("step");
    const Status status = f.run([&]() -> Status {
      EDDY_RETURN_IF_ERROR(record_diamond(f));
      EDDY_ASSIGN_OR_RETURN(const auto straight, f.capture_->finish());
      EDDY_RETURN_IF_ERROR(f.play(*straight));
      has_played = f.host()[0] == 31;
      f.host()[0] = 0;
      EDDY_RETURN_IF_ERROR(record_loops(f, 2));
      EDDY_ASSIGN_OR_RETURN(const auto loops, f.capture_->finish());
      EDDY_RETURN_IF_ERROR(f.play(*loops));
      EXPECT_EQ(f.host()[0], 6);
      return Status::ok();
    });
    EXPECT_TRUE(has_played) << status.to_string();
    EXPECT_EQ(status.is_ok(), has_edge_data) << status.to_string();
    EXPECT_THAT(status.to_string(), HasSubstr(has_edge_data ? "" : "cuStreamGetCaptureInfo"));
    EXPECT_THAT(f.fake_.violations(), IsEmpty());
  }
}

// Else its first launch does, on a thread that others wait for.
TEST(CudaGraphCaptureUploads, AGraphIsOnTheDeviceBeforeItsFirstLaunchWhereTheDriverCan) {
  for (const bool has_upload : {true, false}) {
    CaptureFixture f({.seed = 3, .has_upload = has_upload});
    const Status status = f.run([&]() -> Status {
      EDDY_RETURN_IF_ERROR(record_diamond(f));
      EDDY_ASSIGN_OR_RETURN(const auto straight, f.capture_->finish());
      EDDY_RETURN_IF_ERROR(record_loops(f, 2));
      EDDY_ASSIGN_OR_RETURN(const auto loops, f.capture_->finish());
      EXPECT_EQ(f.fake_.num_uploads(), has_upload ? 2u : 0u);
      for (int repeat = 0; repeat < 2; ++repeat) {
        f.host()[0] = 0;
        EDDY_RETURN_IF_ERROR(f.play(*straight));
        EXPECT_EQ(f.host()[0], 31);
        f.host()[0] = 0;
        EDDY_RETURN_IF_ERROR(f.play(*loops));
        EXPECT_EQ(f.host()[0], 6);
      }
      EXPECT_EQ(f.fake_.num_late_uploads(), has_upload ? 0u : 2u);
      return Status::ok();
    });
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    EXPECT_THAT(f.fake_.violations(), IsEmpty());
  }
}

TEST(CudaGraphCaptureUploads, AGraphWhoseUploadIsRefusedIsLaunchedAllTheSame) {
  CaptureFixture f(3);
  const Status status = f.run([&]() -> Status {
    EDDY_RETURN_IF_ERROR(record_diamond(f));
    f.fake_.fail_next("graph_upload", CuResult::kNotSupported);
    EDDY_ASSIGN_OR_RETURN(const auto graph, f.capture_->finish());
    EDDY_RETURN_IF_ERROR(f.play(*graph));
    EXPECT_EQ(f.host()[0], 31);
    EXPECT_EQ(f.fake_.num_late_uploads(), 1u);
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST(CudaGraphCaptureFaults, EveryFailedCallIsToldAndNothingLeaks) {
  std::set<std::string> failed;
  for (const CuResult failure : {CuResult::kOutOfMemory, CuResult::kIllegalAddress}) {
    bool has_failed = true;
    for (uint64_t k = 1; has_failed; ++k) {
      ASSERT_LT(k, 2000u) << "the sweep never reaches the end";
      CaptureFixture f(k);
      f.fake_.fail_call(k, failure);
      const Status status = f.run([&]() -> Status {
        EDDY_RETURN_IF_ERROR(record_loops(f, 2));
        EDDY_ASSIGN_OR_RETURN(const auto recording, f.capture_->finish());
        EDDY_RETURN_IF_ERROR(f.play(*recording));
        EXPECT_EQ(f.host()[0], 6);
        return Status::ok();
      });
      has_failed = !f.fake_.failed_call().empty();
      failed.insert(f.fake_.failed_call());
      const std::string where = "call " + std::to_string(k) + ", " + f.fake_.failed_call();
      if (!status.is_ok()) {
        EXPECT_THAT(status.to_string(), HasSubstr("cu")) << where;
      }
      f.fake_.run_all();
      if (f.fake_.failed_call() == "context_push") continue;
      EXPECT_EQ(f.fake_.leaks(), "") << where << ": " << status.to_string();
      EXPECT_THAT(f.fake_.violations(), IsEmpty()) << where;
      if (failure == CuResult::kIllegalAddress || HasFatalFailure()) continue;
      f.fake_.fail_call(0, failure);
      const Status again = f.run([&]() -> Status {
        EDDY_RETURN_IF_ERROR(record_diamond(f));
        EDDY_ASSIGN_OR_RETURN(const auto recording, f.capture_->finish());
        EDDY_RETURN_IF_ERROR(f.play(*recording));
        EXPECT_EQ(f.host()[0], 31) << where;
        return Status::ok();
      });
      EXPECT_TRUE(again.is_ok()) << where << ": " << again.to_string();
    }
  }
  EXPECT_THAT(failed, ::testing::IsSupersetOf({"stream_begin_capture", "stream_end_capture",
                                               "stream_capture_info_edges", "graph_add_node",
                                               "graph_instantiate", "graph_launch"}));
}

}  // namespace
}  // namespace eddy::testing
