// Claim: operators run on a CUDA device from upload to download, in any order that streams allow,
// and a fault names its call while the run's other device goes on.
#include "runtime/cuda/cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ops/cuda/cuda_kernels.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kCount = 5000;

class CudaModuleTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  CudaModuleTest() { define_host_kernels(fake_, random_); }
  ~CudaModuleTest() override {
    module_.reset();
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }
  void drain(Stream& stream) {
    for (int i = 0; !stream.is_idle(); ++i) {
      ASSERT_LT(i, 100'000) << "the stream hangs";
      fake_.step();
      device_->poll();
    }
  }

  // One call of an elementwise operator on a stream, as an executor makes it.
  struct Call {
    CudaFunction function;
    CudaLauncher* launcher;
    cuda::ElementwiseParams params;
    Stream* stream;
    Status* error;
    static bool run(void* self) {
      Call& call = *static_cast<Call*>(self);
      Status status = call.launcher->launch(call.function, 3, &call.params, call.stream->native());
      if (!status.is_ok() && call.error->is_ok()) *call.error = status;
      return status.is_ok();
    }
  };
  Call make_call(const char* name, Stream& stream, const BufferRef& out,
                 std::initializer_list<const BufferRef*> inputs) {
    Call call{*module_->find(name), module_.get(), {}, &stream, &error_};
    call.params.rank = 1;
    call.params.dims[0] = call.params.count = kCount;
    call.params.is_aligned = 1;
    call.params.out = out.data();
    size_t i = 0;
    for (const BufferRef* input : inputs) {
      call.params.in[i] = input->data();
      call.params.strides[i++][0] = 1;
    }
    return call;
  }
  void copy(Stream& stream, const BufferRef& to, const BufferRef& from) {
    const CudaContext::Use use(device_->context());
    ASSERT_EQ(fake_.api()->copy(reinterpret_cast<uint64_t>(to.data()),
                                reinterpret_cast<uint64_t>(from.data()), kCount * sizeof(float),
                                static_cast<CuStream>(stream.native())),
              CuResult::kSuccess);
  }

  FakeCuda fake_{{.seed = GetParam()}};
  Random random_{GetParam()};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  std::unique_ptr<CudaModule> module_ =
      std::move(*CudaModule::load(device_->context(), FakeCuda::kImages));
  Status error_;
};

TEST_P(CudaModuleTest, ADiamondOnTwoStreamsGivesTheStraightLinesValues) {
  constexpr size_t kBytes = kCount * sizeof(float);
  const BufferRef host_in = std::move(*device_->staging().allocate(kBytes));
  const BufferRef host_out = std::move(*device_->staging().allocate(kBytes));
  auto* in = static_cast<float*>(host_in.data());
  for (int64_t i = 0; i < kCount; ++i) in[i] = static_cast<float>(i) * 0.001f - 2;
  std::vector<BufferRef> values;
  for (int i = 0; i < 4; ++i) values.push_back(std::move(*device_->allocator().allocate(kBytes)));
  auto a = std::move(*device_->create_stream());
  auto b = std::move(*device_->create_stream());
  auto fork = std::move(*device_->create_event());
  auto join = std::move(*device_->create_event());

  copy(*a, values[0], host_in);
  Call tanh = make_call("eddy_Tanh_f32", *a, values[1], {&values[0]});
  Call exp = make_call("eddy_Exp_f32", *b, values[2], {&values[0]});
  Call add = make_call("eddy_Add_f32", *a, values[3], {&values[1], &values[2]});
  ASSERT_TRUE(a->record(*fork) && b->wait(*fork));
  ASSERT_TRUE(a->launch({Call::run, &tanh, false}) && b->launch({Call::run, &exp, false}));
  ASSERT_TRUE(b->record(*join) && a->wait(*join));
  ASSERT_TRUE(a->launch({Call::run, &add, false}));
  copy(*a, host_out, values[3]);
  drain(*a);
  drain(*b);
  ASSERT_TRUE(error_.is_ok()) << error_.to_string();
  const auto* out = static_cast<const float*>(host_out.data());
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i], std::tanh(in[i]) + std::exp(in[i])) << i;
}

TEST_P(CudaModuleTest, ALostDeviceFailsTheNextLaunchByName) {
  auto stream = std::move(*device_->create_stream());
  const BufferRef value = std::move(*device_->allocator().allocate(kCount * sizeof(float)));
  fake_.fault_kernel(1, CuResult::kLaunchFailed);
  Call call = make_call("eddy_Neg_f32", *stream, value, {&value});
  ASSERT_TRUE(stream->launch({Call::run, &call, false}));
  fake_.run_all();
  EXPECT_FALSE(Call::run(&call));
  EXPECT_EQ(error_.code(), StatusCode::kDeviceLost);
  EXPECT_THAT(error_.message(), HasSubstr("CUDA device 0: cuLaunchKernel answered"));
  EXPECT_FALSE(stream->launch({Call::run, &call, false}));
}

TEST_P(CudaModuleTest, MissingKernelsAndImagesAreNamed) {
  EXPECT_THAT(module_->find("eddy_Nothing").status().message(),
              HasSubstr("no kernel eddy_Nothing"));
  EXPECT_THAT(CudaModule::load(device_->context(), {}).status().message(),
              HasSubstr("build it where nvcc and cuda.h are"));
  const void* const others[] = {FakeCuda::kImage, "something else"};
  EXPECT_THAT(CudaModule::load(device_->context(), others).status().message(),
              HasSubstr("cuModuleLoadData answered"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaModuleTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

}  // namespace
}  // namespace eddy::testing
