#include "runtime/cuda/cuda_stream.h"

#include <thread>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

Result<std::unique_ptr<CudaStream>> CudaStream::create(const CudaShared& shared) {
  PinnedWord word, tail;
  if (shared.has_memory_words) {
    EDDY_ASSIGN_OR_RETURN(word, shared.words.acquire());
    Result<PinnedWord> second = shared.words.acquire();
    if (second.is_ok()) tail = *second;  // else each decision of the host's is marked
  }
  const CudaContext::Use use(shared.context);
  Result<CuStream> stream = shared.context.make_stream();
  if (!stream.is_ok()) {
    if (word.host != nullptr) shared.words.release(word);
    if (tail.host != nullptr) shared.words.release(tail);
    return stream.take_status();
  }
  return std::unique_ptr<CudaStream>(new CudaStream(shared, *stream, {word, tail}, true));
}

Result<std::unique_ptr<CudaStream>> CudaStream::adopt(const CudaShared& shared, CuStream stream) {
  PinnedWord word;
  if (shared.has_memory_words) {
    EDDY_ASSIGN_OR_RETURN(word, shared.words.acquire());
  }
  return std::unique_ptr<CudaStream>(new CudaStream(shared, stream, {word, {}}, false));
}

CudaStream::CudaStream(const CudaShared& shared, CuStream stream, const Words& words, bool is_own)
    : shared_(shared),
      stream_(stream),
      word_(words.position),
      tail_word_(words.tail),
      is_own_(is_own),
      progress_(std::make_shared<StreamProgress>(word_.host, tail_word_.host)) {
  shared_.progress.add(progress_);
  if (tail_word_.host == nullptr) return;
  shared_.context.stream_tails().add(stream_, progress_, tail_word_.device);
}

CudaStream::~CudaStream() {
  wait_until_idle();
  shared_.streams.remove(*this);  // a poll in progress has left the stream then
  progress_->is_ended_.store(true, std::memory_order_release);
  shared_.progress.remove(progress_.get());
  const CudaContext::Use use(shared_.context);
  shared_.context.stream_tails().remove(stream_);
  shared_.context.stream_ends().tell(stream_);
  if (is_own_) shared_.context.api().stream_destroy(stream_);
  if (word_.host != nullptr) shared_.words.release(word_);
  if (tail_word_.host != nullptr) shared_.words.release(tail_word_);
}

// ---------------------------------------------------------------- issuing

bool CudaStream::launch(const Work& work) { return request({.work = work}); }

bool CudaStream::record(Event& event) {
  if (static_cast<CudaEvent&>(event).is_for_host()) return record_position(event);
  Result<CuEvent> native = shared_.events.acquire();
  if (!native.is_ok()) return false;
  auto record = std::make_shared<CudaRecord>(shared_.context, shared_.events, *native);
  static_cast<CudaEvent&>(event).set_latest(record);
  return request({.kind = Item::Kind::kRecord, .record = std::move(record)});
}

// It will be waited for, so what tells of it is on its way already; a tail tells by itself.
bool CudaStream::record_position(Event& event) {
  if (shared_.context.is_lost() || is_captured()) return false;
  const uint64_t position = progress_->requested();
  static_cast<CudaEvent&>(event).set_latest(
      std::make_shared<CudaRecord>(shared_.context, progress_, position));
  std::lock_guard lock(mutex_);
  if (has_passed(position)) return true;
  if (is_issuing_ || !kept_.empty()) {
    progress_->want_mark();
    return true;
  }
  return mark();
}

bool CudaStream::wait(Event& event) {
  auto record = static_cast<CudaEvent&>(event).latest();
  if (record == nullptr) return !shared_.context.is_lost();
  return request({.kind = Item::Kind::kWait, .record = std::move(record)});
}

bool CudaStream::hold(std::shared_ptr<Gate> gate) {
  return request({.kind = Item::Kind::kGate, .gate = std::move(gate)});
}

bool CudaStream::request(Item item) {
  using Kind = Item::Kind;
  EDDY_DCHECK((item.kind == Kind::kWork) == (item.work.run != nullptr)) << "work that does nothing";
  EDDY_DCHECK((item.kind == Kind::kRecord || item.kind == Kind::kWait) == (item.record != nullptr))
      << "a record or a wait names its record, nothing else does";
  EDDY_DCHECK((item.kind == Kind::kGate) == (item.gate != nullptr)) << "a hold names its gate";
  if (shared_.context.is_lost() || is_captured()) return false;
  bool was_watched = true;
  bool is_kept = false;
  {
    std::lock_guard lock(mutex_);
    const uint64_t position = progress_->requested_.fetch_add(1) + 1;
    if (item.kind == Item::Kind::kWork) {
      progress_->last_work_.store(position, std::memory_order_release);
    }
    was_watched = std::exchange(is_watched_, true);
    forget_launches();
    is_kept = !kept_.empty() || is_issuing_ || !can_issue(item);
    if (is_kept) {
      kept_.push_back(std::move(item));
    } else {
      is_issuing_ = true;
    }
  }
  if (!was_watched) shared_.streams.watch(*this);
  shared_.watch.tell();
  if (is_kept) return true;
  const bool is_issued = issue(item);
  std::lock_guard lock(mutex_);
  is_issuing_ = false;
  return is_issued;
}

