// Claim: a Status holds what, where and why; success costs nothing and stays success.
// A long name is shown by its ends.
#include "graph/base/status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph/base/shortened.h"

namespace eddy {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return invalid_argument(std::to_string(x) + " is odd");
  return x / 2;
}

Status quarter(int x, int& out) {
  EDDY_ASSIGN_OR_RETURN(const int first, half(x));
  EDDY_ASSIGN_OR_RETURN(out, half(first));
  return Status::ok();
}

TEST(StatusTest, PathsGrowFromTheInsideOut) {
  Status status = run_failed("index 7 is out of range");
  status.prepend_path("Gather").prepend_path("decode[3]");
  EXPECT_EQ(status.path(), "decode[3]/Gather");
  EXPECT_EQ(status.to_string(), "run failed: at decode[3]/Gather: index 7 is out of range");
}

TEST(StatusTest, WhateverNamesAreQuotedTheTextIsOneLine) {
  Status status = invalid_argument("node 'a\nb' is\x7f bad\t");
  status.prepend_message("file\r\n");
  status.prepend_path("loop\n");
  status.append_message("mend\nit");
  EXPECT_EQ(status.to_string(), "invalid argument: at loop?: file??: node 'a?b' is? bad?; mend?it");
}

TEST(StatusTest, SuccessHasNoTextAndTakesNone) {
  Status status;
  status.prepend_path("a").prepend_message("b");
  EXPECT_TRUE(status.is_ok());
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_EQ(status.message(), "");
}

TEST(StatusTest, CopiesAreIndependent) {
  const Status original = cancelled("stop");
  Status copy = original;
  copy.prepend_message("outer");
  EXPECT_EQ(original.message(), "stop");
  EXPECT_EQ(copy.message(), "outer: stop");
}

TEST(StatusTest, LongNamesAreShownByTheirEnds) {
  EXPECT_EQ(shortened("name"), "name");
  EXPECT_EQ(shortened(std::string(120, 'a')), std::string(120, 'a'));
  EXPECT_EQ(shortened(std::string(3000, 'a') + std::string(2000, 'z')),
            std::string(59, 'a') + "..." + std::string(58, 'z'));
  EXPECT_EQ(shortened("abcdefghij", 8), "abc...ij");
  // Letters of two bytes are whole, and never more bytes than wanted.
  EXPECT_EQ(shortened("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", 8), "\u00e4...\u00e4");
  Status status = invalid_argument("no");
  status.prepend_path(std::string(5000, 'n'));
  EXPECT_EQ(status.path().size(), 5000u);  // whole: programs look nodes up by it
  EXPECT_EQ(shown_path(status).size(), 400u);
}

TEST(StatusTest, EveryCodeHasItsOwnName) {
  std::vector<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    const std::string_view name = status_code_name(static_cast<StatusCode>(code));
    EXPECT_EQ(std::find(names.begin(), names.end(), name), names.end()) << name;
    names.push_back(name);
  }
}

TEST(ResultTest, TheMacrosPassFailuresOn) {
  int out = 0;
  EXPECT_TRUE(quarter(8, out).is_ok());
  EXPECT_EQ(out, 2);
  EXPECT_EQ(quarter(6, out).message(), "3 is odd");
}

TEST(ResultDeathTest, TheValueOfAFailureIsAProgrammerError) {
  EXPECT_DEATH((void)half(3).value(), "3 is odd");
  EXPECT_DEATH((void)Result<int>(Status::ok()), "needs a failure");
}

}  // namespace
}  // namespace eddy
