// Claim: the CUDA kernels that read rows, lines and windows give the reference's values: bit for
// bit where they only choose, within the rounding of sums where they add.
#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

class CudaLineTest : public CudaKernelFixture {
 protected:
  double tolerance(ElementType element) const {
    return element == ElementType::kDouble ? 1e-12 : is_half(element) ? 1e-2 : 1e-6;
  }
  // A window of every kind for inputs of one, two and three spatial axes.
  template <typename Check>
  void for_each_window(int spatial, Check check) {
    struct Case {
      int64_t kernel, stride, dilation, pad;
    };
    for (const Case& c : {Case{1, 1, 1, 0}, {3, 1, 1, 1}, {2, 2, 1, 0}, {3, 2, 2, 2}}) {
      Attributes attributes;
      const auto all = [&](int64_t value, int count) {
        return std::vector<int64_t>(static_cast<size_t>(count), value);
      };
      attributes.set("kernel_shape", all(c.kernel, spatial));
      attributes.set("strides", all(c.stride, spatial));
      attributes.set("dilations", all(c.dilation, spatial));
      attributes.set("pads", all(c.pad, 2 * spatial));
      check(c.kernel, attributes);
    }
  }
  static Dims shape(int64_t batch, int64_t channels, int spatial, int64_t size) {
    Dims dims{batch, channels};
    for (int i = 0; i < spatial; ++i) dims.push_back(size + i);
    return dims;
  }
};

TEST_F(CudaLineTest, CumSumAddsInTheReferencesOrder) {
  for (const ElementType element : {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32,
                                    ElementType::kInt64, ElementType::kInt8, ElementType::kUint8}) {
    for (const int64_t axis : {0, 1, -1}) {
      for (const int64_t exclusive : {0, 1}) {
        for (const int64_t reverse : {0, 1}) {
          OpCall call = make_call(
              "CumSum", {random(element, {3, 40, 5}, -2, 2), TestTensor::scalar<int64_t>(axis)});
          call.attributes.set("exclusive", exclusive);
          call.attributes.set("reverse", reverse);
          compare(call);
        }
      }
    }
  }
}

// In another order than the reference's, but sums of integers wrap alike in any.
TEST_F(CudaLineTest, LongLinesAreSummedByBlocks) {
  const std::pair<ElementType, double> tolerances[] = {
      {ElementType::kFloat, 1e-6}, {ElementType::kDouble, 1e-12}, {ElementType::kInt32, 0},
      {ElementType::kInt64, 0},    {ElementType::kInt8, 0},       {ElementType::kUint8, 0}};
  for (const auto& [element, tolerance] : tolerances) {
    for (const int64_t length : {255, 256, 257, 1000, 4096}) {
      for (const bool is_strided : {false, true}) {
        const Dims dims = is_strided ? Dims{2, length, 3} : Dims{2, length};
        for (const int64_t flags : {0, 1, 2, 3}) {
          OpCall call =
              make_call("CumSum", {random(element, dims, -8, 8), TestTensor::scalar<int64_t>(1)});
          call.attributes.set("exclusive", flags & 1);
          call.attributes.set("reverse", flags >> 1);
          compare(call, tolerance, 10 * tolerance);
        }
      }
    }
  }
}

TEST_F(CudaLineTest, TopKTakesTheSmallerPlaceOfEqualsAndKnowsNoNumbers) {
  for (const ElementType element :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kInt32,
        ElementType::kInt64, ElementType::kInt8, ElementType::kUint8}) {
    for (const int64_t largest : {0, 1}) {
      for (const int64_t k : {0, 1, 7, 300}) {
        OpCall call = make_call("TopK", {random(element, {2, 300}, 0, 40), ints({k})});
        call.attributes.set("largest", largest);
        call.num_outputs = 2;
        compare(call);
      }
      OpCall call = make_call("TopK", {random(element, {5, 6, 3}, 0, 4), ints({4})});
      call.attributes.set("axis", int64_t{1});
      call.attributes.set("largest", largest);
      call.num_outputs = 2;
      compare(call);
    }
  }
  OpCall call =
      make_call("TopK", {TestTensor::of<float>({5}, {NAN, 1, NAN, HUGE_VALF, -1}), ints({5})});
  call.num_outputs = 2;
  compare(call);
  call.attributes.set("largest", int64_t{0});
  compare(call);
}

