// Claim: few long lines go to CUB where it is there, with the reference's values: bit for bit where
// they choose, sort or add integers, within the rounding of sums where they add floats. Short or
// many lines, and all of them where CUB is not there, are our own kernels' work.
#include "ops/cuda/reduce/long_lines.h"

#include "ops/cuda/reduce/long_line_inl.h"
#include "tests/ops/cuda/fakes/fake_cub.h"
#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ElementType kIntegers[] = {ElementType::kInt8, ElementType::kUint8, ElementType::kInt32,
                                     ElementType::kInt64};

class LongLinesTest : public CudaKernelFixture {
 protected:
  LongLinesTest() {
    add_cuda_kernels(own_kernels_, launcher_);
    use({});
  }
  ~LongLinesTest() override { EXPECT_THAT(fake_.violations(), IsEmpty()); }
  // After this call the fixture's registry has the library.
  void use(const LongLinesOptions& options) {
    registry_ = {};
    long_lines_ = std::make_unique<LongLines>(fake_.api(), launcher_, options);
    add_cuda_kernels(registry_, launcher_, {.long_lines = long_lines_.get()});
  }
  // Uses the library from this length on.
  void use_from(uint64_t length) {
    use({.min_length = length, .more_a_line = 0, .min_top_k_work = 1});
  }

  double tolerance(ElementType element) const {
    return element == ElementType::kDouble ? 1e-12 : is_half(element) ? 1e-2 : 1e-6;
  }
  static OpCall reduction(const std::string& op, TestTensor in, std::vector<int64_t> axes) {
    OpCall call = make_call(op, {std::move(in)});
    call.opset = 12;
    call.attributes.set("axes", std::move(axes));
    return call;
  }
  static OpCall along(const std::string& op, std::vector<TestValue> inputs, int64_t axis) {
    OpCall call = make_call(op, std::move(inputs));
    if (op != "CumSum") call.attributes.set("axis", axis);
    return call;
  }
  // Zeros of both signs, both infinities, NaNs of both signs, and equals.
  TestTensor awkward(ElementType element, const Dims& dims) {
    TestTensor tensor = random(element, dims, -3, 3);
    const TensorView view = tensor.view();
    if (element == ElementType::kFloat) {
      strew<uint32_t>(view, {0u, 1u << 31, 0x7f800000u, 0xff800000u, 0x7fc00001u, 0xffc00000u});
    }
    if (element == ElementType::kDouble) {
      strew<uint64_t>(view, {0u, uint64_t{1} << 63, 0x7ff0000000000000u, 0xfff0000000000000u,
                             0x7ff8000000000001u, 0xfff8000000000000u});
    }
    if (element == ElementType::kFloat16) {
      strew<uint16_t>(view, {0u, 0x8000u, 0x7c00u, 0xfc00u, 0x7e01u, 0xfe00u});
    }
    if (element == ElementType::kBfloat16) {
      strew<uint16_t>(view, {0u, 0x8000u, 0x7f80u, 0xff80u, 0x7fc1u, 0xffc0u});
    }
    return tensor;
  }
  template <typename Word>
  void strew(const TensorView& view, const std::vector<Word>& words) {
    for (int64_t i = 0; i < view.count(); ++i) {
      if (random_.below(3) > 0) continue;
      std::memcpy(static_cast<Word*>(view.data) + i, &words[random_.below(words.size())],
                  sizeof(Word));
    }
  }
  // The library runs the call; the values are the reference's, and the bits our own kernels'.
  void expect_same_bits(const OpCall& call) {
    SCOPED_TRACE(call.op + " of " + std::string(element_type_name(element_of(call))) + ", seed " +
                 std::to_string(kSeed));
    const int num_runs = fake_.num_runs();
    const auto actual = run_op(call, registry_);
    ASSERT_TRUE(actual.is_ok()) << actual.status().to_string();
    EXPECT_GT(fake_.num_runs(), num_runs) << "not CUB's work";
    const auto ours = run_op(call, own_kernels_);
    const auto expected = run_op(call, KernelSet::kReference);
    ASSERT_TRUE(ours.is_ok() && expected.is_ok());
    for (size_t o = 0; o < call.num_outputs; ++o) {
      EXPECT_TRUE(is_same_bits((*actual)[o].tensor(), (*ours)[o].tensor())) << "output " << o;
      EXPECT_TRUE(is_close((*actual)[o].tensor(), (*expected)[o].tensor(), 0, 0)) << "output " << o;
    }
  }
  static ElementType element_of(const OpCall& call) { return call.inputs[0].tensor().element(); }
  // How many calls of the library it takes to run this.
  int num_runs_of(const OpCall& call) {
    const int before = fake_.num_runs();
    const auto result = run_op(call, registry_);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
    return fake_.num_runs() - before;
  }

