// A program that starts itself as ranks and watches over them, as the command does.
//
//   watch_job NUM_RANKS STALL_S MPIRUN SECONDS [RANK EXIT_CODE]
//
// Each rank opens MPI, meets the others, and works for so long; one may end early, without a
// report. MPIRUN: "-" for that in PATH. Prints what run_launch says of the end.
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "runtime/mpi/job_board.h"
#include "runtime/mpi/launcher.h"
#include "runtime/mpi/mpi_library.h"

namespace eddy {
namespace {

std::atomic<bool> is_stopped{false};

int work(const LaunchedRank& rank, int argc, char** argv) {
  RankReport report(rank.rank);
  auto mpi = load_mpi();
  int32_t was_open = 0;
  if (!mpi.is_ok() || (*mpi)->open(&was_open) != 0) return 9;
  report.reach(JobBoard::Stage::kRunning);
  if (argc > 6 && std::strtoul(argv[5], nullptr, 10) == rank.rank) _exit(std::atoi(argv[6]));
  std::printf("rank %u works\n", rank.rank);
  std::fflush(stdout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[4]));
  while (!is_stopped && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (is_stopped) {
    report.end(5);
    (*mpi)->abort(5);
  }
  (*mpi)->close();
  report.end(0);
  return 0;
}

int lead(int argc, char** argv) {
  const std::string mpirun = argv[3];
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto launch = make_launch({.num_ranks = static_cast<uint32_t>(std::atoi(argv[1])),
                             .mpirun = mpirun == "-" ? "" : mpirun,
                             .arguments = arguments});
  if (!launch.is_ok()) return 9;
  WatchOptions options;
  options.stall = std::chrono::seconds(std::atoi(argv[2]));
  options.should_stop = [] { return is_stopped.load(); };
  const auto end = run_launch(*launch, options);
  if (!end.is_ok()) return 9;
  std::printf("code %d: %s\n", end->exit_code, end->status.to_string().c_str());
  return 0;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  std::signal(SIGTERM, [](int) { eddy::is_stopped = true; });
  std::signal(SIGINT, [](int) { eddy::is_stopped = true; });
  if (argc < 5) return 9;
  const auto rank = eddy::find_launched_rank();
  return rank ? eddy::work(*rank, argc, argv) : eddy::lead(argc, argv);
}
