// Claim: Einsum sums the products that its equation names: what counting through all values of all
// labels gives, on seeded inputs, however the equation is written; and an equation that names axes
// which are not there is refused and quoted.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr ElementType kF64 = ElementType::kDouble;

OpCall einsum(const std::string& equation, std::vector<TestValue> inputs) {
  OpCall call;
  call.op = "Einsum";
  call.opset = 12;
  call.attributes = {{"equation", equation}};
  call.inputs = std::move(inputs);
  return call;
}

// The element of a tensor whose axes have these labels.
double at(const TestTensor& tensor, const std::string& labels,
          const std::map<char, int64_t>& place) {
  int64_t index = 0;
  for (size_t axis = 0; axis < labels.size(); ++axis) {
    const int64_t size = tensor.dims()[static_cast<int>(axis)];
    index = index * size + (size == 1 ? 0 : place.at(labels[axis]));
  }
  return tensor.view().as<double>()[index];
}

// Every value of every label, one after the other.
TestTensor naive(const std::vector<std::string>& terms, const std::string& result,
                 const std::vector<TestTensor>& inputs, std::map<char, int64_t> sizes) {
  Dims dims;
  for (const char label : result) dims.push_back(sizes.at(label));
  TestTensor out(kF64, dims);
  for (int64_t i = 0; i < out.count(); ++i) out.view().mutable_as<double>()[i] = 0;
  std::map<char, int64_t> place;
  int64_t total = 1;
  for (const auto& [label, size] : sizes) total *= size;
  for (int64_t step = 0; step < total; ++step) {
    int64_t rest = step;
    for (const auto& [label, size] : sizes) {
      place[label] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) product *= at(inputs[i], terms[i], place);
    int64_t index = 0;
    for (const char label : result) index = index * sizes.at(label) + place.at(label);
    out.view().mutable_as<double>()[index] += product;
  }
  return out;
}

struct Case {
  const char* equation;
  std::vector<std::string> terms;  // of the naive sum
  std::string result;
};

TEST(EinsumTest, SumsTheProductsThatTheEquationNames) {
  const std::map<char, int64_t> all = {{'a', 2}, {'b', 3}, {'c', 4}, {'d', 2}, {'e', 3}};
  const Case kCases[] = {
      {"ab,bc->ac", {"ab", "bc"}, "ac"},
      {"ab , bc", {"ab", "bc"}, "ac"},
      {"ab->ba", {"ab"}, "ba"},
      {"ba", {"ba"}, "ab"},
      {"ab->", {"ab"}, ""},
      {"ab->a", {"ab"}, "a"},
      {"abc,dc->bad", {"abc", "dc"}, "bad"},
      {"a,b->ab", {"a", "b"}, "ab"},
      {"a,a", {"a", "a"}, ""},
      {"ab,ab->ab", {"ab", "ab"}, "ab"},
      {"ab,cd->", {"ab", "cd"}, ""},
      {"abc,bcd,de->ae", {"abc", "bcd", "de"}, "ae"},
      {"cab,acd->bd", {"cab", "acd"}, "bd"},
      {"...ab,...bc->...ac", {"dab", "dbc"}, "dac"},
      {"...ab,bc", {"deab", "bc"}, "deac"},
      {"b...->...", {"bac"}, "ac"},
      {"a...b,b->a...", {"acb", "b"}, "ac"},
      {"abcd,abed->abce", {"abcd", "abed"}, "abce"},
  };
  const uint64_t seed = 91;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.equation);
    std::map<char, int64_t> sizes;
    std::vector<TestTensor> tensors;
    std::vector<TestValue> inputs;
    for (const std::string& term : c.terms) {
      Dims dims;
      for (const char label : term) {
        sizes[label] = all.at(label);
        dims.push_back(all.at(label));
      }
      tensors.push_back(TestTensor::random(kF64, dims, random));
      inputs.push_back(tensors.back());
    }
    const TestTensor expected = naive(c.terms, c.result, tensors, sizes);
    for (const Known known : {Known::kShapes, Known::kRanks}) {
      OpCall call = einsum(c.equation, inputs);
      call.known = known;
      EXPECT_TRUE(is_close(run_one(call, KernelSet::kReference), expected, 1e-12, 1e-12));
      EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu), expected, 1e-12, 1e-12));
    }
  }
}

