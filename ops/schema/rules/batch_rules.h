// Batch rules that operator families share (graph/ir/batch_rule.h): elementwise, along an axis, and
// operators that treat axis 0 as samples already.
//
// A rule stands with the shape rule of its operator; those of the movement family and of indexing
// have files of their own. Each is called where at least one input depends on samples, or is a
// shared list whose content is followed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/batch_rule.h"

namespace eddy {

// "... axis 1, along which the samples lie".
Status crosses_samples(const std::string& what, int axis);

// Inputs from `first` on are the same for all samples, where they are given.
Status expect_shared(const BatchContext& context, size_t first);
// No input is a list that counts samples, or has an unknown rank.
Status expect_tensors(const BatchContext& context);
// Both: samples lie along input 0, or nowhere.
Status expect_first_alone(const BatchContext& context);

// The entries of input i, a list or one integer: followed, constant, or as many unknown ones as it
// has for sure. nullopt: their number is not known, or it holds samples.
std::optional<std::vector<Count>> counts_of(const BatchContext& context, size_t i);
// The content of output 0, which has at most one dimension; else it is no list any more.
Status set_counts(BatchContext& context, std::vector<Count> counts, int rank);

// Inputs broadcast; each output has the shape of the result.
Status batch_elementwise(BatchContext& context);
// Every output has the axes of input 0, the others are shared: what is done to each of its entries
// alone.
Status batch_entries(BatchContext& context);
// Samples lie along axis 0 of input 0 and of every output; the other inputs are shared.
Status batch_images(BatchContext& context);
// Rows along the last axis of input 0 are done alone; the other inputs are shared.
Status batch_rows(BatchContext& context);
// "makes a number of results that depends on all samples": they can't be distinguished.
Status batch_never(BatchContext& context);

}  // namespace eddy
