// Claim: a session counts its runs, the iterations of its loops and, where that is asked for, the
// calls of each operator and their time, as structs and as Prometheus reads them.
#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::HasSubstr;

class CMetrics : public CApi {
 protected:
  static std::string metrics_text(eddy_session session, const char* name = "s") {
    Owned<eddy_value> text;
    EXPECT_EQ(api().session_metrics_text(session, name, text.out(), nullptr), EDDY_OK);
    eddy_tensor view = {};
    EXPECT_EQ(api().value_tensor(text.get(), &view, nullptr), EDDY_OK);
    return {static_cast<const char*>(view.data), static_cast<size_t>(view.dims[0])};
  }
};

TEST_F(CMetrics, MetricsCountTheRunsUnderWayAndThoseThatWait) {
  Owned<eddy_session> session = session_of(doubling().get(), {{"max_runs_in_flight", "1"}});
  const auto metrics = [&] {
    eddy_metrics read = {};
    read.struct_size = sizeof(read);
    EXPECT_EQ(api().session_metrics(session.get(), &read, nullptr), EDDY_OK);
    return read;
  };
  const float zero = 0;  // stays below any limit
  const float limit = 1;
  std::vector<Owned<eddy_run>> runs;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(run_of(session.get()));
    bind(runs.back().get(), 0, &zero);
    bind(runs.back().get(), 1, &limit);
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(runs.back().get(), nullptr, nullptr, nullptr, nullptr, e);
              }),
              "ok");
  }
  EXPECT_EQ(metrics().runs_in_flight, 1u);
  EXPECT_EQ(metrics().runs_waiting, 2u);
  const std::string lines = metrics_text(session.get());
  EXPECT_THAT(lines, HasSubstr("eddy_runs_in_flight{session=\"s\"} 1\n"));
  EXPECT_THAT(lines, HasSubstr("eddy_runs_waiting{session=\"s\"} 2\n"));
  ASSERT_EQ(api().session_cancel_all(session.get(), nullptr), EDDY_OK);
  for (const Owned<eddy_run>& run : runs) {
    EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_CANCELLED);
  }
  EXPECT_EQ(metrics().runs_in_flight, 0u);
  EXPECT_EQ(metrics().runs_waiting, 0u);
  EXPECT_THAT(metrics_text(session.get(), "a\xff"), HasSubstr("session=\"a\xef\xbf\xbd\""));
  EXPECT_THAT(metrics_text(session.get(), "a\"b"),
              HasSubstr("eddy_runs_total{session=\"a\\\"b\",end=\"cancelled\"} 3\n"));
}

// A run adds up its own successes, which the session keeps when the run goes.
TEST_F(CMetrics, SuccessesCountWhileTheirRunsLiveAndAfterwards) {
  Owned<eddy_session> session = session_of(doubling().get());
  const auto succeeded = [&] {
    eddy_metrics read = {};
    read.struct_size = sizeof(read);
    EXPECT_EQ(api().session_metrics(session.get(), &read, nullptr), EDDY_OK);
    EXPECT_EQ(read.runs_failed + read.runs_cancelled + read.runs_late, 0u);
    return read.runs_succeeded;
  };
  constexpr uint64_t kThreads = 4, kRuns = 200;
  const float one = 1, limit = 4;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Owned<eddy_run> run = run_of(session.get());
      bind(run.get(), 0, &one);
      bind(run.get(), 1, &limit);
      for (uint64_t i = 0; i < kRuns; ++i) {
        EXPECT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_OK);
      }
    });
  }
  for (uint64_t before = 0; before < kThreads * kRuns / 2;) {
    const uint64_t now = succeeded();
    EXPECT_GE(now, before);
    before = std::max(before, now);
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(succeeded(), kThreads * kRuns);
}

TEST_F(CMetrics, MetricsHaveIterationsAndTheTimeOfEachOperator) {
  Owned<eddy_session> session = session_of(doubling().get(), {{"time_operators", "true"}});
  Owned<eddy_run> run = run_of(session.get());
  const float one = 1, limit = 100;
  bind(run.get(), 0, &one);
  bind(run.get(), 1, &limit);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_OK);
  eddy_metrics metrics = {};
  metrics.struct_size = sizeof(metrics);
  ASSERT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  EXPECT_EQ(metrics.iterations, 14u);
  size_t count = 0;
  ASSERT_EQ(api().session_num_operators(session.get(), &count, nullptr), EDDY_OK);
  ASSERT_EQ(count, 2u);
  const uint64_t calls[] = {14, 16};
  const char* const names[] = {"Add", "Less"};
  for (size_t i = 0; i < count; ++i) {
    eddy_operator_metrics of = {};
    of.struct_size = sizeof(of);
    ASSERT_EQ(api().session_operator_metrics(session.get(), i, &of, nullptr), EDDY_OK);
    EXPECT_STREQ(of.name, names[i]);
    EXPECT_EQ(of.calls, calls[i]);
    EXPECT_GT(of.time_ns, 0u);
  }
  const std::string lines = metrics_text(session.get());
  EXPECT_THAT(lines, HasSubstr("eddy_loop_iterations_total{session=\"s\"} 14\n"));
  EXPECT_THAT(lines, HasSubstr("eddy_operator_calls_total{session=\"s\",operator=\"Less\"} 16\n"));
  EXPECT_THAT(lines, HasSubstr("eddy_operator_seconds_total{session=\"s\",operator=\"Add\"} 0."));
}

TEST_F(CMetrics, WithoutTheOptionNoOperatorIsTimed) {
  Owned<eddy_session> session = session_of(doubling().get());
  size_t count = 9;
  ASSERT_EQ(api().session_num_operators(session.get(), &count, nullptr), EDDY_OK);
  EXPECT_EQ(count, 0u);
  eddy_operator_metrics of = {};
  of.struct_size = sizeof(of);
  EXPECT_THAT(
      said([&](auto e) { return api().session_operator_metrics(session.get(), 0, &of, e); }),
      HasSubstr("set option time_operators to true"));
  EXPECT_THAT(metrics_text(session.get()), testing::Not(HasSubstr("operator")));
  const eddy_option misspelt = {"time_operator", "true"};
  Owned<eddy_session> none;
  EXPECT_THAT(said([&](auto e) {
                return api().session_create(doubling().get(), &misspelt, 1, none.out(), e);
              }),
              HasSubstr("the nearest is 'time_operators'"));
}

// Programs compiled against an earlier header have shorter structs.
TEST_F(CMetrics, AShorterMetricsStructGetsWhatItHasRoomFor) {
  Owned<eddy_session> session = session_of(doubling().get());
  eddy_metrics metrics = {};
  metrics.struct_size = offsetof(eddy_metrics, iterations);
  metrics.iterations = 77;
  ASSERT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  EXPECT_EQ(metrics.iterations, 77u);
  EXPECT_GT(metrics.plan_ns, 0);
}

}  // namespace
}  // namespace eddy::c
