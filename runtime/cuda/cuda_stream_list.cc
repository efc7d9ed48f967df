#include "runtime/cuda/cuda_stream_list.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

void CudaStreamList::watch(WatchedStream& stream) {
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(find_or_null(&stream) == nullptr) << "a stream is watched twice";
  entries_.push_back({&stream});
}

void CudaStreamList::remove(WatchedStream& stream) {
  std::unique_lock lock(mutex_);
  has_left_.wait(lock, [&] {
    const Entry* const entry = find_or_null(&stream);
    return entry == nullptr || entry->num_issuers == 0;
  });
  std::erase_if(entries_, [&](const Entry& entry) { return entry.stream == &stream; });
}

size_t CudaStreamList::num_watched() {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

bool CudaStreamList::poll(std::vector<EventListener*>& ready) {
  bool has_moved = false;
  std::vector<WatchedStream*> keeping;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) {
      const WatchedStream::Polled polled = entry.stream->poll(ready);
      has_moved |= polled.has_moved;
      if (polled.has_issuable) keeping.push_back(entry.stream);
      return entry.num_issuers == 0 && entry.stream->leave_watch();
    });
  }
  for (WatchedStream* stream : keeping) has_moved |= issue_kept(stream);
  return has_moved;
}

void CudaStreamList::mark() {
  std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) entry.stream->mark_now();
}

bool CudaStreamList::has_work() {
  std::lock_guard lock(mutex_);
  bool has_work = false;  // each one is asked: that makes it tell when it is idle
  for (const Entry& entry : entries_) has_work |= entry.stream->has_work();
  return has_work;
}

CudaStreamList::Entry* CudaStreamList::find_or_null(const WatchedStream* stream) {
  const auto found = std::ranges::find(entries_, stream, &Entry::stream);
  return found == entries_.end() ? nullptr : &*found;
}

// It may have ended since it was seen; another one in its place is asked the same.
bool CudaStreamList::issue_kept(WatchedStream* stream) {
  {
    std::lock_guard lock(mutex_);
    Entry* const entry = find_or_null(stream);
    if (entry == nullptr) return false;
    ++entry->num_issuers;
  }
  const bool has_moved = stream->issue_kept();
  std::lock_guard lock(mutex_);
  Entry* const entry = find_or_null(stream);
  EDDY_CHECK(entry != nullptr && entry->num_issuers > 0) << "a stream has gone while it was issued";
  --entry->num_issuers;
  has_left_.notify_all();
  return has_moved;
}

}  // namespace eddy
