#include "ops/cuda/libraries/dnn_handles.h"

#include <utility>

namespace eddy {

Result<std::unique_ptr<DnnHandles>> DnnHandles::create(std::shared_ptr<const CudnnApi> api,
                                                       CudaLauncher& launcher) {
  std::unique_ptr<DnnHandles> made(new DnnHandles(std::move(api), launcher));
  EDDY_RETURN_IF_ERROR(launcher.in_context([&]() -> Status {
    EDDY_RETURN_IF_ERROR(made->of(nullptr).status());
    made->end_stream(nullptr);  // the first stream takes it
    return Status::ok();
  }));
  launcher.on_stream_end(made.get(),
                         [owner = made.get()](NativeStream stream) { owner->end_stream(stream); });
  return made;
}

DnnHandles::~DnnHandles() {
  launcher_.forget_streams(this);
  const Status status = launcher_.in_context([&] {
    for (const auto& [stream, handle] : handles_) give_back(handle);
    return Status::ok();
  });
  static_cast<void>(status);  // those of a lost device are of no use to anyone
}

void DnnHandles::prepare_recordings() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(prepares_recordings_, true)) return;
  }
  // Whatever fails here is reported by the run that needs it.
  launcher_.on_recording_stream(this, [this](NativeStream stream) { (void)of(stream); });
}

Status DnnHandles::check(int status, const char* call) const {
  if (status == kDnnSuccess) return Status::ok();
  const char* const text = api_->error_string(status);
  std::string answer =
      std::string(call) + " answered " + (text != nullptr ? text : std::to_string(status));
  return is_dnn_refusal(status) ? unsupported(std::move(answer)) : run_failed(std::move(answer));
}

Result<DnnHandle> DnnHandles::take() {
  return api_->handles->take(
      launcher_, [&](DnnHandle& made) { return check(api_->create(&made), "cudnnCreate"); });
}

Status DnnHandles::with_any(const std::function<Status(DnnHandle)>& call) {
  return launcher_.in_context([&]() -> Status {
    EDDY_ASSIGN_OR_RETURN(const DnnHandle handle, take());
    Status status = call(handle);
    api_->handles->give_back(launcher_, handle);
    return status;
  });
}

Result<DnnHandle> DnnHandles::of(NativeStream stream) {
  {
    std::lock_guard lock(mutex_);
    const auto known = handles_.find(stream);
    if (known != handles_.end()) return known->second;
  }
  // Not under the mutex: to make one may wait for a recording, which may ask for its own.
  EDDY_ASSIGN_OR_RETURN(const DnnHandle handle, take());
  // Kept only with its stream: the next run would enqueue on another one.
  Status status = check(api_->set_stream(handle, stream), "cudnnSetStream");
  if (!status.is_ok()) {
    api_->handles->give_back(launcher_, handle);
    return status;
  }
  std::lock_guard lock(mutex_);
  handles_.emplace(stream, handle);
  return handle;
}

// The library may look at a handle's stream when it gets another one, so one that keeps a stream
// that is gone is left alone.
void DnnHandles::give_back(DnnHandle handle) const {
  if (api_->set_stream(handle, nullptr) != kDnnSuccess) return;
  api_->handles->give_back(launcher_, handle);
}

void DnnHandles::end_stream(NativeStream stream) {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find(stream);
  if (known == handles_.end()) return;
  give_back(known->second);
  handles_.erase(known);
}

void DnnHandles::note_refusal(std::string refusal) {
  std::lock_guard lock(mutex_);
  if (refusals_.size() < kMostRefusals) refusals_.push_back(std::move(refusal));
}

std::vector<std::string> DnnHandles::refusals() const {
  std::lock_guard lock(mutex_);
  return refusals_;
}

size_t DnnHandles::num_handles() const {
  std::lock_guard lock(mutex_);
  return handles_.size() + api_->handles->num_free(launcher_);
}

}  // namespace eddy
