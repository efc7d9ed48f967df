#include "graph/ranks/skeleton.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Op = RankSkeleton::Op;
using Step = Program::Step;
using Vertex = RankSkeleton::Vertex;
constexpr uint32_t kNone = RankSkeleton::kNone;

// A block and the region that it becomes.
struct Job {
  uint32_t block;
  uint32_t region;
  uint32_t previous = kNone;  // the loop's `after`, where iterations overlap
};

// A vertex that waits for the iteration before: for a stream's end, or for an event.
struct Overlap {
  uint32_t region;
  uint32_t vertex;
  uint32_t previous;
  uint32_t stream = kNone;
  uint32_t event = kNone;
};

// How a region was left, for those that overlap with it.
struct Ends {
  std::map<uint32_t, uint32_t> streams;
  std::vector<uint32_t> events;
};

class Extraction {
 public:
  Extraction(const Graph& graph, const Program& program, const RankRules& rules,
             const Decisions& decisions)
      : graph_(graph), program_(program), decisions_(decisions) {
    EDDY_DCHECK(decisions.holds.size() == graph.num_nodes() &&
                decisions.by_node.size() == graph.num_nodes())
        << "decisions of another graph";
    for (const Program::Launch& launch : program.launches) {
      communication_.emplace_back();
      const Node& node = graph.node(NodeId(launch.node));
      if (node.kind == NodeKind::kExec) communication_.back() = rules.communication(node);
    }
  }

  Result<RankSkeleton> run() {
    skeleton_.regions.emplace_back();
    jobs_.push_back({0, 0});
    for (size_t i = 0; i < jobs_.size(); ++i) walk(jobs_[i]);
    for (const Overlap& overlap : overlaps_) connect(overlap);
    if (!status_.is_ok()) return std::move(status_);
    return std::move(skeleton_);
  }

 private:
  std::vector<Vertex>& vertices() { return skeleton_.regions[job_.region].vertices; }
  uint32_t add(Op op, uint32_t operand, std::initializer_list<uint32_t> after) {
    Vertex vertex{op, operand};
    for (uint32_t v : after) {
      EDDY_DCHECK(v == kNone || v < vertices().size()) << "vertex " << v << " is not there yet";
      if (v != kNone) vertex.after.push_back(v);
    }
    vertices().push_back(std::move(vertex));
    return static_cast<uint32_t>(vertices().size()) - 1;
  }
  uint32_t join(uint32_t a, uint32_t b) {
    if (a == b || b == kNone) return a;
    if (a == kNone) return b;
    return add(Op::kPoint, 0, {a, b});
  }

  uint32_t add_overlap(Overlap overlap) {
    overlap.region = job_.region;
    overlap.previous = job_.previous;
    overlap.vertex = add(Op::kPoint, 0, {});
    overlaps_.push_back(overlap);
    return overlap.vertex;
  }

  // Copied: jobs are added meanwhile.
  void walk(Job job) {
    EDDY_DCHECK(job.block < program_.blocks.size() && job.region < skeleton_.regions.size())
        << "block " << job.block << " of " << program_.blocks.size();
    job_ = job;
    const Program::Block& block = program_.blocks[job.block];
    streams_.clear();
    events_.assign(block.num_events, kNone);
    // Further streams go on from where the iteration before left them.
    for (size_t s = 1; job.previous != kNone && s < block.streams.size(); ++s) {
      streams_[block.streams[s]] =
          add_overlap({.region = 0, .vertex = 0, .previous = 0, .stream = block.streams[s]});
    }
    for (const Step& step : block.steps) walk(step);
    ends_[job.region] = {std::move(streams_), std::move(events_)};
  }

  void walk(const Step& step) {
    using ProgramOp = Program::Op;
    uint32_t& front = streams_.try_emplace(step.stream, kNone).first->second;
    switch (step.op) {
      case ProgramOp::kLaunch:
        return launch(step.operand, &front);
      case ProgramOp::kLoop: {
        const Program::Loop& loop = program_.loops[step.operand];
        return enter(loop.node, {loop.before, loop.after}, loop.is_pipelined, &front);
      }
      case ProgramOp::kCase: {
        const Program::Case& branches = program_.cases[step.operand];
        return enter(branches.node, branches.blocks, false, &front);
      }
      case ProgramOp::kRecord:
        EDDY_DCHECK(step.operand < events_.size()) << "event " << step.operand;
        events_[step.operand] = front;
        return;
      case ProgramOp::kWait:
        EDDY_DCHECK(step.operand < events_.size()) << "event " << step.operand;
        front = join(front, events_[step.operand]);
        return;
      case ProgramOp::kWaitPrevious:
        if (job_.previous == kNone) return;
        front = join(front,
                     add_overlap({.region = 0, .vertex = 0, .previous = 0, .event = step.operand}));
        return;
      case ProgramOp::kTest:
      case ProgramOp::kAdvance:
      case ProgramOp::kEnd:
        if (front != kNone) skeleton_.regions[job_.region].end.push_back(front);
        return;
      case ProgramOp::kBegin:
      case ProgramOp::kRetain:
      case ProgramOp::kPushRow:
        return;
    }
  }

  void launch(uint32_t id, uint32_t* front) {
    EDDY_DCHECK(id < communication_.size()) << "launch " << id << " of " << communication_.size();
    if (!communication_[id].has_value()) return;
    const uint32_t start = add(Op::kPost, add_post(id, *communication_[id]), {*front});
    *front = add(Op::kDone, start, {});
  }

