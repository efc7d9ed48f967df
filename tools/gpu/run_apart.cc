#include "tools/gpu/run_apart.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace eddy {
namespace {

[[noreturn]] void work_and_end(const std::function<std::string()>& work, int to) {
  const std::string answer = work();
  for (size_t sent = 0; sent < answer.size();) {
    const ssize_t count = write(to, answer.data() + sent, answer.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(1);
    sent += static_cast<size_t>(count);
  }
  // Nothing of the maker's is written or torn down twice, and no library's end may hang.
  _exit(0);
}

// Until the writer has gone. False: the time is over.
bool read_all(int from, std::chrono::seconds most, std::string& text) {
  using Clock = std::chrono::steady_clock;
  for (const Clock::time_point end = Clock::now() + most;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    char bytes[4096];
    const ssize_t count = read(from, bytes, sizeof(bytes));
    if (count == 0) return true;
    if (count > 0) text.append(bytes, static_cast<size_t>(count));
  }
}

}  // namespace

Result<std::string> run_apart(const std::function<std::string()>& work, std::chrono::seconds most) {
  int ends[2];
  if (pipe(ends) != 0) return run_failed(std::string("no pipe: ") + std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return run_failed(std::string("no process: ") + std::strerror(errno));
  }
  if (child == 0) {
    close(ends[0]);
    work_and_end(work, ends[1]);
  }
  close(ends[1]);
  std::string answer;
  const bool is_over = read_all(ends[0], most, answer);
  close(ends[0]);
  if (!is_over) kill(child, SIGKILL);
  int how = 0;
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  if (!is_over) {
    return deadline_exceeded("its process was not over after " + std::to_string(most.count()) +
                             " s");
  }
  if (WIFSIGNALED(how)) {
    return run_failed("its process was ended by signal " + std::to_string(WTERMSIG(how)) + " (" +
                      strsignal(WTERMSIG(how)) + ")");
  }
  if (WEXITSTATUS(how) != 0) {
    return run_failed("its process ended with " + std::to_string(WEXITSTATUS(how)));
  }
  return answer;
}

}  // namespace eddy