  KernelRegistry own_kernels_;
  FakeCub fake_{kSeed};
  std::unique_ptr<LongLines> long_lines_;
};

TEST_F(LongLinesTest, SumsOfFloatsAreTheReferencesWithinTheirRounding) {
  use_from(300);
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceSumSquare"}) {
    for (const ElementType element : kCudaFloats) {
      const int num_runs = fake_.num_runs();
      const bool is_signed = std::string(op) != "ReduceLogSum" && std::string(op) != "ReduceProd";
      const TestTensor in = random(element, {3, 701}, is_signed ? -1.1 : 0.9, 1.1);
      compare(reduction(op, in, {1}), tolerance(element), tolerance(element));
      EXPECT_EQ(fake_.num_runs(), num_runs + 4 * 3) << "each line, as often as it is bound";
    }
  }
}

TEST_F(LongLinesTest, SumsOfIntegersWrapAsOurs) {
  use_from(300);
  for (const ElementType element : kIntegers) {
    for (const char* op : {"ReduceSum", "ReduceProd"}) {
      expect_same_bits(reduction(op, random(element, {2, 900}, 1, 100), {0, 1}));
    }
  }
}

TEST_F(LongLinesTest, ExtremesHaveTheBitsOfTheFirstOfEqualsAndNoNumberIsMostExtreme) {
  use_from(300);
  for (const ElementType element : kCudaFloats) {
    for (int round = 0; round < 4; ++round) {
      const TestTensor in =
          round == 0 ? random(element, {2, 500}, -3, 3) : awkward(element, {4, 300});
      for (const char* op : {"ReduceMax", "ReduceMin"}) expect_same_bits(reduction(op, in, {1}));
    }
  }
  for (const ElementType element : kIntegers) {
    const TestTensor in = random(element, {2, 500}, element == ElementType::kUint8 ? 0 : -120, 120);
    for (const char* op : {"ReduceMax", "ReduceMin"}) expect_same_bits(reduction(op, in, {1}));
  }
  // Zeros alone: the first one's sign.
  for (const double first : {0.0, -0.0}) {
    TestTensor zeros(ElementType::kDouble, {400});
    for (int i = 0; i < 400; ++i) zeros.view().mutable_as<double>()[i] = i == 0 ? first : -first;
    for (const char* op : {"ReduceMax", "ReduceMin"}) expect_same_bits(reduction(op, zeros, {0}));
  }
}

TEST_F(LongLinesTest, PlacesAreThoseOfTheFirstOrLastOfEquals) {
  use_from(300);
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const int64_t takes_last : {0, 1}) {
      for (const ElementType element : kCudaFloats) {
        OpCall call = along(op, {awkward(element, {2, 400})}, 1);
        call.attributes.set("select_last_index", takes_last);
        expect_same_bits(call);
        call.inputs = {random(element, {3, 300}, -9, 9)};
        expect_same_bits(call);
      }
      for (const ElementType element : kIntegers) {
        OpCall call = along(op, {random(element, {400, 2}, 0, 3)}, 0);  // strided
        call.attributes.set("select_last_index", takes_last);
        expect_same_bits(call);
      }
    }
  }
}

