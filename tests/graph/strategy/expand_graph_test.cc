// Loops and branches wait for what they read and cross links for it, by as many bytes as are read:
// into a loop once, into a branch where it is taken, out of both where a later operator reads. A
// chain of operators costs the same with a loop of one turn around any stretch of it as without.
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "tests/graph/strategy/loop_files.h"

namespace eddy::loop_files {
namespace {

TEST(ExpandGraph, ALoopFedFromAnotherDeviceWaitsForOneTransfer) {
  const std::vector<Placed> strategy = {{"start", {"x"}}, {"step", {"y"}}};
  const Text reading =
      file({op("start", 1), loop("loop", {}, 3, {op("step", 10, {"start"})})}, strategy);
  EXPECT_EQ(worst(reading), 1 + 32 + 3 * 10);
  // A value that only the loop names is sent to the operators that wait for nothing.
  const Text naming =
      file({op("start", 1), loop("loop", {"start"}, 3, {op("step", 10)})}, strategy);
  EXPECT_EQ(worst(naming), 1 + 32 + 3 * 10);
  const std::vector<Placed> at_home = {{"start", {"y"}}, {"step", {"y"}}};
  EXPECT_EQ(
      worst(file({op("start", 1), loop("loop", {}, 3, {op("step", 10, {"start"})})}, at_home)),
      1 + 3 * 10);
}

// The inner loop waits for another operator, so what the outer one names is not for it.
TEST(ExpandGraph, WhatALoopNamesGoesToThoseThatWaitForNothing) {
  const Text inner = loop("inner", {"first"}, 1, {op("step", 1)});
  EXPECT_EQ(totals(file({op("start", 1), loop("outer", {"start"}, 1, {op("first", 1), inner})},
                        {{"start", {"x"}}, {"first", {"x"}}, {"step", {"y"}}}))
                .transfers,
            32);
}

// A loop in it that waits for the value does not read it.
TEST(ExpandGraph, WhatALoopNamesGoesToItUnlessAnOperatorInItReadsThat) {
  const auto naming = [](const Text& inner) {
    return totals(file({op("start", 1), loop("outer", {"start"}, 1, {op("first", 1), inner})},
                       {{"start", {"x"}}, {"first", {"y"}}, {"step", {"x"}}}))
        .transfers;
  };
  EXPECT_EQ(
      naming(carrying({carried("state", "step", "start")}, loop("inner", {}, 1, {op("step", 1)}))),
      32);
  EXPECT_EQ(naming(loop("inner", {"start"}, 1, {op("step", 1)})), 32);
  EXPECT_EQ(naming(loop("inner", {}, 1, {op("step", 1, {"start"})})), 0);
  EXPECT_EQ(naming(carrying({carried("state", "step", "start")},
                            loop("inner", {}, 1, {op("step", 1, {"state"})}))),
            0);
}

// On the first device, w, behind what that has to do: the inner decision is on x, the step on y.
TEST(ExpandGraph, ADecisionIsWhereAllInItsListsIsOrOnTheFirstDevice) {
  const auto deciding = [](const char* device_of_inner) {
    Text inner = loop("inner", {}, 0, {});
    inner.insert(1, R"("decision": {"time": 1, "device": ")" + Text(device_of_inner) + "\"},");
    Text outer = loop("outer", {}, 1, {op("step", 10), inner});
    outer.insert(1, R"("decision": {"time": 5},)");
    return worst(file({op("beside", 100), outer}, {{"beside", {"w"}}, {"step", {"y"}}},
                      R"({"devices": ["w", "x", "y"]})"));
  };
  EXPECT_EQ(deciding("x"), 100 + 5 + 10 + 5);
  EXPECT_EQ(deciding("y"), 100);
}

// The operator that the inner loop has on x counts, too, though its decision is on y: the outer one
// is on w, the first device.
TEST(ExpandGraph, ADecisionIsWhereAllIsAtAnyDepth) {
  const auto deciding = [](const char* device_of_inner_step) {
    Text inner = loop("inner", {}, 1, {op("look", 1)});
    inner.insert(1, R"("decision": {"time": 1, "device": "y"},)");
    Text outer = loop("outer", {}, 1, {op("step", 10), inner});
    outer.insert(1, R"("decision": {"time": 5},)");
    return worst(file({op("beside", 100), outer},
                      {{"beside", {"w"}}, {"step", {"y"}}, {"look", {device_of_inner_step}}},
                      R"({"devices": ["w", "x", "y"]})"));
  };
  EXPECT_EQ(deciding("x"), 100 + 5 + 10 + (1 + 1 + 1) + 5);
  EXPECT_EQ(deciding("y"), 100);
}

TEST(ExpandGraph, WhoReadsALoopFromAnotherDeviceWaitsForItsResult) {
  const std::vector<Placed> strategy = {{"step", {"x"}}, {"finish", {"y"}}};
  EXPECT_EQ(
      worst(file({loop("loop", {}, 2, {op("step", 10)}), op("finish", 1, {"loop"})}, strategy)),
      2 * 10 + 32 + 1);
}

TEST(ExpandGraph, AResultIsWhatNobodyInTheListReads) {
  const std::vector<Placed> strategy = {
      {"first", {"x"}}, {"second", {"y"}}, {"finish", {"y"}}, {"start", {"x"}}};
  // `first` is read by `second`, so only that is the result, and is there already.
  const Text document =
      file({op("start", 1),
            loop("loop", {"start"}, 1, {op("first", 10, {"start"}), op("second", 10, {"first"})}),
            op("finish", 1, {"loop"})},
           strategy);
  EXPECT_EQ(worst(document), 1 + 10 + 32 + 10 + 1);
}

TEST(ExpandGraph, AnInnerLoopIsFedBeforeTheOuterOneBegins) {
  const std::vector<Placed> strategy = {{"start", {"x"}}, {"step", {"y"}}};
  const Text inner = loop("inner", {}, 2, {op("step", 10, {"start"})});
  EXPECT_EQ(worst(file({op("start", 1), loop("outer", {}, 3, {inner})}, strategy)),
            1 + 32 + 3 * 2 * 10);
}

TEST(ExpandGraph, ABranchPaysForItsTransfersOnlyWhereItIsTaken) {
  const auto branching = [](int taken) {
    const Texts branches = {list({op("near", 5, {"start"})}), list({op("far", 5, {"start"})})};
    const Text gate = R"({"name": "gate", "type": "case", "trace": [)" + std::to_string(taken) +
                      R"(], "branches": )" + list(branches) + "}";
    return file({op("start", 1), gate, op("finish", 1, {"gate"})},
                {{"start", {"x"}}, {"near", {"x"}}, {"far", {"y"}}, {"finish", {"x"}}});
  };
  EXPECT_EQ(worst(branching(0)), 1 + 5 + 1);
  EXPECT_EQ(worst(branching(1)), 1 + 32 + 5 + 32 + 1);
}

// The first branch is taken in each turn; the other one's result is not sent.
TEST(ExpandGraph, ABranchReadsALoopBesideItOnlyWhereItIsTaken) {
  const auto reading = [](int taken, bool is_deep, bool is_forward) {
    Text gate = branching("gate", taken, {{op("use", 1, {"loop"})}, {op("skip", 1)}});
    if (is_deep) gate = branching("outer", taken, {{gate}, {op("other", 1)}});
    Texts operators = {loop("loop", {}, 3, {op("step", 10)}), gate};
    if (is_forward) std::swap(operators[0], operators[1]);
    std::vector<Placed> strategy = {{"step", {"x"}}, {"use", {"y"}}, {"skip", {"x"}}};
    if (is_deep) strategy.push_back({"other", {"x"}});
    return totals(file(operators, strategy)).transfers;
  };
  for (const bool is_deep : {false, true}) {
    for (const bool is_forward : {false, true}) {
      EXPECT_EQ(reading(0, is_deep, is_forward), 32);
      EXPECT_EQ(reading(1, is_deep, is_forward), 0);
    }
  }
}

// The first one's branches make 32 bytes on x and on y.
TEST(ExpandGraph, ABranchReadsWhatAnEarlierOneMadeOnlyWhereItIsTaken) {
  const auto reading = [](int made, int taken, bool is_forward) {
    Texts operators = {branching("first", made, {{op("near", 1)}, {op("far", 1)}}),
                       branching("gate", taken, {{op("use", 1, {"first"})}, {op("skip", 1)}})};
    if (is_forward) std::swap(operators[0], operators[1]);
    const Text turns = loop("loop", {}, 2, operators);
    return totals(file({turns}, {{"near", {"y"}}, {"far", {"x"}}, {"use", {"y"}}, {"skip", {"x"}}}))
        .transfers;
  };
  for (const bool is_forward : {false, true}) {
    EXPECT_EQ(reading(0, 0, is_forward), 0);
    EXPECT_EQ(reading(1, 0, is_forward), 2 * 32);
    EXPECT_EQ(reading(0, 1, is_forward), 0);
    EXPECT_EQ(reading(1, 1, is_forward), 0);
  }
}

TEST(ExpandGraph, OutOfALoopGoesWhatTheBranchTakenLastMade) {
  const auto transfers = [](const char* near, const char* far, const Text& body) {
    return totals(file({loop("loop", {}, 3, {body}), op("finish", 1, {"loop"})},
                       {{"near", {near}}, {"far", {far}}, {"finish", {"x", "y"}}}))
        .transfers;
  };
  const Text gate = branching("gate", 0, {{op("near", 5)}, {op("far", 5)}});
  EXPECT_EQ(transfers("x", "x", gate), 16);
  EXPECT_EQ(transfers("x", "y", gate), 16);
  EXPECT_EQ(transfers("x", "x", loop("inner", {}, 2, {gate})), 16);
  EXPECT_EQ(transfers("x", "x", branching("outer", 1, {{}, {gate}})), 16);
  EXPECT_EQ(transfers("x", "x", branching("outer", 1, {{}, {loop("inner", {}, 2, {gate})}})), 16);
}

TEST(ExpandGraph, WhoReadsWhatABranchInALoopMadeWaitsForIt) {
  const Text gate = branching("gate", 1, {{op("near", 5)}, {op("far", 5)}});
  EXPECT_EQ(worst(file({loop("loop", {}, 2, {gate}), op("finish", 1, {"loop"})},
                       {{"near", {"x"}}, {"far", {"x"}}, {"finish", {"y"}}})),
            2 * 5 + 32 + 1);
  // Beside the link to y, that to the loop.
  EXPECT_EQ(
      worst(file({loop("loop", {}, 2, {gate}), loop("next", {}, 1, {op("finish", 1, {"loop"})})},
                 {{"near", {"y"}}, {"far", {"x"}}, {"finish", {"y"}}})),
      2 * 5 + 32 + 1);
}

TEST(ExpandGraph, TheBodyReadsWhatBeforeMadeInEachTurn) {
  const auto turning = [](const char* device) {
    return file({loop("loop", {}, 2, {op("step", 10, {"test"})}, {op("test", 1)})},
                {{"test", {"x"}}, {"step", {device}}});
  };
  EXPECT_EQ(worst(turning("x")), 3 * 1 + 2 * 10);
  EXPECT_EQ(worst(turning("y")), 3 * 1 + 2 * (32 + 10));
}

TEST(ExpandGraph, TheBodyReadsALoopOfBefore) {
  const Texts before = {loop("search", {}, 2, {op("look", 1)})};
  const Text document = file({loop("loop", {}, 1, {op("step", 10, {"search"})}, before)},
                             {{"look", {"x"}}, {"step", {"y"}}});
  EXPECT_EQ(worst(document), 2 + 32 + 10 + 2);
}

TEST(ExpandGraph, LoopsAndBranchesOfBeforeAreReadAfterTheDecision) {
  const auto reading = [](int trips, const Text& made) {
    const Text body = op("use", 1, {"inner"});
    return totals(file({loop("loop", {}, trips, {body}, {made})},
                       {{"near", {"y"}}, {"far", {"x"}}, {"use", {"y"}}}))
        .transfers;
  };
  for (const int trips : {0, 1, 3}) {
    const Texts both = {op("near", 1), op("far", 1)};
    EXPECT_EQ(reading(trips, loop("inner", {}, 2, {op("far", 1)}, {op("near", 1)})), trips * 32);
    EXPECT_EQ(reading(trips, branching("inner", 1, {{both[0]}, {both[1]}})), trips * 32);
    EXPECT_EQ(reading(trips, branching("inner", 0, {{both[0]}, {both[1]}})), 0);
  }
}

TEST(ExpandGraph, OnlyWhatIsReadOfAPartCrosses) {
  const Text step = op("step", 8, {"start"});
  const auto cut = [&](const Texts& start, const Texts& devices) {
    return totals(
        file({op("start", 8), loop("loop", {}, 1, {step})}, {{"start", start}, {"step", devices}}));
  };
  EXPECT_EQ(cut({"x", "y"}, {"x", "y"}).transfers, 0);
  EXPECT_EQ(cut({"x", "y"}, {"y", "x"}).transfers, 32);
  EXPECT_EQ(cut({"x", "y"}, {"y"}).transfers, 16);
  EXPECT_EQ(cut({"x"}, {"x", "x", "y", "x"}).transfers, 8);
}

// The sum of tile 0, on x, waits for a slow link; that of tile 1 is there long before.
constexpr char kProduct[] = R"({"name": "product", "type": "matmul", "shape": [8, 8],
    "in_features": 8, "exe_by_tile": {"4x8": 1}})";
