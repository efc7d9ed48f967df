// Claim: whatever call the driver fails, the CUDA device ends what it had begun, reports which call
// failed on which device, frees everything, and the next device works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Launches kernel "add" (to, value) of a fake on a stream.
struct Adder {
  struct Params {
    uint64_t to;
    int64_t value;  // as wide: what pads a word may look like an address
  };
  CudaContext* context;
  CuFunction kernel;
  Stream* stream;
  Params params;
  Status* error;

  static bool enqueue(void* self) {
    Adder& adder = *static_cast<Adder*>(self);
    void* params[] = {&adder.params};
    Status status =
        adder.context->check(adder.context->api().launch_kernel(
                                 adder.kernel, 1, 1, 1, 1, 1, 1, 0,
                                 static_cast<CuStream>(adder.stream->native()), params, nullptr),
                             "cuLaunchKernel");
    if (!status.is_ok() && adder.error->is_ok()) *adder.error = status;
    return status.is_ok();
  }
};

void define_add(FakeCuda& fake) {
  fake.define_kernel("add", sizeof(Adder::Params), [](const FakeKernelCall& call) {
    const auto& params = call.params_as<Adder::Params>();
    *reinterpret_cast<int*>(params.to) += static_cast<int>(params.value);
  });
}

// A small program that uses everything of the device: two streams that meet by events, a gate,
// device memory, staging memory and copies. Ok with `result` 42, or the first failure.
class Program {
 public:
  Program(FakeCuda& fake, int ordinal) : fake_(fake), ordinal_(ordinal) {}

  Status run(int& result) {
    EDDY_ASSIGN_OR_RETURN(device_, CudaDevice::create(fake_.api(), {.ordinal = ordinal_}));
    Status status = load();
    if (status.is_ok()) status = run_on_device(result);
    if (module_ != nullptr) {
      const CudaContext::Use use(device_->context());
      fake_.api()->module_unload(module_);
    }
    return status;
  }

 private:
  Status load() {
    CudaContext& context = device_->context();
    const CudaContext::Use use(context);
    EDDY_RETURN_IF_ERROR(
        context.check(fake_.api()->module_load(&module_, FakeCuda::kImage), "cuModuleLoadData"));
    return context.check(fake_.api()->module_function(&kernel_, module_, "add"),
                         "cuModuleGetFunction");
  }

  Status run_on_device(int& result) {
    EDDY_ASSIGN_OR_RETURN(BufferRef number, device_->allocator().allocate(sizeof(int)));
    EDDY_ASSIGN_OR_RETURN(BufferRef staged, device_->staging().allocate(sizeof(int)));
    EDDY_ASSIGN_OR_RETURN(auto a, device_->create_stream());
    Result<std::unique_ptr<Stream>> b = device_->create_stream();
    Result<std::unique_ptr<Event>> event = device_->create_event();
    Result<std::shared_ptr<Gate>> gate = device_->create_gate();
    for (const Status* status : {&b.status(), &event.status(), &gate.status()}) {
      EDDY_RETURN_IF_ERROR(*status);
    }
    Status status = issue(*a, **b, **event, *gate, number, staged);
    (*gate)->open();
    const Status ended = drain({a.get(), b->get()});
    if (status.is_ok()) status = ended;
    if (status.is_ok()) status = error_;
    if (status.is_ok()) status = device_->health();
    if (status.is_ok()) result = *static_cast<const int*>(staged.data());
    return status;
  }

  Status issue(Stream& a, Stream& b, Event& event, std::shared_ptr<Gate> gate,
               const BufferRef& number, const BufferRef& staged) {
    const auto to = reinterpret_cast<uint64_t>(number.data());
    {
      CudaContext& context = device_->context();
      const CudaContext::Use use(context);
      EDDY_RETURN_IF_ERROR(
          context.check(fake_.api()->fill(to, 0, sizeof(int), static_cast<CuStream>(a.native())),
                        "cuMemsetD8Async"));
    }
    Adder forty{&device_->context(), kernel_, &a, {to, 40}, &error_};
    Adder two{&device_->context(), kernel_, &b, {to, 2}, &error_};
    adders_ = {forty, two};
    const bool is_fine = a.launch({Adder::enqueue, &adders_[0], false}) && a.hold(gate) &&
                         a.record(event) && b.wait(event) &&
                         b.launch({Adder::enqueue, &adders_[1], false});
    if (!is_fine) return device_->health();
    CudaContext& context = device_->context();
    const CudaContext::Use use(context);
    // Behind b's work, which may still be kept: so it is work too.
    copy_ = {&device_->context(), &b, to, reinterpret_cast<uint64_t>(staged.data()), &error_};
    return b.launch({Copy::enqueue, &copy_, false}) ? Status::ok() : device_->health();
  }

