// Claim: inputs may lie anywhere: what is not aligned to its element's size is read as it is when
// the run starts; and what a run passes through on a stream is safe from what comes behind it.
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

const ValueType kDoubles = tensor_type(ElementType::kDouble, {4});

class InputMemoryTest : public WaysTest {
 protected:
  // y = -x, and x itself.
  std::unique_ptr<Session> make_negation() {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", kDoubles);
    b.output("y", b.op("Neg", {x}));
    b.output("same", b.op("Identity", {x}));
    return make_session(b);
  }

  // Four doubles at an odd address.
  struct Odd {
    alignas(16) char bytes[1 + 4 * sizeof(double)];
    const int64_t dims[1] = {4};
    void write(double first) {
      for (int i = 0; i < 4; ++i) {
        const double value = first + i;
        std::memcpy(bytes + 1 + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
      }
    }
    TensorView view() { return {bytes + 1, dims, 1, ElementType::kDouble}; }
  };
};

TEST_P(InputMemoryTest, AnInputAtAnOddAddressIsReadAsItIsWhenTheRunStarts) {
  auto session = make_negation();
  Odd x;
  x.write(1);
  const auto outputs = session->run({{"x", Tensor::borrow(x.view())}});
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ(values<double>((*outputs)[0].second), (std::vector<double>{-1, -2, -3, -4}));
  EXPECT_EQ(values<double>((*outputs)[1].second), (std::vector<double>{1, 2, 3, 4}));

  auto call = std::move(*session->prepare());
  ASSERT_TRUE(call->bind_input(0, x.view()).is_ok());
  for (const double first : {1.0, 10.0, 20.0}) {
    x.write(first);
    ASSERT_TRUE(call->run().is_ok());
    EXPECT_EQ(call->output(0).as<double>()[3], -(first + 3));
    EXPECT_EQ(call->output(1).as<double>()[0], first);
  }
  double aligned[4] = {5, 6, 7, 8};
  ASSERT_TRUE(call->bind_input(0, {aligned, x.dims, 1, ElementType::kDouble}).is_ok());
  ASSERT_TRUE(call->run().is_ok());
  EXPECT_EQ(call->output(0).as<double>()[0], -5);
}

TEST_P(InputMemoryTest, NoKernelSeesAnOddAddress) {
  std::vector<uintptr_t> seen;
  ASSERT_TRUE(library_
                  .add_host_function("where",
                                     [&](std::span<const TensorView> inputs) -> Result<int64_t> {
                                       seen.push_back(reinterpret_cast<uintptr_t>(inputs[0].data));
                                       return inputs[0].as<double>()[3] == 4;
                                     })
                  .is_ok());
  GraphBuilder b(library_.ops());
  b.output("y",
           b.op("HostPredicate", {b.input("x", kDoubles)},
                {{"name", std::string("where")}, {"type", tensor_type(ElementType::kInt64, {})}},
                {.domain = "eddy"}));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  Odd x;
  x.write(1);
  for (int round = 0; round < 2; ++round) {
    const auto outputs = session->run({{"x", Tensor::borrow(x.view())}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_EQ(values<int64_t>((*outputs)[0].second), std::vector<int64_t>{1});
  }
  ASSERT_EQ(seen.size(), 2u);
  for (const uintptr_t address : seen) EXPECT_EQ(address % alignof(double), 0u);
}

TEST_P(InputMemoryTest, AnElementOfASequenceAtAnOddAddressIsRefused) {
  GraphBuilder b(library_.ops());
  const Value s = b.input("s", ValueType::sequence_of(kDoubles));
  b.output("y", b.op("SequenceAt", {s, b.scalar<int64_t>(0)}));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  Odd x;
  x.write(1);
  const auto given = [&](const Tensor& element) {
    return session->run({{"s", Tensor::sequence(ElementType::kDouble, {element})}}).status();
  };
  EXPECT_EQ(given(Tensor::borrow(x.view())).message(),
            "an element of input 's' is at an address that is no multiple of 8 bytes; copy it");
  EXPECT_TRUE(given(Tensor::copy_of(x.view())).is_ok());
}

TEST_P(InputMemoryTest, AnElementOfASequenceHasMemoryAndIsATensor) {
  GraphBuilder b(library_.ops());
  const Value s = b.input("s", ValueType::sequence_of(TensorType(ElementType::kDouble)));
  b.output("y", b.op("SequenceAt", {s, b.scalar<int64_t>(0)}));
  auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  const auto given = [&](const Tensor& element) {
    return session->run({{"s", Tensor::sequence(ElementType::kDouble, {element})}})
        .status()
        .message();
  };
  Odd x;
  TensorView nowhere = x.view();
  nowhere.data = nullptr;
  EXPECT_EQ(given(Tensor::borrow(nowhere)),
            "an element of input 's' was given a null pointer; give memory for double[4]");
  EXPECT_EQ(given(Tensor::sequence(ElementType::kDouble, {})),
            "an element of input 's' is a sequence; sequences hold tensors");
  EXPECT_EQ(given(Tensor()), "an element of input 's' is nothing; sequences hold tensors");
}

TEST_P(InputMemoryTest, WhatIsPassedThroughOnAStreamIsReadBeforeWhatComesBehindWritesIt) {
  auto session = make_negation();
  auto stream = std::move(*session->create_stream());
  // While the callback thread is busy no outputs are collected there.
  std::promise<void> go;
  RunHandle holds = session->run_async({{"x", Tensor::of<double>({4}, {0, 0, 0, 0})}},
                                       [&](Result<NamedTensors>) { go.get_future().wait(); });
  double x[4] = {1, 2, 3, 4};
  const int64_t dims[1] = {4};
  std::vector<double> same;
  RunHandle run =
      session->run_on(*stream, {{"x", Tensor::borrow({x, dims, 1, ElementType::kDouble})}},
                      [&](Result<NamedTensors> o) { same = values<double>((*o)[1].second); });
  ASSERT_TRUE(stream->launch({[](void* data) {
                                std::fill_n(static_cast<double*>(data), 4, 9.0);
                                return true;
                              },
                              x, false}));
  while (!stream->is_idle()) std::this_thread::yield();
  EXPECT_EQ(x[0], 9.0);
  go.set_value();
  EXPECT_TRUE(holds.wait().is_ok());
  EXPECT_TRUE(run.wait().is_ok());
  EXPECT_EQ(same, (std::vector<double>{1, 2, 3, 4}));
}

EDDY_IN_ALL_WAYS(InputMemoryTest);

}  // namespace
}  // namespace eddy
