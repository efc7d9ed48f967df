// Claim: the table joins what a run's parts have left with every rival: those of the run replace
// their earlier figures and are marked as measured, limits follow their rivals, and a line that
// misses its limit, has failed or is absent reports it; its lines name rows that parts have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "examples/dynamic_models/model.h"
#include "runtime/api/library.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tools/gpu/peers.h"
#include "tools/gpu/report_part.h"
#include "tools/gpu/table_part.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

Json row_of(const Json& report, const std::string& name) {
  for (const Json& row : report["rows"]) {
    if (row["row"] == name) return row;
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

Json rival_of(const Json& row, const std::string& name) {
  for (const Json& rival : row["rivals"]) {
    if (rival["name"] == name) return rival;
  }
  ADD_FAILURE() << "no rival " << name << " in " << row;
  return {};
}

class GpuTableTest : public ::testing::Test {
 protected:
  GpuTableTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~GpuTableTest() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void write_part(const std::string& part, const Json& rows) {
    write(part + ".json",
          Json{{"part", part}, {"rows", rows}, {"gpu", {{"model", "NVIDIA Test"}}}}.dump());
  }
  Json table() const { return report_table(folder_.string()); }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "gpu_table_test";
};

Json control_row(const std::string& name, const std::string& way, double us) {
  return {{"case", name},
          {"way", way},
          {"status", "passed"},
          {"first_loop", "device: persistent: all of it"},
          {"us_per_round", us}};
}
Json hand_row(const std::string& name, double us) {
  return {{"case", name}, {"status", "passed"}, {"us_per_round", us}};
}

TEST_F(GpuTableTest, WithoutResultsOfItsRowsThereAreEarlierRivalsAndNothingMet) {
  write_part("loops", Json::array());
  const Json report = table();
  EXPECT_EQ(report["missing"], 1) << "nothing is measured";
  EXPECT_EQ(report["failed"], 0);
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["verdict"], "not measured") << row;
    for (const Json& rival : row["rivals"]) {
      EXPECT_EQ(rival["measured"], "earlier, not in this run") << rival;
    }
  }
  EXPECT_DOUBLE_EQ(row_of(report, "lstm, batch 64")["limit"], 4.41);
  EXPECT_DOUBLE_EQ(row_of(report, "resnet50")["limit"], 0.9 * 0.906);
  EXPECT_FALSE(row_of(report, "nested 100 x 100").contains("limit")) << "nobody measured it";
}

TEST_F(GpuTableTest, ARivalOfThisRunTakesThePlaceOfItsEarlierFigure) {
  write_part("control", {control_row("scalar while", "host", 1),  // another way is no answer
                         control_row("scalar while", "recording", 2.0),
                         control_row("scalar while", "device", 0.9),
                         control_row("while with a 4-way case", "auto", 12.4)});
  write_part("hand", {hand_row("scalar while", 2.0), hand_row("while with a 4-way case", 11.0)});
  write_part("rivals", {{{"case", "scalar while"},
                         {"rival", "JAX with WHILE flags"},
                         {"status", "passed"},
                         {"us_per_round", 1.6}},
                        {{"case", "scalar while"}, {"rival", "JAX"}, {"status", "failed"}}});
  const Json report = table();
  const Json scalar = row_of(report, "scalar while");
  EXPECT_EQ(scalar["verdict"], "met");
  EXPECT_DOUBLE_EQ(scalar["limit"], 2.1);
  EXPECT_EQ(scalar["limit_is"], "1.05 x by hand, in this run");
  EXPECT_EQ(scalar["best_rival"], "JAX with WHILE flags");
  EXPECT_DOUBLE_EQ(scalar["ratio"], 2.0 / 1.6);
  EXPECT_EQ(rival_of(scalar, "by hand")["measured"], "in this run");
  EXPECT_EQ(rival_of(scalar, "JAX")["measured"], "earlier, not in this run");
  EXPECT_DOUBLE_EQ(rival_of(scalar, "JAX")["most"], 22);
  const Json persistent = row_of(report, "scalar while, persistent");
  EXPECT_DOUBLE_EQ(persistent["eddy"], 0.9);
  EXPECT_EQ(rival_of(persistent, "by hand")["figure"], 2.0);
  EXPECT_EQ(row_of(report, "while with a 4-way case")["verdict"], "missed");
  EXPECT_EQ(report["failed"], 1);
  EXPECT_EQ(report["gpu"]["model"], "NVIDIA Test");
}