TEST_F(LongLinesTest, RunningSumsOfIntegersAreOurs) {
  use_from(200);
  for (const ElementType element : kIntegers) {
    for (const Dims& dims : {Dims{2, 700}, Dims{2, 300, 2}}) {
      for (const int64_t flags : {0, 1, 2, 3}) {
        OpCall call =
            along("CumSum", {random(element, dims, 0, 100), TestTensor::scalar<int64_t>(1)}, 1);
        call.attributes.set("exclusive", flags & 1);
        call.attributes.set("reverse", flags >> 1);
        expect_same_bits(call);
        call.in_place_input = 0;
        expect_same_bits(call);
      }
    }
  }
}

TEST_F(LongLinesTest, TopKIsTheReferencesForEveryKUpToTheLength) {
  use_from(1);
  std::vector<ElementType> elements(std::begin(kCudaFloats), std::end(kCudaFloats));
  elements.insert(elements.end(), std::begin(kIntegers), std::end(kIntegers));
  for (const ElementType element : elements) {
    for (const int64_t largest : {0, 1}) {
      for (const int64_t k : {1, 7, 299, 300}) {
        OpCall call = along("TopK", {awkward(element, {2, 300}), ints({k})}, 1);
        call.attributes.set("largest", largest);
        call.num_outputs = 2;
        expect_same_bits(call);
      }
      OpCall call = along("TopK", {random(element, {3, 60, 2}, 0, 9), ints({11})}, 1);
      call.attributes.set("largest", largest);
      expect_same_bits(call);  // without places
      call.num_outputs = 2;
      expect_same_bits(call);
    }
  }
}

TEST_F(LongLinesTest, RowsWhoseElementsLieAtOneDistanceAreLines) {
  use_from(300);
  const auto cube = [&] { return random(ElementType::kInt64, {2, 1, 20, 30}, -9, 9); };
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", cube(), {2, 3})), 2);
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", cube(), {0, 1, 2, 3})), 1);
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", cube(), {1, 2, 3})), 2);
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", cube(), {0, 3})), 0) << "20 short rows";
  const TestTensor wide = random(ElementType::kInt64, {300, 3, 2}, -9, 9);
  expect_same_bits(reduction("ReduceSum", random(ElementType::kInt64, {300, 3}, -9, 9), {0}));
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", wide, {0, 2})), 0) << "not at one distance";
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", wide, {0, 1})), 2);
}

TEST_F(LongLinesTest, ShapesAloneChoose) {
  const LongLinesOptions limits;
  const auto length = static_cast<int64_t>(limits.min_length);
  const auto lines = static_cast<int64_t>(limits.max_lines);
  const auto sum = [&](int64_t count, int64_t n) {
    return num_runs_of(reduction("ReduceSum", TestTensor(ElementType::kInt8, {count, n}), {1}));
  };
  EXPECT_EQ(sum(1, length), 1);
  EXPECT_EQ(sum(1, length - 1), 0);
  const int64_t longer = length + (lines - 1) * static_cast<int64_t>(limits.more_a_line);
  EXPECT_EQ(sum(lines, longer), lines);
  EXPECT_EQ(sum(lines, longer - 1), 0);
  EXPECT_EQ(sum(lines + 1, 2 * longer), 0);
  const auto running = [&](ElementType element, int64_t n) {
    return num_runs_of(
        along("CumSum", {random(element, {1, n}, 0, 3), TestTensor::scalar<int64_t>(1)}, 1));
  };
  EXPECT_EQ(running(ElementType::kInt64, length), 1);
  EXPECT_EQ(running(ElementType::kInt64, length - 1), 0);
  for (const ElementType element : kCudaFloats) EXPECT_EQ(running(element, length), 0);
  const auto top = [&](int64_t count, int64_t n, int64_t k) {
    OpCall call = along("TopK", {random(ElementType::kInt8, {count, n}, -9, 9), ints({k})}, 1);
    call.num_outputs = 2;
    return num_runs_of(call);
  };
  const int64_t n = 4096, k = static_cast<int64_t>(limits.min_top_k_work) / n;
  EXPECT_EQ(top(1, n, k), 1);
  EXPECT_EQ(top(1, n, k - 1), 0);
  EXPECT_EQ(top(3, n, 3 * k), 3);
  EXPECT_EQ(top(3, n, 3 * k - 1), 0);
  EXPECT_EQ(top(1, n, 0), 0);
}

