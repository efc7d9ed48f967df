// Claim: eddy bench embedding measures runs, loops, operators and round trips through the C
// interface beside the C++ one, and their results are equal.
#include <gtest/gtest.h>

#include <map>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

TEST(BenchEmbedding, ARowForEachCaseAndWay) {
  const Finished run =
      run_eddy({"bench", "embedding", "--rounds", "2", "--budget", "0.1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.json()["differences"].empty());
  std::map<std::string, int> ways;
  const json rows = run.json()["rows"];
  for (const json& row : rows) {
    ++ways[row["case"].get<std::string>()];
    if (!row.contains("ns")) continue;
    EXPECT_GT(row["ns"]["median_ns"], 0) << row;
  }
  EXPECT_GE(ways["identity"], 3) << "ONNX Runtime is a fourth where it is installed";
  EXPECT_EQ(ways["loop"], 2);
  EXPECT_EQ(ways["operator"], 2);
  EXPECT_EQ(ways["round trip"], 3);
  EXPECT_EQ(ways["round, idle"], 3);
}

}  // namespace
}  // namespace eddy::test
