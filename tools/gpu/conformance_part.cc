#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "graph/base/random.h"
#include "ops/contract/evaluate.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/reference/half.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr int kOpset = 17;
constexpr ElementType kTypes[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
    ElementType::kInt32, ElementType::kInt64,  ElementType::kBool};
const Dims kRows{257, 129};  // tails of packs and of blocks

// By a divisor that a small number may have been rounded to.
void replace_zeros(const TensorView& view) {
  const auto replace = [](auto* data, int64_t count) {
    for (int64_t i = 0; i < count; ++i) data[i] = data[i] == 0 ? 3 : data[i];
  };
  if (view.element == ElementType::kInt32) replace(view.mutable_as<int32_t>(), view.count());
  if (view.element == ElementType::kInt64) replace(view.mutable_as<int64_t>(), view.count());
}

// Small positive numbers, so that every function is defined; the types' own rounding applies.
void fill(const TensorView& view, Random& random) {
  for (int64_t i = 0; i < view.count(); ++i) {
    const float value = random.uniform(0.25f, 3.0f);
    const auto at = static_cast<size_t>(i);
    switch (view.element) {
      case ElementType::kFloat:
        view.mutable_as<float>()[at] = value;
        break;
      case ElementType::kDouble:
        view.mutable_as<double>()[at] = value;
        break;
      case ElementType::kFloat16:
        view.mutable_as<Float16>()[at] = value;
        break;
      case ElementType::kBfloat16:
        view.mutable_as<Bfloat16>()[at] = value;
        break;
      case ElementType::kInt32:
        view.mutable_as<int32_t>()[at] = static_cast<int32_t>(value);
        break;
      case ElementType::kInt64:
        view.mutable_as<int64_t>()[at] = static_cast<int64_t>(value);
        break;
      default:
        view.mutable_as<uint8_t>()[at] = value > 1.5f ? 1 : 0;
        break;
    }
  }
}

double number_at(const TensorView& view, int64_t index) {
  const auto at = static_cast<size_t>(index);
  switch (view.element) {
    case ElementType::kFloat:
      return view.as<float>()[at];
    case ElementType::kDouble:
      return view.as<double>()[at];
    case ElementType::kFloat16:
      return view.as<Float16>()[at];
    case ElementType::kBfloat16:
      return view.as<Bfloat16>()[at];
    case ElementType::kInt32:
      return view.as<int32_t>()[at];
    case ElementType::kInt64:
      return static_cast<double>(view.as<int64_t>()[at]);
    default:
      return view.as<uint8_t>()[at];
  }
}

// Relative error allowed: a few units in the last place of the type.
double tolerance(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return 2e-6;
    case ElementType::kDouble:
      return 1e-13;  // two orders of a long sum
    case ElementType::kFloat16:
      return 2e-3;
    case ElementType::kBfloat16:
      return 2e-2;
    default:
      return 0;
  }
}

Status compare(const TensorView& actual, const TensorView& expected) {
  const double allowed = tolerance(expected.element);
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double a = number_at(actual, i);
    const double e = number_at(expected, i);
    if (std::isnan(a) != std::isnan(e) || std::fabs(a - e) > allowed * (1 + std::fabs(e))) {
      return run_failed("element " + std::to_string(i) + " is " + std::to_string(a) +
                        ", expected " + std::to_string(e));
    }
  }
  return Status::ok();
}

// One operator on one type: inputs on the host, expected by the reference, actual by the GPU.
class Row {
 public:
  Row(const GpuUnderReport& gpu, const OpDef& op, ElementType element, Random& random)
      : gpu_(gpu), op_(op) {
    const bool is_division = op.name == "Div" || op.name == "Mod";
    if (op.name == "Mod") attributes_.set("fmod", int64_t{1});  // the one way for all types
    // Variadic operators (Max, Min) take two here; the second input is broadcast.
    const bool is_variadic = has_flag(op.inputs.back().flags, InputFlag::kVariadic);
    const auto is_optional = [](const FormalInput& input) {
      return has_flag(input.flags, InputFlag::kOptional);
    };
    const auto num_optional = std::count_if(op.inputs.begin(), op.inputs.end(), is_optional);
    const size_t num_inputs =
        is_variadic ? 2 : op.inputs.size() - static_cast<size_t>(num_optional);
    for (size_t i = 0; i < num_inputs; ++i) {
      const bool is_condition = op.name == "Where" && i == 0;
      OwnedTensor input{is_condition ? ElementType::kBool : element,
                        i == 1 ? Dims{kRows[1]} : kRows, nullptr};
      input.bytes = std::make_unique<std::byte[]>(input.view().size_bytes());
      fill(input.view(), random);
      if (is_division && i == 1) replace_zeros(input.view());
      inputs_.push_back(std::move(input));
    }
  }