constexpr char kStep[] = R"({"name": "step", "type": "elementwise", "shape": [8, 8],
    "inputs": ["product"], "exe_by_tile": {"4x8": 1}})";

Text reading_a_cut_product(const Text& reader, const Text& devices) {
  return R"({"operators": [)" + Text(kProduct) + "," + reader + R"(], "strategy": {
      "product": {"degree": [2, 1], "reduce": 2, "devices": ["x", "y", "z", "z"]},
      "step": {"degree": [2, 1], "devices": )" +
         devices + R"(}}, "topology": {"devices": ["x", "y", "z"], "links": [
      {"from": "x", "to": "z", "bandwidth": 128}, {"from": "z", "to": "x", "bandwidth": 128},
      {"from": "y", "to": "x", "bandwidth": 1.28}]}})";
}

TEST(ExpandGraph, EachTileOfACutReductionIsSentWhenItsOwnSumHasEnded) {
  const Text far = R"(["z", "z"])";
  const Text inner = loop("loop", {}, 1, {kStep});
  EXPECT_EQ(worst(reading_a_cut_product(inner, far)), 1 + 100 + 1 + 2);
  EXPECT_EQ(worst(reading_a_cut_product(loop("outer", {}, 1, {inner}), far)), 1 + 100 + 1 + 2);
}

