#include "runtime/execute/open_sets.h"

namespace eddy {
namespace {

using Item = CodeItem::Kind;
using StepKind = RecordedStep::Kind;

// Rows of what no node of the region makes are stacked at the end.
void drop_last_rows(const RecordedWork& work, NodeId loop, CodeItems& items,
                    std::multiset<uint32_t>& rows) {
  const Graph& graph = work.graph();
  const RegionId after = graph.node(loop).regions[1];
  while (!items.empty() && work.is_launch(*items.back(), StepKind::kRow, loop)) {
    const uint32_t index = work.launch(*items.back()).index;
    const ValueInfo& made = graph.value(graph.region(after).results[index]);
    if (made.origin == ValueOrigin::kNodeOutput && made.region == after) return;
    rows.insert(index);
    items.pop_back();
  }
}

void number_records(const RecordedWork& work, const CodeItems& items, OpenSet& set) {
  work.for_each_record(items, [&set](const CodeItem& record) {
    set.local.emplace(record.id, static_cast<uint32_t>(set.local.size()));
  });
}

// wait the other's end, record begun, count the turn; …; record the end
Status read_fork(const RecordedWork& work, RegionId after, const CodeItem& item, OpenSet& set) {
  const CodeItems items = pointers(item.blocks[0]);
  const bool is_whole =
      items.size() >= 4 && items[0]->kind == Item::kWait && items[1]->kind == Item::kRecord &&
      work.is_launch(*items[2], StepKind::kTail) && items.back()->kind == Item::kRecord;
  if (!is_whole) return work.fail(after, "has a strand that does not take turns");
  CodeItems rest(items.begin() + 3, items.end() - 1);
  number_records(work, rest, set);
  set.forks.push_back({&item, items[0]->id, items[1]->id, items.back()->id, std::move(rest)});
  return Status::ok();
}

bool takes_turns(const RecordedWork& work, const OpenSet& set, size_t f, const OpenSet& other) {
  const OpenSet::Fork& own = set.forks[f];
  const OpenSet::Fork& twin = other.forks[f];
  return own.waited == twin.end && work.stream_of(*own.item) == work.stream_of(*twin.item) &&
         other.waited.contains(own.begun) && set.resets.contains(own.begun) &&
         set.resets.contains(own.end);
}

}  // namespace

Result<OpenSet> read_open_set(const RecordedWork& work, NodeId loop, CodeItems items) {
  const RegionId after = work.graph().node(loop).regions[1];
  OpenSet set;
  drop_last_rows(work, loop, items, set.rows);
  auto item = items.begin();
  for (; item != items.end() && (*item)->kind == Item::kWait; ++item)
    set.waited.insert((*item)->id);
  for (; item != items.end() && (*item)->kind == Item::kReset; ++item) {
    set.resets.insert((*item)->id);
  }
  set.rest.assign(item, items.end());
  number_records(work, set.rest, set);
  for (const CodeItem* inner : set.rest) {
    if (inner->kind == Item::kFork) EDDY_RETURN_IF_ERROR(read_fork(work, after, *inner, set));
  }
  return set;
}

Status check_open_sets(const RecordedWork& work, RegionId after, const OpenSet (&sets)[2],
                       const std::set<uint32_t>& recorded, const std::set<uint32_t>& waited) {
  if (sets[0].forks.size() != sets[1].forks.size()) return work.fail(after, "has sets that differ");
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const OpenSet& own = sets[s];
    const OpenSet& other = sets[1 - s];
    for (const uint32_t event : own.resets) {
      if (other.resets.contains(event)) return work.fail(after, "has sets that share an event");
    }
    // The first turn is that of set 0.
    bool is_begun = true;
    for (const auto& [event, _] : own.local) {
      if (!own.resets.contains(event)) return work.fail(after, "uses an event without reset");
      is_begun &= s == 0 || recorded.contains(event);
    }
    for (size_t f = 0; f < own.forks.size(); ++f) {
      const OpenSet::Fork& fork = own.forks[f];
      if (!takes_turns(work, own, f, other)) {
        return work.fail(after, "lets the turns of a strand overlap");
      }
      if (!waited.contains(fork.end)) return work.fail(after, "goes on when the loop has ended");
      is_begun &= recorded.contains(fork.end) && (s == 0 || recorded.contains(fork.begun));
    }
    if (!is_begun) return work.fail(after, "waits in its first turn for a turn before");
  }
  return Status::ok();
}

}  // namespace eddy