bool CudaStream::has_room() const {
  std::lock_guard lock(mutex_);
  return kept_.empty() && has_credit();
}

// Under the mutex.
bool CudaStream::has_credit() const {
  return progress_->issued() - progress_->completed() + num_more_ < kCredit;
}

bool CudaStream::can_issue(const Item& item) const {
  if (!has_credit()) return false;
  if (item.kind == Item::Kind::kWait) return item.record->is_issued();
  if (item.kind != Item::Kind::kGate || shared_.has_memory_words) return true;
  return static_cast<const CudaGate&>(*item.gate).is_open();
}

// Outside the mutex: a Work may call anything, but only one item is issued at a time.
bool CudaStream::issue(Item& item) {
  CudaContext& context = shared_.context;
  const CudaContext::Use use(context);
  bool is_fine = true;
  const uint64_t launched = context.num_launches();
  switch (item.kind) {
    case Item::Kind::kWork:
      item.work.run(item.work.context);
      break;
    case Item::Kind::kRecord:
      is_fine = context
                    .check_order(context.api().event_record(item.record->event(), stream_),
                                 "cuEventRecord")
                    .is_ok();
      item.record->mark_issued();
      break;
    case Item::Kind::kWait:
      is_fine = context
                    .check_order(context.api().stream_wait_event(stream_, item.record->event(), 0),
                                 "cuStreamWaitEvent")
                    .is_ok();
      break;
    case Item::Kind::kGate:
      is_fine = issue_gate(item.gate);
      break;
  }
  const uint64_t issued = progress_->issued_.fetch_add(1, std::memory_order_acq_rel) + 1;
  const uint64_t launches = context.num_launches() - launched;
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(is_issuing_ && issued <= progress_->requested())
      << "position " << issued << " is issued and was not requested";
  if (item.gate != nullptr) gates_.emplace_back(issued, std::move(item.gate));
  if (item.kind == Item::Kind::kWork && launches > 1) {
    more_launches_.emplace_back(issued, launches - 1);
    num_more_ += launches - 1;
    num_more_unmarked_ += launches - 1;
  }
  if (item.kind == Item::Kind::kWork && progress_->take_tail(issued)) {
    marked_ = issued;
    num_more_unmarked_ = 0;
  }
  const bool is_last =
      !is_own_ && (item.kind == Item::Kind::kWork || item.kind == Item::Kind::kGate);
  if (is_last || issued - marked_ + num_more_unmarked_ >= kMarkEvery) is_fine &= mark();
  return is_fine;
}

// A mark that is asked for later would stand behind the gate, and tell of nothing in front of it.
bool CudaStream::issue_gate(const std::shared_ptr<Gate>& gate) {
  if (!shared_.has_memory_words) return true;  // open: can_issue has seen it
  {
    std::lock_guard lock(mutex_);
    if (!mark()) return false;
  }
  CudaContext& context = shared_.context;
  return context
      .check_order(context.api().stream_wait_value32(stream_, static_cast<CudaGate&>(*gate).word(),
                                                     1, kCuWaitValueGreaterOrEqual),
                   "cuStreamWaitValue32")
      .is_ok();
}

// ---------------------------------------------------------------- progress

// Under the mutex.
bool CudaStream::mark() {
  CudaContext& context = shared_.context;
  const uint64_t issued = progress_->issued();
  if (issued == marked_) return true;
  EDDY_DCHECK(marked_ < issued) << "marked " << marked_ << " and issued " << issued;
  if (is_captured()) {
    progress_->want_mark();
    return true;
  }
  const CudaContext::Use use(context);
  const uint64_t marked_before = std::exchange(marked_, issued);
  num_more_unmarked_ = 0;
  if (shared_.has_memory_words) {
    return context
        .check_order(
            context.api().stream_write_value32(stream_, word_.device, static_cast<uint32_t>(issued),
                                               kCuWriteValueDefault),
            "cuStreamWriteValue32")
        .is_ok();
  }
  Result<CuEvent> event = shared_.events.acquire();
  if (!event.is_ok()) return false;
  auto record = std::make_shared<CudaRecord>(context, shared_.events, *event);
  const Status status =
      context.check_order(context.api().event_record(*event, stream_), "cuEventRecord");
  // A capture that has begun meanwhile may have taken it: then it cannot be asked for.
  if (is_captured()) {
    marked_ = marked_before;
    progress_->want_mark();
    return true;
  }
  record->mark_issued();
  event_marks_.push_back({issued, std::move(record)});
  return status.is_ok();
}

void CudaStream::hear_marks() {
  while (!event_marks_.empty() && event_marks_.front().record->is_complete()) {
    EDDY_DCHECK(event_marks_.front().position > progress_->told_.load(std::memory_order_relaxed))
        << "marks are out of order";
    progress_->told_.store(event_marks_.front().position, std::memory_order_release);
    event_marks_.pop_front();
  }
  while (!gates_.empty() && (has_passed(gates_.front().first) || shared_.context.is_lost())) {
    gates_.pop_front();
  }
}

