// leak_on_purpose() keeps the objects that a hanging run still uses: it never destroys them, and it
// excludes them and all they reach from LeakSanitizer.
#pragma once

#include <memory>

#include "graph/base/sanitizers.h"

#if EDDY_HAS_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace eddy::check {

template <typename T>
void leak_on_purpose(std::unique_ptr<T> object) {
  [[maybe_unused]] const T* const left_alone = object.release();
#if EDDY_HAS_ASAN
  __lsan_ignore_object(left_alone);
#endif
}

}  // namespace eddy::check