TEST_F(GpuTableTest, FloorsDecideWhatHostsThatDecideMayTake) {
  write_part("control", {control_row("host predicate, 10-kernel body", "auto", 13),
                         control_row("32 loops side by side", "host", 4.9)});
  write_part("hand", {hand_row("floor of host predicate, 10-kernel body", 11),
                      hand_row("floor of 32 loops side by side", 4.2)});
  const Json report = table();
  EXPECT_EQ(row_of(report, "host predicate, 10-kernel body")["verdict"], "missed");
  EXPECT_EQ(row_of(report, "32 loops side by side")["verdict"], "met");
  EXPECT_EQ(row_of(report, "host predicate, 1-kernel body")["verdict"], "not measured");
}

TEST_F(GpuTableTest, ARowThatHasFailedIsNoFigure) {
  write_part("control", Json::array({{{"case", "eight such loops"},
                                      {"way", "auto"},
                                      {"status", "failed"},
                                      {"reason", "other values"}}}));
  const Json report = table();
  EXPECT_EQ(row_of(report, "eight such loops")["verdict"], "failed");
  EXPECT_THAT(table_text(report), HasSubstr("failed; other values"));
  EXPECT_EQ(report["failed"], 1);
}

TEST_F(GpuTableTest, ModelsMustBeatTheirPeersAndThreeOfThemByFar) {
  Json rows = Json::array();
  for (const TableLine& line : table_lines()) {
    if (!line.is_model) continue;
    const bool is_far = rows.size() < 2;
    rows.push_back({{"case", line.eddy.case_name},
                    {"size", line.eddy.size_says},
                    {"way", "auto"},
                    {"status", "passed"},
                    {"ms", line.earlier[0].least * (is_far ? 0.69 : 0.99)}});
  }
  const std::string far = "models at most 0.7 x their best peer";
  write_part("models", rows);
  EXPECT_EQ(table()["failed"], 1);
  EXPECT_EQ(row_of(table(), far)["verdict"], "missed");
  rows[2]["ms"] = 1e-3;
  write_part("models", rows);
  EXPECT_EQ(table()["failed"], 0) << table_text(table());
  EXPECT_EQ(row_of(table(), far)["eddy"], 3);
  rows.erase(0);
  write_part("models", rows);
  EXPECT_EQ(row_of(table(), far)["verdict"], "not measured");
}

TEST_F(GpuTableTest, NetworksAreHeldAgainstThePyTorchThatExportedThem) {
  write_part("networks",
             {{{"case", "resnet50"}, {"way", "one stream"}, {"status", "passed"}, {"ms", 0.9}},
              {{"case", "resnet50"}, {"way", "several streams"}, {"status", "passed"}, {"ms", 0.6}},
              {{"case", "resnet50"}, {"way", "auto, tf32"}, {"status", "passed"}, {"ms", 0.6}},
              {{"case", "resnet50"},
               {"way", "auto, tf32, measured"},
               {"status", "passed"},
               {"ms", 0.5}},
              {{"case", "resnet50"},
               {"way", "auto, tf32, channels first"},
               {"status", "passed"},
               {"ms", 1.2}}});
  write("networks/resnet50/rivals.json",
        R"({"cuda_graph_ms": 0.7, "compiled_ms": "failed: no compiler"})");
  const Json report = table();
  const Json row = row_of(report, "resnet50");
  EXPECT_EQ(row["verdict"], "met");
  EXPECT_DOUBLE_EQ(row["limit"], 0.9 * 0.7);
  EXPECT_EQ(rival_of(row, "torch.compile")["measured"], "earlier, not in this run");
  const Json streams = row_of(report, "resnet50, several streams over one");
  EXPECT_DOUBLE_EQ(streams["eddy"], 1.5);
  EXPECT_EQ(streams["verdict"], "shown");
  const std::string gain = ", measured convolutions over the library's choice";
  EXPECT_DOUBLE_EQ(row_of(report, "resnet50" + gain)["eddy"], 1.2);
  EXPECT_EQ(row_of(report, "bert_base" + gain)["verdict"], "not measured");
  const std::string last = ", channels last over channels first";
  EXPECT_DOUBLE_EQ(row_of(report, "resnet50" + last)["eddy"], 2);
  EXPECT_EQ(row_of(report, "bert_base" + last)["verdict"], "not measured");
}

