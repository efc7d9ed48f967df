// FaultPlan: which calls of a run fail, and how many there were to fail.
//
// Every place that may fail counts itself; the k-th of its kind fails when the plan has it so. A
// sweep runs with k = 1, 2, … until nothing fires any more; two faults make a pair.
//
// Threads: any. A device may still be asking while a plan is armed anew (polling goes on after a
// run has ended): such a question counts for the one plan or the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

enum class FaultKind : uint8_t {
  kAllocation,  // of tensors, scratch and stacked rows
  kCreateStream,
  kCreateEvent,
  kCreateGate,
  kEnqueue,     // a stream refuses work: the device is lost from then on
  kRecord,      // of an event, by a stream or a strand; likewise
  kWait,        // likewise
  kKillLane,    // a strand dies in the middle and its run with it; a stream takes its device along
  kLoseDevice,  // at a tick
  // Not the device's own: its driver counts these.
  kKernel,
  kPredicate,
  kHostFunction,
  kCallback,
  kStack,     // the scheduler has k for tasks and no more
  kCancel,    // at a tick
  kDeadline,  // at a tick
};
inline constexpr size_t kNumFaultKinds = 16;
static_assert(static_cast<size_t>(FaultKind::kDeadline) + 1 == kNumFaultKinds, "all are counted");
// "allocation", "create-stream", …
std::string_view fault_kind_name(FaultKind kind);

struct Fault {
  FaultKind kind;
  uint64_t kth;  // from 1
};

class FaultPlan {
 public:
  // Starts counting anew, with these faults only.
  void arm(std::vector<Fault> faults);
  bool should_fail(FaultKind kind);

  uint64_t count(FaultKind kind) const {
    EDDY_CHECK(static_cast<size_t>(kind) < kNumFaultKinds) << "no such kind of fault";
    return counts_[static_cast<size_t>(kind)].load();
  }
  uint64_t num_fired() const { return num_fired_.load(); }
  // In the order in which they have.
  std::vector<FaultKind> fired() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Fault> faults_;     // under the mutex
  std::vector<FaultKind> fired_;  // likewise
  std::array<std::atomic<uint64_t>, kNumFaultKinds> counts_{};
  std::atomic<uint64_t> num_fired_{0};
};

}  // namespace eddy