TEST(ExpandGraph, ALoopWaitsForTheSumsOfWhatItReadsAtHome) {
  EXPECT_EQ(worst(reading_a_cut_product(loop("loop", {}, 1, {kStep}), R"(["x", "z"])")),
            1 + 100 + 1);
}

TEST(ExpandGraph, AProductReadsALoopWithoutInFeatures) {
  const Text product = R"({"name": "product", "type": "matmul", "shape": [8, 4],
                           "inputs": ["loop"], "exe_by_tile": {"8x4": 3}})";
  const Text step = R"({"name": "step", "type": "elementwise", "shape": [8, 2],
                        "exe_by_tile": {"8x2": 1}})";
  EXPECT_EQ(worst(file({loop("loop", {}, 2, {step}), product},
                       {{"step", {"x"}, 2}, {"product", {"y"}, 2}})),
            2 * 1 + 8 * 2 * 4 + 3);
}

TEST(ExpandGraph, AResultThatDoesNotFitItsReaderIsReadWhole) {
  const Text step = R"({"name": "step", "type": "elementwise", "shape": [3],
                        "exe_by_tile": {"3": 1}})";
  EXPECT_EQ(worst(file({loop("loop", {}, 1, {step}), op("finish", 1, {"loop"})},
                       {{"step", {"x"}}, {"finish", {"y"}}})),
            1 + 3 * 4 + 1);
}

