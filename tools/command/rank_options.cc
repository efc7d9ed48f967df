#include "tools/command/rank_options.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "runtime/mpi/launcher.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/net/rank_session.h"
#include "runtime/net/world.h"
#include "tools/command/crash_report.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"

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

// The words of this command, without the first.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> words;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\0', begin), all.size());
    words.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!words.empty()) words.erase(words.begin());
  return words;
}

std::chrono::nanoseconds stall_of(const RankArguments& arguments) {
  return std::chrono::nanoseconds(static_cast<int64_t>(arguments.stall_s * 1e9));
}

// A loop or branch has this name.
bool has_control(const Graph& graph, const std::string& name) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec && node.name == name) return true;
  }
  return false;
}

// The world of the ranks that mpirun started, this command among them.
Result<std::shared_ptr<World>> join_ranks(const RankArguments& arguments) {
  EDDY_ASSIGN_OR_RETURN(auto transport, open_mpi_transport({}));
  WorldOptions options;
  options.stall = stall_of(arguments);
  return World::open(std::move(transport), options);
}

Outcome lead_ranks(const RankArguments& arguments, Console& console, Interrupts& interrupts) {
  // What the ranks would say, each.
  if (auto mpi = load_mpi(); !mpi.is_ok()) return mpi.take_status();
  auto launch = make_launch({.num_ranks = arguments.num_ranks,
                             .mpirun = arguments.mpirun,
                             .program = "/proc/self/exe",
                             .arguments = own_arguments()});
  if (!launch.is_ok()) return launch.take_status();
  const Interrupts::Patience patience(interrupts);
  WatchOptions options;
  options.stall = stall_of(arguments);
  options.should_stop = [&] { return interrupts.is_interrupted(); };
  interrupts.note_questions();
  options.should_describe = [&] { return interrupts.take_question(); };
  auto end = run_launch(*launch, options);
  if (!end.is_ok()) return Outcome::of_run(end.take_status());
  console.note_passed(end->passed.out_bytes > 0, end->passed.is_out_lost);
  if (end->exit_code == 0) return end->status;
  if (!end->status.is_ok()) return Outcome::of_process(end->exit_code, end->status);
  if (end->passed.err_bytes == 0) {
    return Outcome::of_process(
        end->exit_code, run_failed(fmt::format("a rank has ended with exit code {}, and mpirun has "
                                               "passed on no reason",
                                               end->exit_code)));
  }
  std::_Exit(console.finish_said(end->exit_code));
}

