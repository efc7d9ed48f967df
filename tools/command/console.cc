#include "tools/command/console.h"

#include <poll.h>
#include <unistd.h>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "graph/base/shortened.h"
#include "tools/command/crash_report.h"

namespace eddy {
namespace {

void write_line(std::FILE* file, std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputc('\n', file);
}

}  // namespace

void Console::say(std::string_view line) {
  if (is_silent()) return;
  clear_progress();
  write_line(is_json_ ? stderr : stdout, line);
}

void Console::remark(std::string_view line) {
  if (is_silent()) return;
  clear_progress();
  write_line(stderr, line);
}

void Console::progress(std::string_view line) {
  if (is_silent()) return;
  if (isatty(STDERR_FILENO) == 0) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_progress_ < sparse_) return;
    last_progress_ = now;
    return write_line(stderr, line);
  }
  std::fflush(stdout);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  has_progress_ = true;
}

void Console::clear_progress() {
  if (!has_progress_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  has_progress_ = false;
}

void Console::print(const Json& document) {
  // Names from files may be no UTF-8.
  print_text(document.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Console::print_text(std::string_view document) {
  if (is_silent()) return;
  clear_progress();
  if (!has_printed_.exchange(true)) write_line(stdout, document);
}

void Console::fail(const Outcome& outcome) {
  claim_report();
  clear_progress();
  if (has_failed_.exchange(true) || (is_silent() && has_shared_failures_)) return;
  const Status& status = outcome.status();
  std::string line = "eddy";
  if (!subcommand_.empty()) line += " " + subcommand_;
  line += ": ";
  if (rank_ && !has_shared_failures_) line += "rank " + std::to_string(*rank_) + ": ";
  if (!status.path().empty()) line += "at " + shown_path(status) + ": ";
  line += status.message();
  std::fflush(stdout);  // the reason comes after the results, also in one file
  write_line(stderr, one_line(std::move(line)));
  if (!is_json_) return;
  print(Json{{"error", error_json(outcome)}});
}

Json Console::error_json(const Outcome& outcome) {
  return {{"code", status_code_name(outcome.status().code())},
          {"message", outcome.status().message()},
          {"path", outcome.status().path()},
          {"exit", static_cast<int>(outcome.exit_code())}};
}

namespace {

// True when the reader of standard output has closed it (`| head`).
bool is_reader_gone() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

}  // namespace

void Console::note_passed(bool has_output, bool is_lost) {
  if (has_output) has_printed_.store(true);
  is_passed_lost_ = is_lost;
}

int Console::finish(const Outcome& outcome) {
  clear_progress();
  if (!outcome.status().is_ok()) fail(outcome);
  return flush(static_cast<int>(outcome.exit_code()));
}

int Console::finish_said(int exit_code) {
  if (is_json_) {
    const std::string why = "a rank has failed; standard error has its reason";
    print({{"error", error_json(Outcome::of_process(exit_code, run_failed(why)))}});
  }
  return flush(exit_code);
}

int Console::flush(int exit_code) {
  const bool is_lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if ((!is_lost || is_reader_gone()) && !is_passed_lost_) return exit_code;
  write_line(stderr, "eddy: cannot write to standard output; is the disk full?");
  return static_cast<int>(ExitCode::kRunFailed);
}

std::string duration_text(double ns) {
  static constexpr const char* kUnits[] = {"ns", "µs", "ms", "s"};
  int unit = 0;
  while (unit < 3 && std::abs(ns) >= 999.5) {
    ns /= 1000;
    ++unit;
  }
  const int decimals = std::abs(ns) >= 99.95 ? 0 : std::abs(ns) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", ns, decimals, kUnits[unit]);
}

}  // namespace eddy
