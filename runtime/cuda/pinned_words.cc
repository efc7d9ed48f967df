#include "runtime/cuda/pinned_words.h"

#include <atomic>

#include "graph/base/check.h"

namespace eddy {

PinnedWords::~PinnedWords() {
  EDDY_CHECK(free_.size() == pages_.size() * (kPageBytes / kWordBytes))
      << "a pinned word is still in use when its device goes";
  const CudaContext::Use use(context_);
  for (void* page : pages_) context_.api().host_free(page);
}

Status PinnedWords::add_page() {
  const CudaContext::Use use(context_);
  const CudaApi& api = context_.api();
  void* page = nullptr;
  EDDY_RETURN_IF_ERROR(context_.check(
      api.host_allocate(&page, kPageBytes, kCuHostAllocPortable | kCuHostAllocMapped),
      "cuMemHostAlloc"));
  CuDevicePointer device = 0;
  Status status =
      context_.check(api.host_device_pointer(&device, page, 0), "cuMemHostGetDevicePointer");
  if (!status.is_ok()) {
    api.host_free(page);
    return status;
  }
  pages_.push_back(page);
  for (size_t at = 0; at < kPageBytes; at += kWordBytes) {
    free_.push_back({reinterpret_cast<uint32_t*>(static_cast<char*>(page) + at), device + at});
  }
  return Status::ok();
}

Result<PinnedWord> PinnedWords::acquire() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) EDDY_RETURN_IF_ERROR(add_page());
  const PinnedWord word = free_.back();
  free_.pop_back();
  std::atomic_ref<uint32_t>(*word.host).store(0, std::memory_order_release);
  return word;
}

void PinnedWords::release(const PinnedWord& word) {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(word.host != nullptr && free_.size() < pages_.size() * (kPageBytes / kWordBytes))
      << "more words come back than were given";
  free_.push_back(word);
}

}  // namespace eddy
