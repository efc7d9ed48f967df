// long: each family of kernels.
// Claim: kernels with tiles give the reference's values from their tiles in any order, each with
// scratch memory of its own, and the bits of the kernels that are bound without knowing a shape.
#include <array>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/tile/tile.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

class OwnScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    bytes_ = std::make_unique<std::byte[]>(size_bytes + 64);
    const auto at = reinterpret_cast<uintptr_t>(bytes_.get());
    return reinterpret_cast<void*>((at + 63) / 64 * 64);
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

uint32_t most_tiles = 0;  // of any call

struct Backwards : KernelState {
  BoundKernel kernel;
};

// The last tile first of those that may run at once. A kernel without tiles is run as it is.
bool run_backwards(const KernelArgs& args) {
  const BoundKernel& kernel = static_cast<const Backwards&>(*args.state).kernel;
  KernelArgs own = args;
  own.state = kernel.state.get();
  const uint32_t count = kernel.count_tiles != nullptr ? kernel.count_tiles(own) : 0;
  most_tiles = std::max(most_tiles, count);
  if (count < 2) return kernel.run(own);
  OwnScratch shared;
  if (kernel.shared_bytes != nullptr) own.shared = shared.reserve(kernel.shared_bytes(own));
  const uint32_t at_once = kernel.count_at_once != nullptr ? kernel.count_at_once(own) : count;
  for (uint32_t first = 0; first < count; first += at_once) {
    for (uint32_t tile = std::min(first + at_once, count); tile-- > first;) {
      OwnScratch scratch;
      own.scratch = &scratch;
      if (!kernel.run_tile(own, tile)) return false;
    }
  }
  return true;
}

class TilesOfKernelsTest : public ::testing::Test {
 protected:
  TilesOfKernelsTest() { add_cpu_kernels(cpu_); }

  // The call must fall into tiles.
  void check(const OpCall& call, double relative = 1e-4, double absolute = 1e-5) {
    SCOPED_TRACE(call.op);
    KernelRegistry backwards;
    const auto bind = [&](const KernelInit& init) -> Result<BoundKernel> {
      auto state = std::make_unique<Backwards>();
      EDDY_ASSIGN_OR_RETURN(state->kernel, cpu_.bind(init));
      BoundKernel kernel;
      kernel.run = run_backwards;
      kernel.unread_constants = state->kernel.unread_constants;
      kernel.state = std::move(state);
      return kernel;
    };
    backwards.add({.op = call.op, .bind = bind, .domain = call.domain});
    most_tiles = 0;
    compare_with_reference(call, backwards, relative, absolute);
    EXPECT_GT(most_tiles, 1u);
    const OpDef* op = find_op(call);
    ASSERT_NE(op, nullptr);
    EXPECT_TRUE(cpu_.has_tiles(op->domain, op->name, op->since_version)) << "plans do not know";
  }
  TestTensor floats(const Dims& dims, double low = -1) {
    return TestTensor::random(ElementType::kFloat, dims, random_, low, 1);
  }
  OpCall call(std::string op, std::vector<TestValue> inputs, Attributes attributes = {}) {
    OpCall made;
    made.op = std::move(op);
    made.attributes = std::move(attributes);
    made.inputs = std::move(inputs);
    return made;
  }

  Random random_{7};
  KernelRegistry cpu_;
};

TEST_F(TilesOfKernelsTest, Products) {
  OpCall product = call("MatMul", {floats({3, 200, 300}), floats({300, 70})});
  product.constant_inputs = 2;
  check(product);
  check(call("MatMul", {floats({3, 2, 150, 90}), floats({2, 90, 70})}));
  for (const int64_t transpose : {0, 1}) {
    for (const float alpha : {1.0f, 0.5f}) {
      const Dims a = transpose != 0 ? Dims{300, 210} : Dims{210, 300};
      for (const Dims& c : {Dims{70}, Dims{210, 1}, Dims{210, 70}}) {
        OpCall gemm = call("Gemm", {floats(a), floats({300, 70}), floats(c)},
                           {{"transA", transpose}, {"alpha", alpha}, {"beta", 1.0f}});
        gemm.constant_inputs = 2;
        check(gemm);
      }
    }
  }
}

