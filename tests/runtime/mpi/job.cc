#include "tests/runtime/mpi/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "runtime/mpi/launcher.h"
#include "runtime/mpi/mpi_library.h"

namespace eddy::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kThenAfter{500};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Processes that `parent` has.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> result;
  DIR* const all = opendir("/proc");
  if (all == nullptr) return result;
  while (const dirent* const entry = readdir(all)) {
    const pid_t id = std::atoi(entry->d_name);
    if (id <= 0) continue;
    std::string text = read_file("/proc/" + std::to_string(id) + "/stat");
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || name_end + 4 > text.size()) continue;
    if (std::atoi(text.c_str() + name_end + 4) == parent) result.push_back(id);
  }
  closedir(all);
  return result;
}

// Below `first`, itself included.
std::vector<pid_t> descendants_of(pid_t first) {
  std::vector<pid_t> all = {first};
  for (size_t i = 0; i < all.size(); ++i) {
    const std::vector<pid_t> below = children_of(all[i]);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

// To whom the request says; false: there is no such process yet.
bool send_signal(pid_t first, const JobRequest& request) {
  if (request.signal_to == JobRequest::To::kFirst) {
    return !children_of(first).empty() && kill(first, request.signal) == 0;
  }
  const std::string mark = "OMPI_COMM_WORLD_RANK=" + std::to_string(request.signal_rank) + '\0';
  for (const pid_t id : descendants_of(first)) {
    const std::string folder = "/proc/" + std::to_string(id);
    const bool is_rank = read_file(folder + "/environ").find(mark) != std::string::npos;
    const bool is_mpirun = !is_rank && read_file(folder + "/comm").starts_with("mpirun");
    const bool wants_rank = request.signal_to == JobRequest::To::kRank;
    if (wants_rank ? is_rank : is_mpirun) return kill(id, request.signal) == 0;
  }
  return false;
}

// Reaps until no child is left or `limit` has passed; false: some are left.
bool reap_all(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (true) {
    const pid_t id = waitpid(-1, nullptr, WNOHANG);
    if (id < 0) return true;
    if (id > 0) continue;
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int kill_all() {
  int num = 0;
  // Children of the killed become own ones.
  for (int round = 0; round < 10; ++round) {
    // Those of orphans included: the test is their subreaper.
    for (const pid_t id : children_of(getpid())) {
      kill(id, SIGKILL);
      ++num;
    }
    if (reap_all(std::chrono::milliseconds(200))) break;
  }
  return num;
}

// What MPI keeps in files; jobs that are ended leave some. Its sockets want short names.
class Scratch {
 public:
  Scratch() {
    for (const char* const parent : {"/dev/shm", "/tmp"}) {
      std::string name = std::string(parent) + "/eddyXXXXXX";
      if (mkdtemp(name.data()) == nullptr) continue;
      path_ = name;
      return;
    }
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What jobs have in memory, by name.
std::set<std::string> shared_files() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("vader_segment")) names.insert(name);
    // Of others' jobs that run, the launcher holds the lock.
    const int folder = open(entry.path().c_str(), O_RDONLY | O_DIRECTORY);
    const bool is_job = folder >= 0 && name.starts_with("eddy-job-");
    if (is_job && flock(folder, LOCK_EX | LOCK_NB) == 0) names.insert(name);
    if (folder >= 0) close(folder);
  }
  return names;
}

[[noreturn]] void become_job(Launch launch, const std::string& scratch, const std::string& out,
                             const std::string& err) {
  // A program that starts itself sees to its files.
  if (!scratch.empty()) {
    launch.environment.emplace_back("TMPDIR=" + scratch);
    launch.environment.emplace_back("OMPI_MCA_btl_vader_backing_directory=" + scratch);
  }
  // Beside other work on the machine, a rank that only waits must not keep a processor.
  launch.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
  if (out == JobRequest::kClosed) {
    close(STDOUT_FILENO);
  } else {
    dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
  }
  std::vector<char*> arguments;
  std::vector<char*> variables;
  for (std::string& text : launch.arguments) arguments.push_back(text.data());
  for (std::string& text : launch.environment) variables.push_back(text.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  execve(launch.mpirun.c_str(), arguments.data(), variables.data());
  _exit(127);
}

}  // namespace

std::string why_no_jobs() {
  if (auto table = load_mpi(); !table.is_ok()) return table.status().message();
  if (auto launch = make_launch({}); !launch.is_ok()) return launch.status().message();
  return "";
}

Job run_job(const JobRequest& request) {
  Job job;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto launch = make_launch(
      {.num_ranks = request.num_ranks, .program = request.program, .arguments = request.arguments});
  if (!launch.is_ok()) {
    job.err = launch.status().to_string();
    return job;
  }
  if (request.starts_itself) {
    launch->mpirun = request.program;
    launch->arguments = request.arguments;
    launch->arguments.insert(launch->arguments.begin(), request.program);
  }
  // The first TMPDIR counts.
  std::erase_if(launch->environment, [](const auto& text) { return text.starts_with("TMPDIR="); });
  const std::string folder = testing::TempDir();
  const Scratch scratch;
  const std::set<std::string> files_before = shared_files();
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0)
    become_job(*launch, request.starts_itself ? "" : scratch.path(),
               request.out.empty() ? folder + "/job_out" : request.out, folder + "/job_err");
  int status = 0;
  bool is_signalled = request.signal == 0;
  Clock::time_point then = Clock::time_point::max();  // the second signal
  while (waitpid(child, &status, WNOHANG) == 0) {
    const bool is_time = !is_signalled && Clock::now() - start > request.signal_after;
    if (is_time && read_file(folder + "/job_out").find(request.signal_when) != std::string::npos) {
      is_signalled = send_signal(child, request);
      if (is_signalled && request.then_signal != 0) then = Clock::now() + kThenAfter;
    }
    if (Clock::now() > then) {
      kill(child, request.then_signal);
      then = Clock::time_point::max();
    }
    if (Clock::now() - start > request.limit) {
      job.is_late = true;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  job.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  job.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (!reap_all(job.is_late ? std::chrono::seconds(0) : request.grace)) job.num_left = kill_all();
  for (const std::string& name : shared_files()) {
    if (!files_before.contains(name)) job.files_left.push_back(name);
  }
  job.out = request.out.empty() ? read_file(folder + "/job_out") : "";
  job.err = read_file(folder + "/job_err");
  return job;
}

}  // namespace eddy::test
