// FileWatch: one thread that waits until files can be read, for calls that are answered by one
// (ops/contract/pending_call.h).
//
// Each wait is for one file, once; a file may have one wait at a time. The thread is made with the
// first wait. `ready` is called on it, and must be quick; what it throws ends the process.
//
// Ownership: files are the callers', and stay open until their wait is over or removed.
// Errors: kResourceExhausted where the system refuses the thread or its files; kInvalidArgument for
// what epoll cannot wait for (a regular file is always ready). Threads: any. Cost: a system call to
// add, one to remove.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "graph/base/status.h"

namespace eddy {

class FileWatch {
 public:
  FileWatch() = default;
  // No wait is left by then.
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  Result<uint64_t> add(int file, std::function<void()> ready);
  // True: `ready` has not been called, and will not be.
  bool remove(uint64_t wait);

 private:
  struct Wait {
    int file;
    std::function<void()> ready;
  };

  Status start();  // under the mutex
  void loop();

  std::mutex mutex_;
  // Under the mutex.
  std::map<uint64_t, Wait> waits_;
  uint64_t last_wait_ = 0;  // 0 wakes the thread for its end
  int epoll_ = -1;
  int end_ = -1;
  std::thread thread_;
};

}  // namespace eddy
