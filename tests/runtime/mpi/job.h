// Runs a program as the ranks of a job, under a hard time limit, and sees that no process is left.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace eddy::test {

struct Job {
  int exit_code = -1;  // mpirun's; 128 and its number where a signal ended it
  bool is_late = false;
  int num_left = 0;  // processes that outlived the first one by `grace`; killed by now
  std::vector<std::string> files_left;  // of Open MPI in memory, new ones
  std::string out;
  std::string err;
  double seconds = 0;
};

struct JobRequest {
  uint32_t num_ranks = 2;
  std::string program;  // below the test's working folder
  std::vector<std::string> arguments = {};
  bool starts_itself = false;  // the program is run once, and starts its ranks
  // Sent once, to a process of the job that has run for a while; 0: none.
  int signal = 0;
  enum class To { kRank, kMpirun, kFirst } signal_to = To::kRank;
  uint32_t signal_rank = 1;
  std::chrono::milliseconds signal_after{1500};
  std::string signal_when = {};  // and what it has printed by then
  int then_signal = 0;           // to the first process, half a second later; 0: none
  static constexpr const char* kClosed = "-";
  std::string out = {};  // a file that gets its standard output, or kClosed; else it is kept
  std::chrono::seconds limit{30};
  std::chrono::seconds grace{2};
};

Job run_job(const JobRequest& request);

// Why no job can run here; empty: one can.
std::string why_no_jobs();

}  // namespace eddy::test
