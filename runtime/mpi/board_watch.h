// BoardWatch: which ranks of a job have given no sign of life for too long, by its board.
//
// While ranks start, too long is `stall`. Once all run they watch over each other (runtime/net),
// and this is for when they do not: as long and some seconds more.
//
// Threads: one. Cost: of look() some ns a rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/mpi/job_board.h"

namespace eddy {

class BoardWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `counts_absent`: a rank that has yet to begin is missed, too.
  BoardWatch(const JobBoard& board, std::chrono::nanoseconds stall, bool counts_absent = true)
      : board_(board),
        stall_(stall),
        counts_absent_(counts_absent),
        beats_(board.num_ranks()),
        seen_(board.num_ranks(), Clock::now()) {}

  // Again and again: where this process was stopped meanwhile, nobody was silent. What there is to
  // say of the first that is missed, as "rank 1 has not begun for 3 s, while ranks start"; empty:
  // none is.
  std::string look(Clock::time_point now);
  // From now on this is too long, for ranks that run, too; none's time begins anew.
  void expect_within(std::chrono::nanoseconds limit) {
    stall_ = limit;
    is_own_ = false;
  }
  // At the last look: ranks that run, or have.
  size_t num_running() const { return num_running_; }

 private:
  const JobBoard& board_;
  std::chrono::nanoseconds stall_;
  bool is_own_ = true;  // the watch of ranks that run, which comes first
  const bool counts_absent_;
  std::vector<uint32_t> beats_;
  std::vector<Clock::time_point> seen_;  // when a rank beat last
  Clock::time_point last_ = Clock::now();
  size_t num_running_ = 0;
};

}  // namespace eddy
