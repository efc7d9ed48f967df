// Claim: at full size the networks have the published numbers of parameters and multiply-adds,
// counted from their graphs without running them.
#include <gtest/gtest.h>

#include <set>

#include "examples/nets/net.h"
#include "runtime/api/library.h"

namespace eddy::nets {
namespace {

struct Size {
  double parameters = 0, multiply_adds = 0;
};

// Of one node whose types are known; 0 for operators without products.
double multiply_adds(const Graph& graph, const Node& node) {
  static const std::set<std::string> kProducts = {"Conv", "MatMul", "Gemm"};
  if (node.kind != NodeKind::kExec || !kProducts.contains(node.op->name)) return 0;
  std::vector<const ValueType*> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(&graph.value(id).type);
  const std::vector<const TensorView*> values(inputs.size(), nullptr);
  std::vector<ValueType> outputs = {graph.value(node.outputs[0]).type};
  const InferContext context(node.attributes, inputs, values, outputs, node.opset_version);
  return node.op->flops(context, outputs) / 2;
}

// What is trained, and moments of normalizations: floats of at least one dimension that nodes
// read.
Size size_of(const Graph& graph) {
  Size size;
  std::set<uint32_t> counted;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    size.multiply_adds += multiply_adds(graph, node);
    for (const ValueId id : node.inputs) {
      if (id.is_none() || graph.value(id).origin != ValueOrigin::kConstant) continue;
      const Constant& constant = graph.constant(graph.value(id).constant);
      if (constant.element != ElementType::kFloat || constant.dims.rank() == 0) continue;
      if (!counted.insert(id.index()).second) continue;
      size.parameters += static_cast<double>(*constant.dims.count());
    }
  }
  return size;
}

struct Published {
  Result<Net> (*build)(const OpTable& ops, Scale scale, uint64_t seed);
  const char* name;
  double parameters, multiply_adds;
};

class NetSizes : public ::testing::TestWithParam<Published> {};

TEST_P(NetSizes, AreThePublishedOnes) {
  const Library library;
  const auto net = GetParam().build(library.ops(), Scale::kFull, 1);
  ASSERT_TRUE(net.is_ok()) << net.status().to_string();
  const Size size = size_of(net->graph);
  std::printf("%s: %.0f parameters, %.0f multiply-adds\n", GetParam().name, size.parameters,
              size.multiply_adds);
  EXPECT_NEAR(size.parameters, GetParam().parameters, 0.03 * GetParam().parameters);
  EXPECT_NEAR(size.multiply_adds, GetParam().multiply_adds, 0.05 * GetParam().multiply_adds);
}

// BERT's multiply-adds: 12 layers of 128 tokens, each (4 + 8) * 768 * 768, and twice 128 * 768 for
// its attention; the papers give the others.
INSTANTIATE_TEST_SUITE_P(
    All, NetSizes,
    ::testing::Values(Published{bert_base, "bert_base", 109.5e6, 11.2e9},
                      Published{mobilenet_v2, "mobilenet_v2", 3.5e6, 300e6},
                      Published{efficientnet_b0, "efficientnet_b0", 5.3e6, 390e6},
                      Published{nasnet_a_large, "nasnet_a_large", 88.9e6, 23.8e9}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace eddy::nets
