// The fixture of the tests of cuDNN's operators: a registry with FakeCudnn behind its kernels; the
// fixture checks that the fake has no leaks and no violations.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "ops/cuda/libraries/dnn_library.h"
#include "tests/ops/cuda/fakes/fake_cudnn.h"
#include "tests/ops/cuda/host/kernel_fixture.h"
#include "tests/ops/cuda/libraries/watched_calls.h"

namespace eddy::testing {

class DnnFixture : public CudaKernelFixture {
 protected:
  DnnFixture() { use({.least_pool_elements = 0, .least_norm_elements = 0}); }
  ~DnnFixture() override {
    registry_ = {};
    dnn_.reset();
    EXPECT_THAT(fake_.violations(), ::testing::IsEmpty());
    EXPECT_EQ(fake_.num_alive(), 0);
  }
  // From here on the registry has the library, by the fake's table or one around it.
  void use(const DnnOptions& options) { use(options, fake_.api()); }
  void use(const DnnOptions& options, std::shared_ptr<const CudnnApi> api) {
    registry_ = {};
    dnn_.reset();
    dnn_ = std::move(*DnnLibrary::create(std::move(api), launcher_, options));
    add_cuda_kernels(registry_, launcher_, {.dnn = dnn_.get()});
  }
  // For a table of watch_calls: it outlives the library, which calls until it goes.
  WatchedCalls& watched() { return watched_.emplace_back(); }
  OpCall make_conv(ElementType element, const Dims& x, const Dims& w, std::vector<int64_t> pads) {
    OpCall call = make_call("Conv", {random(element, x, -1, 1), random(element, w, -1, 1),
                                     random(element, {w[0]}, -1, 1)});
    call.attributes.set("pads", std::move(pads));
    call.attributes.set("group", x[1] / w[1]);
    return call;
  }
  // The same, ending in a Relu; with a bias or none, and an addend of the shape or none.
  OpCall make_conv_relu(ElementType element, const Dims& x, const Dims& w,
                        std::vector<int64_t> pads, bool has_bias, const Dims* addend) {
    OpCall call = make_conv(element, x, w, std::move(pads));
    call.op = "ConvRelu";
    call.domain = "eddy";
    if (!has_bias) call.inputs[2] = TestValue();
    if (addend != nullptr) call.inputs.push_back(random(element, *addend, -1, 1));
    return call;
  }
  // The same of images and filters whose channels come last; `relu`: ends in one.
  OpCall make_channels_last_conv(ElementType element, const Dims& x, const Dims& w,
                                 std::vector<int64_t> pads, bool relu, const Dims* addend) {
    OpCall call = make_call(
        "ChannelsLastConv",
        {random(element, x, -1, 1), random(element, w, -1, 1), random(element, {w[0]}, -1, 1)});
    call.domain = "eddy";
    call.attributes.set("pads", std::move(pads));
    call.attributes.set("group", x[3] / w[3]);
    if (relu) call.attributes.set("relu", int64_t{1});
    if (addend != nullptr) call.inputs.push_back(random(element, *addend, -1, 1));
    return call;
  }
  // A pool with a window of 3, padding of 1 and a stride of 2.
  OpCall make_pool(const std::string& op, ElementType element, const Dims& x) {
    OpCall call = make_call(op, {random(element, x, -2, 2)});
    const auto axes = static_cast<size_t>(x.rank() - 2);
    call.attributes.set("kernel_shape", std::vector<int64_t>(axes, 3));
    call.attributes.set("strides", std::vector<int64_t>(axes, 2));
    call.attributes.set("pads", std::vector<int64_t>(2 * axes, 1));
    return call;
  }
  OpCall make_norm(ElementType element, const Dims& x) {
    const Dims channels = {x[1]};
    OpCall call = make_call("BatchNormalization",
                            {random(element, x, -2, 2), random(element, channels, -1, 1),
                             random(element, channels, -1, 1), random(element, channels, -1, 1),
                             random(element, channels, 0.5, 2)});
    call.attributes.set("epsilon", 0.01f);
    return call;
  }

  FakeCudnn fake_;
  std::deque<WatchedCalls> watched_;
  std::unique_ptr<DnnLibrary> dnn_;
};

}  // namespace eddy::testing
