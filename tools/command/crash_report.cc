#include "tools/command/crash_report.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <typeinfo>

#include "graph/base/sanitizers.h"
#include "tools/command/outcome.h"

namespace eddy {
namespace {

bool is_json_wanted = false;
std::atomic_flag is_ending;
thread_local bool is_reporter = false;  // of the thread that has claimed the report

// Of a rank; empty, and none: this is no rank. Set before it is read, by the flag.
std::atomic<bool> is_rank{false};
const char* rank_name = "";
void (*rank_note)(void* state, int exit_code) = nullptr;
void* rank_state = nullptr;

// In static memory, so that a handler finds it at any time. Released by `size_bytes`.
struct Note {
  std::atomic<bool> is_taken{false};
  std::atomic<size_t> size_bytes{0};
  char text[WorkNote::kLongest];
};
std::array<Note, WorkNote::kMost> notes;

void put(int file, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    [[maybe_unused]] const ssize_t written = write(file, part.data(), part.size());
  }
}

void put_notes() {
  const char* before = " while at: ";
  for (const Note& note : notes) {
    const size_t size_bytes = note.size_bytes.load(std::memory_order_acquire);
    if (size_bytes == 0) continue;
    put(STDERR_FILENO, {before, std::string_view(note.text, size_bytes)});
    before = "; ";
  }
  put(STDERR_FILENO, {"\n"});
}

std::string_view rank_text() {
  return is_rank.load(std::memory_order_acquire) ? rank_name : std::string_view();
}

// Before the process ends.
void note_end(int exit_code) {
  if (is_rank.load(std::memory_order_acquire)) rank_note(rank_state, exit_code);
}

void put_document(std::string_view code, std::string_view what, std::string_view exit_code) {
  if (!is_json_wanted) return;
  put(STDOUT_FILENO, {"{\"error\": {\"code\": \"", code, "\", \"message\": \"", what,
                      "\", \"path\": \"\", \"exit\": ", exit_code, "}}\n"});
}

struct Defect {
  int signal;
  std::string_view what;
  std::string_view exit_code;  // as shells print it
  int code;
};
constexpr Defect kDefects[] = {{SIGABRT, "ended by SIGABRT", "134", 134},
                               {SIGSEGV, "ended by SIGSEGV", "139", 139},
                               {SIGBUS, "ended by SIGBUS", "135", 135},
                               {SIGFPE, "ended by SIGFPE", "136", 136},
                               {SIGILL, "ended by SIGILL", "132", 132}};

void put_defect(int signal) {
  for (const Defect& defect : kDefects) {
    if (defect.signal != signal) continue;
    put(STDERR_FILENO, {"eddy: ", rank_text(), defect.what});
    put_notes();
    put_document("internal", defect.what, defect.exit_code);
    note_end(defect.code);
  }
}

// A handler that is called once; then the signal has its default effect.
void report_defect(int signal) {
  if (!is_ending.test_and_set(std::memory_order_relaxed)) put_defect(signal);
  raise(signal);
}

}  // namespace

void crash_reports_are_json(bool says_json) { is_json_wanted = says_json; }

CrashRank::CrashRank(uint32_t rank, void (*note)(void* state, int exit_code), void* state) {
  std::snprintf(name_, sizeof(name_), "rank %u: ", rank);
  if (rank > 0) is_json_wanted = false;
  rank_name = name_;
  rank_note = note;
  rank_state = state;
  is_rank.store(true, std::memory_order_release);
}

CrashRank::~CrashRank() { is_rank.store(false, std::memory_order_release); }

void claim_report() {
  if (is_reporter) return;
  // Relaxed: a second thread reads nothing of what the first one wrote.
  if (is_ending.test_and_set(std::memory_order_relaxed)) {
    for (;;) pause();
  }
  is_reporter = true;
}

bool has_claimed_report() { return is_reporter; }

void end_with_report(std::string_view what, std::string_view why) {
  // What the reporter lacks while it reports is not reported again.
  if (is_reporter) std::_Exit(static_cast<int>(ExitCode::kRunFailed));
  claim_report();
  put(STDERR_FILENO, {"eddy: ", rank_text(), what, why});
  put_notes();
  put_document("resource exhausted", what, "4");
  note_end(static_cast<int>(ExitCode::kRunFailed));
  std::_Exit(static_cast<int>(ExitCode::kRunFailed));
}

void end_without_memory() {
  end_with_report("out of memory",
                  ": the system gives no more; use smaller inputs, or raise its "
                  "limit (ulimit -v)");
}

void end_by_exception() {
  try {
    if (std::current_exception()) throw;
    put(STDERR_FILENO, {"eddy: std::terminate without an exception; a thread was not joined, or a "
                        "pure virtual function called\n"});
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (const std::runtime_error& error) {
    end_with_report("the system refuses something, a thread perhaps (ulimit -u): ", error.what());
  } catch (const std::exception& error) {
    put(STDERR_FILENO, {"eddy: nothing catches ", typeid(error).name(), ": ", error.what(), "\n"});
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    put(STDERR_FILENO, {"eddy: nothing catches what is thrown, a ",
                        type == nullptr ? "foreign exception" : type->name(), "\n"});
  }
  std::abort();
}

void report_signals_of_defects() {
  if (EDDY_HAS_ASAN || EDDY_HAS_TSAN) return;
  static std::array<char, 64 * 1024> stack_of_handlers;  // where the thread's own has overflowed
  stack_t stack = {};
  stack.ss_sp = stack_of_handlers.data();
  stack.ss_size = stack_of_handlers.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = report_defect;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  for (const Defect& defect : kDefects) sigaction(defect.signal, &action, nullptr);
}

WorkNote::WorkNote() {
  for (size_t place = 0; place < kMost && place_ == kMost; ++place) {
    if (!notes[place].is_taken.exchange(true, std::memory_order_acquire)) place_ = place;
  }
}

WorkNote::~WorkNote() {
  if (place_ == kMost) return;
  notes[place_].size_bytes.store(0, std::memory_order_relaxed);
  notes[place_].is_taken.store(false, std::memory_order_release);
}

void WorkNote::set(std::string_view text) {
  if (place_ == kMost) return;
  Note& note = notes[place_];
  text = text.substr(0, kLongest);
  note.size_bytes.store(0, std::memory_order_relaxed);
  std::memcpy(note.text, text.data(), text.size());
  note.size_bytes.store(text.size(), std::memory_order_release);
}

}  // namespace eddy
