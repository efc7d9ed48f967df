#include "tools/command/interrupts.h"

#include <pthread.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <system_error>

#include "graph/base/check.h"
#include "tools/command/crash_report.h"
#include "tools/command/outcome.h"

namespace eddy {
namespace {

// SIGUSR2 wakes the thread when it is to end.
sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

Interrupts::Interrupts(std::function<void()> abandon) : abandon_(std::move(abandon)) {
  EDDY_CHECK(abandon_) << "nobody ends what a signal interrupts";
  const sigset_t signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A reader that closes the pipe ends nothing by itself: the command's exit code stands.
  std::signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { watch(); });
}

Interrupts::~Interrupts() {
  // What was abandoned ends the process in a moment, unless this thread reports another end, which
  // it then waits for.
  while (is_abandoned_.load() && !has_claimed_report()) pause();
  is_ending_.store(true);
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

Interrupts::Attachment::Attachment(Interrupts& interrupts, Session& session)
    : interrupts_(interrupts) {
  const std::scoped_lock lock(interrupts_.mutex_);
  interrupts_.session_ = &session;
}

Interrupts::Attachment::~Attachment() {
  const std::scoped_lock lock(interrupts_.mutex_);
  interrupts_.session_ = nullptr;
}

void Interrupts::watch() {
  using Clock = std::chrono::steady_clock;
  const sigset_t signals = watched_signals();
  Clock::time_point echo_ends{};
  while (!is_ending_.load()) {
    // A run that starts just after a cancel would miss it, so cancelling is repeated.
    const timespec timeout = {0, 50'000'000};
    const int signal = is_interrupted() ? sigtimedwait(&signals, nullptr, &timeout)
                                        : sigwaitinfo(&signals, nullptr);
    if (signal < 0) {
      if (errno == EAGAIN) cancel_attached();
      continue;
    }
    if (signal == SIGQUIT) describe();
    // Where a rank has been ended, mpirun tells the others so, too.
    const bool is_echo = signal == SIGTERM && is_interrupted() && Clock::now() < echo_ends;
    if (is_echo || (signal != SIGINT && signal != SIGTERM)) continue;
    interrupt();
    echo_ends = Clock::now() + std::chrono::seconds(2);
  }
}

void Interrupts::interrupt() {
  if (is_interrupted_.exchange(true)) {
    std::fputs("eddy: interrupted twice, not waiting any longer\n", stderr);
    std::_Exit(static_cast<int>(ExitCode::kCancelled));
  }
  if (cancel_attached() || is_patient_.load()) return;
  is_abandoned_.store(true);
  try {
    std::thread(abandon_).detach();
  } catch (const std::system_error&) {
    abandon_();
  }
}

bool Interrupts::cancel_attached() {
  const std::scoped_lock lock(mutex_);
  if (session_ == nullptr) return false;
  session_->cancel_all();
  return true;
}

void Interrupts::describe() {
  if (notes_questions_.load()) return has_question_.store(true);
  const std::scoped_lock lock(mutex_);
  std::string text = session_ == nullptr ? "" : session_->describe_runs();
  if (text.empty()) text = "eddy: no run is in flight";
  if (text.back() != '\n') text += '\n';
  if (const int64_t rank = rank_.load(); rank >= 0) {
    text.insert(0, "rank " + std::to_string(rank) + ": ");
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace eddy