TEST_F(LongLinesTest, WhatIsNoLongLineIsNotCubs) {
  use_from(300);
  EXPECT_EQ(num_runs_of(along("Softmax", {random(ElementType::kFloat, {1, 400}, -1, 1)}, 1)), 0);
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", TestTensor(ElementType::kFloat, {0, 400}), {1})), 0);
  EXPECT_EQ(num_runs_of(reduction("ReduceSum", TestTensor(ElementType::kFloat, {1, 0}), {1})), 0);
}

TEST_F(LongLinesTest, AFailureNamesItsCallAndTheNextRunIsFine) {
  use_from(300);
  OpCall top = along("TopK", {random(ElementType::kFloat, {2, 400}, -1, 1), ints({5})}, 1);
  top.num_outputs = 2;
  const std::pair<OpCall, const char*> calls[] = {
      {reduction("ReduceSum", random(ElementType::kFloat, {2, 400}, -1, 1), {1}),
       "DeviceReduce (a sum)"},
      {along("ArgMax", {random(ElementType::kFloat, {2, 400}, -1, 1)}, 1),
       "DeviceReduce (an extreme)"},
      {along("CumSum",
             {random(ElementType::kInt32, {2, 400}, -1, 1), TestTensor::scalar<int64_t>(1)}, 1),
       "DeviceScan"},
      {top, "DeviceRadixSort"}};
  for (const auto& [call, name] : calls) {
    for (int k = 1; k <= 3; ++k) {  // the size, and each line
      fake_.fail_call(k);
      const auto result = run_op(call, registry_);
      ASSERT_FALSE(result.is_ok()) << name << ", call " << k;
      EXPECT_THAT(result.status().message(),
                  AllOf(HasSubstr(name), HasSubstr("answered a failure that was asked for")));
      EXPECT_TRUE(run_op(call, registry_).is_ok());
    }
  }
}

// One key for each value of a float of 16 bits, against comparisons of all neighbours in order.
TEST(LongLineKeys, AreInTheOrderOfAllValues) {
  std::vector<cuda::f16> values;
  for (uint32_t bits = 0; bits < 65536; ++bits) values.push_back({static_cast<uint16_t>(bits)});
  std::sort(values.begin(), values.end(),
            [](cuda::f16 a, cuda::f16 b) { return cuda::order_key(a) < cuda::order_key(b); });
  for (size_t i = 1; i < values.size(); ++i) {
    const float a = cuda::load(values[i - 1]), b = cuda::load(values[i]);
    const bool is_equal = cuda::order_key(values[i - 1]) == cuda::order_key(values[i]);
    ASSERT_TRUE(std::isnan(b) ? is_equal == std::isnan(a) : is_equal ? a == b : a < b) << a << b;
  }
}

TEST(Cub, IsThereOrItIsSaidWhyNot) {
  const auto loaded = load_cub();
  if (loaded.is_ok()) {
    EXPECT_GE((*loaded)->version(), 300000);
    return;
  }
  EXPECT_EQ(loaded.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(loaded.status().message(),
              HasSubstr("no CUB, so long lines run on Eddy's own kernels: "));
  std::printf("%s\n", loaded.status().message().c_str());
}

}  // namespace
}  // namespace eddy::testing