TEST_F(CudaLineTest, LongRowsAreReducedByBlocksToTheSameValues) {
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceSumSquare", "ReduceMax", "ReduceMin"}) {
    for (const ElementType element : kCudaFloats) {
      OpCall call = make_call(op, {random(element, {3, 701}, 0.9, 1.1)});
      call.opset = 12;
      call.attributes.set("axes", std::vector<int64_t>{1});
      compare(call, tolerance(element), tolerance(element));
    }
  }
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"}) {
    for (const TestTensor& rows :
         {random(ElementType::kInt64, {3, 701}, -9, 9), random_bytes(ElementType::kInt8, {3, 701}),
          random_bytes(ElementType::kUint8, {3, 701})}) {
      OpCall call = make_call(op, {rows});
      call.opset = 12;
      call.attributes.set("axes", std::vector<int64_t>{1});
      compare(call);
    }
  }
  TestTensor with_nan = random(ElementType::kFloat, {2, 400}, 0, 1);
  with_nan.view().mutable_as<float>()[333] = NAN;
  for (const char* op : {"ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "Softmax"}) {
    OpCall call = make_call(op, {with_nan});
    call.opset = 12;
    if (std::string(op).starts_with("Reduce")) {
      call.attributes.set("axes", std::vector<int64_t>{1});
    } else {
      call.attributes.set("axis", int64_t{1});
    }
    compare(call, 1e-6, 1e-6);
  }
}

// Over rows that lie in a row, apart and of two axes, as many as fill blocks of eight or do not.
TEST_F(CudaLineTest, MiddlingRowsAreReducedByWarpsToTheSameValues) {
  const auto reduce = [&](const char* op, const TestTensor& rows, std::vector<int64_t> axes,
                          double tol) {
    OpCall call = make_call(op, {rows});
    call.opset = 12;
    call.attributes.set("axes", std::move(axes));
    compare(call, tol, tol);
  };
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceSumSquare", "ReduceMax", "ReduceMin"}) {
    const std::string name = std::string("eddy_Warp") + op + "_";
    for (const ElementType element : kCudaFloats) {
      for (const int64_t length : {31, 32, 33, 127, 255, 256}) {
        for (const int64_t count : {1, 8, 19}) {
          reduce(op, random(element, {count, length}, 0.95, 1.05), {1}, tolerance(element));
          EXPECT_EQ(launcher_.last_launched().starts_with(name), length >= 32 && length < 256)
              << launcher_.last_launched() << " for rows of " << length;
        }
        reduce(op, random(element, {length, 3}, 0.95, 1.05), {0}, tolerance(element));
      }
      reduce(op, random(element, {5, 3, 7, 11}, 0.95, 1.05), {1, 3}, tolerance(element));
      EXPECT_THAT(launcher_.last_launched(), ::testing::StartsWith(name)) << "33 of two axes";
    }
  }
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"}) {
    for (const TestTensor& rows : {random(ElementType::kInt64, {11, 100}, -9, 9),
                                   random(ElementType::kInt32, {11, 100}, -9, 9),
                                   random_bytes(ElementType::kInt8, {11, 100}),
                                   random_bytes(ElementType::kUint8, {11, 100})}) {
      reduce(op, rows, {1}, 0);
    }
  }
}

