// entry_order: an order of a list's entries in which each follows those it waits for, and which
// keeps the given one where it can: depth-first, by hand.
//
// Errors (invalid argument): entries that wait for each other, by name. Threads: pure. Cost:
// linear.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

using EntryEdges = std::vector<std::vector<uint32_t>>;  // by entry: those it waits for
using EntryName = std::function<std::string(uint32_t)>;

Result<std::vector<uint32_t>> entry_order(const EntryEdges& edges, const EntryName& name);

}  // namespace eddy
