// IdlePace: what a thread that has found nothing to do does next: spin, nap or sleep.
//
//   found something: pace.end();   nothing: switch (pace.next(seen).kind) …
//
// With nothing to look for it spins for `spin`, then sleeps. With something that tasks wait for and
// that has to be looked at, it spins for `poll_spin` and then naps; but where what it waits for is
// due (say a run that took 4 ms the last time), it spins until then, because a nap comes some 40 µs
// late whatever it asks for. That long spin is for processors that nobody else wants: every
// kYieldEvery it offers the processor to others, and once one of them has taken it, the rest of
// this idleness is naps. None lasts longer than kLongestSpin.
//
// Plain data in, plain data out: the clock, the yield and the sleep are the caller's. Threads: one.
#pragma once

#include <chrono>

namespace eddy {

class IdlePace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  static constexpr Duration kYieldEvery{20'000};
  static constexpr Duration kLongestSpin{20'000'000};

  struct Options {
    Duration spin{5'000};         // before sleeping, with nothing to look for
    Duration poll_spin{200'000};  // before napping, while tasks wait for what is looked for
    // Naps grow from 2 µs to this, and in a long wait to a 64th of it, to 1 ms at most: so looking
    // costs a small part of a core and comes late by a small part of the wait.
    Duration longest_nap{100'000};
  };
  struct Seen {
    Time now = {};
    bool is_polling = false;  // there is something to look at
    bool has_tasks = false;   // that may wait for it
    Time due = {};            // what is waited for ends by then, as far as known
  };
  enum class Kind {
    kSpin,
    // Offers the processor to others; where one takes it, the caller says lose_turn(). It sleeps
    // where no poller is wanted, and so for a nap.
    kYield,
    kNap,  // until `until`
    kSleep,
  };
  struct Step {
    Kind kind;
    Time until = {};
  };

  explicit IdlePace(const Options& options) : options_(options) {}

  Step next(const Seen& seen);
  // It had something to do: what comes next is another idleness.
  void end() { is_idle_ = false; }
  bool is_beginning() const { return !is_idle_; }  // an idleness that next() has not seen
  void lose_turn() { has_lost_turn_ = true; }

 private:
  void begin(Time now);
  bool is_worth_spinning(const Seen& seen) const;

  const Options options_;
  bool is_idle_ = false;
  bool has_lost_turn_ = false;
  Time since_;
  Time last_yield_;
  Duration next_nap_{0};
};

}  // namespace eddy