// Whole ones, and blocks of the rows of large ones.
TEST_F(TilesOfKernelsTest, BatchesOfProducts) {
  check(call("MatMul", {floats({12, 130, 64}), floats({12, 64, 125})}));
  check(call("MatMul", {floats({3, 300, 150}), floats({3, 150, 170})}), 1e-3, 1e-4);
  check(call("MatMul", {floats({2, 1, 260, 150}), floats({3, 150, 130})}), 1e-3, 1e-4);
}

// By matrices that may change, in two steps.
TEST_F(TilesOfKernelsTest, LargeProducts) {
  check(call("MatMul", {floats({2, 230, 300}), floats({300, 129})}), 1e-4, 1e-3);
  check(call("MatMul", {floats({400, 520}), floats({520, 640})}), 1e-4, 1e-3);
  check(call("MatMul", {floats({40, 500}), floats({500, 530})}), 1e-4, 1e-3);   // by columns
  check(call("MatMul", {floats({700, 100}), floats({100, 120})}), 1e-4, 1e-3);  // by rows
  for (const bool turns_a : {false, true}) {
    for (const bool turns_b : {false, true}) {
      for (int i = 0; i < 8; ++i) {
        const int64_t m = i < 4 ? 390 : 40, k = i < 4 ? 260 : 390, n = i < 4 ? 200 : 530;
        const Dims c =
            std::array{Dims{}, Dims{n}, Dims{m, 1}, Dims{m, n}}[static_cast<size_t>(i % 4)];
        SCOPED_TRACE(to_string(c) + (turns_a ? " A turned" : "") + (turns_b ? " B turned" : ""));
        std::vector<TestValue> inputs = {floats(turns_a ? Dims{k, m} : Dims{m, k}),
                                         floats(turns_b ? Dims{n, k} : Dims{k, n})};
        if (c.rank() > 0) inputs.push_back(floats(c));
        check(call("Gemm", std::move(inputs),
                   {{"transA", int64_t{turns_a}},
                    {"transB", int64_t{turns_b}},
                    {"alpha", c.rank() == 2 ? 0.5f : 1.0f},
                    {"beta", 2.0f}}),
              1e-4, 1e-3);
      }
    }
  }
}

// By rows, by columns where rows are few, and by both where the matrix is large.
TEST_F(TilesOfKernelsTest, ProductsInParts) {
  const auto width = columns_in_panel();
  for (const auto& [rows, depth, last] :
       {std::array<int64_t, 3>{600, 100, 70}, {5, 700, 140}, {400, 800, 500}}) {
    for (const bool has_row : {false, true}) {
      const std::vector<int64_t> sizes = {width, 4 * width, 0, last};
      const int64_t columns = 5 * width + last;
      OpCall product = call("SplitMatMul", {floats({rows, depth}), floats({depth, columns})},
                            {{"split", sizes}});
      if (has_row) product.inputs.push_back(floats({columns}));
      product.domain = "eddy";
      product.opset = 1;
      product.num_outputs = 4;
      product.constant_inputs = 2;
      check(product, 1e-4, 1e-3);
    }
  }
}

// By rows, and by columns where rows are few.
TEST_F(TilesOfKernelsTest, ProductsOfBytes) {
  for (const auto& [a, b] :
       {std::pair<Dims, Dims>{{3, 240, 100}, {100, 260}}, {{2, 300}, {300, 4010}}}) {
    for (const Dims& zero : {Dims{}, Dims{1}}) {
      const auto bytes = [&](ElementType element, const Dims& dims) {
        return TestTensor::random(element, dims, random_, 0, 127);
      };
      OpCall product =
          call("MatMulInteger",
               {bytes(ElementType::kUint8, a), bytes(ElementType::kInt8, b),
                bytes(ElementType::kUint8, zero), bytes(ElementType::kInt8, Dims{b[1]})});
      product.constant_inputs = 2;
      check(product, 0, 0);
    }
  }
}

TEST_F(TilesOfKernelsTest, ProductsOfDequantizedBytes) {
  for (const int64_t rows : {1, 3, 50}) {
    OpCall product = call("DequantizeMatMul",
                          {TestTensor::random(ElementType::kFloat, {rows, 200}, random_, -1, 1),
                           TestTensor::random(ElementType::kUint8, {200, 1000}, random_, 0, 255),
                           TestTensor::random(ElementType::kFloat, {}, random_, 0, 0.1)});
    product.domain = "eddy";
    product.opset = 1;
    product.constant_inputs = 2 + 4;
    check(product, 1e-4, 1e-2);
  }
}

