// Task files are read by their format: ids of any size, exact integers, edits in order, batches
// that are validated at their end; and whatever is wrong is named.
#include "graph/simulate/task_session.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "graph/base/json_document.h"
#include "graph/base/random.h"

namespace eddy {
namespace {

// The starts of all tasks in the order of ids, after all edits; or what is wrong.
template <TimeValue Time>
std::string run(const TaskFile& file, DeltaMode mode) {
  TaskSession<Time> session(mode);
  Status status = session.start(file);
  for (size_t i = 0; status.is_ok() && i < file.edits.size(); ++i) {
    status = session.apply(file.edits[i], "edit " + std::to_string(i));
  }
  if (!status.is_ok()) return status.message();
  std::string text;
  for (const auto& [id, slot] : session.slots()) {
    text += std::to_string(id) + "@" + std::to_string(session.simulation().times(slot).start) + " ";
  }
  return text + "makespan " + std::to_string(session.simulation().makespan());
}

std::string simulated(const std::string& json) {
  auto document = parse_json_document(json);
  if (!document.is_ok()) return document.status().message();
  auto file = read_task_file(*document);
  if (!file.is_ok()) return file.status().message();
  if (!file->is_exact) {
    const std::string delta = run<double>(*file, DeltaMode::kAuto);
    EXPECT_EQ(delta, run<double>(*file, DeltaMode::kFull));
    return delta;
  }
  const std::string delta = run<int64_t>(*file, DeltaMode::kAuto);
  EXPECT_EQ(delta, run<int64_t>(*file, DeltaMode::kFull));
  return delta;
}

std::string task(const std::string& id, const std::string& time, const std::string& device,
                 const std::string& deps = "") {
  return R"({"id":)" + id + R"(,"exe_time":)" + time + R"(,"device":)" + device + R"(,"deps":[)" +
         deps + "]}";
}

std::string file(const std::string& tasks, const std::string& edits = "") {
  return R"({"tasks":[)" + tasks + R"(],"edits":[)" + edits + R"(],"unknown":{"a":[1]}})";
}

std::string joined(const std::vector<std::string>& edits, const std::string& last) {
  std::string text = last;
  for (size_t i = edits.size(); i-- > 0;) text = edits[i] + (text.empty() ? "" : ",") + text;
  return text;
}

// About tasks 3, 6, 9, ... billions, which may or may not be there.
std::string random_edit(Random& random) {
  const auto id = [&] { return std::to_string((1 + random.below(8)) * 3000000000); };
  const std::string number = std::to_string(random.below(6));
  switch (random.below(7)) {
    case 0:
      return R"({"op":"set_exe","id":)" + id() + R"(,"exe_time":)" + number + "}";
    case 1:
      return R"({"op":"set_device","id":)" + id() + R"(,"device":)" + number + "}";
    case 2:
      return R"({"op":"add_dep","from":)" + id() + R"(,"to":)" + id() + "}";
    case 3:
      return R"({"op":"remove_dep","from":)" + id() + R"(,"to":)" + id() + "}";
    case 4:
      return R"({"op":"add_task","task":)" + task(id(), number, "1", id()) + "}";
    case 5:
      return R"({"op":"remove_task","id":)" + id() + "}";
    default:
      return R"({"op":"batch","ops":[)" + random_edit(random) + "," + random_edit(random) + "]}";
  }
}

const std::string kPair = task("1", "2", "0") + "," + task("2", "3", "0", "1");

TEST(TaskSession, DevicesAreStringsOrIntegersAndNotTheSame) {
  EXPECT_EQ(simulated(file(task("1", "2", "0") + "," + task("2", "3", "\"0\""))),
            "1@0 2@0 makespan 3");
  EXPECT_EQ(simulated(file(task("1", "2", "\"a\"") + "," + task("2", "3", "\"a\""))),
            "1@0 2@2 makespan 5");
}

TEST(TaskSession, IntegersStayExactAboveTwoToThe53) {
  EXPECT_EQ(simulated(file(task("1", "9007199254740993", "0") + "," + task("2", "2", "1", "1"))),
            "1@0 2@9007199254740993 makespan 9007199254740995");
  EXPECT_EQ(simulated(file(task("1", "9007199254740993", "0") + "," + task("2", "0.5", "0"))),
            "task 1: exe_time 9007199254740993 cannot stay exact beside times with fractions");
  EXPECT_EQ(simulated(file(task("1", "9223372036854775807", "0") + "," + task("2", "0.5", "0"))),
            "task 1: exe_time 9223372036854775807 cannot stay exact beside times with fractions");
}

TEST(TaskSession, IdsMayBeNegativeOrHugeAndDecideTies) {
  const std::string tasks = task("9000000000", "1", "0") + "," + task("-5", "1", "0") + "," +
                            task("7", "1", "0") + "," + task("-9223372036854775808", "1", "0");
  EXPECT_EQ(simulated(file(tasks)), "-9223372036854775808@0 -5@1 7@2 9000000000@3 makespan 4");
  EXPECT_EQ(simulated(file(tasks, R"({"op":"add_task","task":)" + task("8", "1", "0") + "}")),
            "-9223372036854775808@0 -5@1 7@2 8@3 9000000000@4 makespan 5");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"add_task","task":)" + task("-1", "4", "0") + "}")),
            "-1@0 1@4 2@6 makespan 9");
}

