// Net: a network of the literature with weights from a seed, and inputs to run it on.
//
// Each function builds one, in the published shape (kFull) or in the same form but small, for
// tests. Weights are drawn so that values neither vanish nor overflow on the way (images.h,
// transformer.h); they mean nothing. All of it can be exported to ONNX.
//
// Errors: the builder's, which would be a defect. Threads: pure. Cost: drawing the weights, twice
// their bytes.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "examples/dynamic_models/model.h"
#include "graph/base/status.h"
#include "graph/io/host_value.h"
#include "graph/ir/graph.h"

namespace eddy::nets {

using dynamic::Scale;

struct Net {
  Graph graph;
  std::vector<std::pair<std::string, HostValue>> inputs;  // as the graph's
};

// Encoder of 12 layers over 128 tokens, hidden 768 (Devlin et al., "BERT", NAACL 2019).
Result<Net> bert_base(const OpTable& ops, Scale scale, uint64_t seed);
// Width 1.0, images of 224 x 224 (Sandler et al., "MobileNetV2", CVPR 2018).
Result<Net> mobilenet_v2(const OpTable& ops, Scale scale, uint64_t seed);
// Images of 224 x 224 (Tan and Le, "EfficientNet", ICML 2019; "squeeze and excite": Hu et al.,
// CVPR 2018).
Result<Net> efficientnet_b0(const OpTable& ops, Scale scale, uint64_t seed);
// 6 @ 4032, images of 331 x 331 (Zoph et al., "Learning Transferable Architectures for Scalable
// Image Recognition", CVPR 2018).
Result<Net> nasnet_a_large(const OpTable& ops, Scale scale, uint64_t seed);
// 100 steps through an LSTM and one that reads both ways, hidden 512, and scores of each step, as
// acoustic models of speech have them (Graves et al., ICASSP 2013).
Result<Net> lstm(const OpTable& ops, Scale scale, uint64_t seed);
// A transformer that writes a token a step, its caches growing, until it writes the end or 64
// (Vaswani et al., "Attention Is All You Need", NeurIPS 2017; normalization first, as in GPT-2).
// Outputs: the tokens, and the score of each.
Result<Net> decoder(const OpTable& ops, Scale scale, uint64_t seed);

struct Recipe {
  const char* name;  // "bert_base"
  Result<Net> (*build)(const OpTable& ops, Scale scale, uint64_t seed);
};
std::span<const Recipe> all_nets();

}  // namespace eddy::nets
