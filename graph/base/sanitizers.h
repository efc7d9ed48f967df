// EDDY_HAS_ASAN, EDDY_HAS_TSAN: 1 where AddressSanitizer or ThreadSanitizer watches this build,
// else 0. gcc and clang define it by different macros.
#pragma once

#if defined(__SANITIZE_ADDRESS__)  // gcc
#define EDDY_HAS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define EDDY_HAS_TSAN 1
#endif

#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) && !defined(EDDY_HAS_ASAN)
#define EDDY_HAS_ASAN 1
#endif
#if __has_feature(thread_sanitizer) && !defined(EDDY_HAS_TSAN)
#define EDDY_HAS_TSAN 1
#endif
#endif

#if !defined(EDDY_HAS_ASAN)
#define EDDY_HAS_ASAN 0
#endif
#if !defined(EDDY_HAS_TSAN)
#define EDDY_HAS_TSAN 0
#endif
