#include "tools/command/rank_plan.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/compile/plan_svg.h"
#include "graph/compile/plan_text.h"
#include "graph/io/file_bytes.h"
#include "graph/proof/rank_proof.h"
#include "graph/proof/rank_text.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/api/plan_options.h"
#include "runtime/api/session.h"
#include "runtime/net/rank_graph.h"
#include "tools/command/counted.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

// What is shown of a rank; the graph itself goes once it is planned.
struct RankPlan {
  DrawnRegion drawing;
  std::string text;
  RankSkeleton skeleton;
};

Result<PlannedRank> plan_imported(const Library& library, Graph graph,
                                  const SessionOptions& options, uint32_t rank,
                                  uint32_t num_ranks) {
  EDDY_ASSIGN_OR_RETURN(graph, Session::graph_to_run(library, std::move(graph), options));
  EDDY_ASSIGN_OR_RETURN(RankWorld world, rank_world_of(options.ranks, graph, rank, num_ranks));
  EDDY_ASSIGN_OR_RETURN(graph, prepare_for_ranks(std::move(graph), library.ops(), world));
  Plan plan = plan_graph(graph, plan_options(options, has_communication(graph)));
  EDDY_RETURN_IF_ERROR(prove_plan(graph, plan));
  EDDY_ASSIGN_OR_RETURN(RankSkeleton skeleton, skeleton_of(graph, plan.program, world));
  return PlannedRank{std::move(graph), std::move(plan), std::move(world), std::move(skeleton)};
}

RankPlan shown(PlannedRank planned) {
  RankPlan plan;
  plan.drawing = draw_plan(planned.graph, planned.plan, [](NodeId) { return std::string(); });
  if (plan.drawing.name.empty()) plan.drawing.name = "root";
  plan.text = plan_text(plan.drawing);
  plan.skeleton = std::move(planned.skeleton);
  return plan;
}

// Ranks with equal plans and communication, ascending; in the order of the first of each.
std::vector<std::vector<uint32_t>> equal_ranks(const std::vector<RankPlan>& plans) {
  std::vector<std::vector<uint32_t>> sets;
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (uint32_t rank = 0; rank < plans.size(); ++rank) {
    const auto [found, is_new] =
        known.try_emplace({plans[rank].text, skeleton_text(plans[rank].skeleton)}, sets.size());
    if (is_new) sets.emplace_back();
    sets[found->second].push_back(rank);
  }
  return sets;
}

std::string ranks_text(const std::vector<uint32_t>& ranks) {
  const bool is_run = ranks.back() - ranks.front() + 1 == ranks.size();
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (is_run && ranks.size() > 2) return fmt::format("ranks {} to {}", ranks[0], ranks.back());
  return fmt::format("ranks {}", fmt::join(ranks, ", "));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

void say_plans(const std::vector<RankPlan>& plans, Console& console) {
  for (const std::vector<uint32_t>& ranks : equal_ranks(plans)) {
    const RankPlan& plan = plans[ranks[0]];
    console.say(ranks_text(ranks) + ":");
    for (const std::string& line : lines_of(plan.text)) console.say("  " + one_line(line));
    console.say(plan.skeleton.posts.empty() ? "  no communication" : "  communication:");
    for (const std::string& line : lines_of(skeleton_text(plan.skeleton))) {
      console.say("    " + one_line(line));
    }
  }
}

Json plans_json(const std::vector<RankPlan>& plans, const RankProof& proof) {
  Json sets = Json::array();
  for (const std::vector<uint32_t>& ranks : equal_ranks(plans)) {
    const RankPlan& plan = plans[ranks[0]];
    const DrawnTotals totals = count_drawn(plan.drawing);
    sets.push_back(
        {{"ranks", ranks},
         {"plan", lines_of(plan.text)},
         {"communication", lines_of(skeleton_text(plan.skeleton))},
         {"operations", plan.skeleton.posts.size()},
         {"totals",
          {{"nodes", totals.nodes}, {"records", totals.records}, {"waits", totals.waits}}}});
  }
  return {{"num_ranks", plans.size()},
          {"plans", std::move(sets)},
          {"violations", proof.violations},
          {"proof", proof.is_safe() ? "safe" : "unsafe"}};
}

// What each operation of a rank is on all ranks, by its path: its channel, or whom it goes from and
// to, and which one it is there.
std::map<std::string, std::string> meetings_of(const RankSkeleton& skeleton) {
  std::map<std::string, uint32_t> num_before;
  std::map<std::string, std::string> meetings;
  for (const RankSkeleton::Post& post : skeleton.posts) {
    const std::string on = channel_text(skeleton, post);
    const uint32_t before = num_before[on]++;
    meetings[post.path] = (post.from == RankSkeleton::kNone ? post.path : post.signature.tag) +
                          ", on " + on + (before == 0 ? "" : fmt::format(", {}", before + 1));
  }
  return meetings;
}

void join(const DrawnRegion& region, const std::string& around,
          const std::map<std::string, std::string>& meetings, DrawnMeetings& joined) {
  for (const DrawnNode& node : region.nodes) {
    const std::string path = around + node.name;
    const auto found = meetings.find(path);
    if (found != meetings.end()) joined[&node] = found->second;
    for (const DrawnRegion& inner : node.regions) join(inner, path + "/", meetings, joined);
  }
}

// The operations of all ranks in their joint drawing.
DrawnMeetings join_ranks_of(const DrawnRegion& joint, const std::vector<RankPlan>& plans) {
  DrawnMeetings joined;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    join(joint.nodes[rank].regions[0], "", meetings_of(plans[rank].skeleton), joined);
  }
  return joined;
}

