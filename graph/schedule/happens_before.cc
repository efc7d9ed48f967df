#include "graph/schedule/happens_before.h"

#include <algorithm>
#include <array>

namespace eddy {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
using Kind = Command::Kind;

// The commands as a graph: command c happens after previous[c] (its stream) and after cause[c]
// (the record a wait names, or the launch before it in a joint launch). Both are smaller than c.
struct CommandGraph {
  std::span<const Command> commands;
  std::vector<uint32_t> previous;
  std::vector<uint32_t> cause;
  std::vector<uint32_t> launch_of_node;  // the last of a joint launch
  uint32_t num_streams = 0;

  uint32_t stream(uint32_t command) const { return commands[command].stream; }
};

struct Pair {
  uint32_t before;  // command indices
  uint32_t after;
  uint32_t required;  // index of the pair asked for
};

class Prover {
 public:
  Prover(uint32_t num_nodes, std::span<const Command> commands,
         std::span<const RequiredOrder> required)
      : num_nodes_(num_nodes), required_(required) {
    graph_.commands = commands;
  }
  Proof run();

 private:
  void add(Violation::Kind kind, uint32_t first, uint32_t second) {
    if (proof_.violations.size() < Proof::kMaxViolations) {
      proof_.violations.push_back({kind, first, second});
    }
  }
  bool count_ids();
  void read_commands();
  void read_launch(uint32_t index);
  void read_event(uint32_t index);
  void collect_pairs();
  void drop_pairs_one_wait_apart();
  void drop_pairs_found_by_search();
  bool is_found_by_search(const Pair& pair, uint64_t& steps_left);
  void drop_pairs_found_by_clocks();
  void number_source_streams();

  uint32_t num_nodes_;
  std::span<const RequiredOrder> required_;
  CommandGraph graph_;
  Proof proof_;
  std::vector<uint32_t> last_of_stream_;
  std::vector<uint32_t> record_of_event_;
  uint32_t num_events_ = 0;
  uint32_t joint_begin_ = 0;
  std::vector<Pair> pairs_;                 // not yet shown to be ordered; by `after`
  std::vector<uint32_t> number_of_stream_;  // of streams that a pair's `before` is on
  uint32_t num_source_streams_ = 0;
  std::vector<uint32_t> visited_;
  uint32_t visit_ = 0;
};

// One pass over the commands with the clock components of 16 source streams.
class ClockPass {
 public:
  static constexpr uint32_t kWidth = 16;
  using Clock = std::array<uint32_t, kWidth>;

  ClockPass(const CommandGraph& graph, std::span<const uint32_t> number_of_stream,
            uint32_t num_events)
      : graph_(graph),
        number_of_stream_(number_of_stream),
        clock_of_stream_(graph.num_streams),
        clock_of_event_(num_events) {}

  // Keeps the pairs of the streams numbered first .. first + 15 that are not ordered, and all
  // pairs of other streams.
  void filter(uint32_t first, std::vector<Pair>& pairs) {
    first_ = first;
    std::fill(clock_of_stream_.begin(), clock_of_stream_.end(), Clock{});
    size_t kept = 0;
    size_t next = 0;
    for (uint32_t c = 0; c < graph_.commands.size() && next < pairs.size(); ++c) {
      step(c);
      for (; next < pairs.size() && pairs[next].after == c; ++next) {
        if (!is_ordered(pairs[next])) pairs[kept++] = pairs[next];
      }
    }
    pairs.resize(kept);
  }

 private:
  uint32_t component(uint32_t command) const {
    return number_of_stream_[graph_.stream(command)] - first_;
  }
  static void merge(Clock& into, const Clock& from) {
    for (uint32_t i = 0; i < kWidth; ++i) into[i] = std::max(into[i], from[i]);
  }
  void step(uint32_t c) {
    const Command& command = graph_.commands[c];
    Clock& clock = clock_of_stream_[command.stream];
    const uint32_t cause = graph_.cause[c];
    if (command.kind == Kind::kWait && cause != kNone) merge(clock, clock_of_event_[command.id]);
    if (command.kind == Kind::kLaunch && cause != kNone) merge(clock, stream_clock(cause));
    if (component(c) < kWidth) clock[component(c)] = c + 1;
    if (command.kind == Kind::kRecord) clock_of_event_[command.id] = clock;
    if (command.kind != Kind::kLaunch) return;
    // The streams of a joint launch go on together.
    for (uint32_t joint = cause; joint != kNone; joint = graph_.cause[joint]) {
      stream_clock(joint) = clock;
    }
  }
  Clock& stream_clock(uint32_t command) { return clock_of_stream_[graph_.stream(command)]; }
  bool is_ordered(const Pair& pair) const {
    const uint32_t i = component(pair.before);
    return i < kWidth && clock_of_stream_[graph_.stream(pair.after)][i] > pair.before;
  }