TEST_F(CudaLineTest, MiddlingRowsOfEqualsAndNoNumbersGiveTheFirstOrLastPlace) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const ElementType element :
         {ElementType::kFloat, ElementType::kInt32, ElementType::kInt8, ElementType::kUint8}) {
      for (const int64_t takes_last : {0, 1}) {
        for (const int64_t axis : {0, 1}) {
          OpCall call = make_call(op, {random(element, {90, 70}, 0, 3)});
          call.attributes.set("axis", axis);
          call.attributes.set("select_last_index", takes_last);
          compare(call);
          EXPECT_THAT(launcher_.last_launched(),
                      ::testing::StartsWith(std::string("eddy_Warp") + op));
        }
      }
    }
  }
  TestTensor with_nan = random(ElementType::kFloat, {9, 70}, 0, 1);
  with_nan.view().mutable_as<float>()[3 * 70 + 69] = NAN;
  with_nan.view().mutable_as<float>()[8 * 70] = NAN;
  for (const char* op : {"ReduceMax", "ReduceMin", "ArgMax", "ArgMin"}) {
    OpCall call = make_call(op, {with_nan});
    call.opset = 12;
    if (std::string(op).starts_with("Reduce")) {
      call.attributes.set("axes", std::vector<int64_t>{1});
    } else {
      call.attributes.set("axis", int64_t{1});
    }
    compare(call);
  }
}

// Floats are summed in float there, so their last two digits are not the reference's.
TEST_F(CudaLineTest, SoftmaxesOfMiddlingRowsAreOf32ThreadsEach) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const ElementType element : kCudaFloats) {
      const double tol = element == ElementType::kFloat ? 4e-6 : tolerance(element);
      for (const int64_t length : {31, 32, 33, 63, 64, 127, 128, 200, 254, 255, 256}) {
        for (const int64_t count : {1, 7, 8, 9, 50}) {
          for (const int64_t axis : {1, 2}) {
            const Dims dims = axis == 1 ? Dims{count, length, 3} : Dims{count, 3, length};
            OpCall call = make_call(op, {random(element, dims, -9, 9)});
            call.attributes.set("axis", axis);
            compare(call, tol, tol);
          }
        }
        const bool is_middling = length >= 32 && length < 256;
        EXPECT_EQ(launcher_.last_launched().starts_with("eddy_Warp" + std::string(op)), is_middling)
            << launcher_.last_launched() << " for rows of " << length;
      }
    }
  }
}

TEST_F(CudaLineTest, SoftmaxesOfMiddlingRowsKnowNoNumbersAndInfinities) {
  const float kInf = HUGE_VALF;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    TestTensor rows = random(ElementType::kFloat, {20, 70}, -1, 1);
    float* const x = rows.view().mutable_as<float>();
    x[3 * 70 + 69] = NAN;
    x[5 * 70] = kInf;
    x[7 * 70 + 40] = -kInf;
    for (int j = 0; j < 70; ++j) x[9 * 70 + j] = -kInf;
    for (int j = 0; j < 70; ++j) x[11 * 70 + j] = 80 * x[11 * 70 + j];
    compare(make_call(op, {rows}), 4e-6, 4e-6);
  }
}

TEST_F(CudaLineTest, LongRowsOfEqualsGiveTheFirstOrLastPlace) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const ElementType element :
         {ElementType::kFloat, ElementType::kInt32, ElementType::kInt8, ElementType::kUint8}) {
      for (const int64_t takes_last : {0, 1}) {
        OpCall call = make_call(op, {random(element, {3, 900}, 0, 3)});
        call.attributes.set("axis", int64_t{1});
        call.attributes.set("select_last_index", takes_last);
        compare(call);
      }
    }
  }
}

