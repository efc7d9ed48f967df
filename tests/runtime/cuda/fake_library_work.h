// FakeLibraryWork: what a fake of a library enqueues, run in the order of a fake driver's stream: a
// kernel of the driver's own stands for it, without a guard (launch_guards.h), like a library's
// kernel.
//
// Threads: any. Outlives what is enqueued; the driver outlives it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {

class FakeLibraryWork {
 public:
  using Enqueue = std::function<void(void* stream, std::vector<const void*> addresses,
                                     std::function<void()> work)>;

  explicit FakeLibraryWork(FakeCuda& cuda) : cuda_(cuda) {
    cuda.define_kernel(kWork, sizeof(Work), [this](const FakeKernelCall& call) {
      work_at(call.params_as<Work>().index)();
    });
  }
  // The enqueue function of a fake library.
  Enqueue enqueue() {
    return [this](void* stream, const std::vector<const void*>& addresses,
                  std::function<void()> work) { launch(stream, addresses, std::move(work)); };
  }

 private:
  static constexpr const char* kWork = "library";
  struct Work {
    uint64_t index;
    uint64_t addresses[6];
  };

  const std::function<void()>& work_at(uint64_t index) {
    std::lock_guard lock(mutex_);
    return works_[index];
  }
  uint64_t add(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    return works_.size() - 1;
  }
  void launch(void* stream, const std::vector<const void*>& addresses, std::function<void()> work) {
    Work params{add(std::move(work)), {}};
    for (size_t i = 0; i < addresses.size(); ++i) {
      params.addresses[i] = reinterpret_cast<uint64_t>(addresses[i]);
    }
    void* values[] = {&params};
    ASSERT_EQ(cuda_.api()->launch_kernel(cuda_.library_function(kWork), 1, 1, 1, 1, 1, 1, 0,
                                         static_cast<CuStream>(stream), values, nullptr),
              CuResult::kSuccess);
  }

  FakeCuda& cuda_;
  std::mutex mutex_;
  std::deque<std::function<void()>> works_;  // under the mutex; each stays where it is
};

}  // namespace eddy::testing
