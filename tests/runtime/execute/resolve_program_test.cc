// Claim: what runs is what was planned and proved: strands execute the program's steps, each
// stream's in its order, with the program's records and waits and no others; on the machine's
// streams, with its events, which exclusive branches share; a trace shows it.
//
// Random programs are followed against their code command by command. EDDY_TEST_SEED=N starts with
// another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/api/session.h"
#include "runtime/execute/resolve_program.h"
#include "runtime/trace/trace_recorder.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

// Two chains that meet.
Value two_chains(GraphBuilder& b, Value x, const std::string& name) {
  const auto chain = [&](const char* op, const char* side) {
    const Value first = b.op(op, {x}, {}, {.name = name + side + "1"});
    return b.op(op, {first}, {}, {.name = name + side + "2"});
  };
  const Value left = chain("Neg", "_left");
  const Value right = chain("Tanh", "_right");
  return b.op("Add", {left, right}, {}, {.name = name + "_sum"});
}

// A chain beside a loop with a body that branches into `num_branches` regions of two chains each.
Graph make_graph(const Library& library, int num_branches) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", kFloat);
  const Value s = b.input("s", tensor_type(ElementType::kInt64, {}));
  std::vector<CaseBody> bodies;
  for (int i = 0; i < num_branches; ++i) {
    bodies.push_back(
        [&b, x, i] { return std::vector<Value>{two_chains(b, x, "branch" + std::to_string(i))}; });
  }
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = b.int64s({3})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value picked = b.case_of({.name = "pick", .selector = s}, bodies)[0];
        return std::vector<Value>{b.op("Add", {picked, two_chains(b, f[0], "body")})};
      });
  b.output("y", b.op("Add", {out[0], two_chains(b, x, "beside")}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

Plan make_plan(const Graph& graph) {
  PlanOptions options;
  options.is_auto = false;
  Plan plan = plan_graph(graph, options);
  EXPECT_TRUE(prove_plan(graph, plan).is_ok());
  return plan;
}

// Follows a program and its code at once: what each block's stream does, the code of a strand does,
// from a place on.
class Follower {
 public:
  Follower(const Program& program, const ResolvedProgram& resolved)
      : program_(program), calls_(resolved.calls), code_(resolved.code) {}

  // Empty: each command is a step's or has its reason, and each step has its command.
  std::string run() {
    is_done_.assign(code_.commands.size(), false);
    uint32_t at = code_.strands[0].first;
    main_part(0, at);
    expect(at, Op::kEnd, "the end of the run");
    for (uint32_t c = 0; c < is_done_.size(); ++c) {
      if (!is_done_[c]) fail("command " + std::to_string(c) + " is no step's");
    }
    for (const auto& [key, event] : event_of_) {
      if (event >= code_.events.size()) {
        fail("event " + std::to_string(event) + " is not the code's");
        continue;
      }
      if (!machine_of_.emplace(std::pair(code_.events[event].machine[0], key.first), event)
               .second) {
        fail("a block has two events of one number");
      }
    }
    return what_;
  }

 private:
  using Op = StrandCode::Op;
  using Of = Program::Op;
  using What = ResolvedProgram::What;

  void fail(const std::string& what) {
    if (what_.empty()) what_ = what;
  }
  const StrandCode::Command& take(uint32_t& at) {
    if (at >= code_.commands.size()) {
      fail("the code ends too early");
      return code_.commands[at = 0];
    }
    if (is_done_[at]) fail("command " + std::to_string(at) + " is two steps'");
    is_done_[at] = true;
    return code_.commands[at++];
  }
  const StrandCode::Command& expect(uint32_t& at, Op op, const std::string& what) {
    const uint32_t here = at;
    const StrandCode::Command& command = take(at);
    if (command.op != op) fail("command " + std::to_string(here) + " is not " + what);
    return command;
  }
  void expect_call(uint32_t& at, StepKind kind, uint32_t node, Op op = Op::kCall) {
    const StrandCode::Command& command = expect(at, op, "a call for node " + std::to_string(node));
    if (!what_.empty()) return;
    const ResolvedProgram::Call& call = calls_[command.operand];
    const bool is_it =
        call.what == What::kStep && call.step.kind == kind && call.step.node == NodeId(node);
    if (!is_it)
      fail("call " + std::to_string(command.operand) + " is not of node " + std::to_string(node));
  }
  // Expects one of the code's events for each of the block's.
  void expect_event(uint32_t b, uint32_t number, uint32_t event) {
    const auto [known, is_new] = event_of_.emplace(std::pair(b, number), event);
    if (known->second != event) fail("an event of block " + std::to_string(b) + " is two");
  }

  bool overlaps(uint32_t b) const { return is_pipelined(program_, program_.blocks[b]); }
  bool has_steps(uint32_t b, uint32_t s) const {
    const Program::Block& block = program_.blocks[b];
    return std::ranges::any_of(block.steps,
                               [&](const auto& step) { return step.stream == block.streams[s]; });
  }
  // The block's further streams that do something.
  std::vector<uint32_t> further(uint32_t b) const {
    std::vector<uint32_t> found;
    for (uint32_t s = 1; s < program_.blocks[b].streams.size(); ++s) {
      if (has_steps(b, s)) found.push_back(s);
    }
    return found;
  }
  void wait_for_ends(uint32_t b, uint32_t round, uint32_t lag, uint32_t& at) {
    for (const uint32_t s : further(b)) {
      const StrandCode::Command& wait = expect(at, Op::kWait, "a wait for a stream's end");
      expect_event(b, first_frame_event(program_.blocks[b]) + s, wait.operand);
      if (wait.lag != lag || wait.target != round) fail("a stream's end is waited for elsewhere");
    }
  }

  void main_part(uint32_t b, uint32_t& at) {
    round_of_[b] = StrandCode::kNone;
    if (!further(b).empty()) round_of_[b] = expect(at, Op::kBegin, "a begin").operand;
    if (overlaps(b)) wait_for_ends(b, round_of_[b], 2, at);
    stream(b, 0, round_of_[b], at);
    // A block comes next when a block that has been followed records its first event.
    std::vector<uint32_t> left = further(b);
    for (size_t before = left.size() + 1; left.size() < before;) {
      before = left.size();
      std::erase_if(left, [&](uint32_t s) {
        const bool is_next = event_of_.contains({b, first_step(b, s).operand});
        if (is_next) further_strand(b, s);
        return is_next;
      });
    }
    if (!left.empty()) fail("a stream waits for what nothing records");
  }
  const Program::Step& first_step(uint32_t b, uint32_t s) const {
    const Program::Block& block = program_.blocks[b];
    const auto is_its = [&](const Program::Step& step) { return step.stream == block.streams[s]; };
    return *std::ranges::find_if(block.steps, is_its);
  }
  // The strand is found by its first wait.
  void further_strand(uint32_t b, uint32_t s) {
    const Program::Block& block = program_.blocks[b];
    const Program::Step& first = first_step(b, s);
    if (first.op != Of::kWait) return fail("a stream does not begin with a wait");
    uint32_t num_found = 0;
    for (const StrandCode::Strand& strand : code_.strands) {
      const auto event = event_of_.find({b, first.operand});
      const bool is_it = strand.round != StrandCode::kNone && strand.stream == block.streams[s] &&
                         event != event_of_.end() &&
                         code_.commands[strand.first].operand == event->second;
      if (!is_it) continue;
      ++num_found;
      uint32_t at = strand.first;
      stream(b, s, strand.round, at);
      if (overlaps(b)) {
        const StrandCode::Command& rest = expect(at, Op::kRest, "the rest of a strand");
        expect_event(b, first_frame_event(block) + s, rest.operand);
      }
    }
    if (num_found != 1) fail("a stream has no strand, or two");
  }

  void stream(uint32_t b, uint32_t s, uint32_t round, uint32_t& at) {
    const Program::Block& block = program_.blocks[b];
    bool counts = s > 0 && overlaps(b);  // iterations, before the first work
    const Program::Step* last = nullptr;
    for (const Program::Step& step : block.steps) {
      if (step.stream == block.streams[s] && !is_frame(step.op)) last = &step;
    }
    for (const Program::Step& step : block.steps) {
      if (step.stream != block.streams[s] || is_frame(step.op)) continue;
      if (counts && !is_sync(step.op)) {
        expect(at, Op::kCall, "a tail's count");
        counts = false;
      }
      follow(b, step, round, s > 0 && &step == last && !overlaps(b), at);
    }
  }

  void follow(uint32_t b, const Program::Step& step, uint32_t round, bool is_last, uint32_t& at) {
    switch (step.op) {
      case Of::kLaunch:
        return expect_call(at, StepKind::kExec, program_.launches[step.operand].node);
      case Of::kRetain:
        return expect_call(at, StepKind::kTake, program_.launches[step.operand].node);
      case Of::kPushRow: {
        const Program::Loop& loop = program_.loops[program_.rows[step.operand].loop];
        if (loop.is_pipelined) expect_call(at, StepKind::kRow, loop.node);
        return;
      }
      case Of::kRecord: {
        const StrandCode::Command& record =
            expect(at, is_last ? Op::kRest : Op::kRecord, "a record");
        if (is_last && record.target != round) fail("a strand counts another's rounds");
        return expect_event(b, step.operand, record.operand);
      }
      case Of::kWait:
      case Of::kWaitPrevious: {
        const StrandCode::Command& wait = expect(at, Op::kWait, "a wait");
        if (wait.lag != (step.op == Of::kWait ? 0 : 1) || wait.target != round) {
          fail("a wait is for another round");
        }
        return expect_event(b, step.operand, wait.operand);
      }
      case Of::kLoop:
        return loop(program_.loops[step.operand], at);
      case Of::kCase:
        return branch(program_.cases[step.operand], at);
      default:
        return fail("a step of no kind");
    }
  }

  void loop(const Program::Loop& loop, uint32_t& at) {
    expect_call(at, StepKind::kEnter, loop.node);
    const uint32_t top = at;
    main_part(loop.before, at);
    const uint32_t test = at;
    expect_call(at, StepKind::kTest, loop.node, Op::kTest);
    main_part(loop.after, at);
    expect_call(at, StepKind::kAdvance, loop.node);
    if (expect(at, Op::kRepeat, "a repeat").target != top) fail("a loop repeats another");
    if (!what_.empty()) return;
    if (code_.commands[test].target != at) fail("a loop ends elsewhere");
    if (loop.is_pipelined) wait_for_ends(loop.after, round_of_[loop.after], 0, at);
    expect_call(at, StepKind::kLeave, loop.node);
  }
  void branch(const Program::Case& branch, uint32_t& at) {
    const uint32_t select = at;
    expect_call(at, StepKind::kSelect, branch.node, Op::kSelect);
    std::vector<uint32_t> ends;
    for (size_t k = 0; k < branch.blocks.size() && what_.empty(); ++k) {
      if (code_.targets[code_.commands[select].target + k] != at) fail("a branch stands elsewhere");
      main_part(branch.blocks[k], at);
      expect_call(at, StepKind::kFinishBranch, branch.node);
      ends.push_back(expect(at, Op::kJump, "a branch's end").target);
    }
    if (!what_.empty()) return;
    ends.push_back(code_.targets[code_.commands[select].target + branch.blocks.size()]);
    for (const uint32_t end : ends) {
      if (end != at) fail("a branch ends elsewhere");
    }
  }

  const Program& program_;
  const std::vector<ResolvedProgram::Call>& calls_;
  const StrandCode& code_;
  std::string what_;
  std::vector<bool> is_done_;
  std::map<uint32_t, uint32_t> round_of_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> event_of_;  // of the code, by block and number
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> machine_of_;  // by the machine's, and block
};

uint64_t first_seed() {
  const char* const text = std::getenv("EDDY_TEST_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

TEST(ResolveProgramTest, StrandsExecuteTheStepsOfRandomProgramsAndNothingElse) {
  size_t num_strands = 0, num_overlapping = 0, num_waits = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 2000; ++seed) {
    const Graph graph = nested_graph(seed, {.max_nodes = seed % 2 == 0 ? 60u : 20u});
    const Plan plan = plan_graph(graph, nested_options(seed));
    const ResolvedProgram resolved = resolve_program(plan.program);
    EXPECT_EQ(Follower(plan.program, resolved).run(), "") << "seed " << seed;
    num_strands += resolved.code.strands.size();
    for (const StrandCode::Round& round : resolved.code.rounds) num_overlapping += round.overlaps;
    for (const StrandCode::Command& command : resolved.code.commands) {
      num_waits += command.op == StrandCode::Op::kWait;
    }
  }
  EXPECT_GT(num_strands, 4000u);
  EXPECT_GT(num_overlapping, 50u);
  EXPECT_GT(num_waits, 10'000u);
}

// The test takes no result of the follower on trust.
TEST(ResolveProgramTest, CodeThatIsNotTheProgramsIsNoticed) {
  uint32_t num_spoilt = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = nested_graph(seed);
    const Plan plan = plan_graph(graph, nested_options(seed));
    const ResolvedProgram resolved = resolve_program(plan.program);
    for (uint32_t at = 0; at < resolved.code.commands.size(); at += 3) {
      ResolvedProgram spoilt = resolved;
      StrandCode::Command& command = spoilt.code.commands[at];
      command.op =
          command.op == StrandCode::Op::kJump ? StrandCode::Op::kRecord : StrandCode::Op::kJump;
      ++num_spoilt;
      EXPECT_NE(Follower(plan.program, spoilt).run(), "") << "seed " << seed << ", command " << at;
    }
  }
  EXPECT_GT(num_spoilt, 1000u);
}

TEST(ResolveProgramTest, StrandsRunOnThePlansStreamsWithThePlansEvents) {
  const Library library;
  std::set<size_t> event_counts;
  for (int num_branches : {1, 2, 6}) {
    const Graph graph = make_graph(library, num_branches);
    const Plan plan = make_plan(graph);
    ASSERT_GT(plan.num_streams, 2u);
    const StrandCode code = resolve_program(plan.program).code;
    std::set<uint32_t> machine_events;
    for (const StrandCode::Event& event : code.events) {
      machine_events.insert(event.machine, event.machine + 2);
    }
    EXPECT_LT(*machine_events.rbegin(), plan.num_events);
    event_counts.insert(machine_events.size());
    EXPECT_EQ(code.num_streams, plan.num_streams);
    for (const auto& strand : code.strands) EXPECT_LT(strand.stream, plan.num_streams);
    // More strands than streams: those of exclusive branches take turns.
    EXPECT_GE(code.strands.size(), plan.num_streams);
  }
  EXPECT_EQ(event_counts.size(), 1u) << "six branches need no more events than one";
}

TEST(ResolveProgramTest, ATraceShowsEachNodeInTheLaneOfItsStream) {
  Library library;
  SessionOptions options;
  options.assignment = Assignment::kRank;
  options.num_threads = 2;
  options.simplify = false;
  auto session = Session::create(library, make_graph(library, 2), options);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const Graph& graph = (*session)->graph();
  const Plan& plan = (*session)->plan();
  std::map<std::string, std::string> lane_of_node;
  for (const Program::Block& block : plan.program.blocks) {
    for (const Program::Step& step : block.steps) {
      if (!is_node(step.op)) continue;
      const std::string& name = graph.node(node_of(plan.program, step)).name;
      if (name.starts_with("Add")) continue;  // names are unique within a region only
      lane_of_node[name] = "stream " + std::to_string(step.stream);
    }
  }
  TraceRecorder trace;
  RunOptions run_options;
  run_options.trace_or_null = &trace;
  const auto outputs = (*session)->run(
      {{"x", Tensor::scalar(0.5f)}, {"s", Tensor::scalar(int64_t{1})}}, run_options);
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const std::string path = testing::TempDir() + "/lanes.json";
  ASSERT_TRUE(trace.write_json(path).is_ok());
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  std::map<int, std::string> lanes;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      lanes[event["tid"]] = event["args"]["name"];
    }
  }
  EXPECT_EQ(lanes.size(), plan.num_streams);
  int num_seen = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto node = lane_of_node.find(event["name"]);
    if (node == lane_of_node.end()) continue;  // an iteration or a branch
    EXPECT_EQ(lanes[event["tid"]], node->second) << node->first;
    ++num_seen;
  }
  EXPECT_GT(num_seen, 30);
}

}  // namespace
}  // namespace eddy
