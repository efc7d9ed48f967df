#include "tools/gpu/table_part.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "tools/gpu/run_results.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr const char* kNow = "in this run";
constexpr const char* kEarlier = "earlier, not in this run";
constexpr double kMuchFaster = 0.7;  // of the best peer
constexpr int kNumMuchFaster = 3;    // models that must be so

// The rivals of this run, then earlier ones that it lacks.
Json rivals_of(const TableLine& line, const RunResults& results) {
  Json rivals = Json::array();
  for (const RivalFigure& each : results.rivals(line)) {
    rivals.push_back(
        {{"name", each.name}, {"figure", each.figure}, {"measured", kNow}, {"by", each.source}});
  }
  for (const PeerFigure& each : line.earlier) {
    const bool is_again =
        std::ranges::any_of(rivals, [&](const Json& rival) { return rival["name"] == each.name; });
    if (is_again) continue;
    Json rival = {{"name", each.name}, {"figure", each.least}, {"measured", kEarlier}};
    if (each.most != each.least) rival["most"] = each.most;
    rivals.push_back(std::move(rival));
  }
  return rivals;
}

const Json* best_of(const Json& rivals) {
  const auto best = std::ranges::min_element(
      rivals, {}, [](const Json& rival) { return rival["figure"].get<double>(); });
  return best == rivals.end() ? nullptr : &*best;
}

// Sets "limit" and its source; sets nothing where the line has no limit or no rival.
void set_limit(const TableLimit& limit, const Json& rivals, Json& row) {
  if (limit.kind == TableLimit::Kind::kShown) return;
  if (limit.kind == TableLimit::Kind::kAbsolute) {
    row["limit"] = limit.value;
    row["limit_is"] = "a figure";
    return;
  }
  const Json* of = best_of(rivals);
  if (limit.kind == TableLimit::Kind::kTimesRival) {
    const auto named = std::ranges::find_if(
        rivals, [&](const Json& rival) { return rival["name"] == limit.rival; });
    of = named == rivals.end() ? nullptr : &*named;
  }
  char factor[32];
  std::snprintf(factor, sizeof(factor), "%g x ", limit.value);
  const std::string name = of == nullptr ? limit.rival : (*of)["name"].get<std::string>();
  row["limit_is"] = factor + name;
  if (of == nullptr) return;
  row["limit_is"] = factor + name + ", " + (*of)["measured"].get<std::string>();
  row["limit"] = limit.value * (*of)["figure"].get<double>();
}

// Sets "eddy" and "way" by the first way that has passed; else sets the status of the last.
void set_eddy(const TableLine& line, const RunResults& results, Json& row) {
  for (const std::string& way : line.eddy.ways) {
    const Json found = results.row(line.eddy, way);
    if (found.is_null()) continue;
    row["way"] = way;
    const std::string driven = found.value("first_loop", "");
    if (found["status"] == "passed" && driven.find(line.driven_says) == std::string::npos) {
      row["not_so"] = "it was not driven so: " + driven;
      continue;
    }
    const char* const key = line.unit == "us" ? "us_per_round" : "ms";
    if (found["status"] == "passed" && found.contains(key)) {
      row["eddy"] = found[key];
      for (const char* const also : {"first_loop", "trips"}) {
        if (found.contains(also)) row[also] = found[also];
      }
      row.erase("reason");
      return;
    }
    row["reason"] = found.value("reason", "its row has no time");
  }
}

std::string verdict_of(const TableLine& line, const Json& row) {
  if (!row.contains("eddy")) return row.contains("reason") ? "failed" : "not measured";
  if (line.limit.kind == TableLimit::Kind::kShown) return "shown";
  if (!row.contains("limit")) return "not measured";
  return row["eddy"].get<double>() <= row["limit"].get<double>() ? "met" : "missed";
}

Json judge(const TableLine& line, const RunResults& results) {
  Json row = {{"row", line.key}, {"unit", line.unit}, {"rivals", rivals_of(line, results)}};
  set_eddy(line, results, row);
  set_limit(line.limit, row["rivals"], row);
  const Json* const best = best_of(row["rivals"]);
  if (best != nullptr && row.contains("eddy")) {
    row["best_rival"] = (*best)["name"];
    row["ratio"] = row["eddy"].get<double>() / (*best)["figure"].get<double>();
  }
  row["verdict"] = verdict_of(line, row);
  return row;
}

// How many models are much faster than their best peer.
Json judge_much_faster(const Json& rows) {
  EDDY_CHECK(rows.size() >= table_lines().size()) << rows.size() << " lines are judged";
  int found = 0, missing = 0;
  for (size_t i = 0; i < table_lines().size(); ++i) {
    if (!table_lines()[i].is_model) continue;
    missing += rows[i].contains("ratio") ? 0 : 1;
    found += rows[i].value("ratio", 1.0) <= kMuchFaster ? 1 : 0;
  }
  Json row = {{"row", "models at most 0.7 x their best peer"},
              {"unit", "rows"},
              {"rivals", Json::array()},
              {"eddy", found},
              {"limit", kNumMuchFaster},
              {"limit_is", "at least"}};
  row["verdict"] = found >= kNumMuchFaster ? "met" : missing > 0 ? "not measured" : "missed";
  return row;
}

