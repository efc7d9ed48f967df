// What a loop carries from turn to turn crosses links at the end of each, what it begins with once.
// A loop over a chain of operators costs as much as the chain written out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "tests/graph/strategy/loop_files.h"

namespace eddy::loop_files {
namespace {

// The first value comes from x, the next ones from where `last` is.
TEST(CarriedValues, ACarriedValueCrossesAtTheEndOfEachTurn) {
  const auto turning = [](int trips, const char* first, const char* last) {
    const Texts body = {op("first", 10, {"state"}), op("last", 5, {"first"})};
    return worst(file({op("start", 1), carrying({carried("state", "last", "start")},
                                                loop("loop", {}, trips, body))},
                      {{"start", {"x"}}, {"first", {first}}, {"last", {last}}}));
  };
  EXPECT_EQ(turning(3, "x", "x"), 1 + 3 * 15);
  EXPECT_EQ(turning(3, "x", "y"), 1 + 3 * (10 + 32 + 5 + 32));
  EXPECT_EQ(turning(3, "y", "y"), 1 + 32 + 3 * 15);
  EXPECT_EQ(turning(3, "y", "x"), 1 + 32 + 3 * (10 + 32 + 5 + 32));
  EXPECT_EQ(turning(0, "y", "x"), 1 + 32);
}

TEST(CarriedValues, BeforeReadsWhatTheBodyMade) {
  const Text document =
      file({carrying({carried("state", "step")},
                     loop("loop", {}, 2, {op("step", 10, {"test"})}, {op("test", 1, {"state"})}))},
           {{"test", {"x"}}, {"step", {"y"}}});
  EXPECT_EQ(worst(document), 3 * 1 + 2 * (32 + 10 + 32));
}

TEST(CarriedValues, WhatBeforeMadeIsCarriedPastTheDecision) {
  const auto turning = [](const Texts& body) {
    return worst(
        file({carrying({carried("state", "test")},
                       loop("loop", {}, 2, body, {op("test", 1), op("read", 2, {"state"})}))},
             {{"test", {"x"}}, {"read", {"y"}}, {"step", {"x"}}}));
  };
  EXPECT_EQ(turning({op("step", 40)}), 3 * 2 + 2 * 40) << "sent beside the step";
}

// In each turn, not once more with the last decision.
TEST(CarriedValues, WhatALoopOrBranchOfBeforeMadeIsCarriedPastTheDecision) {
  const auto turning = [](int trips, const Text& made) {
    return totals(
               file({carrying({carried("state", "inner")}, loop("loop", {}, trips, {op("step", 1)},
                                                                {op("read", 2, {"state"}), made}))},
                    {{"near", {"y"}}, {"far", {"x"}}, {"read", {"y"}}, {"step", {"x"}}}))
        .transfers;
  };
  const Text near = op("near", 1);
  const Text far = op("far", 1);
  for (const int trips : {0, 1, 3}) {
    EXPECT_EQ(turning(trips, loop("inner", {}, 2, {far}, {near})), trips * 32);
    EXPECT_EQ(turning(trips, branching("inner", 1, {{near}, {far}})), trips * 32);
    EXPECT_EQ(turning(trips, branching("inner", 0, {{near}, {far}})), 0);
  }
}

// Without a body the result is that of `before`, whatever is carried.
TEST(CarriedValues, ALoopWithoutABodyCarriesToo) {
  EXPECT_EQ(
      worst(file({carrying({carried("state", "test")},
                           loop("loop", {}, 2, {}, {op("test", 1), op("read", 2, {"state"})})),
                  op("finish", 1, {"loop"})},
                 {{"test", {"x"}}, {"read", {"y"}}, {"finish", {"y"}}})),
      3 * 2 + 2 * 32 + 32 + 1);
}

TEST(CarriedValues, OnlyWhatIsReadOfACarriedPartCrosses) {
  const auto cut = [](const Texts& devices, const Texts& of_last) {
    return totals(file({carrying({carried("state", "last")},
                                 loop("loop", {}, 2,
                                      {op("step", 8, {"state"}), op("last", 8, {"step"})}))},
                       {{"step", devices}, {"last", of_last}}))
        .transfers;
  };
  EXPECT_EQ(cut({"x", "y"}, {"x", "y"}), 0);
  EXPECT_EQ(cut({"x", "y"}, {"y", "x"}), 2 * (32 + 32));
  EXPECT_EQ(cut({"x"}, {"x", "x", "x", "y"}), 2 * (8 + 8));
}

// Turn by turn one behind the other: what ends the chain is sent, and what each begins with.
TEST(CarriedValues, CarriedValuesFollowOneAnother) {
  const auto reading = [](const Text& name) {
    return totals(file({op("start", 1), op("other", 1),
                        carrying(
                            {carried("newer", "step", "start"), carried("older", "newer", "other"),
                             carried("round", "and", ""), carried("and", "round", "")},
                            loop("loop", {}, 4, {op("step", 1), op("read", 1, {name})}))},
                       {{"start", {"x"}}, {"other", {"y"}}, {"step", {"y"}}, {"read", {"x"}}}))
        .transfers;
  };
  EXPECT_EQ(reading("newer"), 4 * 32);
  EXPECT_EQ(reading("older"), 32 + 4 * 32);
  EXPECT_EQ(reading("round"), 0);
}

TEST(CarriedValues, InnerLoopsAndBranchesReadCarriedValues) {
  const Text inner = loop("inner", {}, 5, {op("read", 1, {"state"})});
  EXPECT_EQ(totals(file({carrying({carried("state", "step")},
                                  loop("outer", {}, 3, {op("step", 1), inner}))},
                        {{"step", {"x"}}, {"read", {"y"}}}))
                .transfers,
            3 * 32);
  const Text gate = R"({"name": "gate", "type": "case", "probabilities": [1],
                        "branches": [[)" +
                    op("taken", 1, {"state"}) + "]]}";
  // A branch may make a carried value.
  EXPECT_EQ(totals(file({carrying({carried("state", "gate")},
                                  loop("outer", {}, 3, {op("read", 1, {"state"}), gate}))},
                        {{"read", {"x"}}, {"taken", {"y"}}}))
                .transfers,
            3 * 32);
}

// A value that stays what it was outside is sent once.
TEST(CarriedValues, WhatIsCarriedFromOutsideCrossesOnce) {
  EXPECT_EQ(worst(file({op("start", 1), carrying({carried("state", "start", "start")},
                                                 loop("loop", {}, 3, {op("step", 10, {"state"})}))},
                       {{"start", {"x"}}, {"step", {"y"}}})),
            1 + 32 + 3 * 10);
}

// The first value is half as long as the others: each part of the reader gets all of it.
TEST(CarriedValues, AFirstValueOfAnotherShapeIsReadWhole) {
  const Text start = R"({"name": "start", "type": "elementwise", "shape": [4],
                         "exe_by_tile": {"4": 1}})";
  const Text body = carrying({carried("state", "last", "start")},
                             loop("loop", {}, 1, {op("step", 1, {"state"}), op("last", 1)}));
  EXPECT_EQ(
      totals(file({start, body}, {{"start", {"x"}}, {"step", {"x", "y"}}, {"last", {"x", "y"}}}))
          .transfers,
      4 * 4);
}

// As within a list: the part is on the device already.
TEST(CarriedValues, WhatAnOperatorReadsTwiceAlikeCrossesOnce) {
  const auto reading = [](const Texts& inputs) {
    return totals(file({op("start", 1), op("other", 1),
                        carrying({carried("state", "last", "start"), carried("same", "last"),
                                  carried("older", "state", "other")},
                                 loop("loop", {}, 3, {op("step", 1, inputs), op("last", 1)}))},
                       {{"start", {"x"}}, {"other", {"x"}}, {"step", {"y"}}, {"last", {"x"}}}))
        .transfers;
  };
  EXPECT_EQ(reading({"start", "start"}), 32);
  EXPECT_EQ(reading({"start", "other"}), 2 * 32);
  EXPECT_EQ(reading({"state", "start"}), 32 + 3 * 32);
  EXPECT_EQ(reading({"state", "same"}), 32 + 3 * 32);
  EXPECT_EQ(reading({"state", "older", "same"}), 2 * 32 + 3 * 32) << "each begins with its own";
}

// This turn's value has crossed when the next turn reads it as that of the turn before.
TEST(CarriedValues, WhatIsReadOfThisTurnAndTheOneBeforeCrossesOnce) {
  const Text last = op("last", 1);
  const auto turning = [](const Texts& body, const Texts& before) {
    return totals(file({op("start", 1), carrying({carried("state", "last", "start"),
                                                  carried("older", "state", "start")},
                                                 loop("loop", {}, 3, body, before))},
                       {{"start", {"x"}}, {"last", {"x"}}, {"read", {"y"}}}))
        .transfers;
  };
  EXPECT_EQ(turning({last, op("read", 1, {"state"})}, {}), 32 + 3 * 32);
  for (const Texts& inputs : {Texts{"last", "state"}, Texts{"older", "state", "last"}}) {
    const Text read = op("read", 1, inputs);
    EXPECT_EQ(turning({last, read}, {}), 32 + 3 * 32) << "in the body";
    EXPECT_EQ(turning({}, {last, read}), 32 + 4 * 32) << "in before, with each decision";
    EXPECT_EQ(turning({read}, {last}), 32 + 3 * 32) << "from before to the body";
    EXPECT_EQ(turning({last, loop("inner", {}, 2, {read})}, {}), 32 + 3 * 32) << "in a loop in it";
    EXPECT_EQ(turning({last, branching("gate", 1, {{read}, {}})}, {}), 32 + 3 * 32)
        << "a branch that may be taken in the next turn";
  }
}

// What a loop begins with is read by it, whether or not an operator in it reads the value.
TEST(CarriedValues, WhatALoopBeginsWithIsNoResultOfTheListAround) {
  const auto reading = [](const Texts& inputs) {
    const Text inner = carrying({carried("state", "step", "first")},
                                loop("inner", {}, 1, {op("step", 1, inputs)}));
    return totals(file({loop("outer", {}, 1, {op("first", 1), inner}), op("finish", 1, {"outer"})},
                       {{"first", {"x"}}, {"step", {"x"}}, {"finish", {"y", "y"}}}))
        .transfers;
  };
  EXPECT_EQ(reading({"state"}), 32) << "each part reads its half";
  EXPECT_EQ(reading({}), 32);
}

TEST(CarriedValues, ALoopWaitsForWhatItCarriesThoughNobodyReadsIt) {
  const auto carrying_unread = [](const Text& value) {
    return worst(file({op("start", 10), carrying({value}, loop("loop", {}, 1, {op("step", 1)}))},
                      {{"start", {"x"}}, {"step", {"y"}}}));
  };
  EXPECT_EQ(carrying_unread(carried("state", "step", "start")), 10 + 1);
  EXPECT_EQ(carrying_unread(carried("state", "start")), 10 + 1);
  EXPECT_EQ(carrying_unread(carried("state", "step")), 10);
}

TEST(CarriedValues, BadCarriedValuesAreNamed) {
  const auto refused = [](const Text& value) {
    return refusal(file({op("start", 1), carrying({value}, loop("loop", {}, 1, {op("step", 1)}))},
                        {{"start", {"x"}}, {"step", {"x"}}}));
  };
  EXPECT_EQ(refused(carried("state", "none")),
            "'loop': carried 'state': no operator of the loop or of lists around is called 'none', "
            "its \"next\"");
  EXPECT_EQ(
      refused(carried("state", "step", "step")),
      "'loop': carried 'state': no operator outside the loop is called 'step', its \"initial\"");
  EXPECT_EQ(refused(carried("start", "step")),
            "'loop': two operators, loops, branches or carried values are called 'start'; names "
            "are unique in the whole file");
  EXPECT_EQ(refused("{\"next\":\"step\"}"), "'loop': carried value 0 needs \"name\"");
  EXPECT_NE(refused("{\"name\":\"state\"}").find("\"next\""), std::string::npos);
  EXPECT_EQ(
      refused(carried("state", "loop")),
      "'loop': carried 'state': its \"next\" is the loop itself; name what makes the value in it");
  EXPECT_EQ(
      refused(carried("state", "step", "loop")),
      "'loop': carried 'state': no operator outside the loop is called 'loop', its \"initial\"");
  const Text outside =
      file({carrying({carried("state", "step")}, loop("loop", {}, 1, {op("step", 1)})),
            op("finish", 1, {"state"})},
           {{"step", {"x"}}, {"finish", {"x"}}});
  EXPECT_NE(refusal(outside).find("'state' is inside a loop"), std::string::npos)
      << refusal(outside);
}

// Operators on random devices that a loop runs in turn, and the same written out; the last reader
// of a carried value stands for the next iteration's first operator.
Chain random_turns(Random& random, bool is_cut) {
  const uint64_t count = 1 + random.below(4);
  const uint64_t trips = random.below(5);
  std::vector<Placed> places;
  for (uint64_t i = 0; i <= count; ++i) {
    Placed& placed = places.emplace_back();
    for (uint64_t parts = is_cut ? uint64_t{1} << random.below(3) : 1; parts > 0; --parts) {
      placed.devices.push_back(Text(1, static_cast<char>('a' + random.below(4))));
    }
  }
  Texts flat = {loop("nothing", {}, 0, {}), op("start", 8)};
  Texts body;
  std::vector<Placed> strategy;
  const auto place = [&](const Text& name, uint64_t i) {
    strategy.push_back({name, places[i].devices});
    return name;
  };
  place("start", count);
  const Text name_of_last = "op" + std::to_string(count - 1);
  for (uint64_t i = 0; i < count; ++i) {
    const Text before = i > 0 ? "op" + std::to_string(i - 1) : "state";
    body.push_back(op(place("op" + std::to_string(i), i), 8, {before}));
  }
  const std::vector<Placed> of_loop = strategy;
  strategy.resize(1);
  Text last = "start";
  for (uint64_t turn = 0; turn < trips; ++turn) {
    for (uint64_t i = 0; i < count; ++i) {
      const Text name = fmt::format("turn{}.op{}", turn, i);
      flat.push_back(op(place(name, i), 8, {last}));
      last = name;
    }
  }
  flat.push_back(op(place("reader", 0), 0, {last}));
  return {file(flat, strategy, kRing),
          file({op("start", 8), carrying({carried("state", name_of_last, "start")},
                                         loop("loop", {}, static_cast<int>(trips), body))},
               of_loop, kRing)};
}

TEST(CarriedValues, ALoopOverAChainCostsWhatTheChainWrittenOutDoes) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool is_cut = seed % 2 == 0;
    const Chain chain = random_turns(random, is_cut);
    const Totals written_out = totals(chain.flat);
    const Totals with = totals(chain.looped);
    EXPECT_EQ(written_out.work, with.work);
    EXPECT_EQ(written_out.transfers, with.transfers);
    if (!is_cut) {
      EXPECT_EQ(written_out.makespan, with.makespan);
    }
  }
}

}  // namespace
}  // namespace eddy::loop_files
