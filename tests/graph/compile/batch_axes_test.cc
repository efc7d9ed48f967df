// Claim: samples are followed through shapes that a program computes, loops and branches, to the
// outputs; what could let one sample have an influence on another is refused at its node, with the
// operator and the reason. (That accepted operators keep samples apart: //tests/ops/schema.)
#include "graph/compile/batch_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;

class BatchAxesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_standard_schemas(table_).is_ok()); }

  // Dimensions by name, where they are no numbers.
  struct Size {
    Size(int64_t n) : number(n) {}
    Size(const char* s) : symbol(s) {}
    int64_t number = 0;
    const char* symbol = nullptr;
  };
  using Build = std::function<Value(GraphBuilder&)>;

  static Value input(GraphBuilder& b, const char* name, std::initializer_list<Size> sizes) {
    Dims dims;
    for (const Size& size : sizes) {
      dims.push_back(size.symbol == nullptr ? size.number : b.symbol(size.symbol));
    }
    return b.input(name, tensor_type(ElementType::kFloat, dims));
  }
  static Value weights(GraphBuilder& b, const Dims& dims) {
    return b.tensor<float>(dims, std::vector<float>(static_cast<size_t>(*dims.count()), 0.5f));
  }
  static Value entry(GraphBuilder& b, Value shape, int64_t i) {
    return b.op("Gather", {shape, b.int64s({i})});
  }

  Result<BatchAxes> find(const Build& build, const std::string& dimension = "N") {
    GraphBuilder b(table_);
    b.set_opset("", 17);
    b.output("y", build(b));
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return graph.is_ok() ? find_batch_axes(*graph, dimension) : Result<BatchAxes>(graph.status());
  }
  int output_axis(const Build& build) {
    const Result<BatchAxes> axes = find(build);
    EXPECT_TRUE(axes.is_ok()) << axes.status().to_string();
    return axes.is_ok() ? axes->outputs[0] : -2;
  }
  std::string refusal(const Build& build, const std::string& dimension = "N") {
    const Result<BatchAxes> axes = find(build, dimension);
    return axes.is_ok() ? "accepted" : axes.status().to_string();
  }

  OpTable table_;
};

// Counts to `limit`; carries a value that `step` makes anew.
Value loop(GraphBuilder& b, Value initial, const std::function<Value(Value)>& step,
           const std::function<Value(Value, Value)>& test) {
  return b.while_loop(
      {.name = "settle", .initial = {initial}},
      [&](Value iteration, ValueSpan carried) {
        return WhileTest{test(iteration, carried[0]), {carried[0]}};
      },
      [&](Value, ValueSpan carried) { return std::vector<Value>{step(carried[0])}; })[0];
}
Value three_times(GraphBuilder& b, Value iteration) {
  return b.op("Less", {iteration, b.scalar<int64_t>(3)});
}

TEST_F(BatchAxesTest, SamplesAreFollowedThroughANetwork) {
  const auto axes = find([](GraphBuilder& b) {
    const Value x = input(b, "x", {"N", 8});
    const Value bias = input(b, "bias", {4});
    const Value h = b.op("Relu", {b.op("Add", {b.op("MatMul", {x, weights(b, {8, 4})}), bias})});
    return b.op("Transpose", {b.op("Softmax", {h})});
  });
  ASSERT_TRUE(axes.is_ok()) << axes.status().to_string();
  EXPECT_EQ(axes->inputs, (std::vector<int>{0, kNoSamples}));
  EXPECT_EQ(axes->outputs, std::vector<int>{1});
}

