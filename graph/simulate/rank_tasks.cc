#include "graph/simulate/rank_tasks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Op = Program::Op;
using What = RankTasks::What;

// What a run has to wait for before it goes on: ends of tasks.
using After = std::vector<uint32_t>;

void add(After& after, const After& more) { after.insert(after.end(), more.begin(), more.end()); }

int64_t typical_value(const Decision& decision, uint64_t execution, bool is_case) {
  if (!decision.trace.empty()) return decision.trace[execution % decision.trace.size()];
  double mean = 0;
  const Decision::Likely* likeliest = nullptr;
  for (const Decision::Likely& likely : decision.distribution) {
    mean += likely.probability * static_cast<double>(likely.value);
    if (likeliest == nullptr || likely.probability > likeliest->probability) likeliest = &likely;
  }
  EDDY_CHECK(likeliest != nullptr) << "a decision without values";
  return is_case ? likeliest->value : static_cast<int64_t>(std::llround(mean));
}

// Tasks and edges of all ranks, and which rank has come to which lane how often.
class Joining {
 public:
  Joining(uint32_t num_ranks, const RankLinks& links, const RankTaskOptions& options)
      : num_ranks_(num_ranks), links_(links), options_(options) {}

  bool is_full() const { return specs_.size() > options_.max_tasks; }

  // What ends behind it.
  After task(const RankTasks::Task& task, double ns, uint32_t device, const After& after) {
    const auto slot = static_cast<uint32_t>(specs_.size());
    specs_.push_back({.exe_time = ns, .device = device, .rank = slot});
    tasks_.push_back(task);
    for (const uint32_t from : after) edges_.push_back({from, slot});
    return {slot};
  }

  After meet(uint32_t rank, uint32_t launch, const RankOperation& operation, double scale,
             const After& after) {
    const auto [found, is_new] = lanes_.try_emplace(operation.lane, Lane{});
    Lane& lane = found->second;
    if (is_new) {
      lane.number = static_cast<uint32_t>(names_.size());
      names_.push_back(operation.lane);
      lane.ranks = operation.ranks;
    }
    const uint64_t index = lane.num_come[rank]++;
    if (index == lane.meetings.size()) {
      const auto number = static_cast<uint32_t>(operations_.size());
      const double ns = links_.operation_ns(
          operation.kind, static_cast<double>(operation.ranks.size()), operation.bytes);
      const RankTasks::Task joint{What::kOperation, operation.ranks[0], launch, number};
      const uint32_t slot = task(joint, ns * scale, num_ranks_ + lane.number, {})[0];
      operations_.push_back({.task = slot});
      lane.meetings.push_back(number);
    }
    const uint32_t number = lane.meetings[index];
    RankTasks::Operation& meeting = operations_[number];
    const After arrival = task({What::kArrival, rank, launch, number}, 0, rank, after);
    edges_.push_back({arrival[0], meeting.task});
    meeting.ranks.push_back(rank);
    meeting.arrivals.push_back(arrival[0]);
    meeting.launches.push_back(launch);
    return {meeting.task};
  }

  Status check_lanes() const {
    for (const auto& [name, lane] : lanes_) {
      for (const uint32_t rank : lane.ranks) {
        const auto found = lane.num_come.find(rank);
        const uint64_t count = found == lane.num_come.end() ? 0 : found->second;
        if (count == lane.meetings.size()) continue;
        return invalid_argument(fmt::format(
            "rank {} comes to {} of {} operations on {}: ranks decide a loop or branch with "
            "communication unequally; --costs of all of them tells how it is decided",
            rank, count, lane.meetings.size(), name));
      }
    }
    return Status::ok();
  }

  RankTasks take() {
    RankTasks made;
    made.graph.assign(specs_, edges_);
    made.tasks = std::move(tasks_);
    made.operations = std::move(operations_);
    made.lanes = std::move(names_);
    return made;
  }

 private:
  struct Lane {
    uint32_t number = 0;
    std::vector<uint32_t> ranks = {};
    std::vector<uint32_t> meetings = {};         // operations
    std::map<uint32_t, uint64_t> num_come = {};  // by rank
  };

  const uint32_t num_ranks_;
  const RankLinks& links_;
  const RankTaskOptions& options_;
  std::vector<TaskSpec<double>> specs_;
  std::vector<Edge> edges_;
  std::vector<RankTasks::Task> tasks_;
  std::vector<RankTasks::Operation> operations_;
  std::vector<std::string> names_;
  std::map<std::string, Lane> lanes_;
};

// One rank's program, block by block in issue order: what a step waits for was issued before it.
class Unrolling {
 public:
  Unrolling(uint32_t rank, const RankProgram& of, const RankTaskOptions& options, Joining& joining)
      : rank_(rank), of_(of), options_(options), joining_(joining) {
    for (const Program::Block& block : of.program.blocks) {
      for (const uint32_t stream : block.streams) {
        if (stream >= after_.size()) after_.resize(stream + size_t{1});
      }
    }
    loop_runs_.resize(of.program.loops.size());
    case_runs_.resize(of.program.cases.size());
  }

  void run() {
    Events none;
    block(0, 1, none);
  }

