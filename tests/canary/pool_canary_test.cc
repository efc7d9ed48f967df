// Claim: a read of memory that has gone back to the pool of tensors ends the process under
// AddressSanitizer, although the system never got it back.
#include <gtest/gtest.h>

#include "graph/base/sanitizers.h"
#include "runtime/cpu/host_allocator.h"

namespace eddy {
namespace {

TEST(PoolCanary, AddressSanitizerEndsAReadOfAReleasedPooledBuffer) {
#if !EDDY_HAS_ASAN
  GTEST_SKIP() << "needs AddressSanitizer";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        HostAllocator allocator;
        BufferRef buffer = std::move(*allocator.allocate(1000));
        const volatile char* const bytes = static_cast<const char*>(buffer.data());
        buffer.reset();
        (void)bytes[10];
      },
      "use-after-poison");
}

}  // namespace
}  // namespace eddy
