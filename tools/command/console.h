// Console: where the command's words go.
//
// Of several ranks, rank 0 alone says what comes of the command; the others only what went wrong
// with them alone, behind their number.
//
// With --json exactly one JSON document goes to standard output, also on failure, and all words
// go to standard error. Without, results go to standard output and the rest to standard error.
//
// Threads: say() and progress() from one thread; fail() and finish() also from another one, once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tools/command/outcome.h"

namespace eddy {

// Keeps the order in which keys are added.
using Json = nlohmann::ordered_json;

class Console {
 public:
  // Between two lines of progress where standard error is no terminal.
  static constexpr std::chrono::seconds kSparse{30};

  explicit Console(bool is_json, std::chrono::nanoseconds sparse = kSparse)
      : is_json_(is_json), sparse_(sparse) {}

  bool is_json() const { return is_json_; }
  // The subcommand, for the start of messages: "eddy run: ...".
  void set_subcommand(std::string name) { subcommand_ = std::move(name); }

  // From now on this is one of several ranks.
  void set_rank(uint32_t rank) { rank_ = rank; }
  // What goes wrong from now on goes wrong on all ranks alike: rank 0 says it.
  void share_failures() { has_shared_failures_ = true; }

  // One line of the result.
  void say(std::string_view line);
  // One line of remarks, to standard error.
  void remark(std::string_view line);
  // Replaces the line under the cursor of a terminal; elsewhere prints a line to standard error,
  // but only when some time has passed since the last one or the start.
  void progress(std::string_view line);
  // The document. Once.
  void print(const Json& document);
  // The same, of a document that is text already.
  void print_text(std::string_view document);

  // The one line of a failure, and with --json a document of the same content unless one has been
  // printed: {"error": error_json()}. Of several failures the first is said.
  void fail(const Outcome& outcome);
  // {"code", "message", "path", "exit"}; for documents of work that was done in part, too.
  static Json error_json(const Outcome& outcome);
  // Another process has written this one's results: whether anything, and whether it was lost.
  void note_passed(bool has_output, bool is_lost);
  // The exit code once everything is out: a result that cannot be written is a failure too.
  int finish(const Outcome& outcome);
  // The same of a process that was started, which has said why on standard error.
  int finish_said(int exit_code);

 private:
  void clear_progress();
  int flush(int exit_code);
  bool is_silent() const { return rank_.value_or(0) > 0; }

  const bool is_json_;
  const std::chrono::nanoseconds sparse_;
  std::chrono::steady_clock::time_point last_progress_ = std::chrono::steady_clock::now();
  std::string subcommand_;
  std::optional<uint32_t> rank_;
  std::atomic<bool> has_shared_failures_{false};
  bool has_progress_ = false;
  bool is_passed_lost_ = false;
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> has_printed_{false};  // set by the thread that prints the document
};

// "1.23 ms": three significant digits.
std::string duration_text(double ns);

}  // namespace eddy