 private:
  // Of one round of a block: what each of its events waits for.
  using Events = std::vector<After>;

  // `previous`: of the round before; the round's own at the return.
  void block(uint32_t b, double scale, Events& previous) {
    const Program::Block& block = of_.program.blocks[b];
    Events events(block.num_events);
    for (const Program::Step& step : block.steps) {
      if (joining_.is_full()) return;
      After& after = after_[step.stream];
      switch (step.op) {
        case Op::kLaunch:
          after = launch(step.operand, scale, after);
          break;
        case Op::kRecord:
          events[step.operand] = after;
          break;
        case Op::kWait:
          add(after, events[step.operand]);
          break;
        case Op::kWaitPrevious:
          if (!previous.empty()) add(after, previous[step.operand]);
          break;
        case Op::kLoop:
          loop(step.operand, step.stream, scale);
          break;
        case Op::kCase:
          branch(step.operand, step.stream, scale);
          break;
        default:
          break;
      }
    }
    previous = std::move(events);
  }

  After launch(uint32_t launch, double scale, const After& after) {
    const auto& operation = of_.operations[launch];
    if (operation) return joining_.meet(rank_, launch, *operation, scale, after);
    const double ns = of_.costs.launches[launch].solo_ns * scale;
    return joining_.task({What::kKernel, rank_, launch, 0}, ns, rank_, after);
  }

  // A control node's own step: nothing where it takes no time.
  void control(uint32_t id, uint32_t stream, const FluidDemand& demand, double scale) {
    if (demand.solo_ns <= 0) return;
    After& after = after_[stream];
    after = joining_.task({What::kControl, rank_, id, 0}, demand.solo_ns * scale, rank_, after);
  }

  // What the block's further streams have come to.
  After further_ends(const Program::Block& block) const {
    After ends;
    for (size_t s = 1; s < block.streams.size(); ++s) add(ends, after_[block.streams[s]]);
    return ends;
  }

  void loop(uint32_t id, uint32_t stream, double scale) {
    const Program::Loop& loop = of_.program.loops[id];
    const FluidCosts::Loop& costs = of_.costs.loops[id];
    const int64_t value = typical_value(costs.decision, loop_runs_[id]++, false);
    const auto trips = static_cast<uint64_t>(std::max<int64_t>(value, 0));
    const uint64_t rounds = std::min(trips, options_.max_rounds);
    const double inner =
        rounds == 0 ? scale : scale * static_cast<double>(trips) / static_cast<double>(rounds);
    const Program::Block& behind = of_.program.blocks[loop.after];
    control(id, stream, costs.enter, scale);
    Events of_before, of_after;
    std::vector<After> ends;  // of each round's further streams
    for (uint64_t round = 0; round <= rounds && !joining_.is_full(); ++round) {
      const double own = round < rounds ? inner : scale;
      block(loop.before, own, of_before);
      control(id, stream, costs.test, own);
      if (round == rounds) break;
      if (loop.is_pipelined && round >= 2) add(after_[stream], ends[round - 2]);
      block(loop.after, own, of_after);
      if (loop.is_pipelined) ends.push_back(further_ends(behind));
      control(id, stream, costs.advance, own);
    }
    if (!ends.empty()) add(after_[stream], ends.back());
    control(id, stream, costs.leave, scale);
  }

  void branch(uint32_t id, uint32_t stream, double scale) {
    const Program::Case& branch = of_.program.cases[id];
    const FluidCosts::Case& costs = of_.costs.cases[id];
    const auto own = static_cast<uint32_t>(of_.program.loops.size()) + id;
    control(own, stream, costs.select, scale);
    const int64_t value = typical_value(costs.decision, case_runs_[id]++, true);
    Events none;
    if (value >= 0 && static_cast<uint64_t>(value) < branch.blocks.size()) {
      block(branch.blocks[static_cast<size_t>(value)], scale, none);
    }
    control(own, stream, costs.finish, scale);
  }

  const uint32_t rank_;
  const RankProgram& of_;
  const RankTaskOptions& options_;
  Joining& joining_;
  std::vector<After> after_;  // by stream
  std::vector<uint64_t> loop_runs_, case_runs_;
};

}  // namespace

Result<RankTasks> join_rank_tasks(std::span<const RankProgram> ranks, const RankLinks& links,
                                  const RankTaskOptions& options) {
  if (options.max_rounds == 0) return invalid_argument("max_rounds must be above 0");
  Joining joining(static_cast<uint32_t>(ranks.size()), links, options);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const RankProgram& of = ranks[rank];
    FluidMachine machine;
    EDDY_RETURN_IF_ERROR(check_fluid_costs(of.program, of.costs, machine));
    EDDY_CHECK(of.operations.size() == of.program.launches.size())
        << "which launches are operations is said of another program";
    Unrolling(rank, of, options, joining).run();
    if (joining.is_full()) {
      return resource_exhausted(
          fmt::format("ranks have more than {} tasks, where loops go round {} times",
                      options.max_tasks, options.max_rounds));
    }
  }
  EDDY_RETURN_IF_ERROR(joining.check_lanes());
  return joining.take();
}

}  // namespace eddy