// One box for each rank, side by side in time, its plan inside.
DrawnRegion joint_drawing(const std::vector<RankPlan>& plans) {
  DrawnRegion joint;
  joint.name = "ranks";
  joint.num_streams = static_cast<uint32_t>(plans.size());
  for (uint32_t rank = 0; rank < plans.size(); ++rank) {
    joint.nodes.push_back({.name = fmt::format("{}", rank),
                           .kind = "rank",
                           .note = "",
                           .streams = {rank},
                           .devices = {},
                           .rank = "0",
                           .regions = {plans[rank].drawing}});
  }
  return joint;
}

uint64_t count_operations(const std::vector<RankPlan>& plans) {
  uint64_t count = 0;
  for (const RankPlan& plan : plans) count += plan.skeleton.posts.size();
  return count;
}

}  // namespace

Result<PlannedRank> plan_rank(const Library& library, const RankPlanRequest& request,
                              const SessionOptions& options, uint32_t rank, Console& console) {
  const std::string path = file_of_rank(request.model, rank);
  ImportOptions import_options;
  import_options.warn = [&](std::string_view line) {
    if (rank > 0 && !names_rank(request.model)) return;  // the same file again
    console.remark(one_line(fmt::format("warning: {}: {}", path, line)));
  };
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_file(library, path, import_options));
  EDDY_RETURN_IF_ERROR(check_dims(graph, options, path));
  EDDY_RETURN_IF_ERROR(check_rank_options(options.ranks, graph, request.ranks.num_ranks));
  auto planned = plan_imported(library, std::move(graph), options, rank, request.ranks.num_ranks);
  if (planned.is_ok()) return planned;
  Status status = planned.take_status();
  status.prepend_message(names_rank(request.model) ? path
                                                   : fmt::format("{} on rank {}", path, rank));
  return status;
}

Outcome plan_over_ranks(const RankPlanRequest& request, SessionOptions options, Console& console) {
  auto ranks = make_rank_options(request.ranks, request.model);
  if (!ranks.is_ok()) return ranks.take_status();
  options.ranks = std::move(*ranks);
  const Library library;
  std::vector<RankPlan> plans;
  std::vector<RankSkeleton> skeletons;
  for (uint32_t rank = 0; rank < request.ranks.num_ranks; ++rank) {
    console.progress(fmt::format("planning rank {} of {}", rank, request.ranks.num_ranks));
    auto plan = plan_rank(library, request, options, rank, console);
    if (!plan.is_ok()) return plan.take_status();
    plans.push_back(shown(std::move(*plan)));
    skeletons.push_back(plans.back().skeleton);
  }
  const RankProof proof = prove_ranks(skeletons);
  if (!request.svg.empty()) {
    const std::string title =
        fmt::format("{} over {}", request.model.substr(request.model.rfind('/') + 1),
                    counted(plans.size(), "rank"));
    const DrawnRegion joint = joint_drawing(plans);
    const Status status =
        write_file(request.svg, plan_svg(joint, title, join_ranks_of(joint, plans)));
    if (!status.is_ok()) return status;
  }
  if (console.is_json()) {
    console.print(plans_json(plans, proof));
  } else {
    say_plans(plans, console);
    console.say(fmt::format("{} on {}", counted(count_operations(plans), "operation"),
                            counted(plans.size(), "rank")));
  }
  if (proof.is_safe()) {
    if (!console.is_json()) console.say("joint proof: safe");
    return Outcome::success();
  }
  for (size_t i = 1; i < proof.violations.size(); ++i) {
    console.remark(one_line("also: " + proof.violations[i]));
  }
  return Outcome(
      invalid_argument(request.model + ": ranks would mix up or deadlock: " + proof.violations[0]));
}

}  // namespace eddy
