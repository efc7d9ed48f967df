// The networks and clusters of FlexFlow's evaluation, as operator graphs and topologies: alike in
// shapes, work and weights, not copies of its files.
//
// Networks are for training; ReLU and batch normalisation are part of the operator before them.
// AlexNet has batch 256, the others 64; recurrent networks are unrolled over 40 steps. Embeddings
// have no weights here: their gradients are sparse and small beside the others.
//
// Clusters have four cards a node. Rates of cards and links come from cards.json; units are
// seconds and bytes. A transfer within a node takes its card's own link to the other card; one
// between nodes shares its node's network card with all others that leave the node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

OperatorGraph alexnet();
OperatorGraph resnet101();
OperatorGraph inception_v3();
OperatorGraph rnnlm();
OperatorGraph nmt();

struct NamedNetwork {
  std::string name;
  OperatorGraph (*make)();
};
const std::vector<NamedNetwork>& networks();

// `cards` is the text of cards.json, `card` "p100" or "k80".
Result<Topology> cluster(std::string_view cards, const std::string& card, int num_devices);

}  // namespace eddy
