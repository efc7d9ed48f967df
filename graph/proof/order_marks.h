// Order marks: which of up to 512 commands have surely happened, as bits that follow the streams
// and events of a command graph. Internal to the checker.
//
// What order_clocks does by streams, for lists with many short streams: one pass looks only at the
// commands from the first that is marked to the last that is visited.
//
// Cost of a pass: O(commands in that range * 64 bytes); memory 64 bytes a stream and 64 an event.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/proof/command_graph.h"

namespace eddy {

class OrderMarks {
 public:
  static constexpr uint32_t kWidth = 512;

  explicit OrderMarks(const CommandGraph& graph)
      : graph_(graph),
        pass_of_stream_(graph.num_streams, 0),
        marks_of_stream_(graph.num_streams),
        marks_of_event_(graph.num_events) {}

  // Marks `commands`, ascending and at most kWidth, and calls visit(c) when command c has happened,
  // for each from the first of them up to `last`.
  template <typename Visit>
  void pass(std::span<const uint32_t> commands, uint32_t last, Visit visit) {
    ++pass_;
    EDDY_CHECK(!commands.empty() && commands.size() <= kWidth && last < graph_.commands.size())
        << commands.size() << " commands, up to " << last << " of " << graph_.commands.size();
    EDDY_DCHECK(std::ranges::is_sorted(commands)) << "a mark would be missed";
    first_ = commands[0];
    uint32_t next = 0;
    for (uint32_t c = first_; c <= last; ++c) {
      Marks& marks = step(c);
      if (next < commands.size() && commands[next] == c) {
        marks[next / 64] |= uint64_t{1} << (next % 64);
        ++next;
      }
      finish(c, marks);
      visit(c);
    }
  }

  // In visit(after): whether the command that was marked as number `index` has surely happened.
  bool has_happened(uint32_t index, uint32_t after) {
    EDDY_DCHECK(index < kWidth) << "mark " << index;
    return of_stream(after)[index / 64] >> (index % 64) & 1;
  }

 private:
  // One cache line.
  struct alignas(64) Marks : std::array<uint64_t, kWidth / 64> {};

  // Marks of an earlier pass do not count.
  Marks& of_stream(uint32_t command) {
    const uint32_t stream = graph_.stream(command);
    if (pass_of_stream_[stream] != pass_) marks_of_stream_[stream] = {};
    pass_of_stream_[stream] = pass_;
    return marks_of_stream_[stream];
  }
  static void merge(Marks& into, const Marks& from) {
    for (uint32_t i = 0; i < into.size(); ++i) into[i] |= from[i];
  }

  Marks& step(uint32_t c) {
    const Program::Step& command = graph_.commands[c];
    const uint32_t cause = graph_.cause[c];
    Marks& marks = of_stream(c);
    // What happened before the range carries no mark.
    if (cause == CommandGraph::kNone || cause < first_) return marks;
    const bool is_wait = command.op == Program::Op::kWait;
    merge(marks, is_wait ? marks_of_event_[command.operand] : of_stream(cause));
    return marks;
  }
  void finish(uint32_t c, const Marks& marks) {
    const Program::Step& command = graph_.commands[c];
    if (command.op == Program::Op::kRecord) marks_of_event_[command.operand] = marks;
    if (command.op != Program::Op::kLaunch || graph_.is_joint_next(c)) return;
    // The streams of a joint launch go on together.
    for (uint32_t joint = graph_.cause[c]; joint != CommandGraph::kNone;
         joint = graph_.cause[joint]) {
      of_stream(joint) = marks;
    }
  }

  const CommandGraph& graph_;
  std::vector<uint32_t> pass_of_stream_;
  std::vector<Marks> marks_of_stream_;
  std::vector<Marks> marks_of_event_;
  uint32_t pass_ = 0;
  uint32_t first_ = 0;
};

}  // namespace eddy