  struct Copy {
    CudaContext* context = nullptr;
    Stream* stream = nullptr;
    uint64_t from = 0;
    uint64_t to = 0;
    Status* error = nullptr;
    static bool enqueue(void* self) {
      Copy& copy = *static_cast<Copy*>(self);
      Status status = copy.context->check(
          copy.context->api().copy(copy.to, copy.from, sizeof(int),
                                   static_cast<CuStream>(copy.stream->native())),
          "cuMemcpyAsync");
      if (!status.is_ok() && copy.error->is_ok()) *copy.error = status;
      return status.is_ok();
    }
  };

  Status drain(std::initializer_list<Stream*> streams) {
    for (Stream* stream : streams) {
      for (int i = 0; !stream->is_idle(); ++i) {
        if (i == 10'000) return internal_error("a stream hangs");
        fake_.step();
        device_->poll();
      }
    }
    return Status::ok();
  }

  FakeCuda& fake_;
  const int ordinal_;
  std::unique_ptr<CudaDevice> device_;
  CuModule module_ = nullptr;
  CuFunction kernel_ = nullptr;
  std::vector<Adder> adders_;
  Copy copy_;
  Status error_;
};

class FaultSweep : public ::testing::TestWithParam<bool> {};

TEST_P(FaultSweep, EveryFailedCallIsToldAndNothingHangsOrLeaks) {
  std::set<std::string> failed;
  for (const CuResult failure : {CuResult::kOutOfMemory, CuResult::kInvalidValue,
                                 CuResult::kNotSupported, CuResult::kIllegalAddress}) {
    bool has_failed = true;
    for (uint64_t k = 1; has_failed; ++k) {
      ASSERT_LT(k, 1000u) << "the sweep never reaches the end of the program";
      FakeCuda fake({.seed = k, .has_memory_words = GetParam()});
      define_add(fake);
      fake.fail_call(k, failure);
      int result = 0;
      const Status status = Program(fake, 0).run(result);
      has_failed = !fake.failed_call().empty();
      failed.insert(fake.failed_call());
      const std::string where = "call " + std::to_string(k) + ", " + fake.failed_call() +
                                ", answer " + std::to_string(static_cast<int>(failure));
      if (status.is_ok()) {
        // Calls that free or query may fail without harm.
        EXPECT_EQ(result, 42) << where;
      } else {
        // Without a context calls fail by themselves.
        const char* name = "CUDA_ERROR_";
        if (fake.failed_call() != "context_push") fake.api()->error_name(failure, &name);
        EXPECT_THAT(status.to_string(), HasSubstr(std::string("answered ") + name)) << where;
        EXPECT_THAT(status.to_string(), HasSubstr("cu")) << where;
      }
      EXPECT_THAT(status.to_string(), Not(HasSubstr("hangs"))) << where;
      fake.run_all();
      // Where a context cannot be made current, nothing can be freed.
      if (fake.failed_call() == "context_push") continue;
      EXPECT_EQ(fake.leaks(), "") << where << ": " << status.to_string();
      EXPECT_THAT(fake.violations(), IsEmpty()) << where;
      if (failure == CuResult::kIllegalAddress) continue;  // the device stays lost
      fake.fail_call(0, failure);
      int again = 0;
      const Status next = Program(fake, 0).run(again);
      EXPECT_EQ(again, 42) << where << ": " << next.to_string();
    }
  }
  // Pinned memory, too: the staging block, and the page of words that streams write.
  EXPECT_THAT(failed,
              ::testing::IsSupersetOf({"host_allocate", "host_device_pointer", "memory_allocate",
                                       "stream_create", "event_create"}));
}

TEST_P(FaultSweep, AKernelThatFaultsLosesItsDeviceAndNoOther) {
  for (uint64_t k = 1; k <= 2; ++k) {
    FakeCuda fake({.seed = k, .num_devices = 2, .has_memory_words = GetParam()});
    define_add(fake);
    fake.fault_kernel(k);
    int result = 0;
    const Status status = Program(fake, 0).run(result);
    EXPECT_EQ(status.code(), StatusCode::kDeviceLost) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("CUDA device 0: "));
    EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_THAT(Program(fake, 0).run(result).code(), StatusCode::kDeviceLost);
    EXPECT_TRUE(Program(fake, 1).run(result).is_ok());
    EXPECT_EQ(result, 42);
    EXPECT_EQ(fake.leaks(), "");
    EXPECT_THAT(fake.violations(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Words, FaultSweep, ::testing::Bool(), [](const auto& info) {
  return info.param ? "WithMemoryWords" : "WithEvents";
});

}  // namespace
}  // namespace eddy::testing
