// Claim: of several threads that find no memory at once, one tells of it, in one line and one
// document, and the command ends with exit code 4; the others neither tell nor hang.
#include "tools/command/sudden_end.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy {
namespace {

void end_on_threads(int num_threads, bool says_json) {
  if (says_json) dup2(STDERR_FILENO, STDOUT_FILENO);  // the death test reads only the former
  sudden_ends_say_json(says_json);
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

TEST(SuddenEnd, one_of_many_threads_tells) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EXIT(end_on_threads(8, false), testing::ExitedWithCode(4),
                testing::AllOf(testing::StartsWith("eddy: out of memory: the system gives no more"),
                               has_lines(1)));
  }
}

TEST(SuddenEnd, with_json_one_document_says_the_same) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_on_threads(8, true), testing::ExitedWithCode(4),
              testing::AllOf(has_lines(2), testing::EndsWith("\"exit\": 4}}\n"),
                             testing::HasSubstr("\"message\": \"out of memory\"")));
}

}  // namespace
}  // namespace eddy
