// Claim: a node gets the kernel of the nearest version not above its own, the fast one before the
// plain one, and a refusal that names the requested kernel.
#include "ops/contract/registry.h"

#include <gtest/gtest.h>

#include "ops/contract/evaluate.h"

namespace eddy {
namespace {

struct NameState : KernelState {
  explicit NameState(std::string n) : name(std::move(n)) {}
  std::string name;
};

BindFunction named(std::string name) {
  return [name](const KernelInit&) -> Result<BoundKernel> {
    BoundKernel kernel;
    kernel.run = [](const KernelArgs& args) {
      args.outputs[0].mutable_as<float>()[0] = 2 * args.inputs[0].as<float>()[0];
      return true;
    };
    kernel.state = std::make_unique<NameState>(name);
    return kernel;
  };
}

Result<BoundKernel> refuses(const KernelInit&) { return unsupported("only for squares"); }

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() {
    op_.name = "Twice";
    op_.since_version = 7;
    op_.inputs = {{"x", kFloatTypes, InputFlag::kNone}};
    op_.infer = [](InferContext& context) {
      context.set_output(0, context.input(0));
      return Status::ok();
    };
  }
  Result<BoundKernel> bind() {
    const ValueType type = tensor_type(ElementType::kFloat, {});
    const TensorView constant;
    return registry_.bind({op_, attributes_, 7, "node", {&type, 1}, {&type, 1}, {&constant, 1}});
  }
  std::string bound_name() {
    auto kernel = bind();
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string();
    return kernel.is_ok() ? static_cast<NameState*>(kernel->state.get())->name : "";
  }

  OpDef op_;
  Attributes attributes_;
  KernelRegistry registry_;
};

TEST_F(RegistryTest, TheNearestVersionNotAboveTheNodesWins) {
  registry_.add({"Twice", 1, named("old")});
  registry_.add({"Twice", 6, named("near")});
  registry_.add({"Twice", 8, named("new")});
  EXPECT_EQ(bound_name(), "near");
}

TEST_F(RegistryTest, LaterAdditionsComeFirstAndMayRefuse) {
  registry_.add({"Twice", 1, named("plain")});
  registry_.add({"Twice", 1, named("fast")});
  EXPECT_EQ(bound_name(), "fast");
  registry_.add({"Twice", 1, refuses});
  EXPECT_EQ(bound_name(), "fast");
}

TEST_F(RegistryTest, NamesAreFoundInWhateverOrderTheyWereAdded) {
  const std::vector<std::string> names = {"Twist", "Twice", "A", "Twice", "Twic", "Zeta", "Twicer"};
  for (const std::string& name : names) {
    registry_.add({name, 7, named(name)});
    EXPECT_TRUE(registry_.has("", name, 7));
    EXPECT_FALSE(registry_.has("", name, 6));
    EXPECT_FALSE(registry_.has("other", name, 7));
  }
  EXPECT_EQ(bound_name(), "Twice");
  EXPECT_EQ(bind()->place, 2u) << "of the two of this name, the later";
  EXPECT_FALSE(registry_.has("", "Twi", 7));
}

TEST_F(RegistryTest, ARefusalNamesOperatorTypesAndReason) {
  EXPECT_EQ(bind().status().message(),
            "no kernel for Twice (version 7) of float[]: no kernel is registered for it");
  registry_.add({"Twice", 1, refuses});
  EXPECT_EQ(bind().status().message(),
            "no kernel for Twice (version 7) of float[]: only for squares");
  EXPECT_EQ(bind().status().code(), StatusCode::kUnsupported);
}

TEST_F(RegistryTest, AKernelWithoutAFunctionIsRefusedByItsProvidersName) {
  const auto empty = [](const KernelInit&) { return Result<BoundKernel>(BoundKernel()); };
  registry_.add({"Twice", 1, empty, "mine"});
  EXPECT_EQ(
      bind().status().to_string(),
      "invalid argument: the kernel of mine for Twice (version 7) of float[] has no function: "
      "set run, run_value or start");
}

TEST_F(RegistryTest, OneNodeCanBeEvaluatedWithoutAGraph) {
  registry_.add({"Twice", 1, named("any")});
  const float x = 21;
  const TensorView input{const_cast<float*>(&x), nullptr, 0, ElementType::kFloat};
  const auto outputs = evaluate_node(registry_, op_, attributes_, 7, {&input, 1}, 1);
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ(*(*outputs)[0].view().as<float>(), 42.0f);
}

}  // namespace
}  // namespace eddy
