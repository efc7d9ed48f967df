// Claim: the source of a fused kernel computes its program's results, bit for bit: sources of
// seeded random programs, compiled by the host's compiler, against an interpreter, for shapes that
// broadcast and packs that do not fit; compiled by nvcc, too, where it is, and by NVRTC where that
// is found. A program that does not fit is refused by the step at fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "ops/cuda/compiled/kernel_compiler.h"
#include "ops/cuda/device/unary_ops.h"
#include "ops/cuda/elementwise/elementwise_plan.h"
#include "tests/ops/cuda/compiled/fused_sources.h"
#include "tests/ops/cuda/compiled/random_expressions.h"
#include "tests/ops/cuda/host/fused_interpreter.h"
#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

std::vector<RandomProgram> programs() {
  Random random(kFusedSourcesSeed);
  std::vector<RandomProgram> all;
  for (int i = 0; i < kNumFusedHostKernels; ++i) all.push_back(random_program(random));
  return all;
}

// A NaN is a NaN: its sign and payload are the compiler's choice.
bool is_nan(ElementType type, const std::byte* at) {
  float narrow = 0;
  double wide = 0;
  uint16_t half = 0;
  switch (type) {
    case ElementType::kFloat:
      std::memcpy(&narrow, at, sizeof(narrow));
      return std::isnan(narrow);
    case ElementType::kDouble:
      std::memcpy(&wide, at, sizeof(wide));
      return std::isnan(wide);
    case ElementType::kFloat16:
      std::memcpy(&half, at, sizeof(half));
      return std::isnan(cuda::load(cuda::f16{half}));
    case ElementType::kBfloat16:
      std::memcpy(&half, at, sizeof(half));
      return std::isnan(cuda::load(cuda::bf16{half}));
    default:
      return false;
  }
}

// The first of `count` elements that differs, or `count`.
int64_t first_difference(const TensorView& a, const TensorView& b) {
  const size_t size = element_size_bytes(a.element);
  for (int64_t i = 0; i < a.count(); ++i) {
    const auto* x = static_cast<const std::byte*>(a.data) + static_cast<size_t>(i) * size;
    const auto* y = static_cast<const std::byte*>(b.data) + static_cast<size_t>(i) * size;
    const bool is_same =
        std::memcmp(x, y, size) == 0 || (is_nan(a.element, x) && is_nan(a.element, y));
    if (!is_same) return i;
  }
  return a.count();
}

// A launcher that takes a kernel's parameters and runs nothing.
class ParamsOf : public CudaLauncher {
 public:
  Result<CudaFunction> find(std::string_view) override { return unsupported("no kernels here"); }
  Status launch(CudaFunction, uint32_t, const void* given, NativeStream) override {
    std::memcpy(&params, given, sizeof(params));
    return Status::ok();
  }
  Status in_context(const std::function<Status()>& calls) override { return calls(); }
  uint32_t num_resident_blocks() const override { return 1; }
  cuda::FusedParams params{};
};

void compare_program(const RandomProgram& program, FusedHostKernel kernel, const Dims& out_dims,
                     Random& random) {
  std::vector<TestTensor> inputs;
  std::vector<TensorView> views;
  for (const ElementType type : program.inputs) {
    // Whole, one row of it, one column of it, or one element.
    Dims dims = out_dims;
    const uint64_t form = random.below(4);
    for (int axis = 0; axis < dims.rank(); ++axis) {
      const bool is_cut =
          form == 3 || (form == 1 && axis == 0) || (form == 2 && axis + 1 == dims.rank());
      if (is_cut) dims[axis] = 1;
    }
    const bool is_bool = type == ElementType::kBool;
    inputs.push_back(TestTensor::random(type, dims, random, is_bool ? 0 : -4, is_bool ? 1 : 4));
  }
  for (TestTensor& input : inputs) views.push_back(input.view());
  const void* data[cuda::kMaxFusedInputs];
  for (size_t i = 0; i < views.size(); ++i) data[i] = views[i].data;
  std::vector<TestTensor> expected, actual;
  for (const ElementType type : program.outputs) {
    expected.emplace_back(type, out_dims);
    actual.emplace_back(type, out_dims);
  }
  KernelArgs args;
  Status error;
  args.error = &error;
  FusedPlan plan;
  ParamsOf taken;
  plan.add_broadcast(expected[0].view(), views);
  for (size_t k = 1; k < actual.size(); ++k) plan.set_out(k, actual[k].view().data);
  ASSERT_TRUE(plan.launch(args, taken, nullptr, actual[0].view().data, {data, views.size()}, true));
  constexpr uint64_t kStep = 5;  // threads with several items
  for (uint64_t first = 0; first < kStep; ++first) kernel(&taken.params, first, kStep);
  taken.params.out = expected[0].view().data;
  for (size_t k = 1; k < expected.size(); ++k) {
    taken.params.more_out[k - 1] = expected[k].view().data;
  }
  const FusedInterpreter interpreter(program.expression, program.inputs, program.outputs);
  interpreter.run(taken.params, 0, 1);
  for (size_t k = 0; k < actual.size(); ++k) {
    const int64_t at = first_difference(actual[k].view(), expected[k].view());
    EXPECT_EQ(at, actual[k].view().count())
        << "result " << k << ", element " << at << " of " << to_string(out_dims);
  }
}

