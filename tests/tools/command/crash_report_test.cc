// Claim: of several threads that find no memory at once, one reports it, in one line and one
// document, and the command ends with exit code 4; the others neither report nor hang. A command
// that a defect ends names it, and what each of its jobs was at, before its signal ends it.
#include "tools/command/crash_report.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <climits>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/sanitizers.h"

namespace eddy {
namespace {

void end_on_threads(int num_threads, bool says_json) {
  if (says_json) dup2(STDERR_FILENO, STDOUT_FILENO);  // the death test reads only the former
  crash_reports_are_json(says_json);
  std::barrier start(num_threads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      end_without_memory();
    });
  }
}

MATCHER_P(has_lines, count, "") { return std::ranges::count(std::string_view(arg), '\n') == count; }

TEST(CrashReport, OneOfManyThreadsTells) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EXIT(end_on_threads(8, false), testing::ExitedWithCode(4),
                testing::AllOf(testing::StartsWith("eddy: out of memory: the system gives no more"),
                               has_lines(1)));
  }
}

TEST(CrashReport, WithJsonOneDocumentSaysTheSame) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_on_threads(8, true), testing::ExitedWithCode(4),
              testing::AllOf(has_lines(2), testing::EndsWith("\"exit\": 4}}\n"),
                             testing::HasSubstr("\"message\": \"out of memory\"")));
}

// Ends the command on another thread than the jobs'.
void end_by(int signal, bool says_json) {
  if (says_json) dup2(STDERR_FILENO, STDOUT_FILENO);
  crash_reports_are_json(says_json);
  report_signals_of_defects();
  WorkNote first, second, idle;
  first.set("seed 7");
  second.set("seed 8");
  second.set("point 3 of seed 9");
  {
    WorkNote over;
    over.set("seed 1");
  }
  std::jthread([signal] { raise(signal); }).join();
}

TEST(CrashReport, ADefectIsReportedWithWhatEachJobWasAt) {
  if (EDDY_HAS_ASAN || EDDY_HAS_TSAN) GTEST_SKIP() << "sanitizers report signals themselves";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string at = " while at: seed 7; point 3 of seed 9\n";
  EXPECT_EXIT(end_by(SIGABRT, false), testing::KilledBySignal(SIGABRT),
              testing::StrEq("eddy: ended by SIGABRT" + at));
  EXPECT_EXIT(end_by(SIGSEGV, false), testing::KilledBySignal(SIGSEGV),
              testing::StrEq("eddy: ended by SIGSEGV" + at));
  EXPECT_EXIT(end_by(SIGABRT, true), testing::KilledBySignal(SIGABRT),
              testing::AllOf(has_lines(2), testing::HasSubstr("\"message\": \"ended by SIGABRT\""),
                             testing::EndsWith("\"exit\": 134}}\n")));
}

// Recurses until the stack overflows.
int overflow(int depth, int end) {
  volatile char room[4096] = {};
  room[0] = static_cast<char>(depth);
  return depth == end ? 0 : overflow(depth + 1, end) + room[0];
}

TEST(CrashReport, AStackThatOverflowsIsReported) {
  if (EDDY_HAS_ASAN || EDDY_HAS_TSAN) GTEST_SKIP() << "sanitizers report signals themselves";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((report_signals_of_defects(), overflow(0, INT_MAX)), testing::KilledBySignal(SIGSEGV),
              "eddy: ended by SIGSEGV");
}

struct Odd {};

TEST(CrashReport, WhatTerminatesWithoutAMessageIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto terminated = testing::KilledBySignal(SIGABRT);
  std::set_terminate(end_by_exception);
  EXPECT_EXIT({ std::thread([] {}); }, terminated, "eddy: std::terminate without an exception");
  EXPECT_EXIT(std::thread([] { throw Odd(); }).join(), terminated, "nothing catches .* a .*Odd");
  EXPECT_EXIT(std::thread([] { throw std::logic_error("two"); }).join(), terminated,
              "nothing catches .*logic_error: two");
  EXPECT_EXIT(std::thread([] { throw std::runtime_error("none"); }).join(),
              testing::ExitedWithCode(4), "the system refuses something.*: none");
}

}  // namespace
}  // namespace eddy
