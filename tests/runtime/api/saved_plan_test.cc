// Claim: a saved plan is loaded with the constants and packings of its file, refused by name where
// version, compiler, kernels, options, devices or library differ, and stays whole while it is
// replaced.
#include "runtime/api/saved_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/plan_file.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

template <typename T>
std::vector<T> some(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random.below(200)) - static_cast<T>(100);
  return values;
}

// Products of each kind whose weights are packed, in a loop and a branch.
Result<Graph> products(const Library& library) {
  GraphBuilder b(library.ops());
  const int64_t n = b.symbol("n");
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {n, 96}));
  const Value floats = b.tensor<float>({96, 96}, some<float>(96 * 96, 1));
  const Value bytes = b.tensor<int8_t>({96, 96}, some<int8_t>(96 * 96, 2));
  const Value more_bytes = b.tensor<int8_t>({96, 96}, some<int8_t>(96 * 96, 3));
  const Value scale = b.scalar(0.01f);
  const auto loop = b.while_loop(
      {.name = "grow", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Tanh", {b.op("MatMul", {f[0], floats})})};
      });
  const Value dequantized = b.op("DequantizeLinear", {bytes, scale});
  const Value product = b.op("MatMul", {loop[0], dequantized});
  const Value whole = b.op("Cast", {b.op("Clip", {product, b.scalar(-100.f), b.scalar(100.f)})},
                           {{"to", static_cast<int64_t>(ElementType::kInt8)}});
  b.output("y", b.op("MatMulInteger", {whole, more_bytes}));
  b.output("product", product);
  return b.finish();
}

NamedTensors inputs() {
  const std::vector<float> values = some<float>(4 * 96, 9);
  return {{"x", Tensor::of({4, 96}, std::span<const float>(values))}};
}

std::vector<std::string> bytes_of(const Result<NamedTensors>& outputs) {
  EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  std::vector<std::string> all;
  if (!outputs.is_ok()) return all;
  for (const auto& [name, value] : *outputs) {
    const TensorView view = value.view();
    all.emplace_back(static_cast<const char*>(view.data), view.size_bytes());
  }
  return all;
}

class SavedPlanTest : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  void save(const SessionOptions& options = {}) {
    Result<Graph> graph = products(library_);
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const Status status = save_plan(library_, std::move(*graph), options, path_);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
  }

  std::string refusal(const SessionOptions& options = {}) {
    return Session::load(library_, path_, options).status().to_string();
  }

  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }

  // The same file with other facts.
  void edit(const std::function<void(PlanFile&)>& change) {
    const std::string content = read();
    const auto open = parse_plan_file(std::as_bytes(std::span(content)));
    ASSERT_TRUE(open.is_ok()) << open.status().to_string();
    PlanData data;
    data.add(open->data);
    PlanFile plan = open->plan;
    const std::string model(reinterpret_cast<const char*>(open->model.data()), open->model.size());
    change(plan);
    write(format_plan_file(plan, model, data));
  }

  Library library_;
  const std::string path_ = ::testing::TempDir() + "one_" + std::to_string(getpid()) + ".plan";
};

TEST_F(SavedPlanTest, GivesTheBitsAndTheFingerprintOfTheSessionThatWasSaved) {
  save();
  auto original = Session::create(library_, *products(library_), {});
  auto loaded = Session::load(library_, path_, {});
  ASSERT_TRUE(original.is_ok() && loaded.is_ok()) << loaded.status().to_string();
  EXPECT_EQ(bytes_of((*loaded)->run(inputs())), bytes_of((*original)->run(inputs())));
  EXPECT_EQ((*loaded)->fingerprint(), (*original)->fingerprint());
}

// The proof of the program that was saved holds for an equal one, and for no other.
TEST_F(SavedPlanTest, IsNotProvedAgainWhereItsProgramIsTheSame) {
  const auto proofs = [&] {
    std::string lines;
    SessionOptions options;
    options.log = [&lines](std::string_view line) { (lines += line) += '\n'; };
    const Library other;  // shares nothing
    const auto loaded = Session::load(other, path_, options);
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().to_string();
    return std::pair(lines.find("proved the plan") != std::string::npos,
                     lines.find("proved when it was saved") != std::string::npos);
  };
  save();
  EXPECT_EQ(proofs(), std::pair(false, true));
  edit([](PlanFile& plan) { plan.proved.add(1); });
  EXPECT_EQ(proofs(), std::pair(true, false));
}

TEST_F(SavedPlanTest, ItsPackingsAreUsed) {
  save();
  edit([](PlanFile& plan) { EXPECT_GE(plan.packings.size(), 3u); });
  const auto expected = bytes_of((*Session::load(library_, path_, {}))->run(inputs()));
  // Weights of another matrix in the packings alone change results: nothing was packed anew.
  std::string content = read();
  const auto open = parse_plan_file(std::as_bytes(std::span(content)));
  ASSERT_TRUE(open.is_ok());
  for (const PlanFile::Packing& each : open->plan.packings) {
    if (!each.layout.starts_with("float")) continue;
    const auto at = reinterpret_cast<const char*>(open->data.data()) - content.data();
    std::memset(content.data() + at + each.offset_bytes, 0, each.size_bytes);
  }
  write(content);
  const Library other;
  EXPECT_NE(bytes_of((*Session::load(other, path_, {}))->run(inputs())), expected);
}