TEST(TaskSession, ManyIdsFitBetweenTwoNeighbours) {
  // Each goes right above the first, which uses up the ranks between them again and again.
  std::string edits;
  for (int i = 0; i < 200; ++i) {
    edits += (i == 0 ? "" : ",") + std::string(R"({"op":"add_task","task":)") +
             task(std::to_string(10000000000 - i), "1", "0") + "}";
  }
  const std::string text = simulated(file(task("1", "1", "0"), edits));
  EXPECT_TRUE(text.starts_with("1@0 9999999801@1 9999999802@2 ")) << text;
  EXPECT_TRUE(text.ends_with(" 10000000000@200 makespan 201")) << text;
}

TEST(TaskSession, EachEditDoesWhatItSays) {
  EXPECT_EQ(simulated(file(kPair, R"({"op":"set_exe","id":1,"exe_time":7})")),
            "1@0 2@7 makespan 10");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"remove_dep","from":1,"to":2},
                                     {"op":"set_device","id":2,"device":"x"})")),
            "1@0 2@0 makespan 3");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"remove_task","id":1})")), "2@0 makespan 3");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"add_task","task":)" + task("3", "1", "1", "2,2") +
                                      R"(},{"op":"add_dep","from":1,"to":3})")),
            "1@0 2@2 3@5 makespan 6");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"add_dep","from":1,"to":2},
                                     {"op":"remove_dep","from":1,"to":2},
                                     {"op":"set_device","id":2,"device":1})")),
            "1@0 2@0 makespan 3")
      << "a dependency that is there is not added twice";
}

TEST(TaskSession, ABatchIsValidatedAtItsEnd) {
  const auto batch = [](const std::string& ops) {
    return simulated(file(kPair, R"({"op":"batch","ops":[)" + ops + "]}"));
  };
  EXPECT_EQ(batch(R"({"op":"add_dep","from":2,"to":1},{"op":"remove_dep","from":1,"to":2})"),
            "1@3 2@0 makespan 5")
      << "through a cycle";
  EXPECT_EQ(batch(R"({"op":"add_task","task":)" + task("3", "1", "1", "4") +
                  R"(},{"op":"add_task","task":)" + task("4", "1", "1", "2") + "}"),
            "1@0 2@2 3@6 4@5 makespan 7")
      << "a dependency on a task that comes later";
  EXPECT_EQ(batch(R"({"op":"set_exe","id":1,"exe_time":-1},{"op":"set_exe","id":1,"exe_time":4})"),
            "1@0 2@4 makespan 7");
  EXPECT_EQ(
      batch(R"({"op":"remove_task","id":1},{"op":"add_task","task":)" + task("1", "9", "1") + "}"),
      "1@0 2@0 makespan 9")
      << "the dependency of 2 on the old 1 is gone";
  EXPECT_EQ(batch(R"({"op":"add_task","task":)" + task("3", "1", "1", "4") +
                  R"(},{"op":"remove_dep","from":4,"to":3})"),
            "1@0 2@2 3@0 makespan 5");
  EXPECT_EQ(batch(""), "1@0 2@2 makespan 5");
}