  uint32_t channel(const RankSkeleton::Channel& channel, uint32_t node) {
    const std::vector<uint32_t>& group = channel.group;
    if (group.empty() ||
        std::adjacent_find(group.begin(), group.end(), std::greater_equal<>()) != group.end()) {
      if (status_.is_ok()) {
        status_ = invalid_argument("the group of " + graph_.path(NodeId(node)) +
                                   " must list ranks in ascending order, each once");
      }
    }
    const auto [it, is_new] =
        channels_.try_emplace(channel, static_cast<uint32_t>(channels_.size()));
    if (is_new) skeleton_.channels.push_back(channel);
    return it->second;
  }

  uint32_t add_post(uint32_t id, const Communication& communication) {
    const uint32_t n = program_.launches[id].node;
    RankSkeleton::Post post;
    post.channel = channel(communication.channel, n);
    post.from = communication.from;
    post.to = communication.to;
    post.path = graph_.path(NodeId(n));
    RankSkeleton::Signature& signature = post.signature;
    signature.kind = communication.kind;
    signature.reduction = communication.reduction;
    signature.root = communication.root;
    const bool is_message = communication.from != kNone;
    signature.tag = is_message ? communication.tag : post.path;
    const ValueId moved = communication.moved;
    if (!moved.is_none()) set_type(graph_.value(moved).type, &signature);
    if (communication.has_own_shape) signature.shape.clear();
    skeleton_.posts.push_back(std::move(post));
    return static_cast<uint32_t>(skeleton_.posts.size()) - 1;
  }

  void set_type(const ValueType& type, RankSkeleton::Signature* signature) {
    signature->type = std::string(element_type_name(type.tensor.element));
    if (!type.tensor.is_ranked) return;
    for (int i = 0; i < type.tensor.dims.rank(); ++i) {
      const int64_t dim = type.tensor.dims[i];
      signature->shape += i == 0 ? "[" : ", ";
      signature->shape += dim >= 0 ? std::to_string(dim) : dim <= -2 ? graph_.symbol(dim) : "?";
    }
    signature->shape += type.tensor.dims.rank() == 0 ? "[]" : "]";
  }

  void enter(uint32_t node, const std::vector<uint32_t>& blocks, bool is_pipelined,
             uint32_t* front) {
    if (!decisions_.holds[node]) return;
    RankSkeleton::Control control;
    const Agreement& agreement = decisions_.by_node[node];
    EDDY_DCHECK(agreement.decision != RankSkeleton::Decision::kVarying)
        << graph_.path(NodeId(node)) << " holds communication and was not decided";
    EDDY_DCHECK(!is_pipelined || blocks.size() == 2) << "a pipelined loop has two blocks";
    const bool is_loop = graph_.node(NodeId(node)).kind == NodeKind::kWhile;
    control.kind = is_loop ? RankSkeleton::ControlKind::kLoop : RankSkeleton::ControlKind::kCase;
    control.decision = agreement.decision;
    control.root = agreement.root;
    control.is_pipelined = is_pipelined;
    control.path = graph_.path(NodeId(node));
    if (agreement.decision >= RankSkeleton::Decision::kAgreeAll) {
      control.agree_channel = channel(agreement.channel, node);
    }
    const auto first = static_cast<uint32_t>(skeleton_.regions.size());
    for (uint32_t block : blocks) {
      const auto region = static_cast<uint32_t>(skeleton_.regions.size());
      control.regions.push_back(region);
      skeleton_.regions.emplace_back();
      jobs_.push_back({block, region, is_pipelined ? first + 1 : kNone});
    }
    const uint32_t entry =
        add(Op::kEnter, static_cast<uint32_t>(skeleton_.controls.size()), {*front});
    skeleton_.controls.push_back(std::move(control));
    *front = add(Op::kLeave, entry, {});
  }

  void connect(const Overlap& overlap) {
    EDDY_DCHECK(ends_.contains(overlap.previous)) << "region " << overlap.previous << " has no end";
    const Ends& ends = ends_[overlap.previous];
    uint32_t previous = kNone;
    if (overlap.event != kNone) {
      if (overlap.event < ends.events.size()) previous = ends.events[overlap.event];
    } else if (const auto it = ends.streams.find(overlap.stream); it != ends.streams.end()) {
      previous = it->second;
    }
    Vertex& vertex = skeleton_.regions[overlap.region].vertices[overlap.vertex];
    EDDY_DCHECK(previous == kNone || previous < skeleton_.regions[overlap.previous].vertices.size())
        << "vertex " << previous << " of region " << overlap.previous;
    if (previous != kNone) vertex.previous.push_back(previous);
  }

  const Graph& graph_;
  const Program& program_;
  const Decisions& decisions_;
  std::vector<std::optional<Communication>> communication_;  // by launch
  RankSkeleton skeleton_;
  std::map<RankSkeleton::Channel, uint32_t> channels_;
  std::vector<Job> jobs_;
  std::vector<Overlap> overlaps_;
  std::map<uint32_t, Ends> ends_;  // by region
  Status status_;

  // Of the block that is walked.
  Job job_{0, 0};
  std::map<uint32_t, uint32_t> streams_;  // what the next step of each waits for; kNone: the begin
  std::vector<uint32_t> events_;
};

}  // namespace

Result<RankSkeleton> extract_skeleton(const Graph& graph, const Program& program,
                                      const RankRules& rules, const Decisions& decisions) {
  return Extraction(graph, program, rules, decisions).run();
}

}  // namespace eddy