TEST(EinsumTest, AxesNamedTwiceAreADiagonal) {
  const TestTensor x = TestTensor::of<double>({2, 2}, {1, 2, 3, 4});
  const auto values = [&](const char* equation, std::vector<TestValue> inputs) {
    return run_one(einsum(equation, std::move(inputs)), KernelSet::kCpu).values<double>();
  };
  EXPECT_EQ(values("ii->i", {x}), (std::vector<double>{1, 4}));
  EXPECT_EQ(values("ii", {x}), std::vector<double>{5});
  const TestTensor cube = TestTensor::of<double>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(values("iji->ij", {cube}), (std::vector<double>{0, 2, 4, 7, 9, 11}));
  EXPECT_EQ(values("iii->i", {TestTensor::of<double>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}),
            (std::vector<double>{0, 7}));
}

TEST(EinsumTest, BatchesOfOneAndNoneAndSmallIntegers) {
  const TestTensor one = TestTensor::of<double>({1, 1, 2}, {1, 2});
  const TestTensor two = TestTensor::of<double>({2, 2, 1}, {1, 2, 3, 4});
  EXPECT_EQ(run_one(einsum("...ab,...bc->...ac", {one, two}), KernelSet::kCpu).values<double>(),
            (std::vector<double>{5, 11}));
  const TestTensor empty(kF64, {0, 2});
  EXPECT_EQ(run_one(einsum("ab,ac->bc", {empty, TestTensor(kF64, {0, 3})}), KernelSet::kReference)
                .values<double>(),
            std::vector<double>(6, 0.0));
  const TestTensor bytes = TestTensor::of<int8_t>({2}, {3, 4});
  EXPECT_EQ(run_one(einsum("i,i->", {bytes, bytes}), KernelSet::kCpu).values<int8_t>(),
            std::vector<int8_t>{25});
}

TEST(EinsumTest, AnAxisOfOneStretchesOverASumToo) {
  struct Stretched {
    Case wanted;
    std::vector<Dims> dims;
    std::map<char, int64_t> sizes;
  };
  const Stretched cases[] = {
      {{"ab,bc->ac", {"ab", "bc"}, "ac"}, {{2, 1}, {4, 3}}, {{'a', 2}, {'b', 4}, {'c', 3}}},
      {{"ab,bc->ac", {"ab", "bc"}, "ac"}, {{2, 4}, {1, 3}}, {{'a', 2}, {'b', 4}, {'c', 3}}},
      {{"a,da->d", {"a", "da"}, "d"}, {{1}, {2, 3}}, {{'a', 3}, {'d', 2}}},
      {{"ab,ab->a", {"ab", "ab"}, "a"}, {{2, 1}, {2, 3}}, {{'a', 2}, {'b', 3}}},
      {{"a,a->", {"a", "a"}, ""}, {{1}, {3}}, {{'a', 3}}},
      {{"ij,ij->j", {"ij", "ij"}, "j"}, {{1, 3}, {4, 1}}, {{'i', 4}, {'j', 3}}},
      {{"a,a,a->", {"a", "a", "a"}, ""}, {{1}, {1}, {3}}, {{'a', 3}}},
  };
  for (const Stretched& each : cases) {
    SCOPED_TRACE(each.wanted.equation);
    std::vector<TestTensor> inputs;
    for (const Dims& dims : each.dims) {
      TestTensor& input = inputs.emplace_back(kF64, dims);
      for (int64_t i = 0; i < input.count(); ++i) {
        input.view().mutable_as<double>()[i] = static_cast<double>(i * i % 7 + 1);
      }
    }
    const TestTensor expected = naive(each.wanted.terms, each.wanted.result, inputs, each.sizes);
    const std::vector<TestValue> given(inputs.begin(), inputs.end());
    EXPECT_EQ(run_one(einsum(each.wanted.equation, given), KernelSet::kCpu).values<double>(),
              expected.values<double>());
  }
}

