#include "runtime/api/python/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace eddy::python {
namespace {

// What the handler touches. Lock-free, so that a handler may.
std::atomic<int> wake_file{-1};
std::atomic<bool> is_interrupted{false};
std::atomic<void (*)(int)> next_handler{nullptr};
std::atomic<pthread_t> main_thread{};

void on_signal(int number) {
  const int saved = errno;
  is_interrupted.store(true);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_file.load(), &one, sizeof(one));
  if (const auto next = next_handler.load()) next(number);
  errno = saved;
}

class Watcher {
 public:
  // Never destroyed: its thread waits until the process ends.
  static Watcher* get_or_null() {
    static Watcher* const watcher = make_or_null();
    return watcher;
  }

  // `outer`: the run that is watched already, where a handler in Python runs a session.
  bool begin(eddy_run run, eddy_run& outer) {
    if (!install()) return false;
    is_interrupted.store(false);
    const std::lock_guard lock(mutex_);
    outer = std::exchange(run_, run);
    return true;
  }
  void end(eddy_run outer) {
    {
      const std::lock_guard lock(mutex_);
      run_ = outer;
    }
    if (is_interrupted.load()) ended_.notify_all();
  }

 private:
  static Watcher* make_or_null() {
    const int file = eventfd(0, EFD_CLOEXEC);
    if (file < 0) return nullptr;
    wake_file.store(file);
    auto* const made = new Watcher;
    std::thread([made, file] { made->watch(file); }).detach();
    return made;
  }

  // Before Python's handler, or where there is none of its own: not at all.
  static bool install() {
    struct sigaction now = {};
    if (sigaction(SIGINT, nullptr, &now) != 0) return false;
    if (now.sa_handler == on_signal) return true;
    const bool is_plain = (now.sa_flags & SA_SIGINFO) == 0;
    if (!is_plain || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return false;
    next_handler.store(now.sa_handler);
    now.sa_handler = on_signal;
    return sigaction(SIGINT, &now, nullptr) == 0;
  }

  // Cancels until the run has ended: it may not have begun when the signal comes.
  void watch(int file) {
    for (;;) {
      uint64_t count = 0;
      if (read(file, &count, sizeof(count)) != sizeof(count)) continue;
      std::unique_lock lock(mutex_);
      while (run_ != nullptr && is_interrupted.load()) {
        api().run_cancel(run_, nullptr);
        ended_.wait_for(lock, std::chrono::milliseconds(5));
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  eddy_run run_ = nullptr;
};

bool begin(eddy_run run, eddy_run& outer) {
  if (!pthread_equal(pthread_self(), main_thread.load())) return false;
  Watcher* const watcher = Watcher::get_or_null();
  return watcher != nullptr && watcher->begin(run, outer);
}

}  // namespace

Interruptible::Interruptible(eddy_run run) : is_watched_(begin(run, outer_)) {}
Interruptible::~Interruptible() {
  if (is_watched_) Watcher::get_or_null()->end(outer_);
}
bool Interruptible::was_interrupted() const { return is_watched_ && is_interrupted.load(); }

void set_main_thread() { main_thread.store(pthread_self()); }

}  // namespace eddy::python
