// What a launcher does while its job runs.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "graph/base/check.h"
#include "runtime/mpi/board_watch.h"
#include "runtime/mpi/job_board.h"
#include "runtime/mpi/job_folder.h"
#include "runtime/mpi/launcher.h"
#include "runtime/mpi/rank_process.h"

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;
using Stage = JobBoard::Stage;

constexpr std::chrono::milliseconds kRound{10};
// A rank that ends suddenly may still be saying why, and so may those it leaves behind.
constexpr std::chrono::milliseconds kLastWords{200};
// What mpirun takes at most to see that all of its ranks have ended: it gives those that one which
// died leaves behind a second twice, and says only then how that one died.
constexpr std::chrono::seconds kCleanUp{5};
// What ranks take to end with one that has said why.
constexpr std::chrono::seconds kTogether{2};
// A rank that gives no sign for so long has no part in a stop.
constexpr std::chrono::seconds kStopStall{2};
// Exit codes from here on are of signals.
constexpr int kSignalled = 128;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// A child in a group of its own, with signals as usual, that ends with this process. All between
// fork and exec is safe there, whatever other threads hold.
pid_t start(const Launch& launch, const std::vector<std::string>& environment,
            const OutputRelay& relay) {
  const std::vector<char*> arguments = pointers(launch.arguments);
  const std::vector<char*> variables = pointers(environment);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  relay.adopt();
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGQUIT}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(launch.mpirun.c_str(), arguments.data(), variables.data());
  _exit(127);
}

std::string signal_text(int signal) {
  const char* const name = sigdescr_np(signal);
  return "signal " + std::to_string(signal) +
         (name == nullptr ? "" : " (" + std::string(name) + ")");
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// This process's children that have the variable in their environment.
std::vector<pid_t> children_with(const std::string& variable) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::istringstream children(read_file(thread.path().string() + "/children"));
    for (pid_t id = 0; children >> id;) {
      const std::string environment = read_file("/proc/" + std::to_string(id) + "/environ");
      if (environment.find(variable + '\0') != std::string::npos) found.push_back(id);
    }
  }
  return found;
}

class JobWatch {
 public:
  JobWatch(const Launch& launch, const WatchOptions& options, JobBoard& board, pid_t mpirun)
      : launch_(launch),
        options_(options),
        board_(board),
        mpirun_(mpirun),
        ranks_(launch.num_ranks),
        signs_(board, options.stall) {
    EDDY_CHECK(board.num_ranks() == launch.num_ranks)
        << "a board of " << board.num_ranks() << " for " << launch.num_ranks << " ranks";
  }

  JobEnd run() {
    while (!is_over()) {
      const Clock::time_point now = Clock::now();
      const std::string missed = signs_.look(now);
      know_processes();
      look_for_the_dead(now);
      look_for_stragglers(now);
      if (!has_decided() && !missed.empty()) {
        status_ = is_stopping_ ? cancelled("interrupted; " + missed + ", and all were ended")
                               : device_lost(missed + "; all ranks were ended");
        decide(now);
      }
      if (!has_decided() && !is_stopping_ && options_.should_stop()) stop();
      if (options_.should_describe()) describe();
      if (ends_at_ && now >= *ends_at_) end_all(now);
      std::this_thread::sleep_for(kRound);
    }
    return end();
  }

 private:
  // Why the job ends is known: all that follows is its consequence.
  bool has_decided() const { return ends_at_.has_value(); }
  void decide(Clock::time_point when) {
    EDDY_DCHECK(!has_decided()) << "it is known twice why the job ends";
    ends_at_ = when;
  }

  bool is_over() {
    int status = 0;
    const pid_t ended = waitpid(mpirun_, &status, WNOHANG);
    if (ended == 0) return false;
    if (ended == mpirun_) mpirun_status_ = status;
    return true;
  }

