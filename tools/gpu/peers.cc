#include "tools/gpu/peers.h"

#include "tools/gpu/peer_figures.h"

namespace eddy {
namespace {

using Kind = TableLimit::Kind;

struct Figure {
  const char* line;
  PeerFigure figure;
};
const std::vector<Figure>& figures() {
  static const std::vector<Figure> all = {
#define EDDY_FIGURE(line, rival, least, most, where) {line, {rival, least, most}},
      EDDY_PEER_FIGURES(EDDY_FIGURE)
#undef EDDY_FIGURE
  };
  return all;
}

void add_loops(std::vector<TableLine>& lines) {
  lines.push_back({"scalar while",
                   "us",
                   {"control", "scalar while", "", {"recording"}},
                   {Kind::kTimesRival, 1.05, kByHand}});
  lines.push_back({.key = "scalar while, persistent",
                   .unit = "us",
                   .eddy = {"control", "scalar while", "", {"device"}},
                   .limit = {Kind::kAbsolute, 1.5},
                   .driven_says = "persistent: all of it"});
  lines.push_back({"matmul and tanh while",
                   "us",
                   {"control", "matmul and tanh while", "", {"auto, tf32", "auto"}},
                   {Kind::kAbsolute, 8.5}});
  lines.push_back({"eight such loops",
                   "us",
                   {"control", "eight such loops", "", {"auto, tf32", "auto"}},
                   {Kind::kAbsolute, 9.5}});
}

void add_decisions(std::vector<TableLine>& lines) {
  lines.push_back({"host predicate, 1-kernel body",
                   "us",
                   {"control", "host predicate, 1-kernel body"},
                   {Kind::kTimesRival, 1.15, kFloor}});
  lines.push_back({"host predicate, 10-kernel body",
                   "us",
                   {"control", "host predicate, 10-kernel body"},
                   {Kind::kTimesRival, 1.15, kFloor}});
  lines.push_back({"nested 100 x 100",
                   "us",
                   {"control", "nested 100 x 100"},
                   {Kind::kTimesRival, 1.1, kByHand}});
  lines.push_back({"while with a 4-way case",
                   "us",
                   {"control", "while with a 4-way case"},
                   {Kind::kTimesRival, 1.1, kByHand}});
  lines.push_back({"32 loops side by side",
                   "us",
                   {"control", "32 loops side by side", "", {"host"}},
                   {Kind::kTimesRival, 1.2, kFloor}});
}

void add_model(std::vector<TableLine>& lines, const std::string& name, bool is_in_batches,
               const std::string& size_says = "") {
  for (const int batch : {1, 64}) {
    if (batch > 1 && !is_in_batches) continue;
    const std::string case_name = name + ", batch " + std::to_string(batch);
    lines.push_back({.key = case_name + (size_says.empty() ? "" : ", " + size_says),
                     .unit = "ms",
                     .eddy = {"models", case_name, size_says, {"auto, tf32", "auto"}},
                     .limit = {Kind::kTimesBest, 1.0},
                     .is_model = true});
  }
}

void add_models(std::vector<TableLine>& lines) {
  add_model(lines, "lstm", true);
  add_model(lines, "nas_rnn", true);
  add_model(lines, "attention", true);
  // With its flags JAX makes one step too many here.
  add_model(lines, "seq2seq", true, "stops at 10");
  add_model(lines, "seq2seq", true, "stops at 40");
  add_model(lines, "blockdrop", true);
  add_model(lines, "skipnet", false);
  add_model(lines, "tree", false);
}

}  // namespace

const std::vector<TableLine>& table_lines() {
  static const std::vector<TableLine> lines = [] {
    std::vector<TableLine> made;
    add_loops(made);
    add_decisions(made);
    add_models(made);
    for (const std::string& network : network_names()) {
      made.push_back({network,
                      "ms",
                      {"networks", network, "", {"auto, tf32", "several streams", "one stream"}},
                      {Kind::kTimesRival, 0.9, kTorchGraph}});
    }
    for (const char* const name : {"Silero", "Moonshine tiny"}) {
      made.push_back(
          {name, "ms", {"speech", name, "", {"auto, tf32", "auto"}}, {Kind::kShown}, {}, false});
    }
    for (TableLine& line : made) {
      for (const Figure& each : figures()) {
        if (line.key == each.line) line.earlier.push_back(each.figure);
      }
    }
    return made;
  }();
  return lines;
}

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = {"inception_v3",    "resnet50",     "mobilenet_v2",
                                                 "efficientnet_b0", "nasnetalarge", "bert_base"};
  return names;
}

}  // namespace eddy