// As branches of an exported decoder have them.
TEST_F(SavedPlanTest, EqualConstantsStandInItOnceAndAreReadThere) {
  constexpr int64_t kCount = 16384;
  const std::vector<float> values = some<float>(kCount, 7);
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {kCount}));
  const Value is_first = b.input("is_first", tensor_type(ElementType::kBool, {}));
  const auto branch = [&](const char* op) {
    return [&, op] { return std::vector<Value>{b.op(op, {x, b.tensor<float>({kCount}, values)})}; };
  };
  b.output("y", b.if_else(is_first, branch("Add"), branch("Mul"))[0]);
  Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  ASSERT_TRUE(save_plan(library_, std::move(*graph), {}, path_).is_ok());

  const std::string content = read();
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), kCount * 4);
  const size_t at = content.find(bytes);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(at % 64, 0u);
  EXPECT_EQ(content.find(bytes, at + 1), std::string::npos);

  auto loaded = Session::load(library_, path_, {});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
  const Graph& read = (*loaded)->graph();
  std::vector<const void*> addresses;
  for (uint32_t c = 0; c < read.num_constants(); ++c) {
    const TensorView view = read.constant(ConstantId(c)).view();
    if (view.count() == kCount) addresses.push_back(view.data);
  }
  ASSERT_EQ(addresses.size(), 2u);
  EXPECT_EQ(addresses[0], addresses[1]);
  for (const bool first : {false, true}) {
    const auto outputs =
        (*loaded)->run({{"x", Tensor::of({kCount}, std::span<const float>(values))},
                        {"is_first", Tensor::scalar(first)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    const auto y = (*outputs)[0].second.values<float>();
    const auto expected = [&](size_t i) {
      return first ? values[i] + values[i] : values[i] * values[i];
    };
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(y[i], expected(i)) << i;
  }
}

TEST_F(SavedPlanTest, PackingsOfAnotherSizeArePackedAnew) {
  save();
  auto original = Session::create(library_, *products(library_), {});
  edit([](PlanFile& plan) {
    for (PlanFile::Packing& each : plan.packings) each.layout += " of old";
  });
  auto loaded = Session::load(library_, path_, {});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
  EXPECT_EQ(bytes_of((*loaded)->run(inputs())), bytes_of((*original)->run(inputs())));
}

TEST_F(SavedPlanTest, IsRefusedWhereVersionCompilerOrKernelsDiffer) {
  const std::pair<std::string PlanFile::*, std::string> facts[] = {
      {&PlanFile::eddy, "Eddy"},
      {&PlanFile::compiler, "compiler"},
      {&PlanFile::kernels, "kernels"}};
  for (const auto& [fact, name] : facts) {
    save();
    edit([fact = fact](PlanFile& plan) { plan.*fact = "of yesterday"; });
    const std::string why = refusal();
    EXPECT_NE(why.find("unsupported"), std::string::npos) << why;
    EXPECT_NE(why.find(name + " 'of yesterday'"), std::string::npos) << why;
    EXPECT_NE(why.find(path_), std::string::npos) << why;
  }
}

TEST_F(SavedPlanTest, OptionsAreThePlansOrRefusedByName) {
  save({.dims = {{"n", 4}}});
  EXPECT_EQ(refusal(), "ok");
  EXPECT_EQ(refusal({.dims = {{"n", 4}}}), "ok");
  EXPECT_NE(refusal({.dims = {{"n", 5}}}).find("size of dimension 'n'"), std::string::npos);
  EXPECT_NE(refusal({.simplify = false}).find("another simplify"), std::string::npos);
  EXPECT_NE(refusal({.blocks_channels = false}).find("exact"), std::string::npos);
  EXPECT_NE(refusal({.input_dims = {{"x", {4, 96}}}}).find("shape of input 'x'"),
            std::string::npos);
  SessionOptions devices;
  devices.make_devices = {[] { return Result<ExecutionDevice>(internal_error("asked")); }};
  EXPECT_NE(refusal(devices).find("CPU"), std::string::npos);
}

TEST_F(SavedPlanTest, ASpoiltOrShortFileSaysSo) {
  save();
  const std::string content = read();
  std::string spoilt = content;
  spoilt[60] ^= 1;
  write(spoilt);
  EXPECT_NE(refusal().find("spoilt"), std::string::npos) << refusal();
  write(content.substr(0, content.size() - 1));
  EXPECT_NE(refusal().find("invalid argument"), std::string::npos) << refusal();
  // A name is no less of the graph than a number is.
  std::string renamed = content;
  renamed[renamed.find("grow")] = 'G';
  write(renamed);
  EXPECT_NE(refusal().find("another fingerprint"), std::string::npos) << refusal();
}

TEST_F(SavedPlanTest, AMissingHostFunctionIsNamed) {
  Library with;
  const auto yes = [](std::span<const TensorView>) -> Result<int64_t> { return 1; };
  ASSERT_TRUE(with.add_host_function("of the saver", yes).is_ok());
  GraphBuilder b(with.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  const Value test =
      b.op("HostPredicate", {x}, {{"name", std::string("of the saver")}}, {.domain = "eddy"});
  b.output("test", test);
  ASSERT_TRUE(save_plan(with, *b.finish(), {}, path_).is_ok());
  EXPECT_TRUE(Session::load(with, path_, {}).is_ok());
  EXPECT_NE(refusal().find("of the saver"), std::string::npos) << refusal();
}

TEST_F(SavedPlanTest, ItsBytesAreLoadedAsTheFileIs) {
  save();
  const auto expected = bytes_of((*Session::load(library_, path_, {}))->run(inputs()));
  std::string content = "x" + read();  // nothing is aligned
  auto loaded = Session::load_bytes(library_, std::as_bytes(std::span(content).subspan(1)),
                                    {.num_threads = 1});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
  std::ranges::fill(content, '\0');
  EXPECT_EQ(bytes_of((*loaded)->run(inputs())), expected);
}

TEST_F(SavedPlanTest, ItsSaverReadsItsNotesAgain) {
  ASSERT_TRUE(save_plan(library_, *products(library_), {}, path_, "line 12").is_ok());
  EXPECT_EQ(*read_plan_notes(path_), "line 12");
  EXPECT_FALSE(read_plan_notes(path_ + " of nobody").is_ok());
}

// By each kernel that packs constants as plain bytes.
TEST_F(SavedPlanTest, PackingsOfConvolutionsAndOfFewBitsAreInIt) {
  GraphBuilder b(library_.ops());
  const auto weights = [&](const Dims& dims, uint64_t seed) {
    return b.tensor<float>(dims, some<float>(static_cast<size_t>(*dims.count()), seed));
  };
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 32, 24, 24}));
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  const Value wide = b.op("Conv", {x, weights({64, 32, 3, 3}, 1)}, {{"pads", ones}});
  b.output("y", b.op("Conv", {wide, weights({16, 64, 1, 1}, 2)}));
  const Value line = b.input("line", tensor_type(ElementType::kFloat, {1, 4, 20}));
  b.output("line_y", b.op("Conv", {line, weights({8, 4, 3}, 3)}));
  const Value row = b.input("row", tensor_type(ElementType::kFloat, {1, 64}));
  const Value four = b.tensor<uint8_t>({24, 2, 16}, some<uint8_t>(24 * 32, 4));
  const Value scales = b.tensor<float>({24 * 2}, some<float>(24 * 2, 5));
  b.output("row_y", b.op("MatMulNBits", {row, four, scales},
                         {{"K", int64_t{64}}, {"N", int64_t{24}}, {"block_size", int64_t{32}}},
                         {.domain = "com.microsoft"}));
  Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  ASSERT_TRUE(save_plan(library_, graph->copy(), {}, path_).is_ok());
  edit([](PlanFile& plan) {
    for (const char* kind : {"winograd conv", "blocked conv", "tile conv", "bits panels"}) {
      EXPECT_TRUE(std::ranges::any_of(plan.packings, [&](const PlanFile::Packing& each) {
        return each.layout.starts_with(kind);
      })) << kind;
    }
  });
  const auto values = [](const Dims& dims, size_t count) {
    const std::vector<float> made = some<float>(count, 6);
    return Tensor::of(dims, std::span<const float>(made));
  };
  const NamedTensors given = {{"x", values({1, 32, 24, 24}, 32 * 24 * 24)},
                              {"line", values({1, 4, 20}, 80)},
                              {"row", values({1, 64}, 64)}};
  const auto expected = bytes_of((*Session::create(library_, std::move(*graph), {}))->run(given));
  auto loaded = Session::load(library_, path_, {});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
  EXPECT_EQ(bytes_of((*loaded)->run(given)), expected);
}

TEST_F(SavedPlanTest, SaysWhetherTheModelIsStillTheSame) {
  save();
  EXPECT_TRUE(check_plan_is_of(path_, *products(library_)).is_ok());
  GraphBuilder b(library_.ops());
  b.output("x", b.input("x", tensor_type(ElementType::kFloat, {2})));
  const Status other = check_plan_is_of(path_, *b.finish());
  EXPECT_NE(other.to_string().find("has changed"), std::string::npos) << other.to_string();
}

TEST_F(SavedPlanTest, ASessionKeepsItsFileWhereAPlanIsSavedAgain) {
  save();
  auto loaded = Session::load(library_, path_, {});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
  const auto expected = bytes_of((*loaded)->run(inputs()));
  GraphBuilder b(library_.ops());
  b.output("x", b.input("x", tensor_type(ElementType::kFloat, {2})));
  ASSERT_TRUE(save_plan(library_, *b.finish(), {}, path_).is_ok());
  EXPECT_EQ(bytes_of((*loaded)->run(inputs())), expected);
  EXPECT_EQ((*Session::load(library_, path_, {}))->inputs()[0].name, "x");
}

}  // namespace
}  // namespace eddy
