// What is wrong in a file with loops and branches is named, and where; nothing in it goes unread.
#include "graph/strategy/scenario_file.h"

#include <gtest/gtest.h>

#include "tests/graph/strategy/loop_files.h"

namespace eddy::loop_files {
namespace {

// A loop of one operator, with these fields.
Text looping(const Text& fields) {
  return R"({"name": "loop", "type": "while", "body": [)" + op("step", 1) + "], " + fields + "}";
}

constexpr char kWithSwitch[] = R"({"devices": ["x"], "switches": ["s"]})";

std::string refused(const Text& fields) {
  return refusal(file({looping(fields)}, {{"step", {"x"}}}, kWithSwitch));
}

TEST(ScenarioFile, DecisionsThatSayNothingAreNamed) {
  EXPECT_EQ(refused(R"("distribution": [])"),
            "'loop': \"distribution\" is empty; say what happens at least once");
  EXPECT_EQ(refused(R"("trace": [])"),
            "'loop': \"trace\" is empty; say what happens at least once");
  EXPECT_EQ(refusal(file({R"({"name": "gate", "type": "case", "probabilities": [],
                             "branches": [[]]})"},
                         {})),
            "'gate': \"probabilities\" is empty; say what happens at least once");
}

TEST(ScenarioFile, ValuesBeyondAnIntegerAreRefused) {
  EXPECT_EQ(refused(R"("distribution": [[18446744073709551615, 1]])"),
            "'loop': \"distribution\": 18446744073709551615 is above 2^63 - 1");
  EXPECT_EQ(refused(R"("distribution": [[-1, 1]])"), "") << "refused when it is simulated";
}

TEST(ScenarioFile, ADecisionNeedsADeviceThatComputes) {
  EXPECT_EQ(refused(R"("trips": 1, "decision": {"time": 1, "device": "s"})"),
            "'loop': decision: 's' is a switch; decisions take a device that computes");
  EXPECT_EQ(refused(R"("trips": 1, "decision": {"device": "z"})"),
            "'loop': decision: the topology has no device 'z'");
}

TEST(ScenarioFile, AStrategyIsOfOperators) {
  const Text loop = looping(R"("trips": 1, "carried": [{"name": "state", "next": "step"}])");
  const auto with = [&](const char* name) {
    return refusal(file({loop}, {{"step", {"x"}}, {name, {"x"}}}));
  };
  EXPECT_EQ(with("loop"),
            "the strategy names 'loop', which is no operator; name those inside a loop or branch");
  EXPECT_EQ(with("state"),
            "the strategy names 'state', which is no operator; name those inside a loop or branch");
  EXPECT_EQ(with("none"), "the strategy names 'none', which is no operator");
}

}  // namespace
}  // namespace eddy::loop_files