TEST(EinsumTest, EquationsThatNameNothingAreQuoted) {
  const TestTensor x = TestTensor::of<double>({1, 1}, {1});
  const auto said = [&](const char* equation, std::vector<TestValue> inputs) {
    return infer_op(einsum(equation, std::move(inputs))).status().message();
  };
  EXPECT_EQ(said("ij->k", {x}), "equation 'ij->k' has 'k' in its result only");
  EXPECT_EQ(said("ij->ii", {x}), "equation 'ij->ii' has 'i' twice in its result");
  EXPECT_EQ(said("ij", {x, x}), "equation 'ij' has 1 terms for 2 inputs");
  EXPECT_EQ(said("ijk", {x}), "equation 'ijk' names 3 axes of input 0, which has 2");
  EXPECT_EQ(said("i", {x}), "equation 'i' names 1 axes of input 0, which has 2");
  EXPECT_EQ(said("i1", {x}), "equation 'i1' has '1', which is no label");
  EXPECT_EQ(said("i..", {x}), "equation 'i..' has '.', which is no label");
  EXPECT_EQ(said("......", {x}), "equation '......' has two ellipses in a term");
}

TEST(EinsumTest, AxesOfOneLabelHaveOneSize) {
  const TestTensor x(kF64, {3, 2}), y(kF64, {4, 2});
  const auto said = [&](const char* equation, std::vector<TestValue> inputs) {
    return infer_op(einsum(equation, std::move(inputs))).status().message();
  };
  EXPECT_EQ(
      said("ii->i", {x}),
      "equation 'ii->i' names axes of unequal size alike: axis 0 of input 0 has size 3, axis 1 "
      "of input 0 has size 2");
  EXPECT_EQ(
      said("ii", {TestTensor(kF64, {4, 1})}),
      "equation 'ii' names axes of unequal size alike: axis 0 of input 0 has size 4, axis 1 of "
      "input 0 has size 1");
  EXPECT_EQ(
      said("ij,ik", {x, y}),
      "equation 'ij,ik' names axes of unequal size alike: axis 0 of input 0 has size 3, axis 0 "
      "of input 1 has size 4");
  EXPECT_EQ(said("...j,...j", {x, y}),
            "equation '...j,...j' names axes of unequal size alike: axis 0 of input 0 has size 3, "
            "axis 0 of input 1 has size 4");
}

// Neither the result nor what is made on the way to a small one.
TEST(EinsumTest, ProductsThatNoMemoryHoldsAreRefusedWhenShapesAreKnown) {
  const TestTensor x(ElementType::kInt8, {400'000});
  const auto said = [&](const char* equation) {
    return infer_op(einsum(equation, {x, x, x})).status().message();
  };
  const std::string of_three =
      "the product of inputs 0 to 2 has the shape [400000,400000,400000], which no memory holds; "
      "sum over axes earlier, by another order of inputs, or split an input";
  EXPECT_EQ(said("a,b,c->abc"), "equation 'a,b,c->abc': " + of_three);
  EXPECT_EQ(said("a,b,c"), "equation 'a,b,c': " + of_three);
  EXPECT_EQ(said("a,b,c->"), "");  // each is summed first
  const TestTensor none(ElementType::kInt8, {0});
  EXPECT_TRUE(
      infer_op(einsum("a,b,c,d->abcd", {x, x, x, none})).status().message().find("inputs 0 to 2") !=
      std::string::npos);
  EXPECT_TRUE(infer_op(einsum("d,a,b,c->abcd", {none, x, x, x})).is_ok());
  EXPECT_NE(infer_op(einsum("a,b,c,abc->", {x, x, x, TestTensor(ElementType::kInt8, {1, 1, 1})}))
                .status()
                .message()
                .find("inputs 0 to 2"),
            std::string::npos);
}

}  // namespace
}  // namespace eddy::testing
