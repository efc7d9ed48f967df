// Touched: everything that a step touches, in its blocks too.
//
// Part of the program's proof. Cost: add_all is linear, make_sets sorts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/program/program.h"
#include "graph/proof/reaching_writes.h"

namespace eddy {

struct Touched {
  std::vector<uint32_t> names;  // read, defined outside of the step
  std::vector<uint32_t> reads;  // names whose places are read
  std::vector<uint32_t> writes;
  std::vector<uint32_t> streams;  // of its regions, other than its own
  // The machine's events that its regions use lie in here.
  uint32_t first_event = UINT32_MAX;
  uint32_t end_event = 0;

  void add_memory(const TouchedMemory& memory);
  // Adds what a region or command inside touches; streams and events are apart.
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
  add_all(writes, memory.writes);
}
inline void Touched::add_inside(const Touched& inside) {
  add_all(names, inside.names);
  add_all(reads, inside.reads);
  add_all(writes, inside.writes);
}
inline void Touched::make_sets() {
  for (std::vector<uint32_t>* list : std::array{&names, &reads, &writes, &streams}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}
inline void Touched::use_events(uint32_t first, uint32_t end) {
  if (first == end) return;
  first_event = std::min(first_event, first);
  end_event = std::max(end_event, end);
}

// Calls visit(name) for each name that the step defines in its own block.
template <typename Visit>
void for_each_defined(const Program& program, const Program::Step& step, Visit visit) {
  switch (step.op) {
    case Program::Op::kLaunch:
    case Program::Op::kRetain:
      for (const uint32_t name : program.launches[step.operand].writes) visit(name);
      for (const Program::Alias& alias : program.launches[step.operand].aliases) visit(alias.to);
      break;
    case Program::Op::kLoop:
      for (const Program::Alias& pass : program.loops[step.operand].leave) visit(pass.to);
      for (const uint32_t name : program.loops[step.operand].stacks) visit(name);
      break;
    case Program::Op::kCase:
      for (const auto& results : program.cases[step.operand].results) {
        for (const Program::Alias& pass : results) visit(pass.to);
      }
      break;
    default:
      break;
  }
}

// The node of a launch, loop or case, or of the loop that retains or stacks; none for others.
inline uint32_t node_of(const Program& program, const Program::Step& step) {
  switch (step.op) {
    case Program::Op::kLaunch:
    case Program::Op::kRetain:
      return program.launches[step.operand].node;
    case Program::Op::kPushRow:
      return program.loops[program.rows[step.operand].loop].node;
    case Program::Op::kLoop:
      return program.loops[step.operand].node;
    case Program::Op::kCase:
      return program.cases[step.operand].node;
    default:
      return ProgramViolation::kNone;
  }
}

}  // namespace eddy
