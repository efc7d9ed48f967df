// The futex calls that the wake-up protocols need. Linux only.
//
// Why not std::atomic::wait: it has no deadline, and after a waker has published its word the
// owner may free it. The wake calls only name the address and never read it, so a waker may call
// them after the word is gone; at worst some other waiter wakes once for nothing.
#pragma once

#include <chrono>
#include <cstdint>

namespace eddy {

// Sleeps while the 32-bit word at `word` holds `expected`, at most until `deadline` (null: for
// ever). May return early for no reason.
void futex_wait(const void* word, std::uint32_t expected,
                const std::chrono::steady_clock::time_point* deadline_or_null);
void futex_wake_one(const void* word);
void futex_wake_all(const void* word);

}  // namespace eddy
