#include "tools/gpu/peers.h"

namespace eddy {
namespace {

using Kind = TableLimit::Kind;

constexpr const char* kEager = "PyTorch eager";
constexpr const char* kStepGraph = "PyTorch, step as CUDA graph";
constexpr const char* kCompiledStep = "torch.compile'd step";
constexpr const char* kJax = "JAX";
constexpr const char* kJaxWhile = "JAX with WHILE flags";
constexpr const char* kPersistent = "persistent kernel by hand";

PeerFigure at(const char* name, double figure) { return {name, figure, figure}; }

std::vector<PeerFigure> scalar_peers() {
  return {at(kByHand, 4.3),       at(kJaxWhile, 6.3), {kJax, 14, 22},
          at(kCompiledStep, 101), at(kEager, 33),     at(kStepGraph, 11.5)};
}

void add_loops(std::vector<TableLine>& lines) {
  lines.push_back({"scalar while",
                   "us",
                   {"control", "scalar while", "", {"recording"}},
                   {Kind::kTimesRival, 1.05, kByHand},
                   scalar_peers()});
  std::vector<PeerFigure> persistent = scalar_peers();
  persistent.push_back(at(kPersistent, 0.76));
  lines.push_back({"scalar while, persistent",
                   "us",
                   {"control", "scalar while", "", {"device"}},
                   {Kind::kAbsolute, 1.5},
                   persistent,
                   false,
                   "persistent: all of it"});
  lines.push_back({"matmul and tanh while",
                   "us",
                   {"control", "matmul and tanh while", "", {"auto, tf32", "auto"}},
                   {Kind::kAbsolute, 8.5},
                   {at(kJaxWhile, 9.4),
                    {kJax, 22, 27},
                    at(kStepGraph, 20),
                    {kEager, 46, 54},
                    at(kCompiledStep, 64)}});
  lines.push_back({"eight such loops",
                   "us",
                   {"control", "eight such loops", "", {"auto, tf32", "auto"}},
                   {Kind::kAbsolute, 9.5},
                   {at(kJaxWhile, 9.75),
                    at("JAX with WHILE flags, apart", 38),
                    {kJax, 95, 174},
                    at(kStepGraph, 89),
                    at(kEager, 204)}});
}

void add_decisions(std::vector<TableLine>& lines) {
  lines.push_back({"host predicate, 1-kernel body",
                   "us",
                   {"control", "host predicate, 1-kernel body"},
                   {Kind::kTimesRival, 1.15, kFloor},
                   {at(kFloor, 5.2)}});
  lines.push_back({"host predicate, 10-kernel body",
                   "us",
                   {"control", "host predicate, 10-kernel body"},
                   {Kind::kTimesRival, 1.15, kFloor},
                   {at(kFloor, 11.8)}});
  lines.push_back({"nested 100 x 100",
                   "us",
                   {"control", "nested 100 x 100"},
                   {Kind::kTimesRival, 1.1, kByHand}});
  lines.push_back({"while with a 4-way case",
                   "us",
                   {"control", "while with a 4-way case"},
                   {Kind::kTimesRival, 1.1, kByHand},
                   {at(kByHand, 12.4)}});
  lines.push_back({"32 loops side by side",
                   "us",
                   {"control", "32 loops side by side", "", {"host"}},
                   {Kind::kTimesRival, 1.2, kFloor},
                   {at(kFloor, 4.1)}});
}

void add_model(std::vector<TableLine>& lines, const std::string& name, const char* peer, double one,
               double many, const std::string& size_says = "") {
  for (const auto& [batch, figure] : {std::pair{1, one}, std::pair{64, many}}) {
    if (figure == 0) continue;
    const std::string case_name = name + ", batch " + std::to_string(batch);
    lines.push_back({case_name + (size_says.empty() ? "" : ", " + size_says),
                     "ms",
                     {"models", case_name, size_says, {"auto, tf32", "auto"}},
                     {Kind::kTimesBest, 1.0},
                     {at(peer, figure)},
                     true});
  }
}

void add_models(std::vector<TableLine>& lines) {
  add_model(lines, "lstm", kJaxWhile, 3.43, 4.41);
  add_model(lines, "nas_rnn", kJaxWhile, 10.9, 14.6);
  add_model(lines, "attention", kJaxWhile, 0.50, 1.03);
  // With its flags JAX makes one step too many here.
  add_model(lines, "seq2seq", "best correct peer", 0.33, 0.40, "stops at 10");
  add_model(lines, "seq2seq", "best correct peer", 1.00, 1.19, "stops at 40");
  add_model(lines, "blockdrop", kCompiledStep, 0.18, 0.32);
  add_model(lines, "skipnet", kCompiledStep, 1.75, 0);
  add_model(lines, "tree", kCompiledStep, 0.66, 0);
}

}  // namespace

const std::vector<TableLine>& table_lines() {
  static const std::vector<TableLine> lines = [] {
    std::vector<TableLine> made;
    add_loops(made);
    add_decisions(made);
    add_models(made);
    for (const NetworkPeers& network : network_peers()) {
      made.push_back({network.name,
                      "ms",
                      {"networks",
                       network.name,
                       "",
                       {"auto, tf32, norms folded", "auto, tf32", "several streams", "one stream"}},
                      {Kind::kTimesRival, 0.9, kTorchGraph},
                      network.earlier});
    }
    for (const char* const name : {"Silero", "Moonshine tiny"}) {
      made.push_back(
          {name, "ms", {"speech", name, "", {"auto, tf32", "auto"}}, {Kind::kShown}, {}, false});
    }
    return made;
  }();
  return lines;
}

const std::vector<NetworkPeers>& network_peers() {
  constexpr const char* kCompiled = "torch.compile";
  static const std::vector<NetworkPeers> networks = {
      {"inception_v3", {at(kTorchGraph, 1.88), at(kCompiled, 1.31), at(kEager, 8.9)}},
      {"resnet50", {at(kTorchGraph, 0.96), at(kCompiled, 0.75), at(kEager, 3.3)}},
      {"mobilenet_v2", {at(kTorchGraph, 0.46), at(kCompiled, 0.56), at(kEager, 2.7)}},
      {"efficientnet_b0", {at(kTorchGraph, 0.78), at(kEager, 7.2)}},
      {"nasnetalarge", {at(kTorchGraph, 5.95), at(kEager, 22.6)}},
      {"bert_base", {at(kTorchGraph, 1.14), at(kEager, 5.2)}}};
  return networks;
}

}  // namespace eddy
