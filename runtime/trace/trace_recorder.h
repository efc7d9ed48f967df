// TraceRecorder: what ran when, lane by lane, for Chrome's and Perfetto's viewers.
//
//   TraceRecorder trace;
//   const LaneId lane = trace.lane("cpu stream 0");       // once for each stream
//   const TraceNameId step = trace.name("decode");        // once for each node or loop
//   trace.begin(lane, step, 17);  ...  trace.end(lane);   // spans of a lane nest
//   EDDY_RETURN_IF_ERROR(trace.write_json("run.json"));
//
// Each lane is a ring with a fixed number of events: when it is full the oldest ones are dropped,
// and the file has their number. A component that does not trace holds a null pointer and pays one
// test.
//
// Contract: end() closes the lane's innermost open span. Spans still open when the file is
// written (a run that failed) end at the lane's last event; ends whose begin was dropped vanish.
// So what is in the file always nests.
// Errors: write_json gives kInvalidArgument when the file cannot be opened or written.
// Threads: lane() and name() from any thread. A lane has one writer at a time, ordered by
// whatever hands the stream over; no lock, no allocation, one clock read for each event.
// write_json(), json() and the counters are for when all writers are done.
// Cost: about 25 ns an event (the clock), 32 bytes an event of the ring; untouched parts of a ring
// take no memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/base/ids.h"
#include "graph/base/status.h"

namespace eddy {

using LaneId = Id<struct TraceLaneTag>;
using TraceNameId = Id<struct TraceNameTag>;

class TraceRecorder {
 public:
  static constexpr size_t kDefaultEventsPerLane = size_t{1} << 18;
  static constexpr uint32_t kMaxLanes = 4096;
  static constexpr int64_t kNoIteration = -1;

  // Rounded up to a power of two, at least 16.
  explicit TraceRecorder(size_t events_per_lane = kDefaultEventsPerLane);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // The lane of that name, made on first use; the same for the same name. None once there are
  // kMaxLanes: events of lane none are counted as dropped.
  LaneId lane(std::string_view name);
  TraceNameId name(std::string_view text);

  // An iteration is shown behind the name: "decode[17]".
  void begin(LaneId lane, TraceNameId name, int64_t iteration = kNoIteration);
  void end(LaneId lane);
  void instant(LaneId lane, TraceNameId name, int64_t iteration = kNoIteration);

  // Events that no file will show.
  uint64_t num_dropped() const;
  Status write_json(const std::string& path) const;
  // What that writes.
  std::string json() const;
  // Forgets all events; lanes and names stay. When all writers are done.
  void clear();

 private:
  enum class Kind : uint8_t { kBegin, kEnd, kInstant };
  struct Event {
    int64_t time_ns;
    int64_t iteration;
    TraceNameId name;
    Kind kind;
  };
  static_assert(sizeof(Event) <= 32, "a ring has many of them");
  struct Lane;
  struct Span;

  void record(LaneId lane, Kind kind, TraceNameId name, int64_t iteration);
  void print(const std::function<void(std::string_view)>& write) const;
  std::vector<Span> spans_of(const Lane& lane) const;
  std::string event_text(uint32_t tid, const Span& span) const;

  const size_t capacity_;
  const int64_t start_ns_;
  mutable std::mutex mutex_;  // of everything below but the rings' contents
  // A fixed table, so that writers find their lane while others are added. An entry is written
  // once, before its id leaves lane().
  std::unique_ptr<std::unique_ptr<Lane>[]> lanes_;
  uint32_t num_lanes_ = 0;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, TraceNameId> name_ids_;
  std::atomic<uint64_t> num_laneless_{0};
};

// begin() now, end() when it goes; nothing at all without a recorder.
class TraceSpan {
 public:
  TraceSpan(TraceRecorder* recorder_or_null, LaneId lane, TraceNameId name,
            int64_t iteration = TraceRecorder::kNoIteration)
      : recorder_(recorder_or_null), lane_(lane) {
    if (recorder_ != nullptr) recorder_->begin(lane, name, iteration);
  }
  ~TraceSpan() {
    if (recorder_ != nullptr) recorder_->end(lane_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceRecorder* const recorder_;
  const LaneId lane_;
};

}  // namespace eddy
