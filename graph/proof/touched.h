// Touched: everything that a command of a nested list touches, in its regions too.
//
// Part of the nested proof. Cost: add_all is linear, make_sets sorts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/proof/content_check.h"
#include "graph/proof/nested_command.h"

namespace eddy {

struct Touched {
  std::vector<uint32_t> names;  // read, defined outside of the command
  std::vector<uint32_t> reads;  // written names whose blocks are read
  std::vector<uint32_t> held;   // as in TouchedMemory
  std::vector<uint32_t> writes;
  std::vector<uint32_t> streams;  // of its regions, other than its own
  // The machine's events that its regions use lie in here.
  uint32_t first_event = UINT32_MAX;
  uint32_t end_event = 0;

  void add_memory(const TouchedMemory& memory);
  // Of a region or command inside; streams and events are apart.
  void add_inside(const Touched& inside);
  void make_sets();

  void use_events(uint32_t first, uint32_t end);
  bool may_use_event_of(const Touched& other) const {
    return first_event < other.end_event && other.first_event < end_event;
  }
};

inline void add_all(std::vector<uint32_t>& to, std::span<const uint32_t> from) {
  to.insert(to.end(), from.begin(), from.end());
}

inline void Touched::add_memory(const TouchedMemory& memory) {
  add_all(reads, memory.reads);
  add_all(held, memory.held);
  add_all(writes, memory.writes);
}
inline void Touched::add_inside(const Touched& inside) {
  add_all(names, inside.names);
  add_all(reads, inside.reads);
  add_all(held, inside.held);
  add_all(writes, inside.writes);
}
inline void Touched::make_sets() {
  for (std::vector<uint32_t>* list : std::array{&names, &reads, &held, &writes, &streams}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}
inline void Touched::use_events(uint32_t first, uint32_t end) {
  if (first == end) return;
  first_event = std::min(first_event, first);
  end_event = std::max(end_event, end);
}

// Calls visit(name) for each name that the command defines in its own region.
template <typename Visit>
void for_each_defined(const NestedCommands& commands, const NestedCommand& command, Visit visit) {
  switch (command.kind) {
    case NestedCommand::Kind::kLaunch:
      for (const uint32_t name : commands.launches[command.id].writes) visit(name);
      for (const NestedPass& pass : commands.launches[command.id].passes) visit(pass.to);
      break;
    case NestedCommand::Kind::kLoop:
      for (const NestedPass& pass : commands.loops[command.id].leave) visit(pass.to);
      for (const uint32_t name : commands.loops[command.id].stacks) visit(name);
      break;
    case NestedCommand::Kind::kCase:
      for (const auto& results : commands.cases[command.id].results) {
        for (const NestedPass& pass : results) visit(pass.to);
      }
      break;
    default:
      break;
  }
}

// A record or wait, which does nothing by itself.
inline bool is_of_event(const NestedCommand& command) {
  return command.kind == NestedCommand::Kind::kRecord ||
         command.kind == NestedCommand::Kind::kWait ||
         command.kind == NestedCommand::Kind::kWaitPrevious;
}

// The node of a launch, loop or branch; none for others.
inline uint32_t node_of(const NestedCommands& commands, const NestedCommand& command) {
  switch (command.kind) {
    case NestedCommand::Kind::kLaunch:
      return commands.launches[command.id].node;
    case NestedCommand::Kind::kLoop:
      return commands.loops[command.id].node;
    case NestedCommand::Kind::kCase:
      return commands.cases[command.id].node;
    default:
      return NestedViolation::kNone;
  }
}

}  // namespace eddy
