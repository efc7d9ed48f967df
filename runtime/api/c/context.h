// ContextObject and LibraryObject: what graphs and sessions of the C interface share.
//
// Internal to runtime/api/c. Ownership: libraries keep their context, graphs and sessions their
// library. Threads: any; a library takes additions until a graph or session is made with it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/api/c/handles.h"
#include "runtime/api/c/user_code.h"
#include "runtime/api/library.h"
#include "runtime/api/shared_threads.h"
#include "runtime/cpu/host_allocator.h"

namespace eddy::c {

class ContextObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kContext;

  explicit ContextObject(int num_threads) : threads(std::make_shared<SharedThreads>(num_threads)) {}

  // Of sessions that are made from now on; null: the system.
  void set_memory(std::shared_ptr<HostMemory> memory_or_null) {
    const std::lock_guard lock(mutex_);
    memory_or_null_.swap(memory_or_null);
  }
  std::shared_ptr<HostMemory> memory_or_null() const {
    const std::lock_guard lock(mutex_);
    return memory_or_null_;
  }

  void set_log(eddy_log log, void* user) {
    const std::lock_guard lock(mutex_);
    log_ = log;
    user_ = user;
  }
  void log(std::string_view line) const {
    std::unique_lock lock(mutex_);
    const eddy_log log = log_;
    void* const user = user_;
    lock.unlock();
    if (log != nullptr) call_and_forget([&] { log(user, std::string(line).c_str()); });
  }

  const std::shared_ptr<SharedThreads> threads;

 private:
  mutable std::mutex mutex_;
  eddy_log log_ = nullptr;  // under the mutex, as is what it is called with
  void* user_ = nullptr;
  std::shared_ptr<HostMemory> memory_or_null_;  // under the mutex
};

struct LibraryObject : Object {
  static constexpr Kind kKind = Kind::kLibrary;

  explicit LibraryObject(std::shared_ptr<ContextObject> c) : context(std::move(c)) {}

  // No more is added from now on.
  Library& use() {
    is_used.store(true, std::memory_order_relaxed);
    return library;
  }
  Refusal check_open() const {
    if (!is_used.load(std::memory_order_relaxed)) return {};
    return {EDDY_INVALID_STATE, "a graph or session was made with this library; add to it before"};
  }

  const std::shared_ptr<ContextObject> context;
  Library library;
  std::vector<KernelEntry> accelerator_kernels;  // of the caller's operators
  std::atomic<bool> is_used{false};
};

}  // namespace eddy::c
