// Task files mean what their format says: ids of any size, exact integers, edits in order, batches
// that are validated at their end; and whatever is wrong is named.
#include "graph/simulate/task_session.h"

#include <gtest/gtest.h>

#include "graph/simulate/json_document.h"

namespace eddy {
namespace {

// The starts of all tasks in the order of ids, after all edits; or what is wrong.
template <TimeValue Time, typename Simulation>
std::string run(const TaskFile& file) {
  TaskSession<Time, Simulation> session;
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
    const std::string delta = run<double, DeltaSimulation<double>>(*file);
    EXPECT_EQ(delta, (run<double, FullResimulation<double>>(*file)));
    return delta;
  }
  const std::string delta = run<int64_t, DeltaSimulation<int64_t>>(*file);
  EXPECT_EQ(delta, (run<int64_t, FullResimulation<int64_t>>(*file)));
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
            "the integer 99999999999999999999 does not fit 64 bits");
  EXPECT_EQ(simulated(R"({"tasks":[{"id":1,"exe_time":18446744073709551615,"device":0}]})"),
            "task 1: \"exe_time\" does not fit a signed 64-bit integer");
  EXPECT_NE(simulated(R"({"tasks":[{"id":1,"exe_time":NaN}]})").find("(NaN and infinities are no "),
            std::string::npos);
  EXPECT_NE(simulated(R"({"tasks":[)").find("parse error at line 1"), std::string::npos);
  std::string nested = R"({"op":"batch","ops":[]})";
  for (int i = 0; i < 5000; ++i) nested = R"({"op":"batch","ops":[)" + nested + "]}";
  EXPECT_NE(simulated(file(kPair, nested)).find("nested more than 100 deep"), std::string::npos);
  EXPECT_NE(simulated(file(kPair, R"({"op":"move"})")).find("there is no \"op\" \"move\""),
            std::string::npos);
}

}  // namespace
}  // namespace eddy
