// Claim: an output that a caller has bound in a GPU's memory is written there by the GPU, without
// passing through the host, where no node on the host reads it; else it is copied there. Memory
// that is not the GPU's is refused. A large input in a caller's memory is not copied by the thread
// that serves all loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/cuda_session_fixture.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

class CudaCallersMemoryTest : public CudaSessionFixture {};

constexpr size_t kLongBytes = 3000 * sizeof(float);  // more than a kernel copies
const ValueType kLong = tensor_type(ElementType::kFloat, {3000});

Tensor long_row(float first) {
  std::vector<float> values;
  for (int i = 0; i < 3000; ++i) values.push_back(first + 0.001f * static_cast<float>(i));
  return Tensor::of<float>({3000}, values);
}

std::vector<float> read_back(CudaDevice& device, const BufferRef& from) {
  const BufferRef staged = std::move(*device.staging().allocate(kLongBytes));
  auto stream = std::move(*device.create_stream());
  const CudaContext::Use use(device.context());
  const CudaApi& api = device.context().api();
  const auto native = static_cast<CuStream>(stream->native());
  const CuResult copied =
      api.copy(reinterpret_cast<CuDevicePointer>(staged.data()),
               reinterpret_cast<CuDevicePointer>(from.data()), kLongBytes, native);
  EXPECT_EQ(copied, CuResult::kSuccess);
  EXPECT_EQ(api.stream_synchronize(native), CuResult::kSuccess);
  const auto* const values = static_cast<const float*>(staged.data());
  return {values, values + 3000};
}

// `reads`: what the GPU has made leaves in two ways.
Graph scaled(const Library& library, bool reads) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", kLong);
  const Value y = b.op("Tanh", {b.op("Mul", {x, b.scalar(0.25f)})}, {}, {.name = "made"});
  b.output("y", y);
  if (reads) b.output("again", y);
  return std::move(*b.finish());
}

TEST_P(CudaCallersMemoryTest, AnOutputBoundOnTheGpuDoesNotPassThroughTheHost) {
  for (const bool reads : {false, true}) {
    use_fake();
    auto session = make_or_null(scaled(library_, reads), {});
    ASSERT_NE(session, nullptr);
    auto device = std::move(*CudaDevice::create(fake_->cuda().api(), {}));
    const BufferRef places[2] = {std::move(*device->allocator().allocate(kLongBytes)),
                                 std::move(*device->allocator().allocate(kLongBytes))};
    auto call = std::move(*session->prepare());
    for (int repeat = 0; repeat < 5; ++repeat) {
      const Tensor x = long_row(static_cast<float>(repeat));
      const auto expected = session->run({{"x", x}});
      ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
      ASSERT_TRUE(call->bind_input(0, x.view()).is_ok());
      TensorView to = x.view();
      to.data = places[repeat % 2].data();
      ASSERT_TRUE(call->bind_device_output(0, to).is_ok());
      const Status status = call->run();
      ASSERT_TRUE(status.is_ok()) << status.to_string();
      EXPECT_EQ(call->copied_bytes(), reads ? kLongBytes : 0u);
      const auto wanted = (*expected)[0].second.values<float>();
      EXPECT_EQ(read_back(*device, places[repeat % 2]),
                std::vector<float>(wanted.begin(), wanted.end()));
    }
    // The GPU may not write what the host has; there it is copied.
    const Tensor host = long_row(0);
    const Tensor given = long_row(1);
    ASSERT_TRUE(call->bind_input(0, given.view()).is_ok());
    ASSERT_TRUE(call->bind_device_output(0, host.view()).is_ok());
    if (!reads) {
      EXPECT_THAT(call->run().message(), HasSubstr("is not the GPU's"));
    }
    ASSERT_TRUE(call->bind_output(0, host.view()).is_ok());
    ASSERT_TRUE(call->run().is_ok());
    EXPECT_EQ(call->copied_bytes(), kLongBytes);
  }
}

TEST_P(CudaCallersMemoryTest, ALargeInputIsNotCopiedByTheSchedulersThread) {
  use_fake();
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {200'000}));
  b.output("y", b.op("Mul", {x, b.scalar(0.5f)}));
  auto session = make_or_null(std::move(*b.finish()), {});
  ASSERT_NE(session, nullptr);
  for (int repeat = 0; repeat < 4; ++repeat) {
    const auto first = static_cast<float>(repeat);
    const auto outputs =
        session->run({{"x", Tensor::of<float>({200'000}, std::vector<float>(200'000, first))}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ((*outputs)[0].second.values<float>()[199'999], 0.5f * first);
  }
  EXPECT_LE(fake_->cuda().largest_copy_of_schedulers(), size_t{64} << 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaCallersMemoryTest, ::testing::Range(uint64_t{1}, uint64_t{6}));

}  // namespace
}  // namespace eddy::testing
