// Claim: the table of types in ops/cuda's README is that of the kernels: a type stands in a
// family's row exactly where every kernel of the family has it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ops/cuda/names/element_types.h"
#include "tests/ops/cuda/host/host_launcher.h"

namespace eddy::testing {
namespace {

constexpr const char* kReadme = "ops/cuda/README.md";

constexpr std::pair<const char*, ElementType> kTypes[] = {
    {"float32", ElementType::kFloat},   {"float64", ElementType::kDouble},
    {"float16", ElementType::kFloat16}, {"bfloat16", ElementType::kBfloat16},
    {"int64", ElementType::kInt64},     {"int32", ElementType::kInt32},
    {"int8", ElementType::kInt8},       {"bool", ElementType::kBool},
};

// Kernels carry the type, or a number of bytes.
enum class By { kType, kSize };

struct Family {
  const char* title;
  By by;
  std::vector<std::string> kernels;
};

std::vector<Family> families() {
  return {
      {"Add, Sub, Mul, Max, Min, Clip, comparisons",
       By::kType,
       {"Add", "Sub", "Mul", "Max", "Min", "Clip", "Equal", "Less", "LessOrEqual", "Greater",
        "GreaterOrEqual"}},
      {"Abs, Neg, Relu, Sign", By::kType, {"Abs", "Neg", "Relu", "Sign"}},
      {"Pow, PRelu", By::kType, {"Pow", "PRelu"}},
      {"Div, activations, functions",
       By::kType,
       {"Div", "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Gelu", "Elu", "Sqrt", "Sin", "Acos",
        "Softplus", "Mish", "IsNaN", "Round", "LeakyRelu"}},
      {"Div, Mod of integers", By::kType, {"IntegerDiv", "Modulo", "Remainder"}},
      {"And, Or, Xor, Not", By::kType, {"And", "Or", "Xor", "Not"}},
      {"BitwiseAnd, …Or, …Xor, …Not",
       By::kType,
       {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}},
      {"Cast", By::kType, {"Cast_f32", "Cast_b8", "Cast_i64"}},
      {"Where, movement, Gather, Scatter, Pad",
       By::kSize,
       {"Where", "Copy", "Concat", "Split", "Gather", "GatherElements", "ScatterElements", "Pad"}},
      {"ReduceSum, …Prod, …Max, …Min, ArgMax, ArgMin",
       By::kType,
       {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin"}},
      {"ReduceMean, other reductions, Softmax",
       By::kType,
       {"ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare", "Softmax",
        "LogSoftmax"}},
      {"CumSum, TopK", By::kType, {"CumSum", "TopK"}},
      {"MatMul, Gemm", By::kType, {"MatMulTile", "MatMulRows"}},
      {"Conv, norms, recurrences",
       By::kType,
       {"Conv", "ConvTranspose", "LayerNorm", "InstanceNorm", "BatchNorm", "LstmStep", "GruStep",
        "RnnStep"}},
      {"AveragePool", By::kType, {"AveragePool"}},
      {"MaxPool", By::kType, {"MaxPool"}},
      {"Resize", By::kType, {"Resize"}},
  };
}

std::string kernel_name(const Family& family, const std::string& kernel, ElementType type) {
  const std::string ending = family.by == By::kSize ? std::to_string(element_size_bytes(type))
                                                    : std::string(cuda::type_suffix(type));
  return "eddy_" + kernel + "_" + ending;
}

std::string row(const Family& family, const HostKernels& kernels) {
  std::string text = "| " + std::string(family.title) + " |";
  for (const auto& [name, type] : kTypes) {
    bool has_all = true;
    for (const std::string& kernel : family.kernels) {
      has_all &= kernels.contains(kernel_name(family, kernel, type));
    }
    text += has_all ? " + |" : " |";
  }
  return text;
}

TEST(KernelTypes, TheReadmesTableIsThatOfTheKernels) {
  std::ifstream file(kReadme);
  ASSERT_TRUE(file.is_open()) << kReadme;
  std::stringstream readme;
  readme << file.rdbuf();
  const HostKernels kernels = host_kernels();
  std::string table;
  for (const Family& family : families()) {
    const std::string line = row(family, kernels);
    EXPECT_NE(line.find('+'), std::string::npos) << "no kernel of " << family.title;
    table += line + "\n";
  }
  EXPECT_NE(readme.str().find(table), std::string::npos) << "the table is\n" << table;
}

}  // namespace
}  // namespace eddy::testing