TEST_F(CudaLineTest, NormalizationsAreTheReferences) {
  for (const ElementType element : kCudaFloats) {
    const double tol = tolerance(element);
    for (const int64_t axis : {-1, 1}) {
      const Dims own = axis == -1 ? Dims{70} : Dims{3, 70};
      OpCall call = make_call("LayerNormalization",
                              {random(element, {2, 3, 70}, -2, 2), random(element, own, 0.5, 2),
                               random(element, own, -1, 1)});
      call.attributes.set("axis", axis);
      compare(call, tol, tol);
      call.inputs.pop_back();
      compare(call, tol, tol);
    }
    OpCall instance = make_call("InstanceNormalization",
                                {random(element, {2, 3, 9, 11}, -2, 2),
                                 random(element, {3}, 0.5, 2), random(element, {3}, -1, 1)});
    compare(instance, tol, tol);
    OpCall batch = make_call(
        "BatchNormalization",
        {random(element, {2, 3, 9, 11}, -2, 2), random(element, {3}, 0.5, 2),
         random(element, {3}, -1, 1), random(element, {3}, -1, 1), random(element, {3}, 0.5, 2)});
    compare(batch, tol, tol);
  }
  OpCall moments = make_call("LayerNormalization", {random(ElementType::kFloat, {4, 70}, -2, 2),
                                                    random(ElementType::kFloat, {70}, 0.5, 2)});
  moments.num_outputs = 3;
  compare(moments, 1e-6, 1e-6);
}

TEST_F(CudaLineTest, PoolsLookAtTheReferencesWindows) {
  for (int spatial = 1; spatial <= 3; ++spatial) {
    for_each_window(spatial, [&](int64_t, const Attributes& attributes) {
      for (const ElementType element : {ElementType::kFloat, ElementType::kFloat16}) {
        OpCall call = make_call("MaxPool", {random(element, shape(2, 3, spatial, 7), -2, 2)});
        call.attributes = attributes;
        call.num_outputs = 2;
        compare_ranked(call, 0, 0);
        call.attributes.set("storage_order", int64_t{1});
        compare_ranked(call, 0, 0);
        for (const int64_t padding : {0, 1}) {
          OpCall average =
              make_call("AveragePool", {random(element, shape(2, 3, spatial, 7), -2, 2)});
          average.opset = 19;
          average.attributes = attributes;
          average.attributes.set("count_include_pad", padding);
          average.attributes.set("ceil_mode", padding);
          compare_ranked(average, is_half(element) ? 1e-2 : 0, 0);
        }
      }
    });
  }
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
    compare(make_call(op, {random(ElementType::kFloat, {2, 3, 20, 30}, -2, 2)}), 1e-6, 1e-6);
  }
}

TEST_F(CudaLineTest, ConvolutionsAreTheReferencesByTilesAndByThreads) {
  struct Case {
    int64_t channels, filters, group;
  };
  for (int spatial = 1; spatial <= 3; ++spatial) {
    for (const Case& c : {Case{4, 6, 1}, {6, 6, 6}, {8, 40, 2}, {20, 70, 1}}) {
      for_each_window(spatial, [&](int64_t kernel, const Attributes& attributes) {
        const int64_t size = spatial == 3 ? 5 : 9;
        Dims weights{c.filters, c.channels / c.group};
        for (int i = 0; i < spatial; ++i) weights.push_back(kernel);
        OpCall call = make_call(
            "Conv", {random(ElementType::kFloat, shape(2, c.channels, spatial, size), -1, 1),
                     random(ElementType::kFloat, weights, -1, 1),
                     random(ElementType::kFloat, {c.filters}, -1, 1)});
        call.attributes = attributes;
        call.attributes.set("group", c.group);
        compare_ranked(call, 1e-4, 1e-5);
      });
    }
  }
  for (const ElementType element : kCudaFloats) {
    OpCall call = make_call(
        "Conv", {random(element, {1, 16, 9, 9}, -1, 1), random(element, {16, 16, 3, 3}, -1, 1)});
    compare_ranked(call, is_half(element) ? 2e-2 : 1e-5, is_half(element) ? 2e-2 : 1e-5);
  }
}

