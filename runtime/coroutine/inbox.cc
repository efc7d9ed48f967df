#include "runtime/coroutine/inbox.h"

#include <bit>

#include "graph/base/check.h"
#include "runtime/coroutine/futex.h"

namespace eddy {

// The futex looks at the lower half of head_. No node address has a lower half of 1.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(void*) == 8 && alignof(InboxNode) >= 4);

void Inbox::push(InboxNode* node) {
  const std::uint64_t self = reinterpret_cast<std::uint64_t>(node);
  EDDY_DCHECK(self > kPoked) << "no node, but a state";
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  do {
    const bool is_list = head > kPoked;
    node->next = is_list ? reinterpret_cast<InboxNode*>(head) : nullptr;
  } while (!head_.compare_exchange_weak(head, self, std::memory_order_release,
                                        std::memory_order_relaxed));
  if (head == kSleeping) futex_wake_one(&head_);
}

void Inbox::poke() {
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  std::uint64_t poked;
  do {
    poked = head > kPoked ? head : kPoked;
  } while (!head_.compare_exchange_weak(head, poked, std::memory_order_release,
                                        std::memory_order_relaxed));
  if (head == kSleeping) futex_wake_one(&head_);
}

InboxNode* Inbox::drain() {
  // Only the consumer writes Empty, so an Empty seen here stays until a producer pushes.
  if (is_empty()) return nullptr;
  const std::uint64_t head = head_.exchange(kEmpty, std::memory_order_acquire);
  EDDY_DCHECK(head != kSleeping) << "the consumer drains while it sleeps";
  if (head <= kPoked) return nullptr;
  InboxNode* oldest = nullptr;
  for (InboxNode* node = reinterpret_cast<InboxNode*>(head); node != nullptr;) {
    InboxNode* older = node->next;
    node->next = oldest;
    oldest = node;
    node = older;
  }
  return oldest;
}

void Inbox::sleep(const std::chrono::steady_clock::time_point* deadline_or_null) {
  std::uint64_t head = kEmpty;
  if (!head_.compare_exchange_strong(head, kSleeping, std::memory_order_acquire)) return;
  futex_wait(&head_, static_cast<std::uint32_t>(kSleeping), deadline_or_null);
  // Still Sleeping: deadline or a spurious wake. Otherwise leave what a producer put there.
  head = kSleeping;
  head_.compare_exchange_strong(head, kEmpty, std::memory_order_acquire);
}

}  // namespace eddy
