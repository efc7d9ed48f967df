// Claim: every operator of the table of schemas has a gradient rule, is a function of operators
// that have one, is flat for a stated reason, takes no floating-point tensor, or stands in the list
// below with the reason why it is refused; and nothing stands there that has got a rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

// Operators that are refused on an active path, domain in front, by reason.
struct Refused {
  const char* reason;
  std::vector<const char*> ops;
};

const std::vector<Refused>& refused_operators() {
  static const auto* const list = new std::vector<Refused>{
      {"rounds: to pass adjoints straight through is the model's choice",
       {"DynamicQuantizeLinear", "QuantizeLinear"}},
      {"quantised weights are not trained",
       {"DequantizeLinear", "com.microsoft.MatMulNBits", "eddy.DequantizeMatMul"}},
      {"not written yet: steps over time", {"LinearAttention"}},
      {"not written yet: samples between elements",
       {"Col2Im", "DeformConv", "GridSample", "MaxRoiPool", "RoiAlign"}},
      {"not written yet: signals", {"DFT", "MelWeightMatrix", "STFT"}},
      {"not written yet",
       {"Attention", "CumProd", "Det", "GlobalLpPool", "LpPool", "Range", "RotaryEmbedding",
        "TensorScatter"}},
      {"picks by value or by bits", {"BitCast", "Unique"}},
      {"classic models are run, not trained",
       {"ai.onnx.ml.ArrayFeatureExtractor", "ai.onnx.ml.Binarizer", "ai.onnx.ml.FeatureVectorizer",
        "ai.onnx.ml.Imputer", "ai.onnx.ml.LabelEncoder", "ai.onnx.ml.LinearClassifier",
        "ai.onnx.ml.LinearRegressor", "ai.onnx.ml.Normalizer", "ai.onnx.ml.OneHotEncoder",
        "ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor", "ai.onnx.ml.Scaler",
        "ai.onnx.ml.TreeEnsemble", "ai.onnx.ml.TreeEnsembleClassifier",
        "ai.onnx.ml.TreeEnsembleRegressor"}},
      {"made by passes that run behind differentiation",
       {"eddy.Await",
        "eddy.BlockChannels",
        "eddy.BlockedConv",
        "eddy.BlockedPool",
        "eddy.ChannelsLastAveragePool",
        "eddy.ChannelsLastConv",
        "eddy.ChannelsLastMaxPool",
        "eddy.ConvRelu",
        "eddy.ExpandedConv",
        "eddy.Fused",
        "eddy.FusedParts",
        "eddy.HostPredicate",
        "eddy.PackMatrix",
        "eddy.PackedMatMul",
        "eddy.PermutedMatMul",
        "eddy.Recv",
        "eddy.Send",
        "eddy.SplitMatMul",
        "eddy.SwappedConv",
        "eddy.ToDevice",
        "eddy.ToHost",
        "eddy.UnblockChannels",
        "eddy.WinogradConv"}},
      {"replaced before differentiation", {"ai.onnx.preview.training.Gradient"}},
      {"ranks do not train yet",
       {"eddy.AllGather", "eddy.AllReduce", "eddy.AllToAll", "eddy.Barrier", "eddy.Broadcast",
        "eddy.Exchange", "eddy.ReduceScatter"}},
  };
  return *list;
}

std::string name_of(const OpDef& def) {
  return (def.domain.empty() ? "" : def.domain + ".") + def.name;
}

bool takes_floats(const OpDef& def) {
  return std::ranges::any_of(def.inputs, [](const FormalInput& input) {
    return input.types.contains(ElementType::kFloat) || input.types.contains(ElementType::kDouble);
  });
}

TEST(CoverageTest, EveryOperatorHasARuleOrAReason) {
  std::set<std::string> refused, missing;
  for (const Refused& group : refused_operators()) {
    for (const char* op : group.ops) {
      EXPECT_TRUE(refused.insert(op).second) << op << " stands there twice";
    }
  }
  size_t num_rules = 0, num_functions = 0;
  for (const auto& def : gradient_ops().all()) {
    const bool has_rule =
        gradient_rules().find_or_null(def->domain, def->name, def->since_version) != nullptr;
    num_rules += has_rule;
    num_functions += def->expand != nullptr;
    if (has_rule || def->expand != nullptr || !takes_floats(*def)) continue;
    missing.insert(name_of(*def));
  }
  for (const std::string& op : missing) {
    EXPECT_TRUE(refused.contains(op)) << op << " has neither rule nor reason";
  }
  for (const std::string& op : refused) {
    EXPECT_TRUE(missing.contains(op)) << op << " needs no entry";
  }
  printf("%zu definitions have rules, %zu are functions, %zu operators are refused\n", num_rules,
         num_functions, refused.size());
}

}  // namespace
}  // namespace eddy::testing
