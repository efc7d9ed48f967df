// Claim: sessions run on the virtual device through their public interface, loops driven by the
// device or the host, several runs at once, with the CPU's results, and end in every way.
#include "runtime/virtual/virtual_device.h"

#include "tests/runtime/testing/ways.h"

namespace eddy::testing {
namespace {

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

class VirtualSessionTest : public ::testing::TestWithParam<Loops> {
 protected:
  // Two loops beside each other: y = x + n and z = 2^n x, by counting.
  std::unique_ptr<Session> make_session(uint64_t seed) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kFloat);
    const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
    const auto loop = [&](const char* op, float operand) {
      return b.while_loop(
          {.initial = {x}, .trip_limit = n},
          [&](Value, ValueSpan c) {
            return WhileTest{b.scalar(true), {c[0]}};
          },
          [&](Value, ValueSpan f) {
            return std::vector<Value>{b.op(op, {f[0], b.scalar(operand)})};
          })[0];
    };
    b.output("y", loop("Add", 1));
    b.output("z", loop("Mul", 2));
    SessionOptions options;
    options.loops = GetParam();
    options.assignment = Assignment::kRank;
    options.make_device = [this, seed]() -> Result<std::shared_ptr<Device>> {
      VirtualDeviceOptions device;
      device.engine.order.seed = seed;
      return std::shared_ptr<Device>(device_ = std::make_shared<VirtualDevice>(device));
    };
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), options);
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(*session);
  }
  static NamedTensors inputs(float x, int64_t n) {
    return {{"x", Tensor::scalar(x)}, {"n", Tensor::scalar(n)}};
  }
  static float value(const Result<NamedTensors>& outputs, size_t i) {
    EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    return outputs.is_ok() ? (*outputs)[i].second.values<float>()[0] : -1;
  }

  Library library_;
  std::shared_ptr<VirtualDevice> device_;
};

TEST_P(VirtualSessionTest, GivesTheSameUnderEveryOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto session = make_session(seed);
    for (int64_t n : {0, 1, 5}) {
      const auto outputs = session->run(inputs(3, n));
      EXPECT_EQ(value(outputs, 0), 3.0f + static_cast<float>(n));
      EXPECT_EQ(value(outputs, 1), 3.0f * static_cast<float>(1 << n));
    }
    EXPECT_TRUE(device_->violations().empty());
  }
}

TEST_P(VirtualSessionTest, SeveralRunsInFlightEndOnceEach) {
  auto session = make_session(1);
  std::atomic<int> num_called{0};
  std::vector<RunHandle> handles;
  for (int i = 0; i < 8; ++i) {
    handles.push_back(session->run_async(inputs(1, i), [&, i](Result<NamedTensors> outputs) {
      EXPECT_EQ(value(outputs, 0), 1.0f + static_cast<float>(i));
      ++num_called;
    }));
  }
  for (RunHandle& handle : handles) EXPECT_TRUE(handle.wait().is_ok());
  EXPECT_EQ(num_called, 8);
}

TEST_P(VirtualSessionTest, CloseEndsARunThatNeverWould) {
  auto session = make_session(2);
  std::atomic<int> num_called{0};
  Status status;
  RunHandle handle = session->run_async(inputs(1, INT64_MAX), [&](Result<NamedTensors> outputs) {
    status = outputs.status();
    ++num_called;
  });
  session->close();
  EXPECT_EQ(num_called, 1);
  EXPECT_EQ(handle.wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(session->run(inputs(1, 1)).status().code(), StatusCode::kCancelled);
}

TEST_P(VirtualSessionTest, ADeadlineEndsIt) {
  auto session = make_session(3);
  RunOptions options;
  options.timeout = std::chrono::milliseconds(2);
  EXPECT_EQ(session->run(inputs(1, INT64_MAX), options).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(value(session->run(inputs(1, 2)), 0), 3.0f);
}

TEST_P(VirtualSessionTest, ARunIsInTheOrderOfAStream) {
  auto session = make_session(4);
  auto stream = std::move(*session->create_stream());
  float x = 0;
  float seen = 0;
  float y = 0;
  struct Write {
    float* to;
    float* from;
    static bool run(void* self) {
      *static_cast<Write*>(self)->to = *static_cast<Write*>(self)->from;
      return true;
    }
  };
  float five = 5;
  Write before{&x, &five}, after{&seen, &y};
  stream->launch({Write::run, &before});
  NamedTensors given = {{"x", Tensor::borrow({&x, nullptr, 0, ElementType::kFloat})},
                        {"n", Tensor::scalar<int64_t>(4)}};
  RunHandle handle =
      session->run_on(*stream, given, [&](Result<NamedTensors> outputs) { y = value(outputs, 0); });
  EXPECT_TRUE(handle.wait().is_ok());
  stream->launch({Write::run, &after});
  while (!stream->is_idle()) device_->poll();
  EXPECT_EQ(seen, 9.0f);
}

INSTANTIATE_TEST_SUITE_P(Loops, VirtualSessionTest, ::testing::Values(Loops::kDevice, Loops::kHost),
                         [](const auto& info) {
                           return info.param == Loops::kHost ? "Host" : "Device";
                         });

}  // namespace
}  // namespace eddy::testing
