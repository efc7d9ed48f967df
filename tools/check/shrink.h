// shrink: cuts a failing recipe down while it keeps failing.
//
// Greedy: edits are tried one after the other, largest first within each step, each kept when the
// smaller recipe still fails, until none helps:
//
//   drop a step (its values are replaced by others of their kinds), put a branch or a body in the
//   place of its case-of or while, drop branches, carried, forwarded and stacked values, results,
//   further operands, trip limits; make trip counts smaller; drop unused inputs
//
// Every recipe that is tried builds. `still_fails` decides; it should be deterministic, or try
// often enough. Source: delta debugging (Zeller and Hildebrandt 2002), on a tree of typed edits.
// Cost: at most max_attempts calls of still_fails.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tools/check/recipe.h"

namespace eddy::check {

using StillFails = std::function<bool(const Recipe& recipe)>;

struct ShrinkOptions {
  size_t max_attempts = 3000;
};

struct Shrunk {
  Recipe recipe;
  size_t attempts = 0;
};

// `recipe` must fail.
Shrunk shrink(Recipe recipe, const StillFails& still_fails, const ShrinkOptions& options = {});

// For a report: the graph of the smallest recipe found; of the recipe itself without a
// `still_fails`.
struct FailingGraph {
  size_t num_nodes = 0;
  std::string text;  // empty where it does not build
};
FailingGraph smallest_failing(const Library& library, Recipe recipe,
                              const StillFails& still_fails_or_empty,
                              const ShrinkOptions& options = {});

}  // namespace eddy::check