TEST(FusedKernels, SourcesOfRandomProgramsComputeWhatTheirProgramsSay) {
  Random random(5);
  const std::vector<RandomProgram> all = programs();
  std::set<std::string> functions;
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(kFusedSourcesSeed) + ", program " + std::to_string(i) +
                 ": " + all[i].expression.text());
    for (const ExpressionStep& step : all[i].expression.steps) functions.insert(step.function.name);
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{64}, Dims{67}, Dims{5, 33}, Dims{3, 4, 7}}) {
      compare_program(all[i], kFusedHostKernels[i], dims, random);
    }
  }
  EXPECT_GT(functions.size(), 100u) << "the programs are too much alike";
}

TEST(FusedKernels, AProgramIsReadFromItsText) {
  for (const RandomProgram& program : programs()) {
    const std::string text = program.expression.text();
    const auto again = parse_expression(text, program.expression.num_inputs);
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(again->text(), text);
  }
}

TEST(FusedKernels, WhatIsNoProgramIsRefusedByItsStep) {
  const std::vector<ElementType> types = {ElementType::kFloat, ElementType::kInt64};
  const auto refusal = [&](const char* text, ElementType output = ElementType::kFloat) {
    const auto expression = parse_expression(text, 2);
    if (!expression.is_ok()) return expression.status().message();
    const auto source = cuda::fused_kernel_source(*expression, types, {&output, 1});
    return source.is_ok() ? std::string("accepted") : source.status().message();
  };
  EXPECT_EQ(refusal("Exp_f32 0; Tanh_f32 2"), "accepted");
  EXPECT_THAT(refusal(""), HasSubstr("has no step"));
  EXPECT_THAT(refusal("Exp_f32 2"), HasSubstr("step 0 of the fused program has '2'"));
  EXPECT_THAT(refusal("Exp_f32 0; Exp_f32 -1"), HasSubstr("step 1"));
  EXPECT_THAT(refusal("Exp_f32 0 @1,2"), HasSubstr("'@1,2'"));
  EXPECT_THAT(refusal("Exp_f32 0 0 0 0"), HasSubstr("step 0"));
  EXPECT_THAT(refusal("Exp_f32(0); abort() 0"), HasSubstr("'Exp_f32(0)'"));
  EXPECT_THAT(refusal("system 0"), HasSubstr("names no function of elements"));
  EXPECT_THAT(refusal("Where_f99 0 0 0"), HasSubstr("names no function of elements"));
  EXPECT_THAT(refusal("Exp_f32 1"), HasSubstr("an element of another type"));
  EXPECT_THAT(refusal("Add_f32 0"), HasSubstr("has 1 arguments, not 2"));
  EXPECT_THAT(refusal("Exp_f32 0", ElementType::kInt8), HasSubstr("makes float, its node int8"));
  EXPECT_THAT(refusal("Exp_f32 0; Tanh_f32 2 -> 2"), HasSubstr("makes 2 results, its node 1"));
  std::string long_text = "Exp_f32 0";
  for (size_t i = 0; i < Expression::kMaxSteps; ++i) long_text += "; Exp_f32 0";
  EXPECT_THAT(refusal(long_text.c_str()), HasSubstr("more than 64 steps"));
}

TEST(FusedKernels, NvrtcTakesTheSources) {
  auto api = load_nvrtc();
  if (!api.is_ok()) api = load_nvrtc_from("/usr/local/cuda/lib64/libnvrtc.so");
  if (!api.is_ok()) GTEST_SKIP() << api.status().message();
  KernelCompiler compiler(*api, "");
  const std::vector<RandomProgram> all = programs();
  for (size_t i = 0; i < all.size(); i += 16) {
    SCOPED_TRACE(all[i].expression.text());
    const auto source = cuda::fused_kernel_source(all[i].expression, all[i].inputs, all[i].outputs);
    ASSERT_TRUE(source.is_ok()) << source.status().to_string();
    for (const int compute_capability : {80, 90}) {
      const auto code = compiler.compile(*source, compute_capability);
      ASSERT_TRUE(code.is_ok()) << code.status().to_string();
      EXPECT_THAT(*code, HasSubstr(source->name));
      EXPECT_TRUE(
          code->starts_with("\x7f"
                            "ELF"));
    }
  }
}

}  // namespace
}  // namespace eddy::testing