TEST_F(TilesOfKernelsTest, HeadsOfAttention) {
  for (const int64_t queries : {1, 70, 200}) {
    for (const int64_t causal : {0, 1}) {
      OpCall attention =
          call("Attention",
               {floats({2, 6, queries, 64}), floats({2, 3, 300, 64}), floats({2, 3, 300, 48})},
               {{"is_causal", causal}});
      attention.opset = 24;
      check(attention, 1e-4, 1e-5);
    }
  }
}

TEST_F(TilesOfKernelsTest, LinesAndFramesOfSignals) {
  OpCall lines = call("DFT", {floats({3, 250, 40, 1})}, {{"axis", int64_t{1}}});
  check(lines, 1e-5, 1e-5);
  OpCall frames =
      call("STFT", {floats({2, 3'000, 1}), TestTensor::of<int64_t>({}, {50}), floats({100}, 0)});
  frames.constant_inputs = 2;
  check(frames, 1e-5, 1e-5);
}

TEST_F(TilesOfKernelsTest, ResizedPlanes) {
  const TestTensor none = TestTensor::of<float>({0}, {});
  const TestTensor scales = TestTensor::of<float>({4}, {1, 1, 2.5f, 1.5f});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    OpCall resize =
        call("Resize", {floats({2, 5, 30, 41}), none, scales}, {{"mode", std::string(mode)}});
    resize.constant_inputs = 6;
    check(resize, 1e-4, 1e-5);
  }
}

// By panels of columns, of which the last is narrow.
TEST_F(TilesOfKernelsTest, ProductsOfFewRows) {
  for (const int64_t rows : {1, 5, 130}) {
    OpCall product = call("MatMul", {floats({rows, 700}), floats({700, 1001})});
    product.constant_inputs = 2;
    check(product);
  }
  for (const float alpha : {1.0f, 0.5f}) {
    for (const int64_t transpose : {0, 1}) {
      const Dims a = transpose != 0 ? Dims{700, 3} : Dims{3, 700};
      for (const Dims& c : {Dims{1001}, Dims{3, 1}, Dims{3, 1001}}) {
        OpCall gemm = call("Gemm", {floats(a), floats({1001, 700}), floats(c)},
                           {{"transA", transpose},
                            {"transB", int64_t{1}},
                            {"alpha", alpha},
                            {"beta", 0.5f + alpha}});
        gemm.constant_inputs = 2;
        check(gemm);
      }
    }
  }
}

TEST_F(TilesOfKernelsTest, PairsOfElements) {
  check(call("Add", {floats({3, 50'001}), floats({3, 50'001})}), 0, 0);
  check(call("Mul", {floats({3, 50'001}), floats({1})}), 0, 0);
  check(call("Sub", {floats({}), floats({150'001})}), 0, 0);
  check(call("Less", {floats({150'001}), floats({})}), 0, 0);
}

// Of a channel, a row, an outermost place; tiles end within what one factor is for.
TEST_F(TilesOfKernelsTest, PairsOfElementsThatAreStretched) {
  check(call("Mul", {floats({2, 3, 61, 61, 16}), floats({2, 3, 1, 1, 16})}), 0, 0);
  check(call("Sub", {floats({2, 3, 1, 1, 8}), floats({2, 3, 61, 77, 8})}), 0, 0);
  check(call("Greater", {floats({2, 9'001, 5}), floats({2, 1, 5})}), 0, 0);
  check(call("Mul", {floats({40, 61, 61}), floats({40, 1, 1})}), 0, 0);
  check(call("Add", {floats({400, 301}), floats({301})}), 0, 0);
  check(call("Div", {floats({1, 300, 1, 4}, 0.5), floats({70, 1, 3, 4}, 0.5)}), 0, 0);
}

// Both directions at once, and one after the other where weights are many.
TEST_F(TilesOfKernelsTest, StepsOfAnLstm) {
  using Pair = std::pair<int64_t, int64_t>;
  const std::string forward = "forward", reverse = "reverse", both = "bidirectional";
  for (const std::string& direction : {forward, reverse, both}) {
    for (const bool is_batch_first : {false, true}) {
      for (const auto& [batch, hidden] : {Pair{1, 384}, Pair{3, 384}, Pair{3, 256}}) {
        const int64_t directions = direction == both ? 2 : 1, steps = 70, depth = 40;
        const Dims x = is_batch_first ? Dims{batch, steps, depth} : Dims{steps, batch, depth};
        const Dims state =
            is_batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
        OpCall lstm = call(
            "LSTM",
            {floats(x), floats({directions, 4 * hidden, depth}),
             TestTensor::random(ElementType::kFloat, {directions, 4 * hidden, hidden}, random_,
                                -0.1, 0.1),
             floats({directions, 8 * hidden}), TestValue::omitted(), floats(state), floats(state)},
            {{"hidden_size", hidden},
             {"direction", direction},
             {"layout", int64_t{is_batch_first}}});
        lstm.constant_inputs = 6;
        lstm.num_outputs = 3;
        check(lstm, 1e-3, 1e-4);
        EXPECT_EQ(most_tiles % 71, 0u) << "a tile for each step, and one that loads";
      }
    }
  }
}

// Both forms of GRU, with clips and other functions; RNN of which one tile is several panels.
TEST_F(TilesOfKernelsTest, StepsOfGrusAndRnns) {
  const int64_t hidden = 448, steps = 40, depth = 24, batch = 3;
  for (const char* op : {"GRU", "RNN"}) {
    const bool is_gru = op == std::string("GRU");
    const int64_t width = (is_gru ? 3 : 1) * hidden;
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      const int64_t directions = direction == "bidirectional" ? 2 : 1;
      for (const int64_t form : {0, 1, 2}) {
        OpCall one = call(op,
                          {floats({steps, batch, depth}), floats({directions, width, depth}),
                           TestTensor::random(ElementType::kFloat, {directions, width, hidden},
                                              random_, -0.1, 0.1),
                           floats({directions, 2 * width}), TestValue::omitted(),
                           floats({directions, batch, hidden})},
                          {{"hidden_size", hidden}, {"direction", direction}});
        if (is_gru) one.attributes.set("linear_before_reset", form % 2);
        if (form == 2) {
          one.attributes.set("clip", 0.75f);
          std::vector<std::string> functions(static_cast<size_t>(directions * (is_gru ? 2 : 1)));
          for (size_t i = 0; i < functions.size(); ++i) functions[i] = i % 2 == 0 ? "Tanh" : "Relu";
          one.attributes.set("activations", functions);
        }
        one.constant_inputs = 6;
        one.num_outputs = 2;
        check(one, 1e-3, 1e-4);
        const bool has_two_rounds = is_gru && form % 2 == 0;
        EXPECT_EQ(most_tiles % (has_two_rounds ? 81 : 41), 0u) << op << " " << form;
      }
    }
  }
}

TEST_F(TilesOfKernelsTest, Softmaxes) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const int64_t axis : {0, 1, 2}) {
      check(call(op, {floats({3, 50, 700})}, {{"axis", axis}}));
    }
    check(call(op, {floats({1000, 77})}, {{"axis", int64_t{0}}}));
  }
}

TEST_F(TilesOfKernelsTest, Normalizations) {
  const Dims image{2, 5, 130, 101};
  const std::vector<TestValue> one = {floats(image), floats({5}), floats({5})};
  check(call("InstanceNormalization", one));
  std::vector<TestValue> all = one;
  all.insert(all.end(), {floats({5}), floats({5}, 0.1)});
  check(call("BatchNormalization", all));
  check(call("LRN", {floats(image)}, {{"size", int64_t{3}}, {"alpha", 0.5f}}));
  check(call("LayerNormalization", {floats({3, 100, 301}), floats({301}), floats({301})}));
}

TEST_F(TilesOfKernelsTest, Pools) {
  const Attributes windows = {
      {"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}};
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    check(call(op, {floats({2, 7, 100, 91})}, windows));
  }
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"}) {
    check(call(op, {floats({2, 7, 100, 91})}));
  }
}

TEST_F(TilesOfKernelsTest, PoolsWithIndices) {
  OpCall pool =
      call("MaxPool", {floats({3, 20, 40, 50})},
           {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}});
  pool.opset = 12;
  pool.num_outputs = 2;
  check(pool, 0, 0);
}

// Of windows of one element: groups and images, and blocks of positions.
TEST_F(TilesOfKernelsTest, ConvolutionsThatAreProducts) {
  check(call("Conv", {floats({2, 64, 20, 20}), floats({96, 16, 1, 1}), floats({96})},
             {{"group", int64_t{4}}}));
  check(call("Conv", {floats({2, 70, 50, 60}), floats({50, 70, 1, 1})}));
}

// Each tile adds and clamps what it has multiplied.
// Of one image, of groups of several, and of so many images that each is copied by itself.
TEST_F(TilesOfKernelsTest, ConvolutionsOfSignals) {
  const auto conv = [&](const Dims& x, const Dims& w, Attributes attributes) {
    OpCall made = call("Conv", {floats(x), floats(w), floats({w[0]})}, std::move(attributes));
    made.constant_inputs = 2;
    return made;
  };
  using Ints = std::vector<int64_t>;
  check(conv({1, 150, 401}, {130, 150, 5}, {{"pads", Ints{2, 3}}, {"strides", Ints{2}}}));
  check(conv({1, 1, 30'000}, {100, 1, 127}, {{"strides", Ints{64}}}));
  check(conv({3, 64, 300}, {140, 32, 4}, {{"group", int64_t{2}}, {"dilations", Ints{3}}}));
  check(conv({12, 40, 100}, {64, 40, 3}, {{"pads", Ints{1, 1}}}));
}

TEST_F(TilesOfKernelsTest, ConvolutionsThatAreProductsWithAReluAtLast) {
  for (const bool has_addend : {false, true}) {
    std::vector<TestValue> inputs = {floats({2, 64, 20, 20}), floats({96, 16, 1, 1}), floats({96})};
    if (has_addend) inputs.push_back(floats({2, 96, 20, 20}));
    OpCall conv = call("ConvRelu", std::move(inputs), {{"group", int64_t{4}}});
    conv.domain = "eddy";
    check(conv);
  }
}

// Two images of panels that are shared out, a batch, one channel, filters and channels that fill no
// vector.
TEST_F(TilesOfKernelsTest, ConvolutionsOfWeightsThatChange) {
  const Attributes padded = {{"pads", Ints{2, 2, 1, 2}}};
  const Attributes odd = {{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}};
  check(call("Conv", {floats({2, 20, 30, 25}), floats({150, 20, 3, 3}), floats({150})}, padded));
  check(call("Conv", {floats({40, 17, 11, 12}), floats({33, 17, 5, 3})}, odd));
  check(call("Conv", {floats({17, 1, 60, 61}), floats({40, 1, 5, 5}), floats({40})}, padded));
}

TEST_F(TilesOfKernelsTest, ExpandedConvolutions) {
  const int64_t width = cpu::tile_kernels().width;
  OpCall made = call("ExpandedConv",
                     {floats({2, 2, 40, 30, width}), floats({90, 2 * width, 1, 1}), floats({90}),
                      floats({90, 1, 3, 3}), floats({90})},
                     {{"block", width}, {"pads", Ints{1, 1, 1, 1}}});
  made.domain = "eddy";
  made.constant_inputs = 0b11110;
  check(made);
}

// Adjoints of weights: windows as large as the image, few positions.
TEST_F(TilesOfKernelsTest, SwappedConvolutions) {
  const Attributes padded = {{"pads", Ints{2, 1, 2, 3}}};
  const Attributes odd = {
      {"strides", Ints{1, 2}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  const auto swapped = [&](const Dims& x, const Dims& w, const Attributes& attributes) {
    OpCall made = call("SwappedConv", {floats(x), floats(w)}, attributes);
    made.domain = "eddy";
    return made;
  };
  check(swapped({20, 9, 14, 15}, {20, 70, 14, 14}, padded), 1e-4, 1e-3);
  check(swapped({40, 32, 14, 14}, {40, 64, 14, 14}, {{"pads", Ints{2, 2, 2, 2}}}), 1e-4, 1e-2);
  check(swapped({30, 1, 40, 30}, {30, 20, 18, 21}, odd), 1e-4, 1e-3);
}

TEST_F(TilesOfKernelsTest, ReductionsOfWhatIsKeptOutermost) {
  const TestTensor x = floats({7, 30, 20, 40}, 0.1);
  for (const char* op : {"ReduceMean", "ReduceL2", "ReduceMax", "ReduceLogSum"}) {
    for (const Ints& axes : {Ints{1}, Ints{3}, Ints{1, 3}, Ints{2, 3}, Ints{1, 2, 3}}) {
      check(call(op, {x}, {{"axes", axes}}));
    }
  }
}

TEST_F(TilesOfKernelsTest, Transposes) {
  check(call("Transpose", {floats({400, 301})}), 0, 0);
  check(call("Transpose", {floats({1, 70, 12, 200})}, {{"perm", Ints{0, 2, 1, 3}}}), 0, 0);
  check(call("Transpose", {floats({1, 200, 30, 31})}, {{"perm", Ints{0, 2, 3, 1}}}), 0, 0);
  check(call("Transpose", {floats({31, 30, 200, 1})}, {{"perm", Ints{3, 2, 0, 1}}}), 0, 0);
}

// By rows of the whole, or by elements where there is one row.
TEST_F(TilesOfKernelsTest, PartsSideBySide) {
  check(call("Concat", {floats({1, 90'001}), floats({1, 7}), floats({1, 60'000})},
             {{"axis", int64_t{1}}}),
        0, 0);
  check(call("Concat", {floats({301, 200}), floats({301, 1}), floats({301, 100})},
             {{"axis", int64_t{1}}}),
        0, 0);
  for (const Dims& dims : {Dims{1, 150'003}, Dims{301, 3, 200}}) {
    OpCall split = call("Split", {floats(dims)}, {{"axis", int64_t{1}}, {"num_outputs", 3}});
    split.opset = 18;
    split.num_outputs = 3;
    check(split, 0, 0);
  }
}

TEST_F(TilesOfKernelsTest, GatheredSlices) {
  const TestTensor places = TestTensor::of<int64_t>({5}, {3, -1, 0, 3, 2});
  check(call("Gather", {floats({4, 50'000}), places}), 0, 0);
  check(call("Gather", {floats({300, 4, 100}), places}, {{"axis", int64_t{1}}}), 0, 0);
}

TEST_F(TilesOfKernelsTest, SampledImages) {
  for (const char* mode : {"linear", "nearest"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int64_t aligned : {0, 1}) {
        const TestTensor grid =
            TestTensor::random(ElementType::kFloat, {2, 30, 300, 2}, random_, -1.4, 1.4);
        OpCall sample = call("GridSample", {floats({2, 5, 40, 37}), grid},
                             {{"mode", std::string(mode)},
                              {"padding_mode", std::string(padding)},
                              {"align_corners", aligned}});
        sample.opset = 20;
        check(sample, 1e-4, 1e-5);
      }
    }
  }
}

TEST_F(TilesOfKernelsTest, RegionsOfImages) {
  const TestTensor x = floats({2, 70, 20, 31});
  const TestTensor images = TestTensor::of<int64_t>({7}, {0, 1, 1, 0, 1, 0, 0});
  for (const char* mode : {"avg", "max"}) {
    OpCall align = call(
        "RoiAlign", {x, TestTensor::random(ElementType::kFloat, {7, 4}, random_, -4, 36), images},
        {{"mode", std::string(mode)},
         {"output_height", int64_t{7}},
         {"output_width", int64_t{9}},
         {"sampling_ratio", int64_t{2}}});
    check(align);
  }
  TestTensor rois = TestTensor::random(ElementType::kFloat, {7, 5}, random_, -4, 36);
  for (int64_t r = 0; r < 7; ++r) {
    rois.view().mutable_as<float>()[r * 5] = static_cast<float>(r % 2);
  }
  check(call("MaxRoiPool", {x, rois}, {{"pooled_shape", Ints{7, 9}}}), 0, 0);
}

TEST_F(TilesOfKernelsTest, MovedTaps) {
  OpCall deform = call("DeformConv",
                       {floats({2, 24, 30, 29}), floats({10, 12, 3, 3}),
                        TestTensor::random(ElementType::kFloat, {2, 36, 28, 27}, random_, -2, 2)},
                       {{"group", int64_t{2}}, {"offset_group", int64_t{2}}});
  deform.opset = 19;
  check(deform, 1e-4, 1e-4);
}

}  // namespace
}  // namespace eddy::testing
