// generate: the random graph of a seed. Valid by construction, small, and full of what goes
// wrong: whiles and case-ofs nested to depth 6 and side by side; trips 0, 1, 2 and 17; carried
// swaps and permutations; invariants; zero-size tensors; aliases; empty branches and bodies;
// shapes that change with each iteration; stacked rows; early exits; captures from any depth;
// sequences and host functions.
//
// Same seed and options, same graph, on every machine. Trip counts are chosen so that no step
// runs more than max_repeats times. The library must have had add_hash_ops().
// Cost: some 10 µs for the recipe, 2 µs a node for the graph.
#pragma once

#include <cstdint>

#include "tools/check/recipe.h"

namespace eddy::check {

struct GenerateOptions {
  int min_steps = 3;  // of the whole recipe; a step is one to three nodes
  int max_steps = 24;
  int max_depth = 6;
  int64_t max_repeats = 160;     // product of trip counts around any step
  bool has_floats = false;       // float operators of the library beside the hash ones
  bool may_have_floats = false;  // one recipe in four has them
  bool has_lists = true;         // sequences
  // With them, one recipe in four has tensors only, so that callers can bind memory of their own.
  bool has_optionals = true;
  bool has_host_functions = true;
};

struct RandomCase {
  Recipe recipe;
  Graph graph;
  NamedTensors inputs;  // make_inputs(recipe, 0)
};

Recipe make_recipe(uint64_t seed, const GenerateOptions& options = {});
Result<RandomCase> generate(uint64_t seed, const Library& library,
                            const GenerateOptions& options = {});

}  // namespace eddy::check
