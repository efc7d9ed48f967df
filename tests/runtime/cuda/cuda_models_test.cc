// Claim: whole models give on a GPU's device (a fake driver's with the CPU's kernels) what they
// give on the CPU, bit for bit and with the same trips: the dynamic models of the examples, the
// ONNX files of the benchmarks with their loops, branches and scans, and ONNX's own tests of
// control flow and a slice of the others, where Debian's libonnx-testdata is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "examples/dynamic_models/model.h"
#include "graph/base/random.h"
#include "graph/io/import.h"
#include "graph/io/tensor_file.h"
#include "runtime/api/session.h"
#include "tests/runtime/cuda/fake_accelerator.h"
#include "tools/check/oracle.h"

namespace eddy::testing {
namespace {

using ::testing::IsEmpty;
namespace fs = std::filesystem;

const Library& library() {
  static const Library* const library = new Library();
  return *library;
}

Tensor to_tensor(const HostValue& value) {
  if (value.kind == HostValue::Kind::kNone) return Tensor();
  if (value.kind == HostValue::Kind::kTensor) return Tensor::copy_of(value.view());
  std::vector<Tensor> elements;
  for (const HostValue& element : value.elements) elements.push_back(to_tensor(element));
  return Tensor::sequence(value.element, std::move(elements));
}

struct Answer {
  Status status;
  NamedTensors outputs;
  std::vector<int64_t> trips;
};

Answer run_twice(Result<Graph> graph, const NamedTensors& inputs, SessionOptions options) {
  Answer answer;
  if (!graph.is_ok()) return {graph.status(), {}, {}};
  options.num_threads = 2;
  options.assignment = Assignment::kRank;
  auto session = Session::create(library(), std::move(*graph), options);
  if (!session.is_ok()) return {session.status(), {}, {}};
  for (int repeat = 0; repeat < 2; ++repeat) {
    auto outputs = (*session)->run(inputs);
    if (!outputs.is_ok()) return {outputs.status(), {}, {}};
    answer.outputs = std::move(*outputs);
  }
  for (const LoopReport& loop : (*session)->loop_reports()) answer.trips.push_back(loop.iterations);
  return answer;
}

using MakeGraph = std::function<Result<Graph>()>;

// False when the CPU refuses the model too, so that there is nothing to compare.
bool expect_equal(const MakeGraph& make, const NamedTensors& inputs, uint64_t seed,
                  double cpu_share) {
  SessionOptions options;
  options.blocks_channels = false;  // convolutions of a device read plain images
  const Answer expected = run_twice(make(), inputs, options);
  if (!expected.status.is_ok()) return false;
  FakeAccelerator fake(library(), {.seed = seed, .cpu_share = cpu_share});
  options.merges_loops = false;
  options.make_devices = {fake.maker()};
  Answer found = run_twice(make(), inputs, options);
  EXPECT_TRUE(found.status.is_ok()) << found.status.to_string();
  if (found.status.is_ok()) {
    EXPECT_EQ(check::difference(expected.outputs, found.outputs), "");
    EXPECT_EQ(found.trips, expected.trips);
  }
  found.outputs.clear();  // they hold memory of the device
  EXPECT_THAT(fake.problems(), IsEmpty());
  EXPECT_EQ(fake.cuda().leaks(), "");
  return true;
}

TEST(CudaModels, DynamicModelsGiveTheCpusBits) {
  uint64_t seed = 0;
  for (const dynamic::Recipe& recipe : dynamic::all_models(dynamic::Scale::kSmall)) {
    const dynamic::Model model = recipe.make();
    SCOPED_TRACE(model.name + ", " + model.size);
    NamedTensors inputs;
    for (const auto& [name, value] : model.inputs) inputs.emplace_back(name, to_tensor(value));
    const double cpu_share = ++seed % 2 == 0 ? 0.0 : 0.3;
    EXPECT_TRUE(
        expect_equal([&] { return model.build(library().ops()); }, inputs, seed, cpu_share));
  }
}

// Floats in -1..1, integers 1..9, bools true; open dimensions are 3.
Tensor random_input(const ValueInfo& info, Random& random) {
  Dims dims;
  for (const int64_t dim : info.type.tensor.dims.span()) dims.push_back(dim < 0 ? 3 : dim);
  HostValue value = HostValue::tensor(info.type.tensor.element, dims);
  const TensorView view = value.view();
  for (int64_t i = 0; i < view.count(); ++i) {
    switch (view.element) {
      case ElementType::kFloat:
        view.mutable_as<float>()[i] = random.uniform(-1.0f, 1.0f);
        break;
      case ElementType::kInt64:
        view.mutable_as<int64_t>()[i] = 1 + static_cast<int64_t>(random.below(9));
        break;
      case ElementType::kBool:
        view.mutable_as<bool>()[i] = true;
        break;
      default:
        ADD_FAILURE() << "an input of type " << element_type_name(view.element);
    }
  }
  return to_tensor(value);
}

TEST(CudaModels, LoopFilesOfTheBenchmarksGiveTheCpusBits) {
  Random random(7);
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("tests/bench/models")) {
    const std::string name = entry.path().filename().string();
    // Long chains and large products show nothing that small ones do not.
    if (entry.path().extension() != ".onnx" || name.find("256") != std::string::npos) continue;
    if (name.starts_with("n_") || name.find("128") != std::string::npos) continue;
    SCOPED_TRACE(name);
    const auto make = [&] { return import_onnx(entry.path().string(), library().ops()); };
    const Result<Graph> graph = make();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    NamedTensors inputs;
    for (const ValueId id : graph->inputs()) {
      inputs.emplace_back(graph->value(id).name, random_input(graph->value(id), random));
    }
    EXPECT_TRUE(expect_equal(make, inputs, ++count, 0));
  }
  EXPECT_GE(count, 10u);
}

Result<NamedTensors> read_inputs(const Graph& graph, const fs::path& folder) {
  NamedTensors inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueInfo& info = graph.value(graph.inputs()[i]);
    const fs::path file = folder / ("input_" + std::to_string(i) + ".pb");
    EDDY_ASSIGN_OR_RETURN(const HostValue value, read_value(file.string(), info.type));
    inputs.emplace_back(info.name, to_tensor(value));
  }
  return inputs;
}

TEST(CudaModels, OnnxsOwnTestsGiveTheCpusBits) {
  const fs::path data = "/usr/share/libonnx-testdata/data/node";
  if (!fs::exists(data)) GTEST_SKIP() << "Debian's libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(data)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  size_t num_compared = 0;
  constexpr size_t kEvery = 9;
  for (size_t f = 0; f < folders.size(); ++f) {
    const std::string name = folders[f].filename().string();
    bool is_control = false;
    for (const char* part : {"test_if", "test_loop", "test_scan", "test_sequence"}) {
      is_control |= name.starts_with(part);
    }
    if (!is_control && f % kEvery != 0) continue;
    SCOPED_TRACE(name);
    const auto make = [&] {
      return import_onnx((folders[f] / "model.onnx").string(), library().ops());
    };
    const Result<Graph> graph = make();
    if (!graph.is_ok()) continue;
    const auto inputs = read_inputs(*graph, folders[f] / "test_data_set_0");
    if (inputs.is_ok() && expect_equal(make, *inputs, f, 0)) ++num_compared;
  }
  EXPECT_GE(num_compared, 70u);
}

}  // namespace
}  // namespace eddy::testing
