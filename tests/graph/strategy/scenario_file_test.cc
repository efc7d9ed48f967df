// What is wrong in a file with loops and branches is named, and where; nothing in it goes unread.
#include "graph/strategy/files/operator_file.h"

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
            "'loop': decision: 's' is a switch; name a device that computes");
  EXPECT_EQ(refused(R"("trips": 1, "decision": {"device": "z"})"),
            "'loop': decision: the topology has no device 'z'");
}

TEST(ScenarioFile, AStrategyIsOfOperators) {
  const Text loop = looping(R"("trips": 1, "carried": [{"name": "state", "next": "step"}])");
  const auto with = [&](const char* name) {
    return refusal(file({loop}, {{"step", {"x"}}, {name, {"x"}}}));
  };
  for (const Text name : {"loop", "state", "none"}) {
    EXPECT_EQ(with(name.c_str()), "the strategy names '" + name +
                                      "', which is no operator; of a loop or branch, name those "
                                      "inside");
  }
}

TEST(ScenarioFile, entries_that_wait_for_each_other_are_named) {
  const std::vector<Placed> strategy = {{"first", {"x"}}, {"step", {"x"}}};
  const Text loop_of_first = loop("loop", {}, 1, {op("step", 1, {"first"})});
  EXPECT_EQ(refusal(file({op("first", 1, {"loop"}), loop_of_first}, strategy)),
            "'first' depends on itself: it waits for 'loop', which waits for 'first'");
  EXPECT_EQ(refusal(file({loop("loop", {}, 1, {op("step", 1, {"loop"})})}, {{"step", {"x"}}})),
            "'loop' depends on itself");
}

TEST(ScenarioFile, a_case_needs_a_branch) {
  EXPECT_EQ(refusal(file({R"({"name": "gate", "type": "case", "probabilities": [1],
                             "branches": []})"},
                         {})),
            "'gate': a case needs at least one branch");
}

}  // namespace
}  // namespace eddy::loop_files
