#include "ops/cuda/libraries/dnn_handles.h"

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
  launcher_.forget_stream_ends(this);
  const Status status = launcher_.in_context([&] {
    for (const auto& [stream, handle] : handles_) api_->destroy(handle);
    for (DnnHandle handle : free_handles_) api_->destroy(handle);
    return Status::ok();
  });
  static_cast<void>(status);  // of a lost device nothing is left to give back
}

Status DnnHandles::check(int status, const char* call) const {
  if (status == kDnnSuccess) return Status::ok();
  const char* const text = api_->error_string(status);
  std::string answer =
      std::string(call) + " answered " + (text != nullptr ? text : std::to_string(status));
  return is_dnn_refusal(status) ? unsupported(std::move(answer)) : run_failed(std::move(answer));
}

Result<DnnHandle> DnnHandles::of(NativeStream stream) {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find(stream);
  if (known != handles_.end()) return known->second;
  EDDY_ASSIGN_OR_RETURN(const DnnHandle handle, take_handle());
  // Kept only with its stream: the next run would enqueue on another one.
  Status status = check(api_->set_stream(handle, stream), "cudnnSetStream");
  if (!status.is_ok()) {
    api_->destroy(handle);
    return status;
  }
  handles_.emplace(stream, handle);
  return handle;
}

// Under the mutex.
Result<DnnHandle> DnnHandles::take_handle() {
  if (!free_handles_.empty()) {
    const DnnHandle handle = free_handles_.back();
    free_handles_.pop_back();
    return handle;
  }
  DnnHandle handle = nullptr;
  EDDY_RETURN_IF_ERROR(check(api_->create(&handle), "cudnnCreate"));
  return handle;
}

// Under the mutex. The library may look at a handle's stream when it gets another one, so none of
// these has one that is gone.
void DnnHandles::free_handle(DnnHandle handle) {
  if (api_->set_stream(handle, nullptr) == kDnnSuccess) {
    free_handles_.push_back(handle);
  } else {
    api_->destroy(handle);
  }
}

void DnnHandles::end_stream(NativeStream stream) {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find(stream);
  if (known == handles_.end()) return;
  free_handle(known->second);
  handles_.erase(known);
}

size_t DnnHandles::num_handles() const {
  std::lock_guard lock(mutex_);
  return handles_.size() + free_handles_.size();
}

}  // namespace eddy