// How many times faster one way of running a network is than another.
Json judge_gain(const std::string& network, const std::string& what, const Json& before,
                const Json& after) {
  Json row = {{"row", network + ", " + what}, {"unit", "times"}, {"rivals", Json::array()}};
  row["verdict"] = "not measured";
  if (!before.contains("ms") || !after.contains("ms")) return row;
  row["eddy"] = before["ms"].get<double>() / after["ms"].get<double>();
  row["verdict"] = "shown";
  return row;
}

// What several streams bring; nothing to hold it against but the paper's best.
Json judge_streams(const std::string& network, const RunResults& results) {
  const EddyFigure figure = {"networks", network};
  const auto row_of = [&](const std::string& way) {
    const Json with_tf32 = results.row(figure, way + ", tf32");
    return with_tf32.contains("ms") ? with_tf32 : results.row(figure, way);
  };
  Json row = judge_gain(network, "several streams over one", row_of("one stream"),
                        row_of("several streams"));
  row["rivals"] = {{{"name", "Nimble's best"}, {"figure", 1.88}, {"measured", kEarlier}}};
  return row;
}

// What measured algorithms of convolutions bring, and channels that come last.
std::vector<Json> judge_convolutions(const std::string& network, const RunResults& results) {
  const EddyFigure figure = {"networks", network};
  const std::string way = "auto, tf32";
  const Json chosen = results.row(figure, way);
  return {judge_gain(network, "measured convolutions over the library's choice", chosen,
                     results.row(figure, way + ", measured")),
          judge_gain(network, "channels last over channels first",
                     results.row(figure, way + ", channels first"), chosen)};
}

std::string number(const Json& value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", value.get<double>());
  return text;
}

std::string row_text(const Json& row) {
  const std::string unit = " " + row["unit"].get<std::string>();
  std::string text = row["row"].get<std::string>() + ": Eddy ";
  text += row.contains("eddy") ? number(row["eddy"]) + unit : "-";
  if (row.contains("way")) text += " (" + row["way"].get<std::string>() + ")";
  if (row.contains("limit")) text += ", limit " + number(row["limit"]) + unit;
  if (row.contains("limit_is")) text += " (" + row["limit_is"].get<std::string>() + ")";
  text += ": " + row["verdict"].get<std::string>();
  if (row.contains("ratio")) {
    text += "; " + number(row["ratio"]) + " x best rival, " + row["best_rival"].get<std::string>();
  }
  for (const char* const why : {"reason", "not_so"}) {
    if (row.contains(why)) text += "; " + row[why].get<std::string>();
  }
  text += "\n";
  for (const char* const measured : {kNow, kEarlier}) {
    std::string line;
    for (const Json& rival : row["rivals"]) {
      if (rival["measured"] != measured) continue;
      line += (line.empty() ? "" : "; ") + rival["name"].get<std::string>() + " " +
              number(rival["figure"]);
      if (rival.contains("most")) line += " to " + number(rival["most"]);
    }
    if (!line.empty()) text += "    measured " + std::string(measured) + ": " + line + "\n";
  }
  return text;
}

}  // namespace

Json report_table(const std::string& folder) {
  const RunResults results(folder);
  Json report = {{"part", "table"}, {"gpu", results.gpu()}, {"rows", Json::array()}};
  report["earlier_on"] = "NVIDIA H200, driver 580.159, CUDA 13.0";
  if (!results.unreadable().empty()) report["unreadable"] = results.unreadable();
  if (!results.cut_short().empty()) report["cut_short"] = results.cut_short();
  report["libraries"] = results.libraries();
  report["failed"] = 0;
  if (results.is_empty()) {
    report["error"] =
        "no part's results in " + folder + "; make some with the bundle's run " + folder;
    return report;
  }
  for (const TableLine& line : table_lines()) report["rows"].push_back(judge(line, results));
  report["rows"].push_back(judge_much_faster(report["rows"]));
  for (const std::string& network : network_names()) {
    report["rows"].push_back(judge_streams(network, results));
    for (Json& row : judge_convolutions(network, results)) {
      report["rows"].push_back(std::move(row));
    }
  }
  report["failed"] = std::ranges::count_if(report["rows"], [](const Json& row) {
    return row["verdict"] == "missed" || row["verdict"] == "failed";
  });
  const bool has_any = std::ranges::any_of(
      report["rows"], [](const Json& row) { return row["verdict"] != "not measured"; });
  report["missing"] = results.unreadable().size() + results.cut_short().size() + (has_any ? 0 : 1);
  return report;
}

std::string table_text(const Json& report) {
  std::string text;
  std::map<std::string, int> counts;
  for (const Json& row : report["rows"]) {
    text += row_text(row);
    ++counts[row["verdict"].get<std::string>()];
  }
  if (report["gpu"].is_object()) {
    text += "this run's GPU: " + report["gpu"].value("model", "?") +
            "; earlier figures: " + report["earlier_on"].get<std::string>() + "\n";
  }
  for (const Json& line : report["libraries"]) text += "library: " + line.get<std::string>() + "\n";
  for (const char* const list : {"unreadable", "cut_short"}) {
    for (const Json& line : report.value(list, Json::array())) {
      text += std::string(list[0] == 'u' ? "unreadable: " : "not whole: ") +
              line.get<std::string>() + "\n";
    }
  }
  for (const auto& [verdict, count] : counts) text += verdict + " " + std::to_string(count) + "  ";
  return text + "\n";
}

}  // namespace eddy
