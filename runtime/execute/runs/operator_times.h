// OperatorTimes: how often the nodes of each operator were called in the runs of a session, and how
// long that took.
//
// A session that wants none has none, and its calls are what they are. With one, each exec node is
// called by way of a TimedCall or TimedStart.
//
// Time is the wall's, on the host: from a call to its end, or to its answer where it answers later
// or where workers share its tiles. Of work for another device it is what issuing takes; what a
// device repeats by itself (recordings, loops as one kernel) is not called, and not counted, as are
// views that stay where they are. Nodes beside each other count both. What is kept are ticks of the
// time-stamp counter; their rate is found when it is asked for first, and stays.
// Threads: any. Memory order: relaxed. Cost: two looks at the counter and two atomic additions a
// call, some tens of nanoseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "graph/base/processor.h"
#include "graph/ir/graph.h"
#include "runtime/device/strand_runner.h"

namespace eddy {

class OperatorTimes {
 public:
  // Of an operator; cache lines of its own, so that workers at different ones do not meet.
  struct alignas(64) Cell {
    explicit Cell(std::string n) : name(std::move(n)) {}
    // A strand may go on at another processor, whose counter may be behind.
    void add(uint64_t began) {
      const uint64_t now = processor_ticks();
      num_calls.fetch_add(1, std::memory_order_relaxed);
      ticks.fetch_add(now > began ? now - began : 0, std::memory_order_relaxed);
    }

    const std::string name;  // "MatMul", "com.microsoft.MatMulNBits"
    std::atomic<uint64_t> num_calls{0};
    std::atomic<uint64_t> ticks{0};
  };

  // Of its exec nodes.
  explicit OperatorTimes(const Graph& graph);
  Cell& cell(NodeId node) { return *cells_of_nodes_[node.index()]; }
  const std::deque<Cell>& cells() const { return cells_; }  // in the order of their names
  uint64_t time_ns(const Cell& cell) const;

 private:
  double tick_ns() const;

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const uint64_t start_ticks_ = processor_ticks();
  mutable std::atomic<double> tick_ns_{0};  // 0: it was not asked for yet
  std::deque<Cell> cells_;
  std::vector<Cell*> cells_of_nodes_;  // by NodeId; of control nodes null
};

// A call, and where its time goes.
struct TimedCall {
  OperatorTimes::Cell* cell = nullptr;
  Binding call;

  static bool run(void* timed_call);
};

// The same, of a call that may answer later. A node has one call at a time.
struct TimedStart final : Resumable {
  TimedStart(OperatorTimes::Cell& to, const Binding& started) : cell(to), call(started) {}

  OperatorTimes::Cell& cell;
  const Binding call;
  uint64_t began = 0;
  Resume outer = {};

  static CallOutcome start(void* timed_start, const Resume& resume);
  void resume(uint32_t strand, bool is_ok) override;
};

}  // namespace eddy
