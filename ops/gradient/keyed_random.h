// key_random_numbers: a graph whose random numbers are a function of a key, as training needs them.
//
//   Dropout, RandomNormal, ...  ──>  FoldKey(seed, step, iterations around, node) ─▶ KeyedUniform
//                                    and what makes a mask, a normal number or a class of these
//
// ONNX's own nodes draw the same numbers each time they run. Behind this pass each step and each
// iteration of a loop draws others, which are the same on every run, stream, thread and processor
// of a kind, and whether an iteration is run or made again for the way back: keys are values of the
// graph like any other (ops/reference/random.cc has the generator). A node is identified by its
// path, or by its attribute `seed`: nodes of one seed draw alike.
//
// Replaced: RandomUniform, RandomNormal, their Like forms, Bernoulli, Multinomial; Dropout where it
// trains or may. Normal numbers by Box and Muller (1958), one of two. The graph is taken over;
// names stay. Errors: the builder's. Cost: O(nodes). Threads: pure.
#pragma once

#include <cstdint>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct KeyOptions {
  uint64_t seed = 1;
  std::string step = {};  // an int64 input that is added; empty: every run draws the same
};

// Whether there is anything to replace.
bool draws_by_key(const Graph& graph);
Result<Graph> key_random_numbers(Graph graph, const OpTable& ops, const KeyOptions& options);

}  // namespace eddy
