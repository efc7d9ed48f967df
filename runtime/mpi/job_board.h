// JobBoard: what the ranks of a job on this machine let each other know, and their launcher: that
// they live, how far they are, and how they end. Memory that they share.
//
//   auto board = JobBoard::make(4);              // the launcher
//   environment.push_back(board->variable());    // of all ranks
//   RankReport report(rank);                     // a rank; keeps beating until it goes
//   report.reach(JobBoard::Stage::kRunning);
//
// A rank beats by a thread of its own, so one that loads or computes beats, too; one that is
// stopped does not, nor one that has yet to begin. Ranks of an mpirun that was started by hand have
// a board among themselves, in the folder that it makes for its job and removes again, and watch
// over each other (board_watch.h). A rank without a board, as under another launcher, reports to
// nobody.
//
// Errors: resource_exhausted where the system gives no memory for it. Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {

class RankProcess;

class JobBoard {
 public:
  enum class Stage : uint32_t {
    kAbsent,    // has not begun
    kStarting,  // until all ranks have met
    kRunning,
    kEnded,  // its exit code is known
    kGone    // and nothing is left to do but to exit
  };
  // Relaxed, as each tells something by itself; but `stage` releases what was set before.
  struct Rank {
    std::atomic<int32_t> process{0};
    std::atomic<uint32_t> beats{0};
    std::atomic<int32_t> exit_code{0};  // from kEnded on
    std::atomic<Stage> stage{Stage::kAbsent};
  };

  static Result<JobBoard> make(uint32_t num_ranks);
  // That of the launcher of this process; none: is_open() is false.
  static JobBoard find();
  // That of ranks whose launcher has none; none: is_open() is false.
  static JobBoard join(uint32_t num_ranks);
  JobBoard(JobBoard&& other) noexcept;
  JobBoard& operator=(JobBoard&& other) noexcept;
  ~JobBoard();

  bool is_open() const { return ranks_ != nullptr; }
  uint32_t num_ranks() const { return num_ranks_; }
  Rank& rank(uint32_t rank) {
    EDDY_DCHECK(is_open() && rank < num_ranks_) << "rank " << rank << " of " << num_ranks_;
    return ranks_[rank];
  }
  const Rank& rank(uint32_t rank) const {
    EDDY_DCHECK(is_open() && rank < num_ranks_) << "rank " << rank << " of " << num_ranks_;
    return ranks_[rank];
  }
  // "EDDY_JOB_BOARD=…", for the environment of ranks; while this process lives.
  std::string variable() const;

 private:
  JobBoard() = default;
  void open_file(const std::string& path, int flags, uint32_t num_ranks_or_0);
  int file_ = -1;
  uint32_t num_ranks_ = 0;
  Rank* ranks_ = nullptr;
};

// Where the launcher has no board, for it would watch.
struct PeerWatch {
  uint32_t num_ranks = 0;     // of the job; 0: nobody is watched
  bool are_all_here = false;  // on this machine: one that has not begun is missed, too
  std::chrono::nanoseconds stall = std::chrono::seconds(30);
  // Called once, on a thread of its own, of a rank that is missed: "rank 1 has not begun for 3 s,
  // while ranks start", or of the next rank, where that has ended without a report. May end the
  // process.
  std::function<void(const std::string& why)> lost = {};
};

// Of one rank; it has begun.
class RankReport {
 public:
  explicit RankReport(uint32_t rank, const PeerWatch& peers = {});
  ~RankReport();
  RankReport(const RankReport&) = delete;
  RankReport& operator=(const RankReport&) = delete;

  void reach(JobBoard::Stage stage);
  void end(int exit_code);
  // Whether run_launch() started it, and has its exit code from end().
  bool has_launcher() const { return has_launcher_; }

 private:
  bool has_ended_silently(uint32_t rank, RankProcess& process) const;

  JobBoard board_;
  const bool has_launcher_;
  JobBoard::Rank* own_ = nullptr;  // none: it reports to nobody
  std::jthread beats_;
};

}  // namespace eddy
