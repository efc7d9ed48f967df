// CudaStreamList: the streams of one device, polled together while they have work.
//
//   made ──▶ idle ──watch(): work is requested──▶ watched ──poll(): all of it has ended──▶ idle
//
// Polling takes note of ends under the list's lock. Works that were kept for credit (or behind
// a record) are issued outside of it: a Work may call anything, also make a stream of this device
// or end another one. remove() waits until no thread issues for the stream any more.
//
// Contract: a stream is watched before sleepers are woken for its work (work_watch.h), and
// removed by its own destructor, never by a Work of its own, nor by a listener that is called
// inside one. Threads: any. Cost: a poll takes one lock and each watched stream's; streams without
// work cost nothing.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

namespace eddy {

class EventListener;

// A stream of the list.
class WatchedStream {
 public:
  struct Polled {
    bool has_moved;
    bool has_issuable;  // issue_kept() would move something
  };
  // Marks where that is wanted, and takes out the listeners when the stream is idle.
  virtual Polled poll(std::vector<EventListener*>& ready) = 0;
  // Hands on what was kept, as far as that may be. True when something moved.
  virtual bool issue_kept() = 0;
  // True where all of its work is known to have ended: then it is watched no more.
  virtual bool leave_watch() = 0;
  // Marks what has been issued and takes note of earlier marks, even while a Work is issued.
  virtual void mark_now() = 0;
  // Whether it has work that is not known to have ended; then the next poll() sees to it.
  virtual bool has_work() const = 0;

 protected:
  ~WatchedStream() = default;
};

class CudaStreamList {
 public:
  // It has work; it is not watched.
  void watch(WatchedStream& stream);
  // It ends, idle.
  void remove(WatchedStream& stream);
  size_t num_watched();
  // Polls each stream and hands on what each keeps. True when something moved.
  bool poll(std::vector<EventListener*>& ready);
  // Marks each stream where it stands, so that its position moves on: for a thread that waits for
  // that while it cannot poll, because it is in a Work.
  void mark();
  bool has_work();

 private:
  struct Entry {
    WatchedStream* stream;
    int num_issuers = 0;  // threads that hand on what it keeps
  };
  Entry* find_or_null(const WatchedStream* stream);
  bool issue_kept(WatchedStream* stream);

  std::mutex mutex_;
  std::condition_variable has_left_;  // an issuer has
  std::vector<Entry> entries_;        // under the mutex; those that are watched
};

}  // namespace eddy
