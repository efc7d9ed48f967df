// Claim: each operator that has a CUDA kernel gives the reference kernel's values on ONNX's own
// tests of it, every one that its kernels do not refuse by name; an operator without such a test is
// named here with the test that compares it instead. (Debian's libonnx-testdata.)
#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <set>

#include "graph/io/import.h"
#include "graph/io/tensor_file.h"
#include "ops/schema/standard.h"
#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "/usr/share/libonnx-testdata/data/node";

// Compared elsewhere: operators of our own, and those with tests of an opset that is not read (1)
// or newer than Debian's ONNX (18 and later).
const std::map<std::string, std::string> kComparedElsewhere = {
    {"BitwiseAnd", "activation_kernels_test.cc"},
    {"BitwiseNot", "activation_kernels_test.cc"},
    {"BitwiseOr", "activation_kernels_test.cc"},
    {"BitwiseXor", "activation_kernels_test.cc"},
    {"ChannelsLastAveragePool", "dnn_pools_test.cc"},
    {"ChannelsLastConv", "dnn_convolutions_test.cc"},
    {"ChannelsLastMaxPool", "dnn_pools_test.cc"},
    {"CheckedCall", "movement_kernels_test.cc"},
    {"ConvRelu", "dnn_convolutions_test.cc"},
    {"DequantizeMatMul", "product_kernels_test.cc"},
    {"Fused", "fused_kernels_test.cc"},
    {"FusedParts", "cuda_fusion_test.cc"},
    {"Gelu", "activation_kernels_test.cc"},
    {"Mish", "activation_kernels_test.cc"},
    {"PermutedMatMul", "product_kernels_test.cc"},
    {"Swish", "activation_kernels_test.cc"},
};

TestValue copy_of(const TensorView& view) {
  if (view.element == ElementType::kString) {
    const auto* const texts = view.as<std::string>();
    return TestTensor::of_strings(Dims(view.shape()), {texts, texts + view.count()});
  }
  TestTensor tensor(view.element, Dims(view.shape()));
  if (view.size_bytes() > 0) std::memcpy(tensor.view().data, view.data, view.size_bytes());
  return tensor;
}

class OnnxCases : public CudaKernelFixture {
 protected:
  OnnxCases() {
    EXPECT_TRUE(add_standard_schemas(ops_).is_ok());
    for (const KernelEntry& entry : registry_.entries()) with_kernel_.emplace(entry.op);
  }

  // The call of a model that is one node with a CUDA kernel; false: it is another model.
  bool read_call(const fs::path& folder, OpCall& call) {
    const Result<Graph>& graph =
        graphs_.emplace_back(import_onnx((folder / "model.onnx").string(), ops_));
    if (!graph.is_ok() || graph->num_nodes() != 1) return false;
    const Node& node = graph->node(NodeId(0));
    if (node.kind != NodeKind::kExec || !with_kernel_.contains(node.op->name)) return false;
    call.op = node.op->name;
    call.domain = node.op->domain;
    call.opset = node.opset_version;
    call.attributes = node.attributes;
    call.num_outputs = node.outputs.size();
    for (const ValueId id : node.inputs) {
      if (id.is_none()) {
        call.inputs.push_back(TestValue::omitted());
        continue;
      }
      const ValueInfo& info = graph->value(id);
      if (info.origin == ValueOrigin::kConstant) {
        call.inputs.push_back(copy_of(graph->constant(info.constant).view()));
        continue;
      }
      const fs::path file =
          folder / "test_data_set_0" / ("input_" + std::to_string(info.index) + ".pb");
      auto value = read_value(file.string(), info.type);
      if (!value.is_ok() || value->kind != HostValue::Kind::kTensor) return false;
      call.inputs.push_back(copy_of(value->view()));
    }
    return true;
  }

  void compare_case(const OpCall& call) {
    const auto expected = run_op(call, KernelSet::kReference);
    if (!expected.is_ok()) return;
    const auto actual = run_op(call, registry_);
    if (!actual.is_ok()) {
      ASSERT_EQ(actual.status().code(), StatusCode::kUnsupported) << actual.status().to_string();
      ++refusals_[actual.status().message()];
      return;
    }
    for (size_t o = 0; o < call.num_outputs; ++o) {
      const TestTensor& found = (*actual)[o].tensor();
      const bool is_coarse = is_half(found.element());
      EXPECT_TRUE(is_close(found, (*expected)[o].tensor(), is_coarse ? 1e-2 : 1e-4,
                           is_coarse ? 1e-2 : 1e-6))
          << "output " << o;
    }
    ++compared_[call.op];
  }

  OpTable ops_;
  std::set<std::string> with_kernel_;
  std::map<std::string, int> compared_;  // cases, by operator
  std::map<std::string, int> refusals_;  // by reason
  std::list<Result<Graph>> graphs_;      // attributes of calls refer to their tensors
};

TEST_F(OnnxCases, EveryOperatorWithAKernelGivesTheReferencesValues) {
  if (!fs::exists(kData)) GTEST_SKIP() << "Debian's libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(kData)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    OpCall call;
    if (read_call(folder, call)) compare_case(call);
  }
  int num_cases = 0;
  for (const auto& [op, count] : compared_) num_cases += count;
  std::printf("%d cases of %zu operators compared\n", num_cases, compared_.size());
  for (const auto& [reason, count] : refusals_)
    std::printf("%d refused: %s\n", count, reason.c_str());
  for (const std::string& op : with_kernel_) {
    EXPECT_TRUE(compared_.contains(op) || kComparedElsewhere.contains(op))
        << op << " has a CUDA kernel that no case was compared with";
  }
  for (const auto& [op, test] : kComparedElsewhere) {
    EXPECT_TRUE(with_kernel_.contains(op)) << op << " has no CUDA kernel; see " << test;
    EXPECT_FALSE(compared_.contains(op)) << op << " is compared here by now; see " << test;
  }
}

}  // namespace
}  // namespace eddy::testing