TEST_F(CudaLineTest, TransposedConvolutionsAreTheReferences) {
  for (int spatial = 1; spatial <= 3; ++spatial) {
    for_each_window(spatial, [&](int64_t kernel, const Attributes& attributes) {
      Dims weights{6, 4};
      for (int i = 0; i < spatial; ++i) weights.push_back(kernel);
      OpCall call =
          make_call("ConvTranspose", {random(ElementType::kFloat, shape(2, 6, spatial, 5), -1, 1),
                                      random(ElementType::kFloat, weights, -1, 1),
                                      random(ElementType::kFloat, {8}, -1, 1)});
      call.attributes = attributes;
      call.attributes.set("group", int64_t{2});
      compare_ranked(call, 1e-5, 1e-6);
    });
  }
}

TEST_F(CudaLineTest, ResizeKnowsItsModesAndCoordinates) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                    "align_corners", "asymmetric"}) {
      for (const auto& [height, width] : {std::pair{1.5f, 2.3f}, {0.6f, 0.4f}, {1.0f, 3.0f}}) {
        for (const int64_t antialias : {0, 1}) {
          if (antialias != 0 && std::string(mode) == "nearest") continue;
          OpCall call = make_call(
              "Resize", {random(ElementType::kFloat, {2, 3, 5, 7}, -2, 2), TestValue::omitted(),
                         TestTensor::of<float>({4}, {1, 1, height, width})});
          call.opset = 19;
          call.attributes.set("mode", std::string(mode));
          call.attributes.set("coordinate_transformation_mode", std::string(coordinates));
          call.attributes.set("antialias", antialias);
          compare(call, 1e-6, 1e-6);
        }
      }
    }
  }
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    OpCall call =
        make_call("Resize", {random(ElementType::kUint8, {1, 1, 6, 6}, 0, 255),
                             TestValue::omitted(), TestValue::omitted(), ints({1, 1, 9, 4})});
    call.opset = 19;
    call.attributes.set("nearest_mode", std::string(rounding));
    compare(call);
  }
}

TEST_F(CudaLineTest, QuantizedTypesHaveTheReferencesBits) {
  for (const ElementType byte : {ElementType::kInt8, ElementType::kUint8}) {
    for (const Dims& scale : {Dims{}, Dims{4}}) {
      OpCall call = make_call("QuantizeLinear", {random(ElementType::kFloat, {3, 4, 50}, -30, 30),
                                                 random(ElementType::kFloat, scale, 0.05, 0.4),
                                                 random(byte, scale, 0, 100)});
      call.attributes.set("axis", int64_t{1});
      compare(call);
      OpCall back = make_call("DequantizeLinear", {random(byte, {3, 4, 50}, 0, 120),
                                                   random(ElementType::kFloat, scale, 0.05, 0.4),
                                                   random(byte, scale, 0, 100)});
      back.attributes.set("axis", int64_t{1});
      compare(back);
    }
  }
  for (const Dims& dims : {Dims{5}, Dims{70, 900}, Dims{0}}) {
    OpCall call = make_call("DynamicQuantizeLinear", {random(ElementType::kFloat, dims, -3, 5)});
    call.num_outputs = 3;
    compare(call);
  }
}

TEST_F(CudaLineTest, WhatBelongsToTheCpuIsRefusedByName) {
  OpCall pool = make_call("MaxPool", {random(ElementType::kFloat, {1, 1, 4}, 0, 1)});
  pool.attributes.set("kernel_shape", std::vector<int64_t>{2});
  pool.known = Known::kNothing;
  EXPECT_THAT(refusal(pool), HasSubstr("known to have at most 3 spatial axes"));
  OpCall crop = make_call("Resize", {random(ElementType::kFloat, {1, 1, 4}, 0, 1),
                                     TestTensor::of<float>({6}, {0, 0, 0, 1, 1, 1}),
                                     TestTensor::of<float>({3}, {1, 1, 2})});
  crop.attributes.set("coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  EXPECT_THAT(refusal(crop), HasSubstr("tf_crop_and_resize"));
}

}  // namespace
}  // namespace eddy::testing