// Of Works that have ended. Under the mutex.
void CudaStream::forget_launches() {
  while (!more_launches_.empty() && has_passed(more_launches_.front().first)) {
    EDDY_DCHECK(num_more_ >= more_launches_.front().second) << "launches are forgotten twice";
    num_more_ -= more_launches_.front().second;
    more_launches_.pop_front();
  }
}

bool CudaStream::is_idle() const {
  if (shared_.context.is_lost() || has_passed(progress_->requested())) return true;
  progress_->want_mark();
  return false;
}

// Whether its owner, the application, captures it.
bool CudaStream::is_captured() const {
  if (is_own_ || !shared_.context.api().stream_is_capturing) return false;
  const CudaContext::Use use(shared_.context);
  CuCaptureStatus status = CuCaptureStatus::kNone;
  const CuResult asked = shared_.context.api().stream_is_capturing(stream_, &status);
  return asked == CuResult::kSuccess && status != CuCaptureStatus::kNone;
}

// Whether it stands before a gate that is not open yet. Under the mutex.
bool CudaStream::is_held() const {
  const auto is_closed = [](const std::shared_ptr<Gate>& gate) {
    return !static_cast<const CudaGate&>(*gate).is_open();
  };
  if (!gates_.empty() && !has_passed(gates_.front().first)) return is_closed(gates_.front().second);
  return gates_.empty() && !kept_.empty() && kept_.front().gate != nullptr &&
         is_closed(kept_.front().gate);
}

void CudaStream::wait_until_idle() {
  std::vector<EventListener*> ready;
  while (!is_idle()) {
    {
      std::lock_guard lock(mutex_);
      EDDY_CHECK(!is_held())
          << "a stream is destroyed while it waits for a run that has not ended; "
             "wait for the run's handle first";
    }
    shared_.streams.poll(ready);  // all: it may wait for what another one keeps
    shared_.polled.take_ready(ready);
    for (EventListener* listener : std::exchange(ready, {})) listener->on_complete();
    std::this_thread::yield();
  }
}

bool CudaStream::listen_or_idle(EventListener& listener) {
  std::lock_guard lock(mutex_);
  if (is_idle()) return true;
  listeners_.push_back(&listener);
  if (!is_issuing_ && kept_.empty()) mark();
  return false;
}

// Under the mutex.
void CudaStream::ask_driver() {
  if (!is_own_) return;
  const uint64_t completed = progress_->completed();
  const bool is_still = completed == seen_ && completed != progress_->issued();
  seen_ = completed;
  still_polls_ = is_still ? still_polls_ + 1 : 0;
  if (still_polls_ < kAskAfter || !shared_.context.may_ask()) return;
  still_polls_ = 0;
  const CudaContext::Use use(shared_.context);
  if (shared_.context.is_lost()) return;
  const CuResult result = shared_.context.api().stream_query(stream_);
  if (result == CuResult::kNotReady) return;
  (void)shared_.context.check_order(result, "cuStreamQuery");
}

// Under the mutex.
bool CudaStream::has_issuable() const {
  return !kept_.empty() && !is_issuing_ && !shared_.context.is_lost() && can_issue(kept_.front()) &&
         !is_captured();
}

bool CudaStream::issue_kept() {
  bool has_moved = false;
  std::unique_lock lock(mutex_);
  while (has_issuable()) {
    Item item = std::move(kept_.front());
    kept_.pop_front();
    is_issuing_ = true;
    lock.unlock();
    issue(item);
    lock.lock();
    is_issuing_ = false;
    has_moved = true;
  }
  return has_moved;
}

bool CudaStream::leave_watch() {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(is_watched_) << "a stream leaves a watch that it is not in";
  if (has_work_locked() || is_issuing_) return false;
  hear_marks();  // what it has kept for its work goes
  is_watched_ = false;
  return true;
}

void CudaStream::mark_now() {
  std::lock_guard lock(mutex_);
  hear_marks();
  if (!shared_.context.is_lost()) mark();
}

CudaStream::Polled CudaStream::poll(std::vector<EventListener*>& ready) {
  bool has_moved = false;
  std::lock_guard lock(mutex_);
  hear_marks();
  forget_launches();
  if (!shared_.context.is_lost()) ask_driver();
  if (shared_.context.is_lost()) {
    // Nothing more will be issued; Works that were kept are dropped, as the device drops its own.
    kept_.clear();
    gates_.clear();
    event_marks_.clear();
    progress_->is_ended_.store(true, std::memory_order_release);
  } else if (!is_issuing_ &&
             progress_->is_mark_wanted_.exchange(false, std::memory_order_relaxed)) {
    mark();
  }
  if (is_idle() && !listeners_.empty()) {
    ready.insert(ready.end(), listeners_.begin(), listeners_.end());
    listeners_.clear();
    has_moved = true;
  }
  return {has_moved, has_issuable()};
}

}  // namespace eddy
