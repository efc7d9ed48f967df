#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <type_traits>

#include "graph/base/random.h"
#include "ops/contract/evaluate.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/reference/half.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"
#include "tools/gpu/conformance_cases.h"
#include "tools/gpu/device_scratch.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr int kOpset = 17;
constexpr ElementType kTypes[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
    ElementType::kInt32, ElementType::kInt64,  ElementType::kBool};
const Dims kRows{257, 129};  // tails of packs and of blocks

// Small positive numbers, so that every function is defined; the types' own rounding applies.
void fill_numbers(const TensorView& view, Random& random) {
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

ElementType element_of(const ConformanceInput& input, ElementType of_row) {
  switch (input.of) {
    case ConformanceInput::Of::kElement:
    case ConformanceInput::Of::kDivisor:
      return of_row;
    case ConformanceInput::Of::kFloat:
      return ElementType::kFloat;
    case ConformanceInput::Of::kBools:
      return ElementType::kBool;
    case ConformanceInput::Of::kBytes:
      return ElementType::kUint8;
    case ConformanceInput::Of::kInt32:
      return ElementType::kInt32;
    case ConformanceInput::Of::kIndices:
    case ConformanceInput::Of::kGiven:
      return ElementType::kInt64;
    case ConformanceInput::Of::kOmitted:
      break;
  }
  return ElementType::kUndefined;
}

void fill(const ConformanceInput& input, const TensorView& view, Random& random) {
  const auto each = [&](auto* data, auto next) {
    for (int64_t i = 0; i < view.count(); ++i) {
      data[i] = static_cast<std::remove_reference_t<decltype(*data)>>(next(i));
    }
  };
  const auto limit = static_cast<uint64_t>(std::max<int64_t>(input.limit, 1));
  switch (input.of) {
    case ConformanceInput::Of::kBytes:
      return each(view.mutable_as<uint8_t>(), [&](int64_t) { return random.below(256); });
    case ConformanceInput::Of::kIndices:
      return each(view.mutable_as<int64_t>(), [&](int64_t) { return random.below(limit); });
    case ConformanceInput::Of::kInt32:
      return each(view.mutable_as<int32_t>(), [&](int64_t) { return 1 + random.below(limit); });
    case ConformanceInput::Of::kGiven:
      return each(view.mutable_as<int64_t>(),
                  [&](int64_t i) { return input.given[static_cast<size_t>(i)]; });
    default:
      fill_numbers(view, random);
  }
  if (input.of != ConformanceInput::Of::kDivisor) return;
  // A small number may have been rounded to zero.
  const auto replace = [&](auto* data) {
    each(data, [&](int64_t i) { return data[i] == 0 ? 3 : data[i]; });
  };
  if (view.element == ElementType::kInt32) replace(view.mutable_as<int32_t>());
  if (view.element == ElementType::kInt64) replace(view.mutable_as<int64_t>());
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
    case ElementType::kInt8:
      return view.as<int8_t>()[at];
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

Status compare(const TensorView& actual, const TensorView& expected, double slack) {
  const double allowed = slack * tolerance(expected.element);
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

// One call on one type: inputs on the host, expected by the reference, actual by the GPU.
class Row {
 public:
  Row(const GpuUnderReport& gpu, const OpDef& op, const ConformanceCase& call, ElementType element,
      Random& random)
      : gpu_(gpu), op_(op), call_(call) {
    for (const ConformanceInput& from : call.inputs) {
      OwnedTensor input{element_of(from, element), from.dims, nullptr};
      if (from.of != ConformanceInput::Of::kOmitted) {
        input.bytes = std::make_unique<std::byte[]>(input.view().size_bytes());
        fill(from, input.view(), random);
      }
      inputs_.push_back(std::move(input));
    }
  }
  // The operator takes the types.
  bool fits() const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (is_omitted(i)) continue;
      const FormalInput& formal = op_.inputs[std::min(i, op_.inputs.size() - 1)];
      if (!formal.types.contains(inputs_[i].element)) return false;
    }
    return true;
  }

  Status run(const KernelRegistry& reference, const KernelRegistry& cuda) {
    std::vector<TensorView> views, constants;
    std::vector<ValueType> types;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const OwnedTensor& input = inputs_[i];
      views.push_back(is_omitted(i) ? TensorView() : input.view());
      constants.push_back(is_given(i) ? input.view() : TensorView());
      types.push_back(is_omitted(i) ? ValueType() : TensorType(input.element, input.dims));
    }
    // First: what has no CUDA kernel need not be defined for these values (integer division).
    const std::vector<ValueType> outputs(call_.num_outputs);
    const KernelInit init{op_, call_.attributes, kOpset, op_.name, types, outputs, constants};
    EDDY_ASSIGN_OR_RETURN(const BoundKernel kernel, cuda.bind(init));
    EDDY_ASSIGN_OR_RETURN(
        const std::vector<OwnedTensor> expected,
        evaluate_node(reference, op_, call_.attributes, kOpset, views, call_.num_outputs));
    return run_on_device(kernel, views, expected);
  }

 private:
  // What the stream runs: uploads, the kernel, the download; in the stream's order.
  struct Issue {
    Row* row;
    const BoundKernel* kernel;
    Stream* stream;
    std::vector<TensorView> device_inputs;
    std::vector<TensorView> device_outputs;
    std::vector<BufferRef> staged;  // by input, then by output; null: the host's
    Scratch* scratch = nullptr;
    DeviceFault* fault = nullptr;  // in staging memory
    Status error;

    static bool run(void* self) {
      Issue& issue = *static_cast<Issue*>(self);
      issue.error = issue.issue();
      return issue.error.is_ok();
    }
    Status issue() {
      for (size_t i = 0; i < device_inputs.size(); ++i) {
        if (!staged[i]) continue;
        EDDY_RETURN_IF_ERROR(
            copy(device_inputs[i].data, staged[i].data(), device_inputs[i].size_bytes()));
      }
      Status failed;
      KernelArgs args;
      args.inputs = device_inputs.data();
      args.outputs = device_outputs.data();
      args.scratch = scratch;
      args.state = kernel->state.get();
      args.stream = stream->native();
      args.error = &failed;
      args.fault = fault;
      args.num_inputs = static_cast<uint32_t>(device_inputs.size());
      args.num_outputs = static_cast<uint32_t>(device_outputs.size());
      if (!kernel->run(args)) return failed;
      for (size_t o = 0; o < device_outputs.size(); ++o) {
        const TensorView& output = device_outputs[o];
        EDDY_RETURN_IF_ERROR(
            copy(staged[device_inputs.size() + o].data(), output.data, output.size_bytes()));
      }
      return Status::ok();
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
                       const std::vector<OwnedTensor>& expected) {
    CudaDevice& device = gpu_.device;
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.create_stream());
    EDDY_ASSIGN_OR_RETURN(const BufferRef record, device.staging().allocate(sizeof(DeviceFault)));
    DeviceFault* const fault = new (record.data()) DeviceFault();
    DeviceScratch scratch(device.allocator());
    Issue issue{this, &kernel, stream.get(), views, {}, {}, &scratch, fault, {}};
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
      if (is_omitted(i) || is_given(i)) {
        issue.staged.emplace_back();
        continue;
      }
      EDDY_RETURN_IF_ERROR(add(issue.device_inputs[i]));
      std::memcpy(issue.staged[i].data(), views[i].data, views[i].size_bytes());
    }
    for (const OwnedTensor& output : expected) {
      EDDY_RETURN_IF_ERROR(add(issue.device_outputs.emplace_back(output.view())));
    }
    if (!stream->launch({Issue::run, &issue, false})) return device.health();
    while (!stream->is_idle()) {
      gpu_.progress();
      device.poll();
    }
    EDDY_RETURN_IF_ERROR(issue.error);
    EDDY_RETURN_IF_ERROR(device.health());
    if (fault->kind != DeviceFault::kNone) return fault_status(*fault);
    for (size_t o = 0; o < expected.size(); ++o) {
      TensorView actual = expected[o].view();
      actual.data = issue.staged[views.size() + o].data();
      EDDY_RETURN_IF_ERROR(compare(actual, expected[o].view(), call_.slack));
    }
    return Status::ok();
  }
  bool is_omitted(size_t i) const { return call_.inputs[i].of == ConformanceInput::Of::kOmitted; }
  // The host reads it.
  bool is_given(size_t i) const {
    const FormalInput& formal = op_.inputs[std::min(i, op_.inputs.size() - 1)];
    return !is_omitted(i) && has_flag(formal.flags, InputFlag::kHostValue);
  }

  const GpuUnderReport& gpu_;
  const OpDef& op_;
  const ConformanceCase& call_;
  std::vector<OwnedTensor> inputs_;
};