TEST(ExpandGraph, InputsFromListsBesideAreRefusedAndNamed) {
  const Text document = file({loop("loop", {}, 1, {op("step", 1)}), op("finish", 1, {"step"})},
                             {{"step", {"x"}}, {"finish", {"x"}}});
  EXPECT_EQ(refusal(document),
            "operator 'finish': 'step' is inside a loop or branch that this one is not in; only "
            "operators of the same list and of lists around it can be inputs");
  const Text backward = file({loop("loop", {}, 1, {op("step", 1)}, {op("test", 1, {"step"})})},
                             {{"step", {"x"}}, {"test", {"x"}}});
  EXPECT_NE(refusal(backward).find("'step' is inside a loop"), std::string::npos);
  const Text nowhere = file({loop("loop", {"none"}, 1, {op("step", 1)})}, {{"step", {"x"}}});
  EXPECT_NE(refusal(nowhere).find("is called 'none'"), std::string::npos) << refusal(nowhere);
  const Text itself = file({loop("loop", {"loop"}, 1, {op("step", 1)})}, {{"step", {"x"}}});
  EXPECT_NE(refusal(itself).find("depends on itself"), std::string::npos) << refusal(itself);
}

// Each operator makes 32 bytes.
TEST(ExpandGraph, MemoryIsThatOfAllListsAliveTogether) {
  const auto kept = [](const Texts& operators, int limit) {
    const Text topology = R"({"devices": ["x"], "memory_bytes": )" + std::to_string(limit) + "}";
    std::vector<Placed> strategy;
    for (const char* name : {"start", "test", "step", "near", "far"}) {
      if (list(operators).find(Text(name) + "\"") == Text::npos) continue;
      strategy.push_back({name, {"x"}});
    }
    return refusal(file(operators, strategy, topology));
  };
  const Texts looping = {op("start", 1), loop("loop", {}, 3, {op("step", 1)}, {op("test", 1)})};
  EXPECT_EQ(kept(looping, 3 * 32), "");
  EXPECT_EQ(
      kept(looping, 3 * 32 - 1),
      "device 'x' would hold 96 bytes, its limit is 95; spread the operators over more devices");
  const Texts choosing = {op("start", 1), branching("gate", 0, {{op("near", 1)}, {op("far", 1)}})};
  EXPECT_EQ(kept(choosing, 2 * 32), "") << "one branch at a time";
  EXPECT_NE(kept(choosing, 2 * 32 - 1), "");
}

