#include "tools/bench/bench_ranks.h"

#include <unistd.h>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "graph/io/export.h"
#include "graph/proof/rank_proof.h"
#include "runtime/api/session.h"
#include "runtime/mpi/job_board.h"
#include "runtime/mpi/launcher.h"
#include "runtime/mpi/mpi_library.h"
#include "runtime/net/world.h"
#include "tools/bench/bench_split.h"
#include "tools/bench/rank_cases.h"
#include "tools/bench/rank_training.h"
#include "tools/bench/raw_ranks.h"
#include "tools/bench/scratch_folder.h"
#include "tools/bench/torch_rival.h"
#include "tools/command/model.h"
#include "tools/command/share_machine.h"

namespace eddy {
namespace {

constexpr const char* kLine = "{:<24}{:>10}{:>44}{:>44}{:>12}{:>8}";
constexpr double kLateMs = 5;
constexpr int64_t kSizes[] = {4, 1 << 10, 16 << 10, 256 << 10, 4 << 20};
// So many that what a run costs all ranks is nothing.
constexpr int64_t kTurnsAlone = 2'000'000;
constexpr int kTrainingSteps = 20;
// Ranks that wait for one which measures alone leave it the machine.
constexpr std::chrono::milliseconds kNap{5};

// So many that a run takes some milliseconds.
int64_t turns_of(int64_t bytes) {
  return std::clamp<int64_t>((int64_t{16} << 20) / std::max<int64_t>(bytes, 1), 20, 5000);
}

std::string size_text(int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// As a shell would start it that no launcher has started.
std::string bare_command(const std::vector<std::string>& words) {
  std::string text = "env -i";
  for (const char* const name : {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"}) {
    if (const char* const value = std::getenv(name)) {
      text += " " + quoted(std::string(name) + "=" + value);
    }
  }
  text += " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
  for (const std::string& word : words) text += " " + quoted(word);
  return text + " >/dev/null 2>&1 </dev/null";
}

// One sample: ns of one unit.
struct RankContender {
  std::string name;
  std::function<Result<double>()> sample;
};

// What Eddy may take at most, from the rival's.
struct Limit {
  double factor = 1;
  double plus_ns = 0;
};

class RanksBench {
 public:
  RanksBench(const BenchRanksArguments& arguments, std::shared_ptr<World> world, Console& console,
             Interrupts& interrupts)
      : arguments_(arguments),
        world_(std::move(world)),
        suite_("ranks", arguments.common, console, interrupts) {}

  Outcome run() {
    const Status status = measure_all();
    raw_.reset();
    if (!status.is_ok()) return Outcome::of_run(status);
    // Rank 0 alone measures some: it knows whether a case was wanted.
    return world_->rank() == 0 ? suite_.finish() : Outcome::success();
  }

 private:
  Status measure_all() {
    EDDY_RETURN_IF_ERROR(add_work(library_));
    EDDY_ASSIGN_OR_RETURN(raw_, RawRanks::open(world_->num_ranks()));
    if (arguments_.has_only_split) return add_split();
    for (const int64_t bytes : kSizes) {
      EDDY_RETURN_IF_ERROR(add_sums(bytes));
      EDDY_RETURN_IF_ERROR(add_gathers(bytes));
    }
    EDDY_RETURN_IF_ERROR(add_agreement());
    EDDY_RETURN_IF_ERROR(add_loop_alone());
    EDDY_RETURN_IF_ERROR(add_late_peer());
    for (const int64_t samples : kTrainedSamples) EDDY_RETURN_IF_ERROR(add_training(samples));
    EDDY_RETURN_IF_ERROR(add_split());
    const Status status = world_->rank() == 0 ? measure_alone() : Status::ok();
    EDDY_RETURN_IF_ERROR(raw_->meet(kNap));
    return status;
  }

  // By rank 0, while the others wait.
  Status measure_alone() {
    EDDY_RETURN_IF_ERROR(add_proof());
    return add_start();
  }

  Result<std::vector<Samples>> measure(const std::vector<RankContender>& contenders) {
    std::vector<Samples> all;
    for (const RankContender& each : contenders) all.push_back({each.name, {}});
    for (int round = 0; round < arguments_.common.rounds; ++round) {
      for (size_t i = 0; i < contenders.size(); ++i) {
        EDDY_ASSIGN_OR_RETURN(const double ns, contenders[i].sample());
        all[i].ns.push_back(ns);
      }
    }
    for (Samples& each : all) std::ranges::sort(each.ns);
    return all;
  }

  // MPI's own calls, one behind the other.
  RankContender raw_turns(std::string name, int64_t turns, std::function<Status()> start) {
    return {std::move(name), [this, turns, start = std::move(start)]() -> Result<double> {
              EDDY_RETURN_IF_ERROR(raw_->meet());
              const int64_t start_ns = now_ns();
              for (int64_t i = 0; i < turns; ++i) {
                EDDY_RETURN_IF_ERROR(start());
                EDDY_RETURN_IF_ERROR(raw_->complete());
              }
              return static_cast<double>(now_ns() - start_ns) / static_cast<double>(turns);
            }};
  }

  struct EddyRun {
    std::string name;
    const Graph* graph = nullptr;
    NamedTensors inputs;
    double units = 1;
    bool has_ranks = true;
    bool has_equal_turns = true;
  };

  RankContender eddy_run(EddyRun run) {
    std::string name = run.name;
    return {std::move(name), [this, run = std::move(run)]() -> Result<double> {
              SessionOptions options;
              options.num_threads = 1;
              if (run.has_ranks) options.ranks.world = world_;
              if (run.has_ranks && run.has_equal_turns) options.ranks.replicated = {"turns"};
              EDDY_ASSIGN_OR_RETURN(const auto session,
                                    Session::create(library_, run.graph->copy(), options));
              EDDY_RETURN_IF_ERROR(session->run(run.inputs).status());
              const int64_t start_ns = now_ns();
              EDDY_RETURN_IF_ERROR(session->run(run.inputs).status());
              return static_cast<double>(now_ns() - start_ns) / run.units;
            }};
  }

  NamedTensors inputs_of(int64_t turns, int64_t bytes) const {
    const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
    const std::vector<float> zeros(static_cast<size_t>(count), 0.0F);
    return {{"turns", Tensor::scalar(turns)},
            {"x", Tensor::of(Dims{count}, std::span<const float>(zeros))}};
  }

  Status add_sums(int64_t bytes) {
    const std::string any = "AllReduce any", in_order = "AllReduce rank";
    if (!is_wanted(any, bytes) && !is_wanted(in_order, bytes)) return Status::ok();
    say_progress(any, bytes);
    const int64_t turns = turns_of(bytes), count = bytes / static_cast<int64_t>(sizeof(float));
    EDDY_ASSIGN_OR_RETURN(const Graph first, rank_turns(library_, RankTurn::kSumInAnyOrder, bytes));
    EDDY_ASSIGN_OR_RETURN(const Graph second,
                          rank_turns(library_, RankTurn::kSumInRankOrder, bytes));
    const auto size = static_cast<size_t>(count);
    std::vector<float> in(size), out(size);
    const auto units = static_cast<double>(turns);
    EDDY_ASSIGN_OR_RETURN(
        const auto all,
        measure(
            {raw_turns("MPI_Iallreduce", turns,
                       [&] { return raw_->start_sum(in.data(), out.data(), count); }),
             eddy_run(
                 {.name = any, .graph = &first, .inputs = inputs_of(turns, bytes), .units = units}),
             eddy_run({.name = in_order,
                       .graph = &second,
                       .inputs = inputs_of(turns, bytes),
                       .units = units})}));
    add_row(any, bytes, all[1], all[0], Limit{1.1, 1500});
    add_row(in_order, bytes, all[2], all[0], Limit{1.35, 2000});
    return Status::ok();
  }

  Status add_gathers(int64_t bytes) {
    const std::string name = "AllGather";
    if (!is_wanted(name, bytes)) return Status::ok();
    say_progress(name, bytes);
    const int64_t turns = turns_of(bytes);
    EDDY_ASSIGN_OR_RETURN(const Graph graph, rank_turns(library_, RankTurn::kGather, bytes));
    const auto size = static_cast<size_t>(bytes);
    std::vector<std::byte> in(size), out(size * world_->num_ranks());
    EDDY_ASSIGN_OR_RETURN(
        const auto all,
        measure({raw_turns("MPI_Iallgather", turns,
                           [&] { return raw_->start_gather(in.data(), out.data(), bytes); }),
                 eddy_run({.name = name,
                           .graph = &graph,
                           .inputs = inputs_of(turns, bytes),
                           .units = static_cast<double>(turns)})}));
    add_row(name, bytes, all[1], all[0], Limit{1.1, 1500});
    return Status::ok();
  }

  Status add_agreement() {
    const std::string name = "agreed predicate";
    if (!suite_.is_wanted(name)) return Status::ok();
    say_progress(name, 1);
    const int64_t turns = turns_of(1);
    EDDY_ASSIGN_OR_RETURN(const Graph graph, rank_turns(library_, RankTurn::kAgree, 1));
    bool in = true, out = true;
    EDDY_ASSIGN_OR_RETURN(
        const auto all,
        measure({raw_turns("MPI_Iallreduce", turns, [&] { return raw_->start_and(&in, &out); }),
                 eddy_run({.name = name,
                           .graph = &graph,
                           .inputs = {{"turns", Tensor::scalar(turns)}},
                           .units = static_cast<double>(turns),
                           .has_equal_turns = false})}));
    add_row(name, 1, all[1], all[0], Limit{1, 1000});
    return Status::ok();
  }

  Status add_loop_alone() {
    const std::string name = "loop without any";
    if (!suite_.is_wanted(name)) return Status::ok();
    say_progress(name, 0);
    EDDY_ASSIGN_OR_RETURN(const Graph graph, loop_alone(library_));
    EddyRun run{.name = name,
                .graph = &graph,
                .inputs = {{"turns", Tensor::scalar(kTurnsAlone)}, {"x", Tensor::scalar(1.0F)}},
                .units = static_cast<double>(kTurnsAlone)};
    EddyRun without = run;
    without.name = "without ranks";
    without.has_ranks = false;
    const auto met = [this](RankContender contender) {
      return RankContender{contender.name, [this, contender]() -> Result<double> {
                             EDDY_RETURN_IF_ERROR(raw_->meet());
                             return contender.sample();
                           }};
    };
    EDDY_ASSIGN_OR_RETURN(const auto all, measure({met(eddy_run(std::move(without))),
                                                   met(eddy_run(std::move(run)))}));
    add_row(name, 0, all[1], all[0], Limit{1, 0});
    return Status::ok();
  }

  // Rank 0 has work beside the sum, whose other ranks come late.
  Status add_late_peer() {
    const std::string name = "peer 5 ms late";
    if (!suite_.is_wanted(name)) return Status::ok();
    say_progress(name, 0);
    const bool is_first = world_->rank() == 0;
    const double before = is_first ? 0 : kLateMs, beside = is_first ? kLateMs : 0;
    EDDY_ASSIGN_OR_RETURN(const Graph graph, late_sum(library_));
    float in = 1, out = 0;
    const auto blocking = [&]() -> Result<double> {
      EDDY_RETURN_IF_ERROR(raw_->meet());
      const int64_t start_ns = now_ns();
      work_for(before);
      EDDY_RETURN_IF_ERROR(raw_->start_sum(&in, &out, 1));
      EDDY_RETURN_IF_ERROR(raw_->complete());
      work_for(beside);
      return static_cast<double>(now_ns() - start_ns);
    };
    EddyRun run{.name = name,
                .graph = &graph,
                .inputs = {{"before", Tensor::scalar(before)}, {"beside", Tensor::scalar(beside)}},
                .has_equal_turns = false};
    EDDY_ASSIGN_OR_RETURN(const auto all,
                          measure({{"MPI, blocking", blocking}, eddy_run(std::move(run))}));
    add_row(name, 0, all[1], all[0], Limit{0, 5.5e6});
    return Status::ok();
  }

  // Batches that ranks share: 1.85 times as fast on two, and that much of more.
  Status add_split() {
    const double factor = 2 / (1.85 * world_->num_ranks());
    SplitBench split(library_, suite_, *world_, arguments_.common.rounds,
                     [this](std::chrono::nanoseconds nap) { return raw_->meet(nap); });
    return split.measure([&](const std::string& name, const Samples& shared, const Samples& alone) {
      add_row(name, 0, shared, alone, Limit{factor, 0});
    });
  }

  // A step whose samples ranks share, beside one rank with all of them, and PyTorch's way.
  Status add_training(int64_t samples) {
    const std::string name = fmt::format("training step, {}", samples);
    const std::string rival_name = name + ", DDP";
    const bool is_wanted = suite_.is_wanted(name), is_rival_wanted = suite_.is_wanted(rival_name);
    if (!is_wanted && !is_rival_wanted) return Status::ok();
    suite_.console().progress("measuring a training step");
    const uint32_t n = world_->num_ranks();
    const int64_t share = samples / n;
    SessionOptions options;
    options.num_threads = 1;
    EDDY_ASSIGN_OR_RETURN(Graph whole, rank_training_step(library_, share * n, 1));
    EDDY_ASSIGN_OR_RETURN(const auto alone, Session::create(library_, std::move(whole), options));
    options.ranks.world = world_;
    EDDY_ASSIGN_OR_RETURN(Graph own, rank_training_step(library_, share, n));
    EDDY_ASSIGN_OR_RETURN(const auto shared, Session::create(library_, std::move(own), options));
    const NamedTensors of_alone = rank_training_inputs(share * n, 0);
    const NamedTensors of_shared = rank_training_inputs(share, world_->rank());
    // Some steps for each sample, the first of which is not counted.
    const auto steps = [this](Session& session, const NamedTensors& inputs) -> Result<double> {
      EDDY_RETURN_IF_ERROR(session.run(inputs).status());
      const int64_t start_ns = now_ns();
      for (int i = 0; i < kTrainingSteps; ++i) EDDY_RETURN_IF_ERROR(session.run(inputs).status());
      return static_cast<double>(now_ns() - start_ns) / kTrainingSteps;
    };
    const auto of_first = [&]() -> Result<double> {
      Result<double> ns = world_->rank() == 0 ? steps(*alone, of_alone) : 0.0;
      EDDY_RETURN_IF_ERROR(raw_->meet(kNap));
      return ns;
    };
    EDDY_ASSIGN_OR_RETURN(const auto all,
                          measure({{"one rank", of_first}, {name, [&]() -> Result<double> {
                                                              EDDY_RETURN_IF_ERROR(raw_->meet());
                                                              return steps(*shared, of_shared);
                                                            }}}));
    if (is_wanted) add_row(name, 0, all[1], all[0], Limit{2 / (1.7 * n), 0});
    Status status = Status::ok();
    if (is_rival_wanted && world_->rank() == 0) {
      status = add_shared_rival(rival_name, samples, all[1]);
    }
    EDDY_RETURN_IF_ERROR(raw_->meet(kNap));
    return status;
  }

  Status add_shared_rival(const std::string& name, int64_t samples, const Samples& shared) {
    const TorchRival rival;
    const WholeMachine its_ranks_too;
    Samples torch{"PyTorch " + rival.version() + ", DistributedDataParallel", {}};
    for (int round = 0; round < 3; ++round) {
      EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
      const auto ns = rival.run_shared(world_->num_ranks(), samples, folder->file(""));
      torch.ns.insert(torch.ns.end(), ns.begin(), ns.end());
    }
    if (torch.ns.empty()) {
      suite_.console().remark("no python3 imports torch (Debian: python3-torch), so " + name +
                              " is left out");
      return Status::ok();
    }
    std::ranges::sort(torch.ns);
    add_row(name, 0, shared, torch, Limit{1, 0});
    return Status::ok();
  }

  Status add_proof() {
    const std::string name = "proof of 64 ranks";
    if (!suite_.is_wanted(name)) return Status::ok();
    const std::vector<RankSkeleton> skeletons = long_skeletons(64, 1000);
    Samples proof{name, {}};
    for (int round = 0; round < arguments_.common.rounds; ++round) {
      const int64_t start_ns = now_ns();
      const RankProof found = prove_ranks(skeletons);
      proof.ns.push_back(static_cast<double>(now_ns() - start_ns));
      if (!found.is_safe()) return internal_error("skeletons that are alike are found unsafe");
    }
    std::ranges::sort(proof.ns);
    add_row(name, 0, proof, std::nullopt, Limit{0, 2e8});
    return Status::ok();
  }

  Status add_start() {
    const std::string name = "run of an empty graph";
    if (!suite_.is_wanted(name)) return Status::ok();
    suite_.console().progress("measuring starts of jobs");
    EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
    EDDY_ASSIGN_OR_RETURN(const Graph graph, empty_model(library_));
    EDDY_RETURN_IF_ERROR(export_onnx(graph, folder->file("empty.onnx")));
    std::string self(PATH_MAX, '\0');
    if (realpath("/proc/self/exe", self.data()) == nullptr) {
      return run_failed("the path of this program is not known");
    }
    self.resize(self.find('\0'));
    const std::string ranks = std::to_string(world_->num_ranks());
    EDDY_ASSIGN_OR_RETURN(const Launch launch,
                          make_launch({.num_ranks = world_->num_ranks(),
                                       .mpirun = arguments_.ranks.mpirun,
                                       .program = self,
                                       .arguments = {"bench", "ranks", "--fresh", "mpi"}}));
    const std::string commands[] = {
        bare_command(launch.arguments),
        bare_command({self, "run", folder->file("empty.onnx"), "--ranks", ranks, "--set", "x=1"})};
    const WholeMachine their_ranks_too;
    Samples all[] = {{"mpirun", {}}, {name, {}}};
    for (int round = 0; round < arguments_.common.rounds; ++round) {
      for (size_t i = 0; i < 2; ++i) {
        const int64_t start_ns = now_ns();
        if (const int code = std::system(commands[i].c_str()); code != 0) {
          return run_failed(fmt::format("'{}' has ended with {}", commands[i], code));
        }
        all[i].ns.push_back(static_cast<double>(now_ns() - start_ns));
      }
    }
    for (Samples& each : all) std::ranges::sort(each.ns);
    add_row(name, 0, all[1], all[0], Limit{1, 1e8});
    return Status::ok();
  }

  bool is_wanted(const std::string& name, int64_t bytes) const {
    return suite_.is_wanted(name + " of " + size_text(bytes));
  }
  void say_progress(const std::string& name, int64_t bytes) {
    suite_.console().progress(fmt::format("measuring {} of {}", name, size_text(bytes)));
  }

  void add_row(const std::string& name, int64_t bytes, const Samples& eddy,
               const std::optional<Samples>& rival, const Limit& limit) {
    const double most = (rival ? limit.factor * rival->median() : 0) + limit.plus_ns;
    Json json = {{"case", name}, {"ns", samples_json(eddy)}, {"limit_ns", most}};
    if (bytes > 0) json["bytes"] = bytes;
    if (rival) {
      json["rival"] = rival->name;
      json["rival_ns"] = samples_json(*rival);
    }
    std::string text = fmt::format(kLine, name, bytes > 0 ? size_text(bytes) : "",
                                   samples_text(eddy), rival ? samples_text(*rival) : "",
                                   duration_text(most), eddy.median() <= most ? "met" : "missed");
    if (suite_.is_empty()) {
      text = fmt::format(kLine, "case", "bytes", "Eddy: best (median, 10 to 90 %)",
                         "rival: best (median, 10 to 90 %)", "at most", "") +
             "\n" + text;
    }
    suite_.add_row(text, std::move(json));
  }

  const BenchRanksArguments& arguments_;
  const std::shared_ptr<World> world_;
  BenchSuite suite_;
  Library library_;
  std::unique_ptr<RawRanks> raw_;
};

// What mpirun alone takes.
Status open_and_close_mpi() {
  EDDY_ASSIGN_OR_RETURN(const MpiTable* const mpi, load_mpi());
  int32_t was_open = 0;
  EDDY_RETURN_IF_ERROR(mpi_status(*mpi, mpi->open(&was_open), "MPI does not start"));
  return mpi_status(*mpi, mpi->close(), "MPI does not end");
}

}  // namespace

Outcome bench_ranks(const BenchRanksArguments& arguments, Console& console,
                    Interrupts& interrupts) {
  if (arguments.fresh == "mpi") return open_and_close_mpi();
  RankArguments ranks = arguments.ranks;
  if (ranks.num_ranks == 0 && !find_launched_rank()) ranks.num_ranks = 2;
  return run_as_ranks(ranks, console, interrupts,
                      [&](const auto& world, const LaunchedRank& launched, RankReport& report) {
                        SessionOptions of_all;
                        of_all.num_threads = 1;
                        share_machine(of_all, launched);
                        report.reach(JobBoard::Stage::kRunning);
                        return RanksBench(arguments, world, console, interrupts).run();
                      });
}

}  // namespace eddy
