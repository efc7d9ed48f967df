#include "runtime/execute/host/segment.h"

#include <algorithm>
#include <map>

#include "graph/base/check.h"
#include "runtime/device/no_waiting.h"

namespace eddy {

Segment::Segment(std::vector<SegmentStep> steps, uint32_t next, const SegmentShared& shared)
    : steps_(std::move(steps)), next_(next), shared_(shared) {
  std::map<uint32_t, RecordableWork*> last_works;  // by stream
  for (const SegmentStep& step : steps_) {
    num_streams_ = std::max(num_streams_, step.stream + 1);
    if (step.kind == SegmentStep::Kind::kBooks) moving_.push_back(step);
    if (step.kind != SegmentStep::Kind::kWork) continue;
    EDDY_DCHECK(step.work != nullptr) << "a step of no work";
    ++num_works_;
    last_works[step.stream] = step.work;
    if (step.work->may_move()) {
      moving_.push_back(step);
    } else {
      is_still_recordable_ &= step.work->is_recordable();
    }
  }
  for (const auto& [stream, work] : last_works) {
    if (!work->may_move()) ends_.push_back(work);
  }
}

bool Segment::prepare() {
  for (; at_.num_prepared < moving_.size(); ++at_.num_prepared) {
    const SegmentStep& step = moving_[at_.num_prepared];
    if (step.kind == SegmentStep::Kind::kBooks) {
      if (!step.run(step.context)) return false;
      continue;
    }
    if (!step.work->prepare()) return false;
    at_.is_recordable &= step.work->is_recordable();
    step.work->add_addresses(addresses_);
  }
  for (RecordableWork* work : ends_) work->reach();
  return true;
}

Segment::Recorded* Segment::find_recorded() {
  for (Recorded& recorded : recordings_) {
    if (recorded.addresses == addresses_) return &recorded;
  }
  return nullptr;
}

// Notes that these addresses have been used once.
void Segment::see() {
  if (seen_.size() < kMostRecordings) {
    seen_.push_back({addresses_, nullptr});
  } else {
    seen_[next_seen_++ % kMostRecordings].addresses = addresses_;
  }
}

// For one more recording. False: all of them are in use.
bool Segment::has_room() const {
  if (recordings_.size() < kMostRecordings) return true;
  const auto oldest = std::ranges::min_element(recordings_, {}, &Recorded::last_run);
  return num_runs_ - oldest->last_run >= kStaleAfter;
}

void Segment::make_room() {
  if (recordings_.size() < kMostRecordings) return;
  recordings_.erase(std::ranges::min_element(recordings_, {}, &Recorded::last_run));
}

// In the order of the steps, which is one that the plan allows, on one stream.
bool Segment::issue(NativeStream stream) {
  at_.is_issuing = true;
  num_issued_ = num_works_;
  for (; at_.num_issued < steps_.size(); ++at_.num_issued) {
    const SegmentStep& step = steps_[at_.num_issued];
    if (step.kind != SegmentStep::Kind::kWork) continue;
    if (!step.work->enqueue(stream, false) && !step.work->tell_error()) return false;
  }
  return true;
}

bool Segment::run(NativeStream stream, Status& why, bool goes_on) {
  if (!goes_on) {
    at_ = {};
    at_.is_recordable = is_still_recordable_ && (!is_off_ || !recordings_.empty());
    addresses_.clear();
    num_issued_ = 0;
    ++num_runs_;
  }
  if (!prepare()) return false;
  if (!at_.is_recordable || at_.is_issuing) return issue(stream);
  Recorded* recorded = find_recorded();
  if (recorded == nullptr) {
    if (is_off_) return issue(stream);
    const auto is_same = [&](const Recorded& seen) { return seen.addresses == addresses_; };
    const bool is_known = std::ranges::any_of(seen_, is_same);
    const bool is_wanted = is_known || num_works_ > kMostIssued;
    if (!is_wanted || !has_room()) {
      if (!is_known) see();
      return issue(stream);
    }
    if (NoWaiting::refuses()) return false;
    make_room();
    std::erase_if(seen_, is_same);
    std::unique_ptr<CapturedGraph> made;
    if (const Status refused = record(stream, made); !refused.is_ok()) {
      is_off_ = true;
      if (shared_.tell_refusal) shared_.tell_refusal(refused);
      return issue(stream);
    }
    recorded = &recordings_.emplace_back(Recorded{addresses_, std::move(made)});
  }
  EDDY_DCHECK(recorded->graph != nullptr && recordings_.size() <= kMostRecordings)
      << recordings_.size() << " recordings";
  recorded->last_run = num_runs_;
  why = recorded->graph->launch(stream);
  return why.is_ok();
}

Status Segment::record(NativeStream stream, std::unique_ptr<CapturedGraph>& made) {
  Status status = shared_.capture->make_streams(num_streams_);
  if (status.is_ok()) status = shared_.capture->begin();
  if (status.is_ok()) status = record_steps();
  if (status.is_ok()) {
    if (shared_.is_awaited) shared_.capture->tell_end(stream);
    Result<std::unique_ptr<CapturedGraph>> finished = shared_.capture->finish();
    if (finished.is_ok()) {
      made = std::move(*finished);
      return Status::ok();
    }
    status = finished.take_status();
  }
  shared_.capture->abandon();
  for (const SegmentStep& step : steps_) {
    if (step.work != nullptr) step.work->forget_error();
  }
  return status;
}

Status Segment::record_steps() {
  GraphCapture& capture = *shared_.capture;
  std::map<uint32_t, uint32_t> events;  // by event
  EDDY_RETURN_IF_ERROR(capture.stream(0).status());
  for (const SegmentStep& step : steps_) {
    switch (step.kind) {
      case SegmentStep::Kind::kBooks:
      case SegmentStep::Kind::kRound:
        break;
      case SegmentStep::Kind::kRecord: {
        EDDY_ASSIGN_OR_RETURN(events[step.event], capture.record(step.stream));
        break;
      }
      case SegmentStep::Kind::kWait:
        EDDY_RETURN_IF_ERROR(capture.wait(step.stream, events.at(step.event)));
        break;
      case SegmentStep::Kind::kWork: {
        EDDY_ASSIGN_OR_RETURN(void* const native, capture.stream(step.stream));
        if (!step.work->enqueue(native, true)) {
          return internal_error("work refuses to be recorded");
        }
        break;
      }
    }
  }
  return Status::ok();
}

}  // namespace eddy
