// A sudden end: the command's report where it cannot go on.
//
// Where the system gives no more memory or threads, a run can be neither finished nor waited for,
// so the command ends at once with ExitCode::kRunFailed. Where a defect ends it (a failed CHECK, a
// fault, std::terminate), it ends by that signal. Either way after one line (and, with --json, one
// document), which names each job's current work (WorkNote). Nothing here takes memory or locks.
// Threads: any, several at once, too: the first one reports and ends the process, the others stay
// where they are until it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy {

// Before the first end, on one thread.
void crash_reports_are_json(bool says_json);

// While it lives, on one thread at a time: the command is this rank of several. Reports start with
// its number, of rank 0 alone with a document, and `note` has the exit code before a signal or
// that code ends the process: in a handler of signals, so it takes no memory and no locks.
class CrashRank {
 public:
  CrashRank(uint32_t rank, void (*note)(void* state, int exit_code), void* state);
  ~CrashRank();
  CrashRank(const CrashRank&) = delete;
  CrashRank& operator=(const CrashRank&) = delete;

 private:
  char name_[20] = {};  // "rank 12: "
};

// "eddy: WHAT WHY"; the document has only WHAT, which needs no escapes.
[[noreturn]] void end_with_report(std::string_view what, std::string_view why);

// The caller is about to end the command and reports the reason; sudden ends on other threads print
// nothing from now on. Does not return if another thread is already reporting.
void claim_report();
bool has_claimed_report();  // the calling thread

[[noreturn]] void end_without_memory();  // a new-handler
// A terminate-handler. What a library throws on a thread of its own is the system's refusal;
// everything else is a defect, named, and ends by SIGABRT.
[[noreturn]] void end_by_exception();

// From now on signals of defects (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) are reported before
// they end the process as ever; a stack's overflow on the calling thread only. Builds with
// sanitizers, which report signals themselves, change nothing.
void report_signals_of_defects();

// What a job is at, in words that lead there again: printed when the command ends suddenly. Beyond
// kMost at once further ones are not. One thread sets.
class WorkNote {
 public:
  static constexpr size_t kMost = 256;
  static constexpr size_t kLongest = 200;  // bytes; the rest is cut off

  WorkNote();
  ~WorkNote();
  WorkNote(const WorkNote&) = delete;
  WorkNote& operator=(const WorkNote&) = delete;
  void set(std::string_view text);

 private:
  size_t place_ = kMost;
};

}  // namespace eddy
