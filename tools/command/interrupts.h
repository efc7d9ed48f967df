// Interrupts: Ctrl-C and Ctrl-\ while the command works.
//
// A thread of its own waits for the signals, so nothing happens inside a signal handler:
//   Ctrl-C (SIGINT), SIGTERM  cancels the session's runs, which drain and end with kCancelled;
//                             a second one ends the process at once. While no session is attached
//                             (loading, planning) there is nothing to drain: `abandon` is called,
//                             unless a Patience object is alive.
//   Ctrl-\ (SIGQUIT)          prints where each run stands to standard error, and goes on; a
//                             launcher has its ranks say it.
//
// Make it first in main, before any other thread: it blocks the signals for all of them.
// Threads: attach from one thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/api/session.h"

namespace eddy {

class Interrupts {
 public:
  // `abandon` runs on a thread of its own, as its words may have to wait for a reader, and must not
  // return.
  explicit Interrupts(std::function<void()> abandon);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Signals go to this session while the Attachment lives.
  class Attachment {
   public:
    Attachment(Interrupts& interrupts, Session& session);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

   private:
    Interrupts& interrupts_;
  };

  // While it lives its owner polls is_interrupted() often, and ends in its own way: a first signal
  // is only noted.
  class Patience {
   public:
    explicit Patience(Interrupts& interrupts) : interrupts_(interrupts) {
      interrupts_.is_patient_.store(true);
    }
    ~Patience() { interrupts_.is_patient_.store(false); }
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

   private:
    Interrupts& interrupts_;
  };

  // The same to the end of the process: for one of several ranks, which leave together or are ended
  // by their launcher.
  void be_patient(uint32_t rank) {
    rank_.store(rank);
    is_patient_.store(true);
  }
  // From now on Ctrl-\ is only noted, for take_question().
  void note_questions() { notes_questions_.store(true); }
  bool take_question() { return has_question_.exchange(false); }

  bool is_interrupted() const { return is_interrupted_.load(); }

 private:
  void watch();
  void interrupt();
  void describe();
  bool cancel_attached();

  const std::function<void()> abandon_;
  std::atomic<bool> is_interrupted_{false};
  std::atomic<bool> is_patient_{false};
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> is_abandoned_{false};
  std::atomic<bool> notes_questions_{false};
  std::atomic<bool> has_question_{false};
  std::atomic<int64_t> rank_{-1};  // one of several
  std::mutex mutex_;               // of session_
  Session* session_ = nullptr;
  std::thread thread_;
};

}  // namespace eddy