// Rows of numbers, the second input broadcast; variadic operators (Max, Min) take two.
ConformanceCase rows_of(const OpDef& op) {
  using Of = ConformanceInput::Of;
  ConformanceCase call{op.name, {}};
  if (op.name == "Mod") call.attributes.set("fmod", int64_t{1});  // the one way for all types
  const bool is_division = op.name == "Div" || op.name == "Mod";
  const bool is_variadic = has_flag(op.inputs.back().flags, InputFlag::kVariadic);
  const auto is_optional = [](const FormalInput& input) {
    return has_flag(input.flags, InputFlag::kOptional);
  };
  const auto num_optional =
      static_cast<size_t>(std::count_if(op.inputs.begin(), op.inputs.end(), is_optional));
  const size_t num_inputs = is_variadic ? 2 : op.inputs.size() - num_optional;
  for (size_t i = 0; i < num_inputs; ++i) {
    const Of of = op.name == "Where" && i == 0 ? Of::kBools
                  : is_division && i == 1      ? Of::kDivisor
                                               : Of::kElement;
    call.inputs.push_back({i == 1 ? Dims{kRows[1]} : kRows, of});
  }
  return call;
}

// The operator's own cases, or rows; none: it wants lists of numbers and has no case.
std::vector<ConformanceCase> cases_of(const OpDef& op) {
  std::vector<ConformanceCase> cases;
  for (const ConformanceCase& each : conformance_cases()) {
    if (each.op == op.name) cases.push_back(each);
  }
  const bool needs_lists = op.inputs.size() > 1 &&
                           has_flag(op.inputs[1].flags, InputFlag::kHostValue) &&
                           !has_flag(op.inputs[1].flags, InputFlag::kOptional);
  if (cases.empty() && !needs_lists) cases.push_back(rows_of(op));
  return cases;
}

}  // namespace

