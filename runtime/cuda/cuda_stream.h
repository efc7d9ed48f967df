// CudaStream and CudaGate: in-order queues of a GPU.
//
// launch() calls the Work at once, on the calling thread: it enqueues kernels on native(). Nothing
// here blocks: a stream with kCredit positions in flight, or as many launches, keeps what comes
// next in a queue of its own, and the device's poll() hands it on as the device catches up (a full
// driver queue would freeze the thread that issues). What a Work launches is counted while it is
// called, with what other threads launch meanwhile: too much, if anything. The same queue holds
// whatever stands behind a record that another stream still keeps, and behind a closed gate where
// streams cannot wait for words.
//
// Progress: now and then, and when the stream was asked whether it is idle, poll() or the
// issuer enqueues a mark: a write of the position into the stream's word. Without memory words a
// mark is an event, and poll() asks the driver for it. Behind a graph that tells by itself
// (stream_tails.h) there is none. A device that faults writes no word any
// more: of a stream that does not move, poll() asks the driver now and then. A stream of the
// application's is marked behind each Work and gate, and never asked after: should it be captured
// when its contract forbids that, the capture has nothing of ours in it, commands are refused and
// what was kept waits for its end.
//
// Errors: any refusal by the driver loses the device (without a record or a wait the order is
// gone); commands then return false and the stream is idle.
// Threads: one thread at a time issues; poll() from another one is fine.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/cuda_event.h"
#include "runtime/cuda/cuda_stream_list.h"
#include "runtime/cuda/pinned_words.h"
#include "runtime/cuda/stream_progress.h"
#include "runtime/cuda/work_watch.h"

namespace eddy {

class CudaGate : public Gate {
 public:
  CudaGate(PinnedWords& words, const PinnedWord& word) : words_(words), word_(word) {}
  ~CudaGate() override {
    open();  // of a lost device: what still waits for it must end
    words_.release(word_);
  }
  // The device sees it: streams wait for the word to be 1.
  void open() override {
    std::atomic_ref<uint32_t>(*word_.host).store(1, std::memory_order_release);
  }
  bool is_open() const {
    return std::atomic_ref<uint32_t>(*word_.host).load(std::memory_order_acquire) != 0;
  }
  CuDevicePointer word() const { return word_.device; }

 private:
  PinnedWords& words_;
  const PinnedWord word_;
};

// What the streams of one device share; outlives them.
struct CudaShared {
  CudaContext& context;
  PinnedWords& words;
  CudaEventPool& events;
  CudaPollList& polled;
  ProgressList& progress;
  CudaStreamList& streams;
  WorkWatch& watch;
  bool has_memory_words = false;
};

class CudaStream : public Stream, public WatchedStream {
 public:
  static constexpr uint64_t kCredit = 512;    // positions in flight; the driver blocks near 1000
  static constexpr uint64_t kMarkEvery = 64;  // positions
  static constexpr int kAskAfter = 64;        // polls of a stream that does not move
  static_assert(kMarkEvery < kCredit, "a stream out of credit has a mark on its way");

  static Result<std::unique_ptr<CudaStream>> create(const CudaShared& shared);
  // On a stream that the application made and destroys, later.
  static Result<std::unique_ptr<CudaStream>> adopt(const CudaShared& shared, CuStream stream);
  // Waits until the stream is idle, or its device lost. While it stands before a closed gate it
  // may never be: a programmer error.
  ~CudaStream() override;

  bool launch(const Work& work) override;
  bool has_room() const override;
  bool record(Event& event) override;
  bool wait(Event& event) override;
  bool hold(std::shared_ptr<Gate> gate) override;
  bool is_idle() const override;
  bool listen_or_idle(EventListener& listener) override;
  void* native() const override { return stream_; }

  // For CudaStreamList.
  Polled poll(std::vector<EventListener*>& ready) override;
  bool issue_kept() override;
  bool leave_watch() override;
  void mark_now() override;
  bool has_work() const override {
    std::lock_guard lock(mutex_);
    return has_work_locked();
  }

 private:
  struct Item {
    enum class Kind { kWork, kRecord, kWait, kGate } kind = Kind::kWork;
    Work work = {};
    std::shared_ptr<CudaRecord> record = nullptr;
    std::shared_ptr<Gate> gate = nullptr;
  };
  struct EventMark {
    uint64_t position;
    std::shared_ptr<CudaRecord> record;
  };

  struct Words {
    PinnedWord position, tail;  // or none
  };

  CudaStream(const CudaShared& shared, CuStream stream, const Words& words, bool is_own);
  bool record_position(Event& event);
  bool request(Item item);
  bool has_credit() const;
  bool can_issue(const Item& item) const;
  bool has_issuable() const;
  bool issue(Item& item);
  bool issue_gate(const std::shared_ptr<Gate>& gate);
  bool mark();
  void hear_marks();
  void forget_launches();
  void ask_driver();
  bool is_held() const;
  bool is_captured() const;
  void wait_until_idle();
  bool has_work_locked() const { return !listeners_.empty() || !is_idle(); }
  bool has_passed(uint64_t position) const { return progress_->has_completed(position); }

  const CudaShared shared_;
  const CuStream stream_;
  const PinnedWord word_;
  const PinnedWord tail_word_;  // a stream of the application's has none
  const bool is_own_;           // else the driver's stream is the application's
  const std::shared_ptr<StreamProgress> progress_;
  mutable std::mutex mutex_;
  // Under the mutex.
  std::deque<Item> kept_;
  bool is_issuing_ = false;  // a Work of this stream runs right now, outside the mutex
  bool is_watched_ = false;  // by CudaStreamList, or about to be
  uint64_t marked_ = 0;
  // Of Works in flight that launch more than once: their position, and how many more.
  std::deque<std::pair<uint64_t, uint64_t>> more_launches_;
  uint64_t num_more_ = 0;           // all of these
  uint64_t num_more_unmarked_ = 0;  // since the last mark
  uint64_t seen_ = 0;               // completed, when last polled
  int still_polls_ = 0;             // since it last moved
  std::deque<EventMark> event_marks_;
  std::deque<std::pair<uint64_t, std::shared_ptr<Gate>>> gates_;  // until their position
  std::vector<EventListener*> listeners_;
};

}  // namespace eddy