TEST(TaskSession, TheLargestIntegerIsATimeLikeAnyOther) {
  const std::string largest = "9223372036854775807";
  EXPECT_EQ(simulated(file(task("1", largest, "0") + "," + task("2", "0", "0", "1") + "," +
                           task("3", largest, "1"))),
            "1@0 2@" + largest + " 3@0 makespan " + largest);
  EXPECT_EQ(simulated(file(kPair, R"({"op":"set_exe","id":1,"exe_time":9223372036854775804})")),
            "1@0 2@9223372036854775804 makespan " + largest);
  EXPECT_EQ(simulated(file(task("1", largest, "0") + "," + task("2", largest, "0"))),
            "task 2: its end does not fit a 64-bit integer; use a larger unit of time");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"set_exe","id":2,"exe_time":)" + largest + "}")),
            "edit 0: task 2: its end does not fit a 64-bit integer; use a larger unit of time");
}

TEST(TaskSession, UndoTakesBackOneEditAfterTheOther) {
  const std::string undo = R"({"op":"undo"})";
  const std::string first = R"({"op":"remove_task","id":1})";
  const std::string second = R"({"op":"batch","ops":[{"op":"add_task","task":)" +
                             task("7", "4", "0") + R"(},{"op":"add_dep","from":7,"to":2},
                             {"op":"set_exe","id":2,"exe_time":9}]})";
  const std::string third = R"({"op":"set_device","id":7,"device":"x"})";
  const std::string all = first + "," + second + "," + third;
  EXPECT_EQ(simulated(file(kPair, all + "," + undo)), simulated(file(kPair, first + "," + second)));
  EXPECT_EQ(simulated(file(kPair, all + "," + undo + "," + undo)), simulated(file(kPair, first)));
  EXPECT_EQ(simulated(file(kPair, all + "," + undo + "," + undo + "," + undo)),
            simulated(file(kPair)));
  EXPECT_EQ(simulated(file(kPair, first + "," + undo + "," + third + "," + undo)),
            "edit 2: set_device: there is no task 7");
  EXPECT_EQ(simulated(file(kPair, first + "," + undo + "," + undo)),
            "edit 2: undo: no edit stands that could be taken back");
  EXPECT_EQ(simulated(file(kPair, R"({"op":"batch","ops":[)" + undo + "]}")),
            "edit 0: op 0: \"undo\" takes back a whole edit: it stands in no batch");
}

// Twenty random edits, some of them batches, and as many undos: after each the file without the
// edits that were taken back.
TEST(TaskSession, AnyNumberOfUndosGivesTheTimelineOfTheEditsThatStand) {
  constexpr uint64_t kSeed = 77;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 60; ++round) {
    std::string tasks;
    for (int i = 1; i <= 6; ++i) {
      tasks += (i == 1 ? "" : ",") + task(std::to_string(i * 3000000000), std::to_string(i % 4),
                                          std::to_string(i % 2),
                                          i > 2 ? std::to_string((i - 2) * 3000000000) : "");
    }
    std::vector<std::string> standing;
    std::string edits;
    for (int step = 0; step < 20; ++step) {
      std::string edit = R"({"op":"undo"})";
      if (standing.empty() || random.below(5) < 3) {
        edit = random_edit(random);
        std::string text = simulated(file(tasks, joined(standing, edit)));
        if (text.find("makespan") == std::string::npos) continue;  // it does not apply
        standing.push_back(edit);
      } else {
        standing.pop_back();
      }
      edits += (edits.empty() ? "" : ",") + edit;
      ASSERT_EQ(simulated(file(tasks, edits)), simulated(file(tasks, joined(standing, ""))))
          << edits;
    }
  }
}