Json report_conformance(const GpuUnderReport& gpu, uint64_t seed) {
  OpTable ops;
  Status status = add_standard_schemas(ops);
  KernelRegistry reference;
  KernelRegistry cuda;
  add_reference_kernels(reference);
  std::unique_ptr<LongLines> long_lines;
  if (gpu.cub_or_null != nullptr) {
    long_lines = std::make_unique<LongLines>(gpu.cub_or_null, gpu.module);
  }
  add_cuda_kernels(cuda, gpu.module, {.long_lines = long_lines.get()});
  Random random(seed);
  Json report = {{"part", "conformance"}, {"seed", seed}, {"rows", Json::array()}};
  std::set<std::string> left_out;
  int num_failed = 0;
  for (const KernelEntry& entry : cuda.entries()) {
    const OpDef* op = ops.find_or_null("", entry.op, kOpset);
    if (op == nullptr || op->is_view) continue;
    const std::vector<ConformanceCase> cases = cases_of(*op);
    if (cases.empty()) left_out.insert(std::string(entry.op));
    for (const ConformanceCase& call : cases) {
      for (const ElementType element : kTypes) {
        Row one(gpu, *op, call, element, random);
        if (!one.fits()) continue;
        const Status ran = one.run(reference, cuda);
        if (ran.code() == StatusCode::kUnsupported) continue;
        Json row = {{"op", entry.op},
                    {"type", element_type_name(element)},
                    {"input", to_string(call.inputs[0].dims)},
                    {"status", ran.is_ok() ? "passed" : "failed"}};
        if (!ran.is_ok()) row["reason"] = ran.message();
        num_failed += ran.is_ok() ? 0 : 1;
        report["rows"].push_back(std::move(row));
        status = gpu.device.health();
        if (!status.is_ok()) break;
      }
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