TEST(ExpandGraph, WeightsOfAllBranchesAreKept) {
  const auto product = [](const char* name) {
    return Text(R"({"name": ")") + name + R"(", "type": "matmul", "shape": [2, 2],
        "in_features": 2, "exe_by_tile": {"2x2": 1}})";
  };
  const auto kept = [&](int limit) {
    return refusal(file({branching("gate", 0, {{product("near")}, {product("far")}})},
                        {{"near", {"x"}, 2}, {"far", {"x"}, 2}},
                        R"({"devices": ["x"], "memory_bytes": )" + std::to_string(limit) + "}"));
  };
  EXPECT_EQ(kept(4 * (4 + 4 + 4)), "");
  EXPECT_NE(kept(4 * (4 + 4 + 4) - 1), "");
}

TEST(ExpandGraph, AMissingLinkIsNamed) {
  const Text document = file({op("start", 1), loop("loop", {}, 1, {op("step", 1, {"start"})})},
                             {{"start", {"x"}}, {"step", {"y"}}}, R"({"devices": ["x", "y"]})");
  EXPECT_EQ(refusal(document),
            "no link leads from 'x' to 'y', which 'step' needs; add one to the topology");
}

// The operators as one branch of two; those of the other one are on random devices, too.
Text as_branch(const Texts& operators, Random& random, std::vector<Placed>& strategy) {
  const auto taken = static_cast<size_t>(random.below(2));
  std::vector<Texts> branches(2);
  branches[taken] = operators;
  branches[1 - taken] = {op("other", 8)};
  strategy.push_back({"other", {Text(1, static_cast<char>('a' + random.below(4)))}});
  return branching("gate", static_cast<int>(taken), branches);
}

// A chain of operators on random devices, without and with a loop around a stretch of it, or a
// loop around a branch.
Chain random_chain(Random& random, bool is_cut) {
  const uint64_t count = 3 + random.below(6);
  const uint64_t first = random.below(count);
  const uint64_t last = first + random.below(count - first);
  // A loop that never turns makes the other a file of scenarios, too.
  Texts flat = {loop("nothing", {}, 0, {})};
  Texts outside;
  Texts inside;
  std::vector<Placed> strategy;
  for (uint64_t i = 0; i < count; ++i) {
    const Text name = "op" + std::to_string(i);
    const double time = 8.0 * static_cast<double>(random.below(5));
    const Text before = "op" + std::to_string(i - 1);
    const Texts inputs = i > 0 ? Texts{before} : Texts{};
    flat.push_back(op(name, time, inputs));
    (i >= first && i <= last ? inside : outside)
        .push_back(op(name, time, i == last + 1 ? Texts{"loop"} : inputs));
    Placed& placed = strategy.emplace_back(Placed{name, {}});
    for (uint64_t parts = is_cut ? uint64_t{1} << random.below(3) : 1; parts > 0; --parts) {
      placed.devices.push_back(Text(1, static_cast<char>('a' + random.below(4))));
    }
  }
  const Text without = file(flat, strategy, kRing);
  if (random.below(2) == 0) inside = {as_branch(inside, random, strategy)};
  outside.push_back(loop("loop", {}, 1, inside));
  return {without, file(outside, strategy, kRing)};
}

// Where operators are cut, parts that wait for others may go earlier or later: the makespan is not
// compared.
TEST(ExpandGraph, AChainCostsTheSameWithALoopOfOneTurnAroundAnyStretch) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool is_cut = seed % 2 == 0;
    const Chain chain = random_chain(random, is_cut);
    const Totals without = totals(chain.flat);
    const Totals with = totals(chain.looped);
    EXPECT_EQ(without.work, with.work);
    EXPECT_EQ(without.transfers, with.transfers);
    if (!is_cut) {
      EXPECT_EQ(without.makespan, with.makespan);
    }
  }
}

}  // namespace
}  // namespace eddy::loop_files