TEST(TaskSession, WhateverIsWrongIsNamed) {
  const auto edit = [](const std::string& text) { return simulated(file(kPair, text)); };
  EXPECT_EQ(simulated(file(kPair + "," + task("1", "1", "1"))),
            "there are two tasks 1; ids are unique");
  EXPECT_EQ(simulated(file(task("1", "1", "1", "5"))),
            "task 1 depends on 5, but there is no task 5");
  EXPECT_EQ(simulated(file(task("1", "1", "1", "1"))), "task 1 depends on itself");
  EXPECT_EQ(simulated(file(task("1", "-1", "1"))),
            "task 1: exe_time -1 is no time; times are finite and >= 0");
  EXPECT_EQ(simulated(file(task("1", "-0.5", "1"))),
            "task 1: exe_time -0.5 is no time; times are finite and >= 0");
  EXPECT_EQ(simulated(file(task("1", "1", "0", "2") + "," + task("2", "1", "0", "1"))),
            "tasks wait for each other in a circle: 1 -> 2 -> 1");
  EXPECT_EQ(simulated(file(task("1", "9223372036854775807", "0") + "," + task("2", "1", "0"))),
            "task 2: its end does not fit a 64-bit integer; use a larger unit of time");
  EXPECT_EQ(edit(R"({"op":"add_dep","from":2,"to":1})"),
            "edit 0: tasks wait for each other in a circle: 1 -> 2 -> 1");
  EXPECT_EQ(edit(R"({"op":"add_dep","from":2,"to":9})"),
            "edit 0: task 9 depends on 2, but there is no task 9");
  EXPECT_EQ(edit(R"({"op":"remove_dep","from":2,"to":1})"),
            "edit 0: remove_dep: task 1 does not depend on 2");
  EXPECT_EQ(edit(R"({"op":"set_exe","id":3,"exe_time":1})"), "edit 0: set_exe: there is no task 3");
  EXPECT_EQ(edit(R"({"op":"set_exe","id":2,"exe_time":-3})"),
            "edit 0: task 2: exe_time -3 is no time; times are finite and >= 0");
}

TEST(TaskSession, AFileOfAnotherShapeIsNamed) {
  EXPECT_EQ(simulated("[]"), "a task file: must be a JSON object");
  EXPECT_EQ(simulated(R"({"tasks":3})"), "a task file: needs the list \"tasks\"");
  EXPECT_EQ(simulated(R"({"tasks":[{"id":1.5}]})"),
            "entry 0 of \"tasks\": \"id\" must be an integer");
  EXPECT_EQ(simulated(R"({"tasks":[{"id":1,"exe_time":"2"}]})"),
            "task 1: needs the number \"exe_time\"");
  EXPECT_EQ(simulated(R"({"tasks":[{"id":1,"exe_time":2}]})"),
            "task 1: needs a \"device\", a string or an integer");
  EXPECT_EQ(simulated(R"({"tasks":[{"id":1,"exe_time":99999999999999999999,"device":0}]})"),
            "the integer 99999999999999999999 does not fit 64 bits, at line 1, column 30");
  EXPECT_EQ(simulated(R"({"tasks":[{"id":1,"exe_time":18446744073709551615,"device":0}]})"),
            "task 1: \"exe_time\" does not fit a signed 64-bit integer");
  EXPECT_NE(simulated(R"({"tasks":[{"id":1,"exe_time":NaN}]})").find("(NaN and infinities are no "),
            std::string::npos);
  EXPECT_NE(simulated(R"({"tasks":[)").find("parse error at line 1"), std::string::npos);
  std::string nested = R"({"op":"batch","ops":[]})";
  for (int i = 0; i < 200; ++i) nested = R"({"op":"batch","ops":[)" + nested + "]}";
  EXPECT_NE(simulated(file(kPair, nested)).find("nested more than 100 deep"), std::string::npos);
  EXPECT_NE(simulated(file(kPair, R"({"op":"move"})")).find("there is no \"op\" \"move\""),
            std::string::npos);
}

}  // namespace
}  // namespace eddy
