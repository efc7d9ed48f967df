// Claim: the kernels of UpdateParameter give, bit for bit, what the nodes give that it stands for,
// by each rule, in every type, with and without what may be left out, of sizes around vectors and
// tiles, also where a result is written over what it is made of; derivatives go through it; and
// calls that do not fit are refused.
#include <gtest/gtest.h>

#include "tests/ops/gradient/gradient_check.h"
#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

constexpr uint64_t kSeed = 20261129;

struct Rule {
  const char* name;
  int states;
};
constexpr Rule kRules[] = {
    {"descent", 0}, {"momentum", 1}, {"nesterov", 1}, {"adagrad", 1}, {"adam", 2}};

struct Extras {
  bool has_share = true, has_norm = true;
};

OpCall call_of(const Rule& rule, ElementType element, const Dims& dims, Random& random,
               Extras extras = {}) {
  const auto tensor = [&](const Dims& of, double low, double high) {
    return TestValue(TestTensor::random(element, of, random, low, high));
  };
  OpCall call;
  call.op = "UpdateParameter";
  call.domain = "eddy";
  call.opset = 1;
  call.num_outputs = static_cast<size_t>(1 + rule.states);
  call.attributes = {{"rule", rule.name},
                     {"alpha", 0.875f},
                     {"beta", 0.99f},
                     {"epsilon", 1e-3f},
                     {"norm_coefficient_post", extras.has_norm ? 0.01f : 0.0f}};
  if (extras.has_norm) call.attributes.set("norm_coefficient", 0.1f);
  call.inputs = {tensor({}, 0.01, 0.1),
                 extras.has_share ? tensor({1}, 0.5, 0.9) : TestValue::omitted(),
                 tensor(dims, -2, 2), tensor(dims, -2, 2)};
  for (int i = 0; i < rule.states; ++i) call.inputs.push_back(tensor(dims, 0.1, 2));
  return call;
}

// The results of its nodes, one after the other.
std::vector<TestTensor> by_nodes(const OpCall& call) {
  NamedValues values;
  const auto add_inputs = [&](GraphBuilder& b) {
    std::vector<Value> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const bool is_omitted = call.inputs[i].kind == TestValue::Kind::kOmitted;
      const std::string name = "input" + std::to_string(i);
      inputs.push_back(is_omitted ? Value{} : b.input(name, call.inputs[i].type()));
      if (!is_omitted) values[name] = call.inputs[i];
    }
    return inputs;
  };
  GraphBuilder whole(gradient_ops());
  whole.output("y", whole.ops("UpdateParameter", add_inputs(whole), call.attributes,
                              {.domain = "eddy",
                               .opset_version = 1,
                               .num_outputs = static_cast<int>(call.num_outputs)})[0]);
  const auto graph = whole.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  const GradientRule* const rule = gradient_rules().find_or_null("eddy", "UpdateParameter", 1);
  GraphBuilder nodes(gradient_ops());
  const auto inputs = add_inputs(nodes);
  const auto made = rule->expand(nodes, graph->node(NodeId(0)), inputs);
  for (size_t i = 0; i < made.size(); ++i) nodes.output("y" + std::to_string(i), made[i]);
  const auto expanded = nodes.finish();
  EXPECT_TRUE(expanded.is_ok()) << expanded.status().to_string();
  const auto run = run_graph(*expanded, values);
  EXPECT_TRUE(run.is_ok()) << run.status().to_string();
  std::vector<TestTensor> results;
  for (size_t i = 0; i < call.num_outputs; ++i) {
    results.push_back(run->outputs.at("y" + std::to_string(i)).tensor());
  }
  return results;
}

void expect_bits(OpCall call, const std::vector<TestTensor>& expected) {
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    for (const Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
      call.known = known;
      const auto found = run_op(call, kernels);
      ASSERT_TRUE(found.is_ok()) << found.status().to_string();
      ASSERT_EQ(found->size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(is_same_bits((*found)[i].tensor(), expected[i])) << "output " << i;
      }
    }
  }
}

TEST(UpdateTest, KernelsHaveTheBitsOfTheNodes) {
  printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Random random(kSeed);
  for (const Rule& rule : kRules) {
    for (const ElementType element : {ElementType::kFloat, ElementType::kDouble,
                                      ElementType::kFloat16, ElementType::kBfloat16}) {
      for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{3, 5}, Dims{33}, Dims{2, 4, 8}}) {
        SCOPED_TRACE(std::string(rule.name) + " " + std::string(element_type_name(element)) +
                     to_string(dims));
        for (const bool has_norm : {false, true}) {
          const OpCall call =
              call_of(rule, element, dims, random, {.has_share = has_norm, .has_norm = has_norm});
          expect_bits(call, by_nodes(call));
        }
      }
    }
  }
}

TEST(UpdateTest, SeveralTilesAreOnePass) {
  Random random(kSeed + 1);
  for (const Rule& rule : kRules) {
    SCOPED_TRACE(rule.name);
    const OpCall call = call_of(rule, ElementType::kFloat, {3, 33'333}, random);
    expect_bits(call, by_nodes(call));
  }
}

TEST(UpdateTest, TheFirstResultMayStandWhereAnInputIs) {
  Random random(kSeed + 2);
  for (const Rule& rule : kRules) {
    OpCall call = call_of(rule, ElementType::kFloat, {5, 41}, random);
    const auto expected = by_nodes(call);
    for (int input = 2; input < 4 + rule.states; ++input) {
      SCOPED_TRACE(std::string(rule.name) + " over input " + std::to_string(input));
      call.in_place_input = input;
      expect_bits(call, expected);
    }
  }
}

TEST(UpdateTest, DerivativesGoThroughIt) {
  Random random(kSeed + 3);
  for (const Rule& rule : kRules) {
    SCOPED_TRACE(rule.name);
    expect_gradient(call_of(rule, ElementType::kDouble, {2, 3}, random));
    OpCall single = call_of(rule, ElementType::kDouble, {}, random, {.has_share = false});
    single.inputs[0] = TestTensor::of<double>({1}, {0.05});
    expect_gradient(single);
  }
}

TEST(UpdateTest, WhatDoesNotFitIsRefused) {
  Random random(kSeed + 4);
  const auto with = [&](size_t input, const TestValue& value) {
    OpCall call = call_of(kRules[1], ElementType::kFloat, {2, 3}, random);
    call.inputs[input] = value;
    return refusal(call);
  };
  EXPECT_EQ(with(0, floats({2}, {1, 2})), "rate must have one element, not 2");
  EXPECT_EQ(with(1, floats({2}, {1, 2})), "share must have one element, not 2");
  EXPECT_EQ(with(3, floats({3, 2}, {1, 2, 3, 4, 5, 6})),
            "x of shape [2,3] and input 3 of shape [3,2] must have one shape");
  EXPECT_EQ(with(4, TestValue::omitted()), "UpdateParameter needs input 4");
  OpCall call = call_of(kRules[1], ElementType::kFloat, {2, 3}, random);
  call.inputs.pop_back();
  EXPECT_EQ(refusal(call), "UpdateParameter by momentum has 5 inputs and 2 outputs, not 4 and 2");
  call.attributes.set("rule", "lbfgs");
  EXPECT_EQ(refusal(call),
            "the rule of UpdateParameter is descent, momentum, nesterov, adagrad or adam, not "
            "'lbfgs'");
}

}  // namespace
}  // namespace eddy::testing