TEST_F(BatchAxesTest, ShapesThatTheProgramComputesAreFollowed) {
  // [N, T, 512] as [N, T, 8, 64], by the sizes read from the tensor.
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", "T", 512});
              const Value shape = b.op("Shape", {x});
              const Value wanted = b.op(
                  "Concat", {entry(b, shape, 0), entry(b, shape, 1), b.int64s({8}), b.int64s({-1})},
                  {{"axis", int64_t{0}}});
              const Value heads = b.op("Reshape", {x, wanted});
              const Value turned =
                  b.op("Transpose", {heads}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
              const Value scores =
                  b.op("MatMul", {turned, b.op("Transpose", {turned},
                                               {{"perm", std::vector<int64_t>{0, 1, 3, 2}}})});
              return b.op("Softmax", {scores});
            }),
            0);
  // [T, N, 512] as [T, N * 8, 64], then turned: a head of a sample is an entry of the axis.
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"T", "N", 512});
              const Value shape = b.op("Shape", {x});
              const Value rows = b.op("Mul", {entry(b, shape, 1), b.int64s({8})});
              const Value wanted = b.op("Concat", {entry(b, shape, 0), rows, b.int64s({64})},
                                        {{"axis", int64_t{0}}});
              const Value heads = b.op("Reshape", {x, wanted});
              return b.op("Transpose", {heads}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
            }),
            0);
  // States of a recurrent layer, made as large as the batch.
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"T", "N", 4});
              const Value size =
                  b.op("Concat", {b.int64s({1}), entry(b, b.op("Shape", {x}), 1), b.int64s({3})},
                       {{"axis", int64_t{0}}});
              const Value state = b.op("ConstantOfShape", {size});
              return b.op("RNN", {x, weights(b, {1, 3, 4}), weights(b, {1, 3, 3}), {}, {}, state},
                          {{"hidden_size", int64_t{3}}});
            }),
            2);
  // A token for each sample.
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", "T", 4});
              const Value size = b.op("Concat", {entry(b, b.op("Shape", {x}), 0), b.int64s({1, 1})},
                                      {{"axis", int64_t{0}}});
              const Value token = b.op("Expand", {weights(b, {1, 1, 4}), size});
              return b.op("Concat", {token, x}, {{"axis", int64_t{1}}});
            }),
            0);
  // Rows of all samples, and back.
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", 5, 4});
              const Value rows = b.op("Reshape", {x, b.int64s({-1, 4})});
              const Value product = b.op("Gemm", {rows, weights(b, {4, 2})});
              return b.op("Reshape", {product, b.int64s({-1, 5, 2})});
            }),
            0);
}

TEST_F(BatchAxesTest, LoopsAndBranchesThatNoSampleDecidesAreFollowed) {
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", 4});
              return loop(
                  b, x,
                  [&](Value c) {
                    return b.op("Tanh", {b.op("Add", {c, x})});
                  },
                  [&](Value i, Value) { return three_times(b, i); });
            }),
            0);
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", 4});
              const Value flag = b.input("flag", tensor_type(ElementType::kBool, {}));
              return b.if_else(
                  flag, [&] { return std::vector<Value>{b.op("Neg", {x})}; },
                  [&] { return std::vector<Value>{b.op("Exp", {x})}; })[0];
            }),
            0);
  // Rows of a loop stand in front.
  EXPECT_EQ(output_axis([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", 4});
              return b.while_loop(
                  {.initial = {x}, .num_scan_outputs = 1},
                  [&](Value i, ValueSpan c) {
                    return WhileTest{three_times(b, i), {c[0]}};
                  },
                  [&](Value, ValueSpan c) {
                    return std::vector<Value>{b.op("Neg", {c[0]}), c[0]};
                  })[1];
            }),
            1);
}

TEST_F(BatchAxesTest, WhatCrossesSamplesIsRefusedAtItsNode) {
  const auto named = [](GraphBuilder& b, const char* op, Value x, Attributes attributes = {}) {
    return b.op(op, std::vector<Value>{x}, std::move(attributes), {.name = "here"});
  };
  const std::string where =
      "unsupported: at here: requests cannot share a run along dimension 'N': ";
  EXPECT_EQ(
      refusal([&](GraphBuilder& b) {
        return named(b, "ReduceMean", input(b, "x", {"N", 4}), {{"axes", std::vector<int64_t>{0}}});
      }),
      where + "ReduceMean reduces axis 0, along which the samples lie");
  EXPECT_EQ(refusal([&](GraphBuilder& b) {
              return named(b, "Softmax", input(b, "x", {"N", 4}), {{"axis", int64_t{0}}});
            }),
            where + "Softmax normalizes axis 0, along which the samples lie");
  EXPECT_EQ(
      refusal([&](GraphBuilder& b) {
        const Value x = input(b, "x", {4, "N"});
        return b.op("MatMul", std::vector<Value>{x, b.op("Transpose", {x})}, {}, {.name = "here"});
      }),
      where + "MatMul sums over axis 0, along which the samples lie");
  EXPECT_EQ(
      refusal([&](GraphBuilder& b) {
        const Value x = input(b, "x", {"N", 4});
        return b.op("MatMul", std::vector<Value>{x, b.op("Transpose", {x})}, {}, {.name = "here"});
      }),
      where + "MatMul multiplies entries of one sample with those of others");
  EXPECT_EQ(refusal([&](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", 4});
              return b.op("Add", std::vector<Value>{x, weights(b, {3, 1})}, {}, {.name = "here"});
            }),
            where +
                "Add aligns axis 0 of input 1, [3,1] and the same for all samples, with the "
                "samples");
  EXPECT_EQ(
      refusal([&](GraphBuilder& b) {
        const Value x = input(b, "x", {"N", 3});
        return b.op("Reshape", std::vector<Value>{x, b.int64s({-1, 2})}, {}, {.name = "here"});
      }),
      where +
          "Reshape is not surely to keep the entries of each sample together; give the "
          "axis of the samples as 0 in the shape, or by its symbol");
  EXPECT_EQ(refusal([&](GraphBuilder& b) {
              return named(b, "NonZero", input(b, "x", {"N", 4}));
            }),
            where + "NonZero makes results whose number or values depend on all samples together");
  EXPECT_EQ(refusal([&](GraphBuilder& b) {
              return named(b, "SequenceConstruct", input(b, "x", {"N", 4}));
            }),
            where + "SequenceConstruct has no rule for batches");
  EXPECT_EQ(
      refusal([&](GraphBuilder& b) {
        const Value x = input(b, "x", {"N", 4});
        const Value size = b.op("Cast", {b.op("Shape", {x})}, {{"to", int64_t{1}}});
        return b.op("Div", {x, b.op("Gather", {size, b.scalar<int64_t>(0)})});
      }),
      "unsupported: at Cast_1: requests cannot share a run along dimension 'N': Cast computes "
      "with the number of samples in a way that is not followed");
}

