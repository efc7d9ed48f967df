#include "tools/gpu/run_results.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace eddy {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string text_of(const Json& row, const char* key) {
  return row.is_object() && row.contains(key) && row[key].is_string() ? row[key].get<std::string>()
                                                                      : "";
}

// 0: there is none.
double number_of(const Json& row, const char* key) {
  return row.is_object() && row.contains(key) && row[key].is_number() ? row[key].get<double>() : 0;
}

}  // namespace

RunResults::RunResults(const std::string& folder) {
  read_parts(folder);
  for (const auto& [part, report] : parts_) {
    if (part == "hand") add_by_hand(report["rows"]);
    if (part == "rivals") add_installed(report["rows"]);
    if (part == "speech") add_cpu(report["rows"]);
  }
  read_networks(folder);
}

void RunResults::read_parts(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    Json report = read(entry.path().string());
    const std::string part = text_of(report, "part");
    const bool has_rows =
        report.is_object() && report.contains("rows") && report["rows"].is_array();
    if (part.empty() || part == "table" || !has_rows) continue;
    add_end(entry.path().string(), report);
    parts_.emplace(part, std::move(report));
  }
  std::ranges::sort(cut_short_);
}

void RunResults::add_end(const std::string& path, const Json& report) {
  const std::string error = text_of(report, "error"), time = text_of(report, "out_of_time");
  const bool is_whole = !report.contains("complete") || report["complete"] == true;
  if (!error.empty()) cut_short_.push_back(path + ": " + error);
  if (!time.empty()) cut_short_.push_back(path + ": out of time " + time);
  if (!is_whole) cut_short_.push_back(path + ": it was ended in its middle; its rows so far count");
}

std::vector<std::string> RunResults::libraries() const {
  std::set<std::string> lines;
  for (const auto& [part, report] : parts_) {
    if (!report.contains("gpu") || !report["gpu"].is_object()) continue;
    for (const Json& line : report["gpu"].value("libraries", Json::array())) {
      if (line.is_string()) lines.insert(line.get<std::string>());
    }
  }
  return {lines.begin(), lines.end()};
}

// Reads export_networks.py's measurements of PyTorch.
void RunResults::read_networks(const std::string& folder) {
  std::error_code error;
  for (const std::string& network : network_names()) {
    const fs::path file = fs::path(folder) / "networks" / network / "rivals.json";
    if (!fs::exists(file, error)) continue;
    const Json found = read(file.string());
    for (const auto& [key, name] :
         {std::pair{"cuda_graph_ms", kTorchGraph}, std::pair{"compiled_ms", "torch.compile"},
          std::pair{"eager_ms", "PyTorch eager"}}) {
      add_rival(network, {name, number_of(found, key), "export_networks.py"});
    }
  }
}

Json RunResults::read(const std::string& path) {
  std::ifstream file(path);
  Json found = Json::parse(file, nullptr, false);
  if (!found.is_discarded()) return found;
  unreadable_.push_back(path);
  return nullptr;
}

void RunResults::add_rival(const std::string& key, RivalFigure rival) {
  if (rival.figure > 0) rivals_.emplace(key, std::move(rival));
}

void RunResults::add_by_hand(const Json& rows) {
  const std::string floor = "floor of ";
  for (const Json& row : rows) {
    if (text_of(row, "status") != "passed") continue;
    const std::string name = text_of(row, "case");
    const double us = number_of(row, "us_per_round");
    if (name.starts_with(floor)) {
      add_rival(name.substr(floor.size()), {kFloor, us, "hand"});
    } else {
      add_rival(name, {kByHand, us, "hand"});
    }
  }
}

void RunResults::add_installed(const Json& rows) {
  for (const Json& row : rows) {
    if (text_of(row, "status") != "passed") continue;
    const double us = number_of(row, "us_per_round");
    const double figure = us > 0 ? us : number_of(row, "ms");
    add_rival(text_of(row, "case"), {text_of(row, "rival"), figure, "rivals.py"});
  }
}

// All rows of a case have the CPU's time in common.
void RunResults::add_cpu(const Json& rows) {
  for (const Json& row : rows) {
    const std::string name = text_of(row, "case");
    if (!rivals_.contains(name)) add_rival(name, {kCpu, number_of(row, "cpu_ms"), "speech"});
  }
}

Json RunResults::gpu() const {
  for (const auto& [part, report] : parts_) {
    if (report.contains("gpu") && report["gpu"].is_object()) return report["gpu"];
  }
  return nullptr;
}

Json RunResults::row(const EddyFigure& figure, const std::string& way) const {
  const auto part = parts_.find(figure.part);
  if (part == parts_.end()) return nullptr;
  for (const Json& row : part->second["rows"]) {
    const bool is_it = text_of(row, "case") == figure.case_name && text_of(row, "way") == way;
    if (is_it && text_of(row, "size").find(figure.size_says) != std::string::npos) return row;
  }
  return nullptr;
}

std::vector<RivalFigure> RunResults::rivals(const TableLine& line) const {
  std::vector<RivalFigure> found;
  for (const auto& [key, rival] : rivals_) {
    if (key == line.key || key == line.eddy.case_name) found.push_back(rival);
  }
  return found;
}

}  // namespace eddy