// `has_met`: all ranks were in one world, which this one has left by then.
Outcome meet_ranks(const RankArguments& arguments, const LaunchedRank& launched, Console& console,
                   RankReport& report, const OnRank& on_rank, bool& has_met) {
  auto world = join_ranks(arguments);
  if (!world.is_ok()) return world.take_status();
  has_met = true;
  const uint32_t num_ranks = (*world)->num_ranks();
  if (arguments.num_ranks == 0 || arguments.num_ranks == num_ranks) {
    return on_rank(*world, launched, report);
  }
  console.share_failures();
  Outcome outcome(invalid_argument(
      fmt::format("--ranks {}: mpirun has started {}; leave --ranks out, or give their number",
                  arguments.num_ranks, num_ranks)));
  console.finish(outcome);
  return outcome;
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

void add_launch_options(CLI::App& app, RankArguments& arguments) {
  app.add_option("--mpirun", arguments.mpirun, "Open MPI's mpirun, else found in PATH");
  app.add_option("--stall", arguments.stall_s,
                 "seconds after which a rank that does not answer is lost, and ends the job; a "
                 "--timeout that has passed waits for it as long")
      ->check(check_seconds())
      ->capture_default_str();
}

void add_rank_run_options(CLI::App& app, RankArguments& arguments) {
  add_launch_options(app, arguments);
  app.add_flag("--check-ranks", arguments.checks,
               "compare what ranks put into each operation as it starts");
}

bool names_rank(const std::string& file) { return file.find(kRankMark) != std::string::npos; }

std::string file_of_rank(const std::string& file, uint32_t rank) {
  std::string path = file;
  const std::string number = std::to_string(rank);
  for (size_t at = 0; (at = path.find(kRankMark, at)) != std::string::npos; at += number.size()) {
    path.replace(at, kRankMark.size(), number);
  }
  return path;
}

Result<RankOptions> make_rank_options(const RankArguments& arguments, const std::string& model) {
  RankOptions options;
  options.replicated = arguments.replicated;
  options.is_one_graph = !names_rank(model);
  options.check_ranks = arguments.checks;
  for (const std::string& text : arguments.agree) {
    EDDY_ASSIGN_OR_RETURN(const auto pair, split_assignment(text, "--agree", "NAME=all"));
    if (options.agree.contains(pair.first)) {
      return invalid_argument(fmt::format("--agree {}: it was given before", pair.first));
    }
    EDDY_ASSIGN_OR_RETURN(options.agree[pair.first], parse_agreement(text, pair.second));
  }
  return options;
}

Status check_rank_options(const RankOptions& options, const Graph& graph, uint32_t num_ranks) {
  for (const auto& [name, agree] : options.agree) {
    if (!has_control(graph, name)) {
      return invalid_argument(
          fmt::format("--agree {}: the model has no loop or branch of this name", name));
    }
    if (agree.root >= num_ranks) {
      return invalid_argument(fmt::format("--agree {}=root:{}: there are ranks 0 to {}", name,
                                          agree.root, num_ranks - 1));
    }
  }
  for (const std::string& name : options.replicated) {
    const auto is_it = [&](ValueId input) { return graph.value(input).name == name; };
    if (std::ranges::none_of(graph.inputs(), is_it)) {
      return invalid_argument(fmt::format("--replicated {}: the model has no such input", name));
    }
  }
  return Status::ok();
}

bool wants_ranks(const RankArguments& arguments) {
  return arguments.num_ranks > 0 || find_launched_rank().has_value();
}

Outcome run_as_ranks(const RankArguments& arguments, Console& console, Interrupts& interrupts,
                     const OnRank& on_rank) {
  const std::optional<LaunchedRank> launched = find_launched_rank();
  if (!launched) return lead_ranks(arguments, console, interrupts);
  console.set_rank(launched->rank);
  const PeerWatch peers = {.num_ranks = launched->num_ranks,
                           .are_all_here = launched->num_local == launched->num_ranks,
                           .stall = stall_of(arguments),
                           .lost = [&](const std::string& why) {
                             // MPI may be waiting for it, so nothing else ends this rank; mpirun
                             // then ends the others.
                             const Outcome outcome = Outcome::of_run(device_lost(why));
                             std::_Exit(console.finish(outcome));
                           }};
  RankReport report(launched->rank, peers);
  const CrashRank crash(
      launched->rank,
      [](void* state, int exit_code) { static_cast<RankReport*>(state)->end(exit_code); }, &report);
  bool has_met = false;
  Outcome outcome = meet_ranks(arguments, *launched, console, report, on_rank, has_met);
  // Said before the report: a launcher that reads it is not waiting for a reason.
  report.end(console.finish(outcome));
  // It has the exit code, too. One that mpirun saw would take it a second or two to end the others.
  return has_met && report.has_launcher() ? Outcome::success() : std::move(outcome);
}

Outcome say_shared(const Outcome& outcome, World& world, Console& console, RankReport& report) {
  if (outcome.status().code() == StatusCode::kDeviceLost) {
    const int code = console.finish(outcome);
    report.end(code);
    world.abort(code);
    return outcome;
  }
  console.share_failures();
  // Said before this rank leaves the world: the first process to end ends the job. So is the code:
  // an mpirun that is being ended keeps ranks from leaving.
  report.end(console.finish(outcome));
  return outcome;
}

Status agree_ready(const RankOptions& options, const Status& own) {
  const std::unique_ptr<RankSession> ranks = RankSession::create(options);
  if (!own.is_ok()) {
    ranks->refuse(own);
    return own;
  }
  RankFacts facts;  // of nothing that communicates
  facts.skeleton.regions.resize(1);
  return ranks->agree(facts, [] { return Status::ok(); });
}

}  // namespace eddy
