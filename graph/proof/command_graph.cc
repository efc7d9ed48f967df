#include "graph/proof/command_graph.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = CommandGraph::kNone;
using Op = Program::Op;

class Reader {
 public:
  Reader(uint32_t num_nodes, std::span<const Program::Step> commands,
         std::vector<Violation>& violations)
      : num_nodes_(num_nodes), violations_(violations) {
    graph_.commands = commands;
  }

  CommandGraph run() {
    if (!count_ids()) return std::move(graph_);
    const uint32_t size = static_cast<uint32_t>(graph_.commands.size());
    graph_.previous.assign(size, kNone);
    graph_.cause.assign(size, kNone);
    graph_.launch_of_node.assign(num_nodes_, kNone);
    record_of_event_.assign(graph_.num_events, kNone);
    last_of_stream_.assign(graph_.num_streams, kNone);
    joint_of_stream_.assign(graph_.num_streams, kNone);
    for (uint32_t c = 0; c < size; ++c) {
      const Program::Step& command = graph_.commands[c];
      if (!goes_on(c)) end_joint(c);
      graph_.previous[c] = last_of_stream_[command.stream];
      command.op == Op::kLaunch ? read_launch(c) : read_event(c);
      EDDY_DCHECK(graph_.cause[c] == kNone || graph_.cause[c] < c) << "a cause follows its effect";
      EDDY_DCHECK(graph_.previous[c] == kNone || graph_.previous[c] < c)
          << "a stream goes backwards";
      last_of_stream_[command.stream] = c;
    }
    for (uint32_t node = 0; node < num_nodes_; ++node) {
      if (graph_.launch_of_node[node] == kNone) add(Violation::Kind::kNeverLaunched, node, node);
    }
    return std::move(graph_);
  }

 private:
  void add(Violation::Kind kind, uint32_t first, uint32_t second) {
    if (violations_.size() < Proof::kMaxViolations) violations_.push_back({kind, first, second});
  }

  // The maker of the list numbers streams and events; absurd ids are refused rather than allocated
  // for.
  bool count_ids() {
    constexpr uint32_t kMaxIds = 1u << 28;
    for (uint32_t c = 0; c < graph_.commands.size(); ++c) {
      const Program::Step& command = graph_.commands[c];
      const bool is_event = command.op != Op::kLaunch;
      const uint32_t highest =
          is_event ? std::max(command.stream, command.operand) : command.stream;
      if (highest >= kMaxIds) {
        add(Violation::Kind::kOutOfRange, c, highest);
        return false;
      }
      graph_.num_streams = std::max(graph_.num_streams, command.stream + 1);
      if (is_event) graph_.num_events = std::max(graph_.num_events, command.operand + 1);
    }
    return true;
  }

  // Whether the command is a further launch of the joint one before it.
  bool goes_on(uint32_t index) const {
    const Program::Step& command = graph_.commands[index];
    return joint_begin_ != kNone && command.op == Op::kLaunch &&
           command.operand == graph_.commands[joint_begin_].operand;
  }
  // All streams of the launch go on from its last command.
  void end_joint(uint32_t end) {
    for (uint32_t c = joint_begin_; c < end; ++c) last_of_stream_[graph_.stream(c)] = end - 1;
    joint_begin_ = kNone;
  }

  void read_launch(uint32_t index) {
    const uint32_t node = graph_.commands[index].operand;
    if (node >= num_nodes_) return add(Violation::Kind::kOutOfRange, index, node);
    const uint32_t earlier = graph_.launch_of_node[node];
    graph_.launch_of_node[node] = index;
    const bool is_first = joint_begin_ == kNone;
    if (is_first) joint_begin_ = index;
    const uint32_t joint = std::exchange(joint_of_stream_[graph_.stream(index)], joint_begin_);
    if (earlier == kNone) return;
    if (is_first || joint == joint_begin_) return add(Violation::Kind::kLaunchedTwice, index, node);
    graph_.cause[index] = earlier;
  }

  void read_event(uint32_t index) {
    const Program::Step& command = graph_.commands[index];
    uint32_t& record = record_of_event_[command.operand];
    EDDY_DCHECK(command.op == Op::kWait || command.op == Op::kRecord)
        << "command " << index << " would be taken for a record";
    if (command.op == Op::kWait) {
      graph_.cause[index] = record;
      if (record == kNone) add(Violation::Kind::kUnrecordedWait, index, command.operand);
    } else if (record == kNone) {
      record = index;
    } else {
      add(Violation::Kind::kRecordedTwice, index, command.operand);
    }
  }

  uint32_t num_nodes_;
  std::vector<Violation>& violations_;
  CommandGraph graph_;
  std::vector<uint32_t> last_of_stream_;
  std::vector<uint32_t> record_of_event_;
  std::vector<uint32_t> joint_of_stream_;  // where the latest one that it takes part in begins
  uint32_t joint_begin_ = kNone;           // of the launch at hand
};

}  // namespace

CommandGraph read_command_graph(uint32_t num_nodes, std::span<const Program::Step> commands,
                                std::vector<Violation>& violations) {
  return Reader(num_nodes, commands, violations).run();
}

}  // namespace eddy