  const CommandGraph& graph_;
  std::span<const uint32_t> number_of_stream_;
  std::vector<Clock> clock_of_stream_;
  std::vector<Clock> clock_of_event_;
  uint32_t first_ = 0;
};

// Streams and events are numbered by whoever made the list; absurd ids are refused rather than
// allocated for. Returns false after naming one.
bool Prover::count_ids() {
  constexpr uint32_t kMaxIds = 1u << 28;
  for (uint32_t c = 0; c < graph_.commands.size(); ++c) {
    const Command& command = graph_.commands[c];
    const bool is_event = command.kind != Kind::kLaunch;
    const uint32_t highest = is_event ? std::max(command.stream, command.id) : command.stream;
    if (highest >= kMaxIds) {
      add(Violation::Kind::kOutOfRange, c, highest);
      return false;
    }
    graph_.num_streams = std::max(graph_.num_streams, command.stream + 1);
    if (is_event) num_events_ = std::max(num_events_, command.id + 1);
  }
  return true;
}

void Prover::read_commands() {
  if (!count_ids()) return;
  const uint32_t size = static_cast<uint32_t>(graph_.commands.size());
  graph_.previous.assign(size, kNone);
  graph_.cause.assign(size, kNone);
  graph_.launch_of_node.assign(num_nodes_, kNone);
  record_of_event_.assign(num_events_, kNone);
  last_of_stream_.assign(graph_.num_streams, kNone);
  for (uint32_t c = 0; c < size; ++c) {
    const Command& command = graph_.commands[c];
    graph_.previous[c] = last_of_stream_[command.stream];
    command.kind == Kind::kLaunch ? read_launch(c) : read_event(c);
    last_of_stream_[command.stream] = c;
  }
  for (uint32_t node = 0; node < num_nodes_; ++node) {
    if (graph_.launch_of_node[node] == kNone) add(Violation::Kind::kNeverLaunched, node, node);
  }
}

void Prover::read_launch(uint32_t index) {
  const uint32_t node = graph_.commands[index].id;
  if (node >= num_nodes_) return add(Violation::Kind::kOutOfRange, index, node);
  const uint32_t earlier = graph_.launch_of_node[node];
  graph_.launch_of_node[node] = index;
  if (earlier == kNone) {
    joint_begin_ = index;
    return;
  }
  bool is_joint = earlier + 1 == index;
  for (uint32_t c = joint_begin_; is_joint && c < index; ++c) {
    is_joint = graph_.stream(c) != graph_.stream(index);
  }
  if (!is_joint) return add(Violation::Kind::kLaunchedTwice, index, node);
  graph_.cause[index] = earlier;
  for (uint32_t c = joint_begin_; c < index; ++c) last_of_stream_[graph_.stream(c)] = index;
}

void Prover::read_event(uint32_t index) {
  const Command& command = graph_.commands[index];
  uint32_t& record = record_of_event_[command.id];
  if (command.kind == Kind::kWait) {
    graph_.cause[index] = record;
    if (record == kNone) add(Violation::Kind::kUnrecordedWait, index, command.id);
  } else if (record == kNone) {
    record = index;
  } else {
    add(Violation::Kind::kRecordedTwice, index, command.id);
  }
}

void Prover::collect_pairs() {
  pairs_.reserve(required_.size());
  for (uint32_t i = 0; i < required_.size(); ++i) {
    const auto [before, after] = required_[i];
    if (before >= num_nodes_ || after >= num_nodes_) {
      add(Violation::Kind::kOutOfRange, i, std::max(before, after));
      continue;
    }
    const uint32_t first = graph_.launch_of_node[before];
    const uint32_t second = graph_.launch_of_node[after];
    if (first == kNone || second == kNone) continue;  // reported already
    const bool same_stream = first < second && graph_.stream(first) == graph_.stream(second);
    if (!same_stream) pairs_.push_back({first, second, i});
  }
  std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
    return a.after != b.after ? a.after < b.after : a.required < b.required;
  });
}

