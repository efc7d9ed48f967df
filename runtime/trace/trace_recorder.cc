#include "runtime/trace/trace_recorder.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/base/check.h"

namespace eddy {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A JSON string; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// "stream 12" stands twelfth, whenever it was made; a lane without a number where it was made.
uint32_t sort_index(const std::string& name, uint32_t tid) {
  const size_t last = name.find_last_not_of("0123456789");
  const size_t begin = last == std::string::npos ? 0 : last + 1;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  return error == std::errc() ? number : tid;
}

}  // namespace

struct TraceRecorder::Lane {
  std::string name;
  std::unique_ptr<Event[]> ring;
  // Events ever recorded. Written by the lane's writer only; atomic so that a reader of another
  // thread (num_dropped) sees a whole number.
  std::atomic<uint64_t> count{0};
};

struct TraceRecorder::Span {
  TraceNameId name;
  int64_t iteration;
  int64_t start_ns;
  int64_t end_ns;  // -1: an instant
};

TraceRecorder::TraceRecorder(size_t events_per_lane)
    : capacity_(std::bit_ceil(std::max<size_t>(events_per_lane, 16))),
      start_ns_(now_ns()),
      lanes_(std::make_unique<std::unique_ptr<Lane>[]>(kMaxLanes)) {}

TraceRecorder::~TraceRecorder() = default;

LaneId TraceRecorder::lane(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  for (uint32_t i = 0; i < num_lanes_; ++i) {
    if (lanes_[i]->name == name) return LaneId(i);
  }
  if (num_lanes_ == kMaxLanes) return LaneId();
  auto lane = std::make_unique<Lane>();
  lane->name = name;
  lane->ring = std::make_unique_for_overwrite<Event[]>(capacity_);
  lanes_[num_lanes_] = std::move(lane);
  return LaneId(num_lanes_++);
}

TraceNameId TraceRecorder::name(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = name_ids_.find(text); found != name_ids_.end()) return found->second;
  EDDY_DCHECK(names_.size() == name_ids_.size()) << "a name has no number, or two";
  const TraceNameId id(static_cast<uint32_t>(names_.size()));
  name_ids_.emplace(names_.emplace_back(text), id);
  return id;
}

void TraceRecorder::begin(LaneId lane, TraceNameId name, int64_t iteration) {
  record(lane, Kind::kBegin, name, iteration);
}

void TraceRecorder::end(LaneId lane) { record(lane, Kind::kEnd, TraceNameId(), kNoIteration); }

void TraceRecorder::instant(LaneId lane, TraceNameId name, int64_t iteration) {
  record(lane, Kind::kInstant, name, iteration);
}

void TraceRecorder::record(LaneId lane_id, Kind kind, TraceNameId name, int64_t iteration) {
  if (lane_id.is_none()) {
    num_laneless_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  EDDY_DCHECK(lane_id.index() < kMaxLanes) << "lane " << lane_id.index() << " of another recorder";
  EDDY_DCHECK(lanes_[lane_id.index()] != nullptr) << "lane " << lane_id.index() << " was not made";
  Lane& lane = *lanes_[lane_id.index()];
  const uint64_t count = lane.count.load(std::memory_order_relaxed);
  lane.ring[count & (capacity_ - 1)] = {now_ns(), iteration, name, kind};
  lane.count.store(count + 1, std::memory_order_relaxed);
}

uint64_t TraceRecorder::num_dropped() const {
  const std::scoped_lock lock(mutex_);
  uint64_t dropped = num_laneless_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < num_lanes_; ++i) {
    const uint64_t count = lanes_[i]->count.load(std::memory_order_relaxed);
    if (count > capacity_) dropped += count - capacity_;
  }
  return dropped;
}

