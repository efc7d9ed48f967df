// Claim: the inbox delivers every node once, in order for each producer, and its consumer
// never sleeps past a push or a poke.
#include "runtime/coroutine/inbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Letter : InboxNode {
  int sender = 0;
  int number = 0;
};

TEST(Inbox, DrainGivesTheOldestFirst) {
  Inbox inbox;
  Letter letters[3];
  for (int i = 0; i < 3; ++i) {
    letters[i].number = i;
    inbox.push(&letters[i]);
  }
  int expected = 0;
  for (InboxNode* node = inbox.drain(); node != nullptr; node = node->next) {
    EXPECT_EQ(static_cast<Letter*>(node)->number, expected++);
  }
  EXPECT_EQ(expected, 3);
  EXPECT_EQ(inbox.drain(), nullptr);
}

TEST(Inbox, APokeIsNotALetterAndDoesNotHideOne) {
  Inbox inbox;
  inbox.poke();
  EXPECT_FALSE(inbox.is_empty());
  EXPECT_EQ(inbox.drain(), nullptr);
  EXPECT_TRUE(inbox.is_empty());
  Letter letter;
  inbox.poke();
  inbox.push(&letter);
  inbox.poke();
  EXPECT_EQ(inbox.drain(), &letter);
  EXPECT_EQ(letter.next, nullptr);
}

TEST(Inbox, SleepReturnsAtOnceIfSomethingCameFirst) {
  Inbox inbox;
  inbox.poke();
  inbox.sleep(nullptr);
  inbox.drain();
  Letter letter;
  inbox.push(&letter);
  inbox.sleep(nullptr);
  EXPECT_EQ(inbox.drain(), &letter);
}

TEST(Inbox, SleepEndsAtItsDeadlineAndTheInboxWorksOn) {
  Inbox inbox;
  const Clock::time_point deadline = Clock::now() + 5ms;
  while (Clock::now() < deadline) inbox.sleep(&deadline);
  EXPECT_TRUE(inbox.is_empty());
  Letter letter;
  inbox.push(&letter);
  EXPECT_EQ(inbox.drain(), &letter);
}

TEST(Inbox, APushAndAPokeWakeASleeper) {
  Inbox inbox;
  Letter letter;
  for (const bool by_push : {true, false}) {
    std::thread other([&] {
      std::this_thread::sleep_for(5ms);
      by_push ? inbox.push(&letter) : inbox.poke();
    });
    while (inbox.is_empty()) inbox.sleep(nullptr);
    EXPECT_EQ(inbox.drain(), by_push ? &letter : nullptr);
    other.join();
  }
}

// A consumer that sleeps whenever it finds nothing, without any deadline: a lost wake hangs.
TEST(Inbox, EightProducersAndASleepyConsumerLoseNothing) {
  constexpr int kSenders = 8;
  constexpr int kLetters = 20'000;
  Inbox inbox;
  std::vector<std::deque<Letter>> letters(kSenders);
  std::vector<std::thread> threads;
  for (int sender = 0; sender < kSenders; ++sender) {
    threads.emplace_back([&, sender] {
      for (int i = 0; i < kLetters; ++i) {
        Letter& letter = letters[sender].emplace_back();
        letter.sender = sender;
        letter.number = i;
        inbox.push(&letter);
        if (i % 64 == 0) std::this_thread::yield();
        if (i % 1024 == 0) std::this_thread::sleep_for(50us);
      }
    });
  }
  std::vector<int> next(kSenders, 0);
  int received = 0;
  while (received < kSenders * kLetters) {
    InboxNode* node = inbox.drain();
    if (node == nullptr) inbox.sleep(nullptr);
    for (; node != nullptr; ++received) {
      const Letter* letter = static_cast<Letter*>(node);
      node = node->next;
      ASSERT_EQ(letter->number, next[letter->sender]++);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// Two threads hand one letter back and forth, each sleeping at once: the tightest race between
// falling asleep and waking.
TEST(Inbox, PingPongBetweenTwoSleepersNeverHangs) {
  Inbox ping, pong;
  Letter letter;
  constexpr int kRounds = 20'000;
  const auto receive = [](Inbox& inbox) {
    InboxNode* node = nullptr;
    while ((node = inbox.drain()) == nullptr) inbox.sleep(nullptr);
    return node;
  };
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) pong.push(receive(ping));
  });
  for (int i = 0; i < kRounds; ++i) {
    ping.push(&letter);
    ASSERT_EQ(receive(pong), &letter);
  }
  other.join();
}

// What a poker wrote first is seen by the consumer after it woke: the promise that timers,
// pollers and shutdown rest on.
TEST(Inbox, WhatWasWrittenBeforeAPokeIsSeenBeforeTheNextSleep) {
  Inbox inbox;
  std::atomic<int> written{0};
  constexpr int kPokes = 20'000;
  std::thread poker([&] {
    for (int i = 1; i <= kPokes; ++i) {
      written.store(i, std::memory_order_relaxed);
      inbox.poke();
      if (i % 16 == 0) std::this_thread::yield();
    }
  });
  // Would sleep for ever if the last value were missed.
  while (true) {
    inbox.drain();
    if (written.load(std::memory_order_relaxed) == kPokes) break;
    inbox.sleep(nullptr);
  }
  poker.join();
}

}  // namespace
}  // namespace eddy
