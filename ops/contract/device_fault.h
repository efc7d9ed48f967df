// DeviceFault: where a kernel that runs on a device records the fault of the values it met.
//
// The host enqueues such a kernel before those values are there, so args.fail() comes too early.
// The kernel gets the address of a record that both sides can read, goes on with zeros instead of
// reading out of bounds, and the executor looks at the record once the run's streams have passed.
//
// The first fault of each node in a run stays. Memory order: the device writes `kind` last, behind
// a fence; the host reads after it has seen the stream's completion.
#pragma once

#include <cstdint>

namespace eddy {

struct DeviceFault {
  enum Kind : int32_t {
    kNone = 0,
    kIndex = 1,     // `value` is no index of an axis of size `limit`
    kLength = 2,    // `value` is no length of a sequence of `limit` steps
    kWriting = 3,   // between the two
    kDivision = 4,  // integer division by zero at element `value` of input 1; `axis` 1: of Mod
  };
  int32_t kind = kNone;
  int32_t axis = 0;
  int64_t value = 0;
  int64_t limit = 0;
};
static_assert(sizeof(DeviceFault) == 24, "kernels on the device write it, the host reads it");

}  // namespace eddy
