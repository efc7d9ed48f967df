// Claim: every option that takes a seed refuses what is no whole number from 0, in one line that
// names the option and what was given; the largest seed is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using Words = std::vector<std::string>;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Seeds, AreWholeNumbersFromZero) {
  const std::pair<Words, std::string> options[] = {
      {{"run", "a.onnx"}, "--random-inputs"}, {{"measure", "a.onnx"}, "--random-inputs"},
      {{"run", "a.onnx"}, "--seed"},          {{"plan", "a.onnx"}, "--seed"},
      {{"train", "a.onnx"}, "--seed"},        {{"simulate", "a.onnx"}, "--seed"},
      {{"bench", "nets"}, "--seed"}};
  for (const auto& [command, option] : options) {
    const auto run = [&, &option = option](const std::string& seed) {
      Words arguments = command;
      arguments.insert(arguments.end(), {option, seed});
      return run_eddy(arguments);
    };
    SCOPED_TRACE(command[0] + " " + option);
    for (const std::string seed : {"-1", "1.5", "x", "", "1e3", "99999999999999999999"}) {
      const Finished refused = run(seed);
      EXPECT_EQ(refused.exit_code, 2) << refused.err;
      EXPECT_TRUE(is_one_line(refused.err)) << refused.err;
      EXPECT_THAT(refused.err, HasSubstr(option));
      EXPECT_THAT(refused.err, HasSubstr(seed));
    }
    if (command[0] == "bench") continue;  // it would measure
    const std::string largest = "18446744073709551615";
    EXPECT_THAT(run(largest).err, Not(HasSubstr("give a seed")));
  }
}

}  // namespace
}  // namespace eddy::test
