#include "runtime/execute/segment_finder.h"

#include <algorithm>
#include <set>

namespace eddy {
namespace {

using Op = CommandCode::Op;
using Kind = SegmentStep::Kind;

constexpr size_t kMostSteps = 20'000;
constexpr size_t kFewestWorks = 2;  // one is launched as fast by itself

class Finder {
 public:
  Finder(const SegmentSource& source, uint32_t at, uint32_t strand) : source_(source) {
    walkers_.push_back({.at = at, .lane = 0, .strand = strand});
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
    uint32_t lane = 0;
    uint32_t strand = 0;
    bool has_ended = false;
    bool is_joined = false;
    uint32_t last_event = UINT32_MAX;  // its last record, when nothing follows that
  };
  enum class Event : uint8_t { kUnknown, kReset, kRecorded };

  Event& event(uint32_t index) {
    if (events_.size() <= index) events_.resize(index + 1, Event::kUnknown);
    return events_[index];
  }

  CommandNote note(uint32_t at) const {
    return at < source_.notes.size() ? source_.notes[at] : CommandNote();
  }

  void add(SegmentStep step) {
    steps_.push_back(step);
    is_over_ |= steps_.size() == kMostSteps;
  }

  // Where the first strand is alone, the segment may end.
  void note_end() {
    const bool is_closed = std::all_of(walkers_.begin() + 1, walkers_.end(),
                                       [](const Walker& w) { return w.has_ended && w.is_joined; });
    if (!is_closed) return;
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
    const CommandCode::Command& command = source_.code[at];
    switch (command.op) {
      case Op::kLaunch:
        if (!launch(w, command)) return false;
        break;
      case Op::kJump:
      case Op::kRepeat:
        if (!is_first_visit(at)) return false;
        walkers_[w].at = command.target;
        return true;
      case Op::kReset:
        if (note(at).is_apart) return false;
        event(command.target) = Event::kReset;
        add({.kind = Kind::kForget, .event = command.target});
        break;
      case Op::kRecord:
        if (event(command.target) != Event::kReset) return false;
        event(command.target) = Event::kRecorded;
        not_joined(w);
        walkers_[w].last_event = command.target;
        add({.kind = Kind::kRecord, .lane = walkers_[w].lane, .event = command.target});
        break;
      case Op::kWait:
        if (event(command.target) != Event::kRecorded) return false;
        add({.kind = Kind::kFollow, .lane = walkers_[w].lane, .event = command.target});
        join(command.target);
        break;
      case Op::kFork:
        if (!fork(w, command.target)) return false;
        break;
      case Op::kEnd:
        if (w != 0) walkers_[w].has_ended = true;
        return w != 0;
      case Op::kTest:
      case Op::kSwitch:
        return false;
    }
    ++walkers_[w].at;
    return true;
  }

  bool launch(size_t w, const CommandCode::Command& command) {
    const uint32_t at = walkers_[w].at;
    const CommandNote known = note(at);
    if (!known.is_known || !is_first_visit(at)) return false;
    if (known.is_nothing) return true;
    not_joined(w);
    const Kind kind = known.work_or_null != nullptr ? Kind::kWork : Kind::kBooks;
    add({.kind = kind,
         .lane = walkers_[w].lane,
         .run = command.run,
         .context = command.context,
         .work = known.work_or_null});
    return true;
  }

  bool fork(size_t w, uint32_t strand) {
    if (!source_.is_recordable(strand)) return false;
    const auto lane = static_cast<uint32_t>(walkers_.size());
    add({.kind = Kind::kBegin, .lane = lane, .from = walkers_[w].lane});
    not_joined(w);
    walkers_.push_back({.at = source_.strand_entries[strand], .lane = lane, .strand = strand});
    return true;
  }

  // Whoever ends with this event has been waited for.
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
  std::vector<Walker> walkers_;  // the first is the segment's own strand
  std::vector<Event> events_;
  std::vector<SegmentStep> steps_;
  std::set<uint32_t> visited_;
  size_t num_closed_ = 0;
  uint32_t next_ = 0;
  bool is_over_ = false;
};

}  // namespace

std::optional<FoundSegment> find_segment(const SegmentSource& source, uint32_t at,
                                         uint32_t strand) {
  if (!source.is_recordable(strand)) return std::nullopt;
  return Finder(source, at, strand).run();
}

}  // namespace eddy
