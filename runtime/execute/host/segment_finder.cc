#include "runtime/execute/host/segment_finder.h"

#include <algorithm>
#include <set>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Op = StrandCode::Op;
using Note = CallNote::Kind;
using Kind = SegmentStep::Kind;

constexpr size_t kMostSteps = 20'000;
constexpr size_t kFewestWorks = 2;  // one is launched as fast by itself

class Finder {
 public:
  Finder(const SegmentSource& source, uint32_t at, uint32_t strand) : source_(source) {
    EDDY_DCHECK(strand < source.code.strands.size() && at < source.code.commands.size())
        << "strand " << strand << " at command " << at;
    EDDY_DCHECK(source.num_waits.size() == source.code.events.size()) << "waits of other events";
    walkers_.push_back({.at = at, .stream = 0, .strand = strand});
  }

  std::optional<FoundSegment> run() {
    note_end();
    for (bool has_moved = true; has_moved && !is_over_;) {
      has_moved = false;
      for (size_t w = 0; w < walkers_.size() && !is_over_; ++w) has_moved |= walk(w);
    }
    FoundSegment found;
    found.steps.assign(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(num_closed_));
    found.next = next_;
    const auto works = std::ranges::count(found.steps, Kind::kWork, &SegmentStep::kind);
    if (static_cast<size_t>(works) < kFewestWorks) return std::nullopt;
    return found;
  }

 private:
  struct Walker {
    uint32_t at = 0;
    uint32_t stream = 0;  // of the capture
    uint32_t strand = 0;
    bool has_ended = false;
    bool is_joined = false;
    uint32_t last_event = UINT32_MAX;  // its last record, when nothing follows that
  };

  CallNote note(uint32_t at) const {
    const std::vector<CallNote>& notes = source_.bindings.notes;
    return notes.empty() ? CallNote() : notes[at];
  }

  void add(SegmentStep step) {
    steps_.push_back(step);
    is_over_ |= steps_.size() == kMostSteps;
  }

  // Where the first strand is alone, and nobody outside waits for it, the segment may end.
  void note_end() {
    const bool is_closed = std::all_of(walkers_.begin() + 1, walkers_.end(),
                                       [](const Walker& w) { return w.has_ended && w.is_joined; });
    if (!is_closed || num_open_waits_ > 0) return;
    num_closed_ = steps_.size();
    next_ = walkers_[0].at;
  }

  // Goes on with one strand as far as it can. True if it has moved.
  bool walk(size_t w) {
    bool has_moved = false;
    while (!is_over_ && step(w)) {
      has_moved = true;
      if (w == 0) note_end();
    }
    return has_moved;
  }

  // False: the strand stops here, for now or for good.
  bool step(size_t w) {
    if (walkers_[w].has_ended) return false;
    const uint32_t at = walkers_[w].at;
    const StrandCode::Command& command = source_.code.commands[at];
    switch (command.op) {
      case Op::kCall:
        if (!call(w)) return false;
        break;
      case Op::kJump:
      case Op::kRepeat:
        if (!is_first_visit(at)) return false;
        walkers_[w].at = command.target;
        return true;
      case Op::kBegin:
        if (source_.code.rounds[command.operand].overlaps || !is_first_visit(at)) return false;
        if (under_way_.contains(command.operand)) return false;
        begun_.insert(command.operand);
        add({.kind = Kind::kRound, .event = command.operand});
        break;
      case Op::kRecord:
        if (!record(w, command.operand)) return false;
        break;
      case Op::kWait:
        if (command.lag > 0 || !recorded_.contains(command.operand)) return false;
        add({.kind = Kind::kWait, .stream = walkers_[w].stream, .event = command.operand});
        if (under_way_.contains(source_.code.events[command.operand].round)) --num_open_waits_;
        join(command.operand);
        break;
      case Op::kRest:
        if (!record(w, command.operand)) return false;
        add({.kind = Kind::kRound, .event = command.target});
        walkers_[w].has_ended = true;
        return true;
      case Op::kEnd:
      case Op::kStart:
      case Op::kTest:
      case Op::kSelect:
        return false;
    }
    ++walkers_[w].at;
    return true;
  }

  bool call(size_t w) {
    const uint32_t at = walkers_[w].at;
    const CallNote known = note(at);
    const bool is_known = known.kind == Note::kBooks || known.kind == Note::kNothing ||
                          known.kind == Note::kRecordable;
    if (!is_known || !is_first_visit(at)) return false;
    if (known.kind == Note::kNothing) return true;
    not_joined(w);
    const Binding& binding = source_.bindings.calls[at];
    add({.kind = known.kind == Note::kRecordable ? Kind::kWork : Kind::kBooks,
         .stream = walkers_[w].stream,
         .run = binding.run,
         .context = binding.context,
         .work = known.work});
    return true;
  }

  // And the strands that it wakes.
  bool record(size_t w, uint32_t event) {
    const uint32_t round = source_.code.events[event].round;
    const bool is_under_way = !begun_.contains(round);
    if (is_under_way && (round == StrandCode::kNone || source_.code.rounds[round].overlaps)) {
      return false;
    }
    std::vector<uint32_t> woken;
    for (uint32_t s = 1; s < source_.code.strands.size(); ++s) {
      const uint32_t first = source_.code.strands[s].first;
      if (source_.code.commands[first].operand != event) continue;
      if (!source_.is_recordable(s)) return false;
      woken.push_back(s);
    }
    if (is_under_way) {
      under_way_.insert(round);
      num_open_waits_ += source_.num_waits[event];
    }
    recorded_.insert(event);
    not_joined(w);
    walkers_[w].last_event = event;
    add({.kind = Kind::kRecord, .stream = walkers_[w].stream, .event = event});
    for (const uint32_t s : woken) {
      begun_.insert(source_.code.strands[s].round);
      const auto stream = static_cast<uint32_t>(walkers_.size());
      walkers_.push_back({.at = source_.code.strands[s].first, .stream = stream, .strand = s});
    }
    return true;
  }

  // The strand that ends with this event has been waited for.
  void join(uint32_t waited) {
    for (size_t w = 1; w < walkers_.size(); ++w) {
      walkers_[w].is_joined |= walkers_[w].last_event == waited;
    }
  }

  void not_joined(size_t w) {
    walkers_[w].last_event = UINT32_MAX;
    walkers_[w].is_joined = false;
  }

  bool is_first_visit(uint32_t at) { return visited_.insert(at).second; }

  const SegmentSource& source_;
  std::vector<Walker> walkers_;   // the first is the segment's own strand
  std::set<uint32_t> begun_;      // round counters
  std::set<uint32_t> under_way_;  // those that have begun before, with a record inside
  size_t num_open_waits_ = 0;     // for records of theirs, not met yet
  std::set<uint32_t> recorded_;   // events
  std::vector<SegmentStep> steps_;
  std::set<uint32_t> visited_;
  size_t num_closed_ = 0;
  uint32_t next_ = 0;
  bool is_over_ = false;
};

}  // namespace

std::vector<uint32_t> count_waits(const StrandCode& code) {
  std::vector<uint32_t> counts(code.events.size(), 0);
  for (const StrandCode::Command& command : code.commands) {
    if (command.op == Op::kWait) ++counts[command.operand];
  }
  return counts;
}

std::optional<FoundSegment> find_segment(const SegmentSource& source, uint32_t at,
                                         uint32_t strand) {
  if (!source.is_recordable(strand)) return std::nullopt;
  return Finder(source, at, strand).run();
}

}  // namespace eddy