// The waits directly before a launch cover everything up to their records' places.
void Prover::drop_pairs_one_wait_apart() {
  std::vector<uint32_t> seen_for(graph_.num_streams, kNone);
  std::vector<uint32_t> latest(graph_.num_streams);
  size_t kept = 0;
  uint32_t launch = kNone;
  for (const Pair& pair : pairs_) {
    if (launch != pair.after) {
      launch = pair.after;
      for (uint32_t c = graph_.previous[launch];
           c != kNone && graph_.commands[c].kind == Kind::kWait; c = graph_.previous[c]) {
        const uint32_t record = graph_.cause[c];
        if (record == kNone) continue;
        const uint32_t stream = graph_.stream(record);
        latest[stream] = seen_for[stream] == launch ? std::max(latest[stream], record) : record;
        seen_for[stream] = launch;
      }
    }
    const uint32_t stream = graph_.stream(pair.before);
    const bool is_covered = seen_for[stream] == launch && latest[stream] > pair.before;
    if (!is_covered) pairs_[kept++] = pair;
  }
  pairs_.resize(kept);
}

void Prover::number_source_streams() {
  number_of_stream_.assign(graph_.num_streams, kNone);
  num_source_streams_ = 0;
  for (const Pair& pair : pairs_) {
    uint32_t& number = number_of_stream_[graph_.stream(pair.before)];
    if (number == kNone) number = num_source_streams_++;
  }
}

// Worth as many steps as the clocks would take.
void Prover::drop_pairs_found_by_search() {
  uint64_t steps_left = uint64_t{num_source_streams_ / ClockPass::kWidth} * graph_.commands.size();
  visited_.assign(graph_.commands.size(), kNone);
  size_t kept = 0;
  for (const Pair& pair : pairs_) {
    if (steps_left == 0 || !is_found_by_search(pair, steps_left)) pairs_[kept++] = pair;
  }
  pairs_.resize(kept);
}

// Backwards from `after`, through commands later than `before` only.
bool Prover::is_found_by_search(const Pair& pair, uint64_t& steps_left) {
  std::vector<uint32_t> stack = {pair.after};
  const uint32_t visit = visit_++;
  while (!stack.empty() && steps_left > 0) {
    const uint32_t c = stack.back();
    stack.pop_back();
    --steps_left;
    for (uint32_t next : {graph_.previous[c], graph_.cause[c]}) {
      if (next == kNone || next < pair.before || visited_[next] == visit) continue;
      if (graph_.stream(next) == graph_.stream(pair.before)) return true;
      visited_[next] = visit;
      stack.push_back(next);
    }
  }
  return false;
}

void Prover::drop_pairs_found_by_clocks() {
  if (pairs_.empty()) return;
  number_source_streams();
  ClockPass pass(graph_, number_of_stream_, num_events_);
  for (uint32_t first = 0; first < num_source_streams_; first += ClockPass::kWidth) {
    pass.filter(first, pairs_);
  }
}

Proof Prover::run() {
  if (graph_.commands.size() >= kNone || required_.size() >= kNone) {
    add(Violation::Kind::kOutOfRange, kNone, kNone);
    return std::move(proof_);
  }
  read_commands();
  if (!proof_.is_safe()) return std::move(proof_);
  collect_pairs();
  drop_pairs_one_wait_apart();
  number_source_streams();
  drop_pairs_found_by_search();
  drop_pairs_found_by_clocks();
  for (const Pair& pair : pairs_) {
    const auto [before, after] = required_[pair.required];
    add(Violation::Kind::kUnordered, before, after);
  }
  return std::move(proof_);
}

}  // namespace

std::string Violation::to_string() const {
  const std::string a = std::to_string(first);
  const std::string b = std::to_string(second);
  switch (kind) {
    case Kind::kUnordered:
      return "node " + a + " is not ordered before node " + b;
    case Kind::kUnrecordedWait:
      return "command " + a + " waits for event " + b + ", not yet recorded";
    case Kind::kRecordedTwice:
      return "command " + a + " records event " + b + " again";
    case Kind::kLaunchedTwice:
      return "command " + a + " launches node " + b + " again";
    case Kind::kNeverLaunched:
      return "node " + a + " is never launched";
    case Kind::kOutOfRange:
      return "command or pair " + a + " names id " + b + ", out of range";
  }
  return "unknown violation";
}

Proof prove_order(uint32_t num_nodes, std::span<const Command> commands,
                  std::span<const RequiredOrder> required) {
  return Prover(num_nodes, commands, required).run();
}

}  // namespace eddy
