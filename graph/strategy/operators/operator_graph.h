// OperatorGraph: operators with output shapes, and which part of its inputs each part reads.
//
// This is what a strategy cuts into tasks. An operator makes one tensor; an input is another
// operator's tensor, and for each of that tensor's dimensions an InputDim says which interval of
// it a part of the output needs. That covers elementwise work, products (a part of the rows needs
// all of in_features, or with the sum cut, its share), convolutions and pooling (halos),
// concatenation, broadcasting and "all of it".
//
// Weights are not operators: an operator owns weight_elements of them, cut along the output
// dimensions in weight_axes (and along the reduction, where it is cut). Operators of one
// weight_group share one set (the steps of an unrolled recurrent network); in training their
// gradients are summed over all devices that hold a piece.
//
// Costs of one part: exe_by_tile[shape of the tile], in the topology's units, if given; else a
// measured time; else a roofline estimate from its share of flops and bytes (part_cost.h).
//
// Operators stand in topological order: inputs are made by earlier ones.
// Errors (invalid argument), by check_operator_graph() and check_config(): see there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/types.h"
#include "graph/strategy/operators/strategy.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

struct Interval {
  int64_t begin = 0;
  int64_t end = 0;  // exclusive; begin >= end: empty
  int64_t size() const { return end > begin ? end - begin : 0; }
};

// The interval [begin * stride - before, (end - 1) * stride + 1 + after) of an input dimension,
// within its bounds, for the interval [begin, end) of the output along `axis`.
struct InputDim {
  static constexpr int kAll = -1;  // the whole dimension, whatever the part
  int axis = kAll;  // a dimension of the output; the output's rank stands for the reduction
  int64_t stride = 1;
  int64_t before = 0;
  int64_t after = 0;

  Interval read(Interval part, int64_t extent) const;
  bool operator==(const InputDim&) const = default;
};

struct OperatorInput {
  uint32_t producer = 0;
  std::array<InputDim, kMaxRank> dims = {};  // by dimension of the producer's tensor
};

struct Operator {
  std::string name;
  std::string type;  // "matmul", "Softmax"
  Dims shape;
  std::vector<OperatorInput> inputs = {};
  uint32_t splittable = ~0u;  // bit d: dimension d may be cut
  int64_t reduction = 1;      // extent of the axis that is summed over and may be cut; 1: none

  double flops = 0;          // of the whole operator, forward
  double read_elements = 0;  // of the whole operator's inputs, weights excluded
  int64_t weight_elements = 0;
  uint32_t weight_axes = 0;   // bit d: weights are cut along output dimension d
  uint32_t weight_group = 0;  // dense; operators of one group share their weights
  double measured = -1;       // time of the whole operator on one device; < 0: not measured
  std::map<std::string, double> exe_by_tile = {};  // "8x16" -> time of a part of that shape
};

struct OperatorGraph {
  std::vector<Operator> operators;
  int64_t bytes_per_element = 4;
  bool is_training = false;  // also the backward pass, and gradients are synchronised
  uint32_t num_weight_groups = 0;
};

using OperatorNumbers = std::unordered_map<std::string, uint32_t>;
OperatorNumbers numbers_by_name(const OperatorGraph& graph);

// "8x16": the key of exe_by_tile.
std::string tile_name(const Dims& tile);
// The tile that each part of the operator makes; degrees must divide.
Dims tile_of(const Operator& op, const OperatorConfig& config);
// Dimension d of part `part`, or for d = rank its share of the reduction.
Interval part_interval(const Operator& op, const OperatorConfig& config, int64_t part, int d);

// Fails when degrees do not divide the shape or are out of place, when a part has no device or a
// device no part, or when a device is none that computes; names the operator and the dimension.
Status check_config(const Operator& op, const OperatorConfig& config, const Topology& topology);

// Everything on one device.
OperatorConfig single_config(const Operator& op, uint32_t device);
Strategy single_device_strategy(const OperatorGraph& graph, const Topology& topology);

}  // namespace eddy