  Status run(const KernelRegistry& reference, const KernelRegistry& cuda) {
    std::vector<TensorView> views;
    std::vector<ValueType> types;
    for (const OwnedTensor& input : inputs_) {
      views.push_back(input.view());
      types.push_back(TensorType(input.element, input.dims));
    }
    // First: what has no CUDA kernel need not be defined for these values (integer division).
    const std::vector<ValueType> outputs(1);
    const std::vector<TensorView> constants(views.size());
    const KernelInit init{op_, attributes_, kOpset, op_.name, types, outputs, constants};
    EDDY_ASSIGN_OR_RETURN(const BoundKernel kernel, cuda.bind(init));
    EDDY_ASSIGN_OR_RETURN(const std::vector<OwnedTensor> expected,
                          evaluate_node(reference, op_, attributes_, kOpset, views, 1));
    return run_on_device(kernel, views, expected[0].view());
  }

 private:
  // What the stream runs: uploads, the kernel, the download; in the stream's order.
  struct Issue {
    Row* row;
    const BoundKernel* kernel;
    Stream* stream;
    std::vector<TensorView> device_inputs;
    TensorView device_output;
    std::vector<BufferRef> staged;  // by input, then the output
    DeviceFault* fault = nullptr;   // in staging memory
    Status error;

    static bool run(void* self) {
      Issue& issue = *static_cast<Issue*>(self);
      issue.error = issue.issue();
      return issue.error.is_ok();
    }
    Status issue() {
      for (size_t i = 0; i < device_inputs.size(); ++i) {
        EDDY_RETURN_IF_ERROR(
            copy(device_inputs[i].data, staged[i].data(), device_inputs[i].size_bytes()));
      }
      Status failed;
      KernelArgs args;
      args.inputs = device_inputs.data();
      args.outputs = &device_output;
      args.state = kernel->state.get();
      args.stream = stream->native();
      args.error = &failed;
      args.fault = fault;
      args.num_inputs = static_cast<uint32_t>(device_inputs.size());
      args.num_outputs = 1;
      if (!kernel->run(args)) return failed;
      return copy(staged.back().data(), device_output.data, device_output.size_bytes());
    }
    Status copy(void* to, const void* from, size_t size_bytes) {
      CudaContext& context = row->gpu_.device.context();
      const CudaContext::Use use(context);
      return context.check(
          context.api().copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                             size_bytes, static_cast<CuStream>(stream->native())),
          "cuMemcpyAsync");
    }
  };

  Status run_on_device(const BoundKernel& kernel, const std::vector<TensorView>& views,
                       const TensorView& expected) {
    CudaDevice& device = gpu_.device;
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.create_stream());
    EDDY_ASSIGN_OR_RETURN(const BufferRef record, device.staging().allocate(sizeof(DeviceFault)));
    DeviceFault* const fault = new (record.data()) DeviceFault();
    Issue issue{this, &kernel, stream.get(), views, expected, {}, fault, {}};
    std::vector<BufferRef> memory;
    const auto add = [&](TensorView& view) -> Status {
      EDDY_ASSIGN_OR_RETURN(BufferRef buffer, device.allocator().allocate(view.size_bytes()));
      EDDY_ASSIGN_OR_RETURN(BufferRef staged, device.staging().allocate(view.size_bytes()));
      view.data = buffer.data();
      memory.push_back(std::move(buffer));
      issue.staged.push_back(std::move(staged));
      return Status::ok();
    };
    for (size_t i = 0; i < views.size(); ++i) {
      EDDY_RETURN_IF_ERROR(add(issue.device_inputs[i]));
      std::memcpy(issue.staged[i].data(), views[i].data, views[i].size_bytes());
    }
    EDDY_RETURN_IF_ERROR(add(issue.device_output));
    if (!stream->launch({Issue::run, &issue, false})) return device.health();
    while (!stream->is_idle()) {
      gpu_.progress();
      device.poll();
    }
    EDDY_RETURN_IF_ERROR(issue.error);
    EDDY_RETURN_IF_ERROR(device.health());
    if (fault->kind != DeviceFault::kNone) return fault_status(*fault);
    TensorView actual = expected;
    actual.data = issue.staged.back().data();
    return compare(actual, expected);
  }

  const GpuUnderReport& gpu_;
  const OpDef& op_;
  Attributes attributes_;
  std::vector<OwnedTensor> inputs_;
};

