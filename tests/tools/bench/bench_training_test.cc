// Claim: eddy bench training measures each loop forward and with each policy, says what an
// iteration keeps, and times the pass itself; networks, models of the literature among them,
// forward and a step, with the planned peak over its bound; without PyTorch its column is empty.
#include <gtest/gtest.h>

#include <map>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

json rows_of(const std::string& filter) {
  const Finished run = run_eddy(
      {"bench", "training", "--filter", filter, "--rounds", "1", "--budget", "0.01", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? run.json()["rows"] : json::array();
}

TEST(BenchTraining, ARowForEachWayWithWhatIsKept) {
  std::map<std::string, std::string> kept;
  for (const json& row : rows_of("tanh")) {
    EXPECT_GT(row["ns"]["median_ns"], 0) << row;
    kept[row["way"].get<std::string>()] = row["kept"].get<std::string>();
  }
  const std::map<std::string, std::string> expected = {
      {"forward", ""}, {"all", "128 B"}, {"carried", "0+64 B"}, {"grow", "128+64 B"}};
  EXPECT_EQ(kept, expected);
  for (const json& row : rows_of("power")) {
    EXPECT_EQ(row["kept"] == "4 B", row["way"] == "all") << row;
  }
}

TEST(BenchTraining, ModelsTakeStepsAndHaveAPlannedPeak) {
  for (const char* name : {"tree b1", "seq2seq b1"}) {
    std::map<std::string, std::string> kept;
    for (const json& row : rows_of(name)) {
      EXPECT_EQ(row["case"], name);
      EXPECT_GT(row["ns"]["median_ns"], 0) << row;
      kept[row["way"].get<std::string>()] = row["kept"].get<std::string>();
    }
    ASSERT_EQ(kept.size(), 3u) << name;
    EXPECT_EQ(kept["forward"], "");
    EXPECT_EQ(kept["gradient"], "");
    EXPECT_NE(kept["step"].find(" x bound"), std::string::npos) << kept["step"];
  }
}

TEST(BenchTraining, UnknownCasesAreRefused) {
  const Finished run = run_eddy({"bench", "training", "--filter", "nothing"});
  EXPECT_NE(run.exit_code, 0);
}

}  // namespace
}  // namespace eddy::test
