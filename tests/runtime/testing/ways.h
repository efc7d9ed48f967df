// The ways in which one graph can be run; every claim about meaning is tested in all of them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy::testing {

struct Way {
  std::string name;
  Loops loops;
  Assignment assignment;
  bool simplify;
  bool use_arenas = true;
};

inline std::vector<Way> all_ways() {
  return {{"DeviceSerial", Loops::kDevice, Assignment::kSerial, true},
          {"DeviceSerialPlain", Loops::kDevice, Assignment::kSerial, false},
          {"DeviceStreams", Loops::kDevice, Assignment::kRank, false},
          {"DevicePools", Loops::kDevice, Assignment::kSerial, true, false},
          {"HostSerial", Loops::kHost, Assignment::kSerial, true},
          {"HostStreams", Loops::kHost, Assignment::kRank, false}};
}

class WaysTest : public ::testing::TestWithParam<Way> {
 protected:
  SessionOptions options() const {
    SessionOptions options;
    options.loops = GetParam().loops;
    options.assignment = GetParam().assignment;
    options.simplify = GetParam().simplify;
    options.use_arenas = GetParam().use_arenas;
    options.num_threads = 2;
    options.min_released_bytes = 0;  // small tensors too
    return options;
  }

  std::unique_ptr<Session> make_session(GraphBuilder& builder) {
    Result<Graph> graph = builder.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    if (!graph.is_ok()) return nullptr;
    auto session = Session::create(library_, std::move(*graph), options());
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return session.is_ok() ? std::move(*session) : nullptr;
  }

  // Builds, runs twice on one session (the second run must not see the first), returns outputs.
  Result<NamedTensors> run_twice(GraphBuilder& builder, const NamedTensors& inputs) {
    session_ = make_session(builder);
    if (session_ == nullptr) return internal_error("no session");
    auto first = session_->run(inputs);
    auto second = session_->run(inputs);
    EXPECT_EQ(first.is_ok(), second.is_ok());
    if (!first.is_ok() || !second.is_ok()) return first;
    for (size_t i = 0; i < first->size(); ++i) expect_same((*first)[i].second, (*second)[i].second);
    return second;
  }

  // "y" counts from 0 to "limit".
  static void build_count_to_limit(GraphBuilder& b) {
    const Value limit = b.input("limit", tensor_type(ElementType::kFloat, {}));
    const auto y = b.while_loop(
        {.name = "count", .initial = {b.scalar(0.0f)}},
        [&](Value, ValueSpan c) {
          return WhileTest{b.op("Less", {c[0], limit}), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
        });
    b.output("y", y[0]);
  }
  static NamedTensors to(float limit) { return {{"limit", Tensor::scalar(limit)}}; }
  static NamedTensors endless() { return to(1e30f); }  // 2^24 + 1 == 2^24

  static void expect_same(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.kind(), b.kind());
    if (!a.is_tensor()) return;
    ASSERT_EQ(a.dims(), b.dims());
    ASSERT_EQ(a.element_type(), b.element_type());
    EXPECT_EQ(std::memcmp(a.view().data, b.view().data, a.view().size_bytes()), 0);
  }

  template <typename T>
  static std::vector<T> values(const Tensor& tensor) {
    const auto span = tensor.values<T>();
    return {span.begin(), span.end()};
  }

  Library library_;
  std::unique_ptr<Session> session_;
};

#define EDDY_IN_ALL_WAYS(Suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(All, Suite, ::testing::ValuesIn(::eddy::testing::all_ways()), \
                           [](const auto& info) { return info.param.name; })

}  // namespace eddy::testing
