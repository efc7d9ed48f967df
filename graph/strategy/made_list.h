// MadeList: a list of operators (operator_list.h) whose tasks, loops and branches are entries of a
// region (scenario.h); what make_scenarios keeps of it for those who read what stands in it.
//
// Internal to make_scenarios. Borrows the list; the region is with its owner.
// Errors: none. Threads: none. Cost: a look-up of a name O(log n), in each list around.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/strategy/border_readers.h"
#include "graph/strategy/operator_list.h"

namespace eddy {

struct MadeList {
  const OperatorList* list = nullptr;
  std::vector<std::vector<uint32_t>> parts;  // by operator: entries
  std::vector<std::vector<uint32_t>> tiles;  // by operator: entries that make its tiles
  std::vector<bool> is_read;                 // by operator, then by control
  uint32_t first_control = 0;                // entry
  std::map<std::string, uint32_t> numbers;   // operators, then controls
  std::vector<std::vector<MadeList>> inner;  // by control and list; empty: not yet made

  bool is_empty() const { return list->graph.operators.empty() && list->controls.empty(); }
  uint32_t num_ops() const { return static_cast<uint32_t>(list->graph.operators.size()); }
};

// Lists of which what is read is sent inside another one, though they stand around it.
struct Around {
  const MadeList* made = nullptr;
  const Around* outer_or_null = nullptr;

  // The list of the operator, loop or branch; null where it is in none of them.
  static const MadeList* find_or_null(const Around* around, const std::string& name);
};

// Which of the loop's lists makes what a name stands for; null: none that whoever reads it by that
// name can read.
const MadeList* list_inside(const std::vector<MadeList>& lists, const std::string& maker,
                            const std::string& name);

// Whether an operator of one of the lists reads the same of its own list by its maker's name, too.
bool reads_within(const std::vector<MadeList>& lists, const BorderReader& reader);

}  // namespace eddy