  void know_processes() {
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      const JobBoard::Rank& rank = board_.rank(r);
      const Stage stage = rank.stage.load(std::memory_order_acquire);
      if (stage != Stage::kAbsent && !ranks_[r].is_known()) ranks_[r].know(rank.process.load());
    }
  }

  bool has_failed(uint32_t r) const {
    const JobBoard::Rank& rank = board_.rank(r);
    return rank.stage.load(std::memory_order_acquire) >= Stage::kEnded &&
           rank.exit_code.load(std::memory_order_relaxed) != 0;
  }
  bool has_any_failed() const {
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      if (has_failed(r)) return true;
    }
    return false;
  }

  // Which other ranks do not see, and mpirun only in a second or two.
  bool has_any_crashed() const {
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      if (has_failed(r) && board_.rank(r).exit_code.load() > kSignalled) return true;
    }
    return false;
  }

  void look_for_the_dead(Clock::time_point now) {
    if (has_decided() || has_any_failed()) return;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      const Stage stage = board_.rank(r).stage.load(std::memory_order_acquire);
      if (stage >= Stage::kEnded || !ranks_[r].has_ended()) continue;
      // Its report may have come in between.
      if (board_.rank(r).stage.load(std::memory_order_acquire) >= Stage::kEnded) continue;
      dead_ = r;
      return decide(now + kLastWords);
    }
  }

  // Ranks that have begun know the signal.
  void describe() {
    for (const RankProcess& rank : ranks_) rank.signal(SIGQUIT);
    if (num_begun() > 0) return;
    std::fputs("eddy: ranks start, and none has begun\n", stderr);
  }

  // All end with one that fails, which has sent them the reason; else it has not met them.
  void look_for_stragglers(Clock::time_point now) {
    if (has_decided() || !has_any_failed()) return;
    if (!failed_at_) failed_at_ = now;
    if (now - *failed_at_ > (has_any_crashed() ? kLastWords : kTogether)) decide(now);
  }

  void stop() {
    is_stopping_ = true;
    if (signs_.num_running() == ranks_.size()) {
      for (const RankProcess& rank : ranks_) rank.signal(SIGTERM);
      return signs_.expect_within(kStopStall);
    }
    status_ = cancelled("interrupted while ranks start");
    decide(Clock::now());
  }

  void end_all(Clock::time_point now) {
    for (const RankProcess& rank : ranks_) rank.signal(SIGKILL);
    // It knows how a rank has died, unless it does not see it.
    if (!dead_ || has_ended_ranks_) {
      has_killed_mpirun_ = true;
      kill(mpirun_, SIGKILL);
    }
    has_ended_ranks_ = true;
    ends_at_ = now + kCleanUp;
  }

  // What an mpirun that was killed has left behind is this process's by now.
  JobEnd end() {
    for (const auto until = Clock::now() + kCleanUp; Clock::now() < until;) {
      const std::vector<pid_t> left = children_with(board_.variable());
      for (const pid_t each : left) {
        kill(each, SIGKILL);
        waitpid(each, nullptr, WNOHANG);
      }
      if (left.empty()) break;
      std::this_thread::sleep_for(kRound);
    }
    const int code = WIFEXITED(mpirun_status_) ? WEXITSTATUS(mpirun_status_)
                                               : kSignalled + WTERMSIG(mpirun_status_);
    if (!status_.is_ok()) return {0, status_};
    // With a rank that has yet to begin, the first one that died is not known.
    if (dead_ && num_begun() == ranks_.size()) return death(code);
    if (WIFSIGNALED(mpirun_status_) && !has_killed_mpirun_) {
      return {0, run_failed("mpirun was ended by " + signal_text(code - kSignalled) +
                            ", and so were its ranks")};
    }
    return without_a_death(code);
  }

  JobEnd death(int code) const {
    EDDY_DCHECK(dead_ && *dead_ < ranks_.size()) << "no rank has died";
    const std::string rank = "rank " + std::to_string(*dead_);
    if (has_killed_mpirun_) {
      return {0, run_failed(rank + " has ended without a word; all others were ended")};
    }
    if (code > kSignalled) {
      return {code, run_failed(rank + " was ended by " + signal_text(code - kSignalled) +
                               "; all others were ended")};
    }
    return {code, run_failed(rank + " has ended with exit code " + std::to_string(code) +
                             " before its work was done; all others were ended")};
  }

  size_t num_begun() const {
    size_t count = 0;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      count += board_.rank(r).stage.load(std::memory_order_acquire) != Stage::kAbsent;
    }
    return count;
  }

  JobEnd without_a_death(int code) const {
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      if (!has_failed(r)) continue;
      const int failed = board_.rank(r).exit_code.load(std::memory_order_relaxed);
      return {failed, Status::ok()};
    }
    if (num_begun() == ranks_.size()) {
      if (code == 0) return {0, Status::ok()};
      return {0, run_failed("mpirun has ended with exit code " + std::to_string(code) +
                            ", and so have its ranks")};
    }
    const std::string how =
        code > kSignalled ? signal_text(code - kSignalled) : "exit code " + std::to_string(code);
    // An exit code above 128 is a rank's; mpirun's own end by a signal has been reported.
    const std::string who =
        code > kSignalled ? "a rank was ended by " : "'" + launch_.mpirun + "' has ended with ";
    const std::string text = who + how + ", and " + std::to_string(num_begun()) + " of " +
                             std::to_string(ranks_.size()) + " ranks have begun";
    if (num_begun() > 0 || code > kSignalled) return {code, run_failed(text)};
    if (!launch_.is_mpirun_given) return {0, run_failed(text)};
    return {0, invalid_argument(text + "; name Open MPI's mpirun")};
  }

  const Launch& launch_;
  const WatchOptions& options_;
  JobBoard& board_;
  const pid_t mpirun_;
  std::vector<RankProcess> ranks_;
  BoardWatch signs_;
  bool is_stopping_ = false;
  bool has_ended_ranks_ = false;
  bool has_killed_mpirun_ = false;
  std::optional<uint32_t> dead_;
  std::optional<Clock::time_point> failed_at_;  // a rank, which has said why
  std::optional<Clock::time_point> ends_at_;
  Status status_;  // why this process ends the job
  int mpirun_status_ = 0;
};

}  // namespace

Result<JobEnd> run_launch(const Launch& launch, const WatchOptions& options) {
  EDDY_ASSIGN_OR_RETURN(JobBoard board, JobBoard::make(launch.num_ranks));
  const JobFolder folder;
  std::vector<std::string> environment = launch.environment;
  environment.push_back(board.variable());
  folder.add_variables(environment);
  // Ranks whose mpirun is killed.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  EDDY_ASSIGN_OR_RETURN(const auto relay, OutputRelay::open());
  const pid_t mpirun = start(launch, environment, *relay);
  if (mpirun < 0) {
    return resource_exhausted(std::string("cannot start ranks: ") + std::strerror(errno));
  }
  setpgid(mpirun, mpirun);  // whichever of the two comes first
  relay->start();
  JobEnd end = JobWatch(launch, options, board, mpirun).run();
  end.passed = relay->finish();
  return end;
}

}  // namespace eddy