TEST_F(BatchAxesTest, WhatASampleDecidesIsRefused) {
  EXPECT_EQ(refusal([](GraphBuilder& b) {
              const Value x = input(b, "x", {"N", 4});
              return loop(
                  b, x, [&](Value c) { return b.op("Tanh", {c}); },
                  [&](Value, Value c) {
                    const Value first = b.op("ReduceMax", {c}, {{"axes", std::vector<int64_t>{1}}});
                    return b.op("Greater", {first, b.scalar(0.5f)});
                  });
            }),
            "unsupported: at settle: requests cannot share a run along dimension 'N': samples of "
            "one batch could ask for different numbers of iterations of this loop (Greater at "
            "settle/Greater_1)");
  EXPECT_THAT(
      refusal([](GraphBuilder& b) {
        const Value x = input(b, "x", {"N"});
        const Value flag = b.op("Greater", {x, b.scalar(0.5f)});
        return b.if_else(
            flag, [&] { return std::vector<Value>{b.op("Neg", {x})}; },
            [&] { return std::vector<Value>{x}; }, "choose")[0];
      }),
      HasSubstr("at choose: requests cannot share a run along dimension 'N': samples of one "
                "batch could ask for different branches (Greater at Greater"));
  EXPECT_THAT(refusal([](GraphBuilder& b) {
                const Value x = input(b, "x", {"N", 4});
                return loop(
                    b, weights(b, {1, 4}), [&](Value) { return b.op("Neg", {x}); },
                    [&](Value i, Value) { return three_times(b, i); });
              }),
              HasSubstr("is the same for all samples at first, and samples along axis 0 after an "
                        "iteration"));
  EXPECT_THAT(refusal([](GraphBuilder& b) {
                const Value x = input(b, "x", {"N", 4});
                const Value flag = b.input("flag", tensor_type(ElementType::kBool, {}));
                return b.if_else(
                    flag, [&] { return std::vector<Value>{x}; },
                    [&] {
                      return std::vector<Value>{weights(b, {1, 4})};
                    },
                    "choose")[0];
              }),
              HasSubstr("output 0 is the same for all samples in one branch, and samples along "
                        "axis 0 in another"));
  EXPECT_THAT(refusal([](GraphBuilder& b) {
                const Value x = input(b, "x", {"N", 4});
                const Value go = b.op("HostPredicate", {b.scalar(1.0f)},
                                      {{"name", std::string("ask")}}, {.domain = "eddy"});
                return b.if_else(
                    go, [&] { return std::vector<Value>{x}; },
                    [&] { return std::vector<Value>{b.op("Neg", {x})}; })[0];
              }),
              HasSubstr("the host function 'ask' would be called once for several requests"));
}

TEST_F(BatchAxesTest, TheDimensionIsOneOfTheInputs) {
  const Build negate = [](GraphBuilder& b) { return b.op("Neg", {input(b, "x", {"N", "T"})}); };
  EXPECT_EQ(refusal(negate, "M"),
            "invalid argument: no input has a dimension 'M' to batch along; there are: 'N', 'T'");
  EXPECT_EQ(refusal([](GraphBuilder& b) {
              return b.op("Neg", {input(b, "x", {1, 4})});
            }),
            "invalid argument: no input has a dimension 'N' to batch along; none has a dimension "
            "that is left open");
  EXPECT_THAT(refusal([](GraphBuilder& b) {
                return b.op("Neg", {input(b, "x", {"N", "N"})});
              }),
              HasSubstr("input 'x' has it twice"));
  EXPECT_THAT(refusal([](GraphBuilder& b) {
                return b.op("Shape", {input(b, "x", {"N", 2})});
              }),
              HasSubstr("output 'y' counts samples"));
}

}  // namespace
}  // namespace eddy
