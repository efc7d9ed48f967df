// EDDY_CHECK: programmer errors end the process with a message; they are never a Status.
//
//   EDDY_CHECK(index < size) << "region " << r << " has only " << size << " nodes";
//
// Active in every build. The message is built only on failure. EDDY_DCHECK is for conditions
// on hot paths and is compiled out when NDEBUG is set.
#pragma once

#include <sstream>

namespace eddy::base_internal {

// Collects the message, prints it with the place to standard error, and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives both arms of the conditional in EDDY_CHECK the type void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace eddy::base_internal

#define EDDY_CHECK(condition)                       \
  __builtin_expect(static_cast<bool>(condition), 1) \
      ? (void)0                                     \
      : ::eddy::base_internal::Voidify() &          \
            ::eddy::base_internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#ifdef NDEBUG
#define EDDY_DCHECK(condition) \
  while (false) EDDY_CHECK(condition)
#else
#define EDDY_DCHECK(condition) EDDY_CHECK(condition)
#endif
