// Order clocks: vector clocks over a command graph, 16 components at a time. Internal to the
// checker.
//
// A clock holds, for each of 16 streams, 1 + the last command of it that has surely happened. One
// pass over the commands keeps one clock for each stream and each event. Streams are numbered by
// the caller; only those that matter need a number.
//
// Cost of a pass: O(commands * 16); memory 64 bytes a stream and 64 an event.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/proof/command_graph.h"

namespace eddy {

class OrderClocks {
 public:
  static constexpr uint32_t kWidth = 16;

  // number_of_stream[s]: a dense number, or CommandGraph::kNone.
  OrderClocks(const CommandGraph& graph, std::span<const uint32_t> number_of_stream)
      : graph_(graph),
        number_of_stream_(number_of_stream),
        clock_of_stream_(graph.num_streams),
        clock_of_event_(graph.num_events) {
    EDDY_CHECK(number_of_stream.size() == graph.num_streams) << "one number for each stream";
  }

  // Follows all commands with components for the streams numbered first .. first + 15, and calls
  // visit(c) when command c has happened.
  template <typename Visit>
  void pass(uint32_t first, Visit visit) {
    first_ = first;
    std::fill(clock_of_stream_.begin(), clock_of_stream_.end(), Clock{});
    for (uint32_t c = 0; c < graph_.commands.size(); ++c) {
      step(c);
      visit(c);
    }
  }

  // In visit(after): whether `before` has surely happened. False if its stream has no component.
  bool has_happened(uint32_t before, uint32_t after) const {
    const uint32_t i = component(before);
    return i < kWidth && clock_of_stream_[graph_.stream(after)][i] > before;
  }

 private:
  // One cache line.
  struct alignas(64) Clock : std::array<uint32_t, kWidth> {};

  uint32_t component(uint32_t command) const {
    return number_of_stream_[graph_.stream(command)] - first_;
  }
  static void merge(Clock& into, const Clock& from) {
    for (uint32_t i = 0; i < kWidth; ++i) into[i] = std::max(into[i], from[i]);
  }
  Clock& stream_clock(uint32_t command) { return clock_of_stream_[graph_.stream(command)]; }

  void step(uint32_t c) {
    const Program::Step& command = graph_.commands[c];
    Clock& clock = stream_clock(c);
    const uint32_t cause = graph_.cause[c];
    if (command.op == Program::Op::kWait) merge(clock, clock_of_event_[command.operand]);
    const bool is_joint = command.op == Program::Op::kLaunch && cause != CommandGraph::kNone;
    if (is_joint) merge(clock, stream_clock(cause));
    if (component(c) < kWidth) clock[component(c)] = c + 1;
    if (command.op == Program::Op::kRecord) clock_of_event_[command.operand] = clock;
    // The streams of a joint launch go on together.
    if (!is_joint || graph_.is_joint_next(c)) return;
    for (uint32_t joint = cause; joint != CommandGraph::kNone; joint = graph_.cause[joint]) {
      stream_clock(joint) = clock;
    }
  }

  const CommandGraph& graph_;
  std::span<const uint32_t> number_of_stream_;
  std::vector<Clock> clock_of_stream_;
  std::vector<Clock> clock_of_event_;
  uint32_t first_ = 0;
};

}  // namespace eddy
