#include "graph/proof/happens_before.h"

#include <algorithm>
#include <span>
#include <utility>

#include "graph/base/check.h"
#include "graph/proof/command_graph.h"
#include "graph/proof/order_clocks.h"
#include "graph/proof/order_marks.h"

namespace eddy {
namespace {

constexpr uint32_t kNone = CommandGraph::kNone;
using Op = Program::Op;

struct Pair {
  uint32_t before;  // command indices
  uint32_t after;
  uint32_t required;  // index of the required pair
};

class Prover {
 public:
  Prover(uint32_t num_nodes, std::span<const Program::Step> commands,
         std::span<const RequiredOrder> required)
      : num_nodes_(num_nodes), commands_(commands), required_(required) {}
  Proof run();

 private:
  void add(Violation::Kind kind, uint32_t first, uint32_t second) {
    if (proof_.violations.size() < Proof::kMaxViolations) {
      proof_.violations.push_back({kind, first, second});
    }
  }
  void collect_pairs();
  void drop_pairs_one_wait_apart();
  void drop_pairs_found_by_search();
  bool is_found_by_search(const Pair& pair, uint64_t& steps_left);
  void drop_pairs_found_by_clocks();
  void drop_pairs_found_by_marks();
  std::vector<uint32_t> sources() const;
  void number_source_streams();
  uint64_t num_passes() const;

  uint32_t num_nodes_;
  std::span<const Program::Step> commands_;
  std::span<const RequiredOrder> required_;
  CommandGraph graph_;
  Proof proof_;
  std::vector<Pair> pairs_;                 // not yet shown to be ordered; by `after`
  std::vector<uint32_t> number_of_stream_;  // of streams that a pair's `before` is on
  uint32_t num_source_streams_ = 0;
  std::vector<uint32_t> visited_;
  uint32_t visit_ = 0;
};

void Prover::collect_pairs() {
  pairs_.reserve(required_.size());
  for (uint32_t i = 0; i < required_.size(); ++i) {
    const auto [before, after] = required_[i];
    if (before >= num_nodes_ || after >= num_nodes_) {
      add(Violation::Kind::kOutOfRange, i, std::max(before, after));
      continue;
    }
    if (before == after) {
      add(Violation::Kind::kUnordered, before, after);
      continue;
    }
    const uint32_t first = graph_.launch_of_node[before];
    const uint32_t second = graph_.launch_of_node[after];
    EDDY_DCHECK(first != kNone && second != kNone)
        << "a list without violations launches every node";
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
      for (uint32_t c = graph_.previous[launch]; c != kNone && graph_.commands[c].op == Op::kWait;
           c = graph_.previous[c]) {
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

// Commands that a pair's `before` is, ascending.
std::vector<uint32_t> Prover::sources() const {
  std::vector<uint32_t> sources;
  for (const Pair& pair : pairs_) sources.push_back(pair.before);
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

// The number of passes over all commands, of clocks or of marks, whichever takes fewer.
uint64_t Prover::num_passes() const {
  return std::min<uint64_t>(num_source_streams_ / OrderClocks::kWidth,
                            sources().size() / OrderMarks::kWidth);
}

// Worth as many steps as the passes would take.
void Prover::drop_pairs_found_by_search() {
  uint64_t steps_left = num_passes() * graph_.commands.size();
  if (steps_left == 0) return;
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
  EDDY_DCHECK(std::ranges::is_sorted(pairs_, {}, &Pair::after)) << "a pair would be passed over";
  OrderClocks clocks(graph_, number_of_stream_);
  for (uint32_t first = 0; first < num_source_streams_; first += OrderClocks::kWidth) {
    size_t kept = 0;
    size_t next = 0;
    clocks.pass(first, [&](uint32_t c) {
      for (; next < pairs_.size() && pairs_[next].after == c; ++next) {
        if (!clocks.has_happened(pairs_[next].before, c)) pairs_[kept++] = pairs_[next];
      }
    });
    EDDY_CHECK(next == pairs_.size()) << "each pair has been looked at";
    pairs_.resize(kept);
  }
}

void Prover::drop_pairs_found_by_marks() {
  const std::vector<uint32_t> marked = sources();
  struct Asked {
    Pair pair;
    uint32_t number;  // of `before` among the sources
  };
  std::vector<Asked> asked;
  std::vector<Pair> left;
  for (const Pair& pair : pairs_) {
    // The list's order is topological.
    if (pair.before > pair.after) {
      left.push_back(pair);
      continue;
    }
    const auto place = std::lower_bound(marked.begin(), marked.end(), pair.before);
    EDDY_DCHECK(place != marked.end() && *place == pair.before) << pair.before << " is no source";
    asked.push_back({pair, static_cast<uint32_t>(place - marked.begin())});
  }
  // Sorts by pass; pairs_ are by `after` already.
  std::stable_sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) {
    return a.number / OrderMarks::kWidth < b.number / OrderMarks::kWidth;
  });
  OrderMarks marks(graph_);
  for (size_t first = 0, end = 0; first < asked.size(); first = end) {
    const uint32_t begin = asked[first].number / OrderMarks::kWidth * OrderMarks::kWidth;
    while (end < asked.size() && asked[end].number - begin < OrderMarks::kWidth) ++end;
    const std::span<const uint32_t> all = marked;
    size_t next = first;
    marks.pass(all.subspan(begin, std::min<size_t>(OrderMarks::kWidth, all.size() - begin)),
               asked[end - 1].pair.after, [&](uint32_t c) {
                 for (; next < end && asked[next].pair.after == c; ++next) {
                   const bool is_found = marks.has_happened(asked[next].number - begin, c);
                   if (!is_found) left.push_back(asked[next].pair);
                 }
               });
    EDDY_CHECK(next == end) << "each pair has been looked at";
  }
  pairs_ = std::move(left);
}

Proof Prover::run() {
  if (commands_.size() >= kNone || required_.size() >= kNone) {
    add(Violation::Kind::kOutOfRange, kNone, kNone);
    return std::move(proof_);
  }
  graph_ = read_command_graph(num_nodes_, commands_, proof_.violations);
  if (!proof_.is_safe()) return std::move(proof_);
  collect_pairs();
  drop_pairs_one_wait_apart();
  number_source_streams();
  drop_pairs_found_by_search();
  number_source_streams();
  if (num_source_streams_ / OrderClocks::kWidth <= sources().size() / OrderMarks::kWidth) {
    drop_pairs_found_by_clocks();
  } else {
    drop_pairs_found_by_marks();
  }
  for (const Pair& pair : pairs_) {
    const auto [before, after] = required_[pair.required];
    add(Violation::Kind::kUnordered, before, after);
  }
  return std::move(proof_);
}

}  // namespace

Proof prove_order(uint32_t num_nodes, std::span<const Program::Step> commands,
                  std::span<const RequiredOrder> required) {
  return Prover(num_nodes, commands, required).run();
}

}  // namespace eddy
