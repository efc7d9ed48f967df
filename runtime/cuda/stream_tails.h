// StreamTails: graphs that tell by themselves that they have run. Their last kernel writes 1 into a
// word of the stream that they are launched on, so a wait for the stream needs no mark
// behind the graph (cuda_stream.h): a decision of the host's costs one call of the driver.
//
//   a stream     add(stream, progress, word) … remove(stream)
//   a capture    word_or_null(stream): where its last kernel writes; such a graph is launched on
//                that stream alone
//   its launch   arm(stream), just before; disarm(stream) where it is refused
//   the stream   StreamProgress::take_tail(position), behind the Work that launched
//
// open_capture: which capture a native stream is just the first of, so that a copy that is enqueued
// there may be a part of the graph's last kernel, too.
//
// Threads: any; one stream's calls come from one thread at a time. Cost: a lock.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/cuda/cuda_types.h"
#include "runtime/cuda/stream_progress.h"
#include "runtime/device/graph_capture.h"

namespace eddy {

class StreamTails {
 public:
  void add(CuStream stream, std::shared_ptr<StreamProgress> progress, CuDevicePointer word) {
    std::lock_guard lock(mutex_);
    streams_[stream] = {std::move(progress), word};
  }
  void remove(CuStream stream) {
    std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }
  // As the device sees it; 0: the stream has none.
  CuDevicePointer word_or_null(CuStream stream) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : found->second.word;
  }
  void arm(CuStream stream) {
    if (const auto progress = progress_or_null(stream)) progress->arm_tail();
  }
  void disarm(CuStream stream) {
    if (const auto progress = progress_or_null(stream)) progress->disarm_tail();
  }

  // Null: the capture is over.
  void set_open_capture(CuStream stream, GraphCapture* capture_or_null) {
    std::lock_guard lock(mutex_);
    if (capture_or_null == nullptr) {
      captures_.erase(stream);
    } else {
      captures_[stream] = capture_or_null;
    }
  }
  GraphCapture* open_capture_or_null(CuStream stream) const {
    std::lock_guard lock(mutex_);
    const auto found = captures_.find(stream);
    return found == captures_.end() ? nullptr : found->second;
  }

 private:
  struct Entry {
    std::shared_ptr<StreamProgress> progress;
    CuDevicePointer word = 0;
  };

  std::shared_ptr<StreamProgress> progress_or_null(CuStream stream) const {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? nullptr : found->second.progress;
  }

  mutable std::mutex mutex_;
  std::map<CuStream, Entry> streams_;           // under the mutex
  std::map<CuStream, GraphCapture*> captures_;  // under the mutex
};

}  // namespace eddy
