#include "tools/gpu/device_call.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "graph/base/check.h"
#include "ops/contract/evaluate.h"
#include "ops/contract/fault_status.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "tools/gpu/device_scratch.h"

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;

// One launch of a recording, as a stream's command.
struct Replay {
  CapturedGraph* recording;
  void* stream;
  Status error;

  static bool run(void* self) {
    Replay& replay = *static_cast<Replay*>(self);
    replay.error = replay.recording->launch(replay.stream);
    return replay.error.is_ok();
  }
};

}  // namespace

// What the stream runs: uploads, the kernel, the download; in the stream's order.
struct DeviceCall::Issue {
  CudaContext& context;
  const BoundKernel& kernel;
  Stream& stream;
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
    EDDY_CHECK(staged.size() == device_inputs.size() + device_outputs.size())
        << staged.size() << " buffers are staged";
    for (size_t i = 0; i < device_inputs.size(); ++i) {
      if (!staged[i]) continue;
      EDDY_RETURN_IF_ERROR(
          copy(device_inputs[i].data, staged[i].data(), device_inputs[i].size_bytes()));
    }
    EDDY_RETURN_IF_ERROR(enqueue(stream.native()));
    for (size_t o = 0; o < device_outputs.size(); ++o) {
      const TensorView& output = device_outputs[o];
      EDDY_RETURN_IF_ERROR(
          copy(staged[device_inputs.size() + o].data(), output.data, output.size_bytes()));
    }
    return Status::ok();
  }
  Status enqueue(void* native_stream) {
    Status failed;
    KernelArgs args;
    args.inputs = device_inputs.data();
    args.outputs = device_outputs.data();
    args.scratch = scratch;
    args.state = kernel.state.get();
    args.stream = native_stream;
    args.error = &failed;
    args.fault = fault;
    args.num_inputs = static_cast<uint32_t>(device_inputs.size());
    args.num_outputs = static_cast<uint32_t>(device_outputs.size());
    return kernel.run(args) ? Status::ok() : failed;
  }
  Status copy(void* to, const void* from, size_t size_bytes) {
    const CudaContext::Use use(context);
    return context.check(
        context.api().copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                           size_bytes, static_cast<CuStream>(stream.native())),
        "cuMemcpyAsync");
  }
};

bool DeviceCall::fits() const {
  EDDY_CHECK(inputs_.size() == call_.inputs.size() && (inputs_.empty() || !op_.inputs.empty()))
      << op_.name << " is called with " << inputs_.size() << " inputs";
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (is_omitted(i)) continue;
    const FormalInput& formal = op_.inputs[std::min(i, op_.inputs.size() - 1)];
    if (!formal.takes(inputs_[i].element, call_.opset)) return false;
  }
  return true;
}

// The host reads it.
bool DeviceCall::is_given(size_t i) const {
  const FormalInput& formal = op_.inputs[std::min(i, op_.inputs.size() - 1)];
  return !is_omitted(i) && has_flag(formal.flags, InputFlag::kHostValue);
}

Result<std::vector<double>> DeviceCall::measure(const KernelRegistry& reference,
                                                const KernelRegistry& cuda, int num_recordings) {
  std::vector<double> times_us;
  EDDY_RETURN_IF_ERROR(run(reference, cuda, num_recordings, &times_us));
  std::sort(times_us.begin(), times_us.end());
  return times_us;
}

Result<std::vector<ValueType>> DeviceCall::infer_outputs(
    const std::vector<ValueType>& inputs) const {
  std::vector<const ValueType*> types;
  std::vector<TensorView> views;
  for (const OwnedTensor& input : inputs_) views.push_back(input.view());
  std::vector<const TensorView*> values;
  EDDY_CHECK(inputs.size() == inputs_.size()) << inputs.size() << " types";
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(is_omitted(i) ? nullptr : &inputs[i]);
    values.push_back(is_omitted(i) ? nullptr : &views[i]);
  }
  std::vector<ValueType> outputs(call_.num_outputs);
  InferContext context(call_.attributes, types, values, outputs, call_.opset);
  EDDY_RETURN_IF_ERROR(infer_types(op_, context));
  return outputs;
}

