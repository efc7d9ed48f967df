// Runs between the beginning and the end of a trace, which a call of their own records.
#include <memory>
#include <string>
#include <utility>

#include "runtime/api/c/run.h"

namespace eddy::c {

Refusal RunObject::start_trace() {
  if (traced_call_ != nullptr && call_.load(std::memory_order_relaxed) == traced_call_.get()) {
    return {EDDY_INVALID_STATE, "the run is traced already; run_stop_trace ends that"};
  }
  settle();
  if (traced_call_ == nullptr) {
    auto recorder = std::make_unique<TraceRecorder>();
    EDDY_C_ASSIGN(traced_call_, session_->session->prepare(recorder.get()));
    recorder_ = std::move(recorder);
  }
  recorder_->clear();
  EDDY_C_TRY(bind_to(*traced_call_));
  call_.store(traced_call_.get(), std::memory_order_release);
  return {};
}

Refusal RunObject::stop_trace(std::string& json) {
  if (traced_call_ == nullptr || call_.load(std::memory_order_relaxed) != traced_call_.get()) {
    return {EDDY_INVALID_STATE, "the run is not traced; run_start_trace begins that"};
  }
  settle();
  EDDY_C_TRY(bind_to(*plain_call_));
  json = recorder_->json();
  call_.store(plain_call_.get(), std::memory_order_release);
  return {};
}

}  // namespace eddy::c
