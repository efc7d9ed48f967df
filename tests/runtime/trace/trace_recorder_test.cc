// What a TraceRecorder writes parses as JSON, gives each lane a row of its own, and nests,
// whatever was dropped or left open.
#include "runtime/trace/trace_recorder.h"

#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include "graph/base/random.h"

namespace eddy {
namespace {

using nlohmann::json;

json written(const TraceRecorder& trace) {
  const std::string path = testing::TempDir() + "/trace.json";
  const Status status = trace.write_json(path);
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  std::ifstream file(path);
  return json::parse(file);
}

struct Row {
  std::string name;
  double start = 0;
  double end = 0;
};

// The spans of each lane, by the lane's name, in the order of the file.
std::map<std::string, std::vector<Row>> rows_of(const json& document) {
  std::map<int, std::string> lanes;
  std::map<std::string, std::vector<Row>> rows;
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      lanes[event["tid"]] = event["args"]["name"];
    }
    if (event["ph"] == "X") {
      const double start = event["ts"];
      rows[lanes.at(event["tid"])].push_back(
          {event["name"], start, start + event["dur"].get<double>()});
    }
  }
  return rows;
}

void expect_nested(const std::vector<Row>& rows) {
  constexpr double kRounding = 0.002;  // of times written with three decimals
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const bool is_inside =
          rows[j].start >= rows[i].start - kRounding && rows[j].end <= rows[i].end + kRounding;
      const bool is_after = rows[j].start >= rows[i].end - kRounding;
      EXPECT_TRUE(is_inside || is_after) << i << " and " << j;
    }
  }
}

TEST(TraceRecorder, EachLaneIsARowAndEachIterationANamedSpanInsideItsLoop) {
  TraceRecorder trace;
  const LaneId a = trace.lane("stream 0");
  const LaneId b = trace.lane("stream 1");
  EXPECT_EQ(trace.lane("stream 0"), a);
  const TraceNameId loop = trace.name("decode");
  EXPECT_EQ(trace.name("decode"), loop);
  trace.begin(a, loop);
  for (int64_t i = 0; i < 3; ++i) {
    trace.begin(a, loop, i);
    trace.instant(a, trace.name("decision"));
    trace.end(a);
  }
  trace.end(a);
  { const TraceSpan span(&trace, b, trace.name("Add")); }

  const json document = written(trace);
  const auto rows = rows_of(document);
  ASSERT_EQ(rows.size(), 2u);
  const std::vector<Row>& first = rows.at("stream 0");
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[0].name, "decode");
  EXPECT_EQ(first[1].name, "decode[0]");
  EXPECT_EQ(first[3].name, "decode[2]");
  for (int i = 1; i < 4; ++i) {
    EXPECT_GE(first[i].start, first[0].start);
    EXPECT_LE(first[i].end, first[0].end + 0.002);
  }
  expect_nested(first);
  EXPECT_EQ(rows.at("stream 1")[0].name, "Add");
  EXPECT_EQ(document["otherData"]["dropped_events"], 0);
}

TEST(TraceRecorder, AFullRingDropsTheOldestEventsSaysSoAndStillNests) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TraceRecorder trace(64);
    const LaneId lane = trace.lane("stream");
    const TraceNameId name = trace.name("node");
    Random random(seed);
    int depth = 0;
    const int num_events = 200 + static_cast<int>(random.below(100));
    for (int i = 0; i < num_events; ++i) {
      if (depth > 0 && (depth == 8 || random.below(2) == 0)) {
        trace.end(lane);
        --depth;
      } else {
        trace.begin(lane, name, i);
        ++depth;
      }
    }
    const json document = written(trace);
    EXPECT_EQ(document["otherData"]["dropped_events"], num_events - 64);
    const auto rows = rows_of(document);
    ASSERT_TRUE(rows.contains("stream"));
    expect_nested(rows.at("stream"));
  }
}

TEST(TraceRecorder, SpansLeftOpenByAFailedRunEndWithTheLanesLastEvent) {
  TraceRecorder trace;
  const LaneId lane = trace.lane("stream");
  trace.begin(lane, trace.name("outer"));
  trace.begin(lane, trace.name("inner"));
  trace.instant(lane, trace.name("failed"));
  const auto rows = rows_of(written(trace)).at("stream");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[0].end, rows[1].end, 0.002);
}

TEST(TraceRecorder, AnEndWithoutABeginIsIgnored) {
  TraceRecorder trace;
  const LaneId lane = trace.lane("stream");
  trace.end(lane);
  trace.begin(lane, trace.name("node"));
  trace.end(lane);
  EXPECT_EQ(rows_of(written(trace)).at("stream").size(), 1u);
}

TEST(TraceRecorder, NamesOfAnyBytesBecomeValidJson) {
  TraceRecorder trace;
  const LaneId lane = trace.lane("a\"b\\c\n\x01");
  const TraceSpan span(&trace, lane, trace.name("\xff\xfe \"quoted\""));
  EXPECT_EQ(rows_of(written(trace)).count("a\"b\\c\n\x01"), 1u);
}

TEST(TraceRecorder, LanesOfSeveralThreadsDoNotDisturbEachOther) {
  TraceRecorder trace;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&trace, t] {
      const LaneId lane = trace.lane("stream " + std::to_string(t));
      const TraceNameId name = trace.name("node");
      for (int i = 0; i < 1000; ++i) const TraceSpan span(&trace, lane, name, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto rows = rows_of(written(trace));
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& [lane, spans] : rows) EXPECT_EQ(spans.size(), 1000u) << lane;
}

TEST(TraceRecorder, LanesBeyondTheLimitAreCountedAndNotShown) {
  TraceRecorder trace(16);
  for (uint32_t i = 0; i < TraceRecorder::kMaxLanes; ++i) trace.lane(std::to_string(i));
  const LaneId extra = trace.lane("one too many");
  EXPECT_TRUE(extra.is_none());
  trace.instant(extra, trace.name("lost"));
  EXPECT_EQ(trace.num_dropped(), 1u);
}

TEST(TraceRecorder, LanesStandByTheirNumberNotByWhenTheyWereMade) {
  TraceRecorder trace;
  trace.lane("stream 10");
  trace.lane("stream 2");
  std::vector<int> order;
  const json document = written(trace);
  for (const json& event : document["traceEvents"]) {
    if (event["name"] == "thread_sort_index") order.push_back(event["args"]["sort_index"]);
  }
  EXPECT_EQ(order, (std::vector<int>{10, 2}));
}

TEST(TraceRecorder, TheTextIsWhatTheFileHasAndACleanRecorderBeginsAnew) {
  TraceRecorder trace(16);
  const LaneId lane = trace.lane("stream 0");
  const TraceNameId name = trace.name("step");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      trace.begin(lane, name, i);
      trace.end(lane);
    }
    EXPECT_EQ(json::parse(trace.json()), written(trace));
    EXPECT_EQ(rows_of(json::parse(trace.json()))["stream 0"].size(), 8u);
    EXPECT_EQ(trace.num_dropped(), 24u);
    trace.clear();
    EXPECT_EQ(trace.num_dropped(), 0u);
    EXPECT_TRUE(rows_of(json::parse(trace.json())).empty());
  }
}

TEST(TraceRecorder, AnUnwritableFileIsABadArgumentThatNamesIt) {
  const Status status = TraceRecorder().write_json("/nonexistent/folder/trace.json");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("/nonexistent/folder/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace eddy
