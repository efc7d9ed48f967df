// Claim: a warm loop with fixed shapes allocates nothing and keeps resident memory flat, however
// long it runs, and a session releases what its runs used.
#include <unistd.h>
#include <fstream>

#include "tests/runtime/testing/allocation_counter.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::num_allocations;
using testing::WaysTest;

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class MemoryTest : public WaysTest {
 protected:
  std::unique_ptr<Session> make_counter() {
    GraphBuilder b(library_.ops());
    const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
    const auto out = b.while_loop(
        {.initial = {b.scalar(0.0f)}},
        [&](Value i, std::span<const Value> c) {
          return WhileTest{b.op("Less", {i, trips}), {c[0]}};
        },
        [&](Value, std::span<const Value> f) {
          return std::vector<Value>{b.op("Add", {f[0], b.scalar(1.0f)})};
        });
    b.output("y", out[0]);
    return make_session(b);
  }
};

TEST_P(MemoryTest, TenMillionIterationsAllocateNothing) {
  const bool is_forked = GetParam().assignment == Assignment::kRank;
  const int64_t trips = GetParam().loops == Loops::kHost || is_forked ? 1'000'000 : 10'000'000;
  auto session = make_counter();
  auto call = std::move(*session->prepare());
  int64_t count = 1000;
  ASSERT_TRUE(call->bind_input(0, {&count, nullptr, 0, ElementType::kInt64}).is_ok());
  ASSERT_TRUE(call->run().is_ok());
  ASSERT_TRUE(call->run().is_ok());
  const size_t resident_before = resident_bytes();
  const uint64_t allocations_before = num_allocations();
  count = trips;
  ASSERT_TRUE(call->run().is_ok());
  // A run itself may allocate a little (a task, a queue entry); an iteration may not.
  EXPECT_LT(num_allocations() - allocations_before, 100u);
#ifdef EDDY_SANITIZER
  (void)resident_before;  // a sanitizer's own memory grows with what it sees
#else
  EXPECT_LT(resident_bytes(), resident_before + (size_t{1} << 20));
#endif
}

TEST_P(MemoryTest, AWarmCallOnTheCallersThreadAllocatesNothingAtAll) {
  if (GetParam().loops == Loops::kHost || GetParam().assignment == Assignment::kRank) {
    GTEST_SKIP() << "only one-stream plans run on the calling thread";
  }
  auto session = make_counter();
  auto call = std::move(*session->prepare());
  int64_t count = 10;
  ASSERT_TRUE(call->bind_input(0, {&count, nullptr, 0, ElementType::kInt64}).is_ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call->run().is_ok());
  const uint64_t before = num_allocations();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(call->run().is_ok());
  EXPECT_EQ(num_allocations() - before, 0u);
}

EDDY_IN_ALL_WAYS(MemoryTest);

}  // namespace
}  // namespace eddy
