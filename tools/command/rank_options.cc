#include "tools/command/rank_options.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "tools/command/model.h"

namespace eddy {
namespace {

constexpr std::string_view kRankMark = "{rank}";
constexpr uint32_t kMaxRanks = 4096;

Result<RankWorld::Agree> parse_agreement(const std::string& text, const std::string& how) {
  RankWorld::Agree agree;
  const size_t colon = how.find(':');
  auto decision = parse_agree(how.substr(0, colon));
  const bool has_root = colon != std::string::npos;
  bool is_right = decision.is_ok() && *decision != RankSkeleton::Decision::kVarying &&
                  (!has_root || *decision == RankSkeleton::Decision::kAgreeRoot);
  if (is_right) agree.decision = *decision;
  if (is_right && has_root) {
    const char* const end = how.data() + how.size();
    const auto [stop, error] = std::from_chars(how.data() + colon + 1, end, agree.root);
    is_right = error == std::errc() && stop == end;
  }
  if (is_right) return agree;
  return invalid_argument(
      fmt::format("--agree {}: '{}' is none of all, any, root and root:RANK", text, how));
}

// A loop or branch has this name.
bool has_control(const Graph& graph, const std::string& name) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec && node.name == name) return true;
  }
  return false;
}

}  // namespace

void add_rank_options(CLI::App& app, RankArguments& arguments) {
  app.add_option("--ranks", arguments.num_ranks,
                 "how many processes share the model; {rank} in MODEL is each one's number")
      ->check(CLI::Range(1u, kMaxRanks));
  app.add_option("--replicated", arguments.replicated, "NAME: an input that is equal on all ranks")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--agree", arguments.agree,
                 "NAME=all, any, root or root:RANK: how ranks decide a loop or branch as one")
      ->take_all()
      ->allow_extra_args(false);
}

bool names_file_of_rank(const std::string& model) {
  return model.find(kRankMark) != std::string::npos;
}

std::string file_of_rank(const std::string& model, uint32_t rank) {
  std::string path = model;
  const std::string number = std::to_string(rank);
  for (size_t at = 0; (at = path.find(kRankMark, at)) != std::string::npos; at += number.size()) {
    path.replace(at, kRankMark.size(), number);
  }
  return path;
}

Result<std::map<std::string, RankWorld::Agree>> parse_agreements(const RankArguments& arguments) {
  std::map<std::string, RankWorld::Agree> agreements;
  for (const std::string& text : arguments.agree) {
    EDDY_ASSIGN_OR_RETURN(const auto pair, split_assignment(text, "--agree", "NAME=all"));
    EDDY_ASSIGN_OR_RETURN(agreements[pair.first], parse_agreement(text, pair.second));
  }
  return agreements;
}

Result<RankWorld> make_rank_world(const RankArguments& arguments, const std::string& model,
                                  const Graph& graph, uint32_t rank) {
  RankWorld world;
  world.rank = rank;
  world.num_ranks = arguments.num_ranks;
  world.is_one_graph = !names_file_of_rank(model);
  EDDY_ASSIGN_OR_RETURN(world.agreement, parse_agreements(arguments));
  for (const auto& [name, agree] : world.agreement) {
    if (!has_control(graph, name)) {
      return invalid_argument(
          fmt::format("--agree {}: the model has no loop or branch of this name", name));
    }
    if (agree.root >= world.num_ranks) {
      return invalid_argument(fmt::format("--agree {}=root:{}: there are ranks 0 to {}", name,
                                          agree.root, world.num_ranks - 1));
    }
  }
  std::vector<std::string> names;
  for (const ValueId input : graph.inputs()) names.push_back(graph.value(input).name);
  world.replicated.resize(names.size());
  for (const std::string& name : arguments.replicated) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return invalid_argument(fmt::format("--replicated {}: the model has no such input", name));
    }
    world.replicated[static_cast<size_t>(found - names.begin())] = true;
  }
  return world;
}

}  // namespace eddy