// Operators that want shapes, indices or attributes of their own: left out here. The parts that run
// models and networks use most of them; the tests on the host cover all.
bool wants_more_than_rows(std::string_view op) {
  static constexpr std::string_view kOps[] = {"Cast",
                                              "CastLike",
                                              "Concat",
                                              "Split",
                                              "Gather",
                                              "GatherElements",
                                              "GatherND",
                                              "Scatter",
                                              "ScatterElements",
                                              "ScatterND",
                                              "DepthToSpace",
                                              "SpaceToDepth",
                                              "Trilu",
                                              "OneHot",
                                              "TopK",
                                              "MatMul",
                                              "Gemm",
                                              "MatMulInteger",
                                              "Conv",
                                              "ConvTranspose",
                                              "MaxPool",
                                              "AveragePool",
                                              "GlobalAveragePool",
                                              "GlobalMaxPool",
                                              "LayerNormalization",
                                              "InstanceNormalization",
                                              "BatchNormalization",
                                              "Resize",
                                              "QuantizeLinear",
                                              "DequantizeLinear",
                                              "DynamicQuantizeLinear",
                                              "ConstantOfShape",
                                              "Range",
                                              "LSTM",
                                              "GRU",
                                              "RNN"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

}  // namespace

Json report_conformance(const GpuUnderReport& gpu, uint64_t seed) {
  OpTable ops;
  Status status = add_standard_schemas(ops);
  KernelRegistry reference;
  KernelRegistry cuda;
  add_reference_kernels(reference);
  add_cuda_kernels(cuda, gpu.module);
  Random random(seed);
  Json report = {{"part", "conformance"}, {"seed", seed}, {"rows", Json::array()}};
  std::set<std::string> left_out;
  int num_failed = 0;
  for (const KernelEntry& entry : cuda.entries()) {
    const OpDef* op = ops.find_or_null("", entry.op, kOpset);
    if (op == nullptr || op->is_view) continue;
    if (wants_more_than_rows(entry.op)) {
      left_out.insert(std::string(entry.op));
      continue;
    }
    const bool needs_lists = op->inputs.size() > 1 &&
                             has_flag(op->inputs[1].flags, InputFlag::kHostValue) &&
                             !has_flag(op->inputs[1].flags, InputFlag::kOptional);
    if (needs_lists) {  // Expand and Slice
      left_out.insert(std::string(entry.op));
      continue;
    }
    for (ElementType element : kTypes) {
      const FormalInput& typed = op->inputs.size() > 2 ? op->inputs.back() : op->inputs[0];
      if (!typed.types.contains(element)) continue;
      const Status ran = Row(gpu, *op, element, random).run(reference, cuda);
      if (ran.code() == StatusCode::kUnsupported) continue;
      Json row = {{"op", entry.op},
                  {"type", element_type_name(element)},
                  {"status", ran.is_ok() ? "passed" : "failed"}};
      if (!ran.is_ok()) row["reason"] = ran.message();
      num_failed += ran.is_ok() ? 0 : 1;
      report["rows"].push_back(std::move(row));
      status = gpu.device.health();
      if (!status.is_ok()) break;
    }
    if (!status.is_ok()) break;
  }
  if (!status.is_ok()) report["error"] = status.to_string();
  report["failed"] = num_failed;
  report["left_out"] = left_out;
  return report;
}

}  // namespace eddy