Status DeviceCall::run(const KernelRegistry& reference, const KernelRegistry& cuda,
                       int num_recordings, std::vector<double>* times_us_or_null) {
  std::vector<TensorView> views, constants;
  std::vector<ValueType> types;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OwnedTensor& input = inputs_[i];
    views.push_back(is_omitted(i) ? TensorView() : input.view());
    constants.push_back(is_given(i) ? input.view() : TensorView());
    types.push_back(is_omitted(i) ? ValueType() : TensorType(input.element, input.dims));
  }
  EDDY_ASSIGN_OR_RETURN(const std::vector<ValueType> outputs, infer_outputs(types));
  // First: what has no CUDA kernel need not be defined for these values (integer division).
  const KernelInit init{op_, call_.attributes, call_.opset, op_.name, types, outputs, constants};
  EDDY_ASSIGN_OR_RETURN(const BoundKernel kernel, cuda.bind(init));
  EDDY_ASSIGN_OR_RETURN(
      const std::vector<OwnedTensor> expected,
      evaluate_node(reference, op_, call_.attributes, call_.opset, views, call_.num_outputs));
  return run_on_device(kernel, views, expected, num_recordings, times_us_or_null);
}

Status DeviceCall::run_on_device(const BoundKernel& kernel, const std::vector<TensorView>& views,
                                 const std::vector<OwnedTensor>& expected, int num_recordings,
                                 std::vector<double>* times_us_or_null) {
  CudaDevice& device = gpu_.device;
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.create_stream());
  EDDY_ASSIGN_OR_RETURN(const BufferRef record, device.staging().allocate(sizeof(DeviceFault)));
  DeviceFault* const fault = new (record.data()) DeviceFault();
  DeviceScratch scratch(device.allocator());
  Issue issue{device.context(), kernel, *stream, views, {}, {}, &scratch, fault, {}};
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
  EDDY_RETURN_IF_ERROR(wait(*stream));
  EDDY_RETURN_IF_ERROR(issue.error);
  EDDY_RETURN_IF_ERROR(device.health());
  if (fault->kind != DeviceFault::kNone) return fault_status(*fault);
  for (size_t o = 0; o < expected.size(); ++o) {
    TensorView actual = expected[o].view();
    actual.data = issue.staged[views.size() + o].data();
    EDDY_RETURN_IF_ERROR(compare_values(actual, expected[o].view(), call_.slack * slack_));
  }
  return times_us_or_null == nullptr ? Status::ok()
                                     : replay(issue, num_recordings, *times_us_or_null);
}

Status DeviceCall::wait(Stream& stream) const {
  while (!stream.is_idle()) {
    gpu_.progress();
    gpu_.device.poll();
  }
  return gpu_.device.health();
}

Status DeviceCall::replay(Issue& issue, int num_recordings, std::vector<double>& times_us) const {
  const auto capture = CudaGraphCapture::create_or_null(gpu_.device.context(), {});
  if (capture == nullptr) return run_failed("this driver records nothing");
  EDDY_RETURN_IF_ERROR(capture->begin());
  EDDY_ASSIGN_OR_RETURN(void* const lane, capture->stream(0));
  for (int i = 0; i < kCallsARecording; ++i) EDDY_RETURN_IF_ERROR(issue.enqueue(lane));
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CapturedGraph> recording, capture->finish());
  Replay replay{recording.get(), issue.stream.native(), {}};
  for (int i = -1; i < num_recordings; ++i) {  // the first warms up
    const Clock::time_point start = Clock::now();
    if (!issue.stream.launch({Replay::run, &replay, false})) return gpu_.device.health();
    EDDY_RETURN_IF_ERROR(wait(issue.stream));
    EDDY_RETURN_IF_ERROR(replay.error);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (i >= 0) times_us.push_back(took.count() / kCallsARecording);
  }
  return Status::ok();
}

}  // namespace eddy
