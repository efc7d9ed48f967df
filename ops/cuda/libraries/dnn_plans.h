// DnnPlans: what a family of operators has prepared with cuDNN for the shapes met last, and how a
// call runs: with its shape's plan, made when the shape is first met, or not at all.
//
//   plans.run(args, key,
//             [&](DnnHandle handle, Plan& plan) -> Result<bool> { … },  // false: there is no way
//             [&](DnnHandle handle, const Plan& plan) -> Status { … });
//
// False in the result: the caller's own kernel is to do it. That holds for a shape once and for all
// when either function is refused (kUnsupported) or returns that there is no way; any other status
// is the call's error, and the next run tries again.
//
// Threads: any, one at a time a stream; finding a known shape takes a lock. Cost: a lookup.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "ops/cuda/libraries/dnn_handles.h"
#include "ops/cuda/libraries/plan_cache.h"

namespace eddy {

template <typename Plan>
class DnnPlans {
  struct Entry {
    Plan plan;
    std::atomic<bool> is_usable{false};  // false: the library has no way, or has refused this one
  };

 public:
  using Key = typename PlanCache<Entry>::Key;
  DnnPlans(DnnHandles& handles, size_t max_plans) : handles_(handles), entries_(max_plans) {}

  // Makes the plan before a run needs it. A failure is left to the run.
  template <typename Describe>
  void prepare(const Key& key, const Describe& describe) {
    static_cast<void>(
        handles_.with_any([&](DnnHandle handle) { return find(handle, key, describe).status(); }));
  }

  template <typename Describe, typename Enqueue>
  Result<bool> run(const KernelArgs& args, const Key& key, const Describe& describe,
                   const Enqueue& enqueue) {
    bool is_done = false;
    EDDY_RETURN_IF_ERROR(handles_.launcher().in_context([&]() -> Status {
      EDDY_ASSIGN_OR_RETURN(const DnnHandle handle, handles_.of(args.stream));
      EDDY_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, find(handle, key, describe));
      if (!entry->is_usable) return Status::ok();
      Status status = enqueue(handle, std::as_const(entry->plan));
      is_done = status.code() != StatusCode::kUnsupported;
      if (is_done) return status;
      entry->is_usable = false;
      return Status::ok();
    }));
    return is_done;
  }

 private:
  template <typename Describe>
  Result<std::shared_ptr<Entry>> find(DnnHandle handle, const Key& key, const Describe& describe) {
    std::lock_guard lock(mutex_);
    if (std::shared_ptr<Entry> known = entries_.find(key)) return known;
    auto entry = std::make_shared<Entry>();
    const Result<bool> has_way = describe(handle, entry->plan);
    if (!has_way.is_ok() && has_way.status().code() != StatusCode::kUnsupported) {
      return has_way.status();
    }
    entry->is_usable = has_way.is_ok() && *has_way;
    entries_.add(key, entry);
    return entry;
  }

  DnnHandles& handles_;
  std::mutex mutex_;
  PlanCache<Entry> entries_;  // under the mutex
};

}  // namespace eddy