// Matches begins with ends, so that only whole spans leave.
std::vector<TraceRecorder::Span> TraceRecorder::spans_of(const Lane& lane) const {
  const uint64_t count = lane.count.load(std::memory_order_relaxed);
  const uint64_t first = count > capacity_ ? count - capacity_ : 0;
  std::vector<Span> spans;
  std::vector<size_t> open;
  int64_t last_ns = start_ns_;
  for (uint64_t i = first; i < count; ++i) {
    const Event& event = lane.ring[i & (capacity_ - 1)];
    last_ns = event.time_ns;
    if (event.kind == Kind::kEnd) {
      if (open.empty()) continue;  // its begin was dropped
      EDDY_DCHECK(spans[open.back()].end_ns < 0) << "a span is closed twice";
      spans[open.back()].end_ns = event.time_ns;
      open.pop_back();
      continue;
    }
    if (event.kind == Kind::kBegin) open.push_back(spans.size());
    spans.push_back({event.name, event.iteration, event.time_ns, -1});
  }
  for (const size_t i : open) spans[i].end_ns = last_ns;
  return spans;
}

// One JSON object of the list, with the comma before it.
std::string TraceRecorder::event_text(uint32_t tid, const Span& span) const {
  EDDY_CHECK(span.name.is_none() || span.name.index() < names_.size())
      << "name " << span.name.index() << " of another recorder";
  std::string label = span.name.is_none() ? "?" : names_[span.name.index()];
  std::string arguments;
  if (span.iteration != kNoIteration) {
    label += fmt::format("[{}]", span.iteration);
    arguments = fmt::format(",\"args\":{{\"iteration\":{}}}", span.iteration);
  }
  const auto micros = [](int64_t ns) { return static_cast<double>(ns) / 1000.0; };
  const std::string kind = span.end_ns < 0 ? std::string("\"ph\":\"i\",\"s\":\"t\"")
                                           : fmt::format("\"ph\":\"X\",\"dur\":{:.3f}",
                                                         micros(span.end_ns - span.start_ns));
  return fmt::format(",\n{{{},\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"name\":{}{}}}", kind, tid,
                     micros(span.start_ns - start_ns_), json_string(label), arguments);
}

void TraceRecorder::print(const std::function<void(std::string_view)>& write) const {
  const uint64_t dropped = num_dropped();
  const std::scoped_lock lock(mutex_);
  write(
      fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_events\":{}}},\n"
                  "\"traceEvents\":[\n{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
                  "\"args\":{{\"name\":\"eddy\"}}}}",
                  dropped));
  for (uint32_t tid = 0; tid < num_lanes_; ++tid) {
    write(
        fmt::format(",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{0},\"name\":\"thread_name\","
                    "\"args\":{{\"name\":{1}}}}}"
                    ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{0},\"name\":\"thread_sort_index\","
                    "\"args\":{{\"sort_index\":{2}}}}}",
                    tid, json_string(lanes_[tid]->name), sort_index(lanes_[tid]->name, tid)));
    for (const Span& span : spans_of(*lanes_[tid])) write(event_text(tid, span));
  }
  write("\n]}\n");
}

std::string TraceRecorder::json() const {
  std::string text;
  print([&text](std::string_view part) { text += part; });
  return text;
}

void TraceRecorder::clear() {
  const std::scoped_lock lock(mutex_);
  for (uint32_t i = 0; i < num_lanes_; ++i) lanes_[i]->count.store(0, std::memory_order_relaxed);
  num_laneless_.store(0, std::memory_order_relaxed);
}

Status TraceRecorder::write_json(const std::string& path) const {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> owner(std::fopen(path.c_str(), "wb"),
                                                              &std::fclose);
  std::FILE* const file = owner.get();
  if (file == nullptr) {
    return invalid_argument(
        fmt::format("cannot write the trace {}: {}; name a file in a folder "
                    "that may be written to",
                    path, std::strerror(errno)));
  }
  print([file](std::string_view part) { std::fwrite(part.data(), 1, part.size(), file); });
  if (std::fflush(file) != 0 || std::ferror(file) != 0) {
    return run_failed(
        fmt::format("cannot write all of the trace {}: {}; make room or name a file elsewhere",
                    path, std::strerror(errno)));
  }
  return Status::ok();
}

}  // namespace eddy