TEST_F(GpuTableTest, TextTellsTheTwoKindsOfRivalsApart) {
  write_part("control", Json::array({control_row("scalar while", "recording", 2.0)}));
  write_part("hand", Json::array({hand_row("scalar while", 2.0)}));
  const std::string text = table_text(table());
  EXPECT_THAT(text, HasSubstr("scalar while: Eddy 2 us (recording), limit 2.1 us "
                              "(1.05 x by hand, in this run): met; 1 x best rival, by hand\n"
                              "    measured in this run: by hand 2\n"
                              "    measured earlier, not in this run: JAX with WHILE flags 6.3; "
                              "JAX 14 to 22"));
  EXPECT_THAT(text, HasSubstr("earlier figures: NVIDIA H200"));
}

TEST_F(GpuTableTest, WhatIsNoJsonIsNamedAndTheRestCounts) {
  write_part("hand", Json::array({hand_row("nested 100 x 100", 5)}));
  write("control.json", R"({"part": "control", "rows": [)");
  write("loops.json", R"({"part": 3, "rows": 4})");
  write("rivals.json", R"({"part": "rivals", "rows": [3, {"case": 5}, null]})");
  const Json report = table();
  ASSERT_EQ(report["unreadable"].size(), 1u);
  EXPECT_THAT(report["unreadable"][0].get<std::string>(), HasSubstr("control.json"));
  EXPECT_DOUBLE_EQ(row_of(report, "nested 100 x 100")["limit"], 5.5);
  EXPECT_GE(report["missing"], 1);
}

TEST_F(GpuTableTest, PartsThatEndedEarlyAreNamedAndAnEmptyFolderHasNoRows) {
  EXPECT_TRUE(table()["rows"].empty());
  EXPECT_THAT(table()["error"].get<std::string>(), HasSubstr("no part's results in "));
  write("hand.json", R"({"part": "hand", "rows": [], "complete": false})");
  write("loops.json", R"({"part": "loops", "rows": [], "error": "device lost: Xid 13"})");
  write("models.json", R"({"part": "models", "rows": [], "out_of_time": "before lstm"})");
  const Json report = table();
  EXPECT_EQ(report["missing"], 4) << "and nothing is measured";
  const std::string text = table_text(report);
  EXPECT_THAT(text, HasSubstr("hand.json: it was ended in its middle"));
  EXPECT_THAT(text, HasSubstr("loops.json: device lost: Xid 13"));
  EXPECT_THAT(text, HasSubstr("models.json: out of time before lstm"));
}

TEST_F(GpuTableTest, WhatWasNoPersistentKernelIsNoFigureOfOne) {
  Json row = control_row("scalar while", "device", 4.0);
  row["first_loop"] = "device: a recording; no NVRTC";
  write_part("control", Json::array({row}));
  const Json found = row_of(table(), "scalar while, persistent");
  EXPECT_EQ(found["verdict"], "not measured");
  EXPECT_THAT(table_text(table()),
              HasSubstr("it was not driven so: device: a recording; no NVRTC"));
}

TEST(GpuTableLines, NameRowsThatThePartsHave) {
  const Library library;
  FakeAccelerator fake(library, {.seed = 5});
  SessionsUnderReport what;
  what.make_device = fake.maker();
  what.is_small = true;
  what.num_warm_runs = 0;
  what.num_runs = 1;
  const Json control = report_control(what);
  const auto has_row = [&](const EddyFigure& figure) {
    const bool is_nested = figure.case_name == "nested 100 x 100";
    const std::string name = is_nested ? "nested 4 x 4" : figure.case_name;
    for (const Json& row : control["rows"]) {
      const auto way = row["way"].get<std::string>();
      if (row["case"] == name && std::ranges::count(figure.ways, way) > 0) return true;
    }
    return false;
  };
  const auto models = dynamic::all_models(dynamic::Scale::kFull);
  const auto is_model = [&](const EddyFigure& figure) {
    return std::ranges::any_of(models, [&](const dynamic::Recipe& recipe) {
      if (!figure.case_name.starts_with(recipe.name + ", batch ")) return false;
      return figure.size_says.empty() || recipe.make().size.ends_with(figure.size_says);
    });
  };
  for (const TableLine& line : table_lines()) {
    const bool is_control = line.eddy.part == "control", is_dynamic = line.eddy.part == "models";
    EXPECT_TRUE(!is_control || has_row(line.eddy)) << line.key;
    EXPECT_TRUE(!is_dynamic || is_model(line.eddy)) << line.key;
  }
}

}  // namespace
}  // namespace eddy::testing
