// Claim: transfers that fail refer to nothing: what they had taken to pass on, a caller's memory
// among it, is let go.
#include "runtime/execute/values/transfer.h"

#include <gtest/gtest.h>

#include "runtime/cpu/host_allocator.h"
#include "runtime/execute/values/output_memory.h"

namespace eddy {
namespace {

const ValueType kCount = tensor_type(ElementType::kInt64, {});

// A parallel assignment of two: a value in the caller's memory, and a counter without memory for
// its copy.
TEST(Transfers, ThatFindNoMemoryHoldNoneOfTheCallers) {
  HostAllocator full(1);
  int64_t callers = 7;
  int64_t counter = 3;
  OutputMemory memory;
  memory.bind(&callers, sizeof(callers));
  Slot made, count, first, second;
  made.set_tensor(ElementType::kInt64, {});
  ASSERT_TRUE(memory.give_to(made.buffer));
  made.view.data = made.buffer.data();
  count.borrow({&counter, nullptr, 0, ElementType::kInt64});
  count.is_volatile = true;
  Transfers transfers;
  transfers.add(first, made, /*is_temporary=*/false, /*is_fixed=*/true, kCount);
  transfers.add(second, count, /*is_temporary=*/false, /*is_fixed=*/true, kCount);
  transfers.finish();
  EXPECT_EQ(transfers.run(full).code(), StatusCode::kResourceExhausted);
  memory.take_from(made);
  EXPECT_FALSE(memory.is_held());
  memory.bind(nullptr, 0);  // ends the process where it is
}

}  // namespace
}  // namespace eddy
