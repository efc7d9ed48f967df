// Inbox: wakes from any thread for one consumer that may sleep. An intrusive list, many producers,
// one consumer, and a wake-up protocol that loses nothing, all in one word.
//
//   word          push(node)                poke()              consumer
//   ------------  ------------------------  ------------------  --------------------------------
//   Empty         List                      Poked               drain: Empty; sleep: Sleeping
//   Poked         List                      Poked               drain: Empty; sleep: returns
//   List          List, one longer          List                drain: Empty, takes the list
//   Sleeping      List, wakes the consumer  Poked, wakes        after a wake or deadline: not
//                                                               Sleeping any more, or to Empty
//
// Atomics: head_ partners with itself; README.md has the argument that no wake is lost. push and
// poke release, drain and sleep acquire; poke is a read-modify-write even where it changes nothing,
// so that a drain that follows it sees what the poker wrote.
//
// Lifetime: after its compare-exchange a producer touches neither the node nor the inbox, but
// for naming head_'s address in a futex call. So a consumer may free both as soon as it has
// seen the node, even while the producer is still inside push().
//
// Contract: a node is in one list at a time. Order is first in, first out per producer.
// Threads: push and poke from any, the others from the consumer.
// Cost: push 5–20 ns, 2 µs more where it wakes a sleeper; drain is O(1) per node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace eddy {

struct InboxNode {
  InboxNode* next = nullptr;
};

class Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void push(InboxNode* node);
  // Makes the consumer look again: it will drain after this, or not fall asleep.
  void poke();

  // Takes everything, oldest first; null if there was nothing.
  InboxNode* drain();
  // Whether drain() has something to do; a hint while producers run.
  bool is_empty() const { return head_.load(std::memory_order_relaxed) == kEmpty; }
  // Returns when something was pushed or poked, at the deadline (null: none), or spuriously.
  void sleep(const std::chrono::steady_clock::time_point* deadline_or_null);

 private:
  // Anything else is the address of the youngest node.
  static constexpr std::uint64_t kEmpty = 0;
  static constexpr std::uint64_t kSleeping = 1;
  static constexpr std::uint64_t kPoked = 2;

  alignas(64) std::atomic<std::uint64_t> head_{kEmpty};
};

}  // namespace eddy
