#include "tests/runtime/mpi/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/mpi/launcher.h"
#include "runtime/mpi/mpi_library.h"

namespace eddy::test {
namespace {

using Clock = std::chrono::steady_clock;

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

// mpirun's child that is this rank.
void signal_rank(pid_t mpirun, const JobRequest& request) {
  const std::string mark = "OMPI_COMM_WORLD_RANK=" + std::to_string(request.signal_rank) + '\0';
  for (const pid_t id : children_of(mpirun)) {
    const std::string variables = read_file("/proc/" + std::to_string(id) + "/environ");
    if (variables.find(mark) != std::string::npos) kill(id, request.signal);
  }
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

[[noreturn]] void become_job(Launch launch, const std::string& scratch, const std::string& out,
                             const std::string& err) {
  launch.environment.emplace_back("TMPDIR=" + scratch);
  launch.environment.emplace_back("OMPI_MCA_btl_vader_backing_directory=" + scratch);
  // Beside other work on the machine, a rank that only waits must not keep a processor.
  launch.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
  (void)become(launch);
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
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) become_job(*launch, scratch.path(), folder + "/job_out", folder + "/job_err");
  int status = 0;
  bool is_signalled = request.signal == 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (!is_signalled && Clock::now() - start > request.signal_after) {
      is_signalled = true;
      signal_rank(child, request);
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
  if (!reap_all(std::chrono::seconds(job.is_late ? 0 : 2))) job.num_left = kill_all();
  job.out = read_file(folder + "/job_out");
  job.err = read_file(folder + "/job_err");
  return job;
}

}  // namespace eddy::test
