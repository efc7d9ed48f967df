// DeviceCall: one operator on one type, on a GPU: seeded inputs, expected by the reference, actual
// by the kernel that a registry binds.
//
//   DeviceCall call(gpu, op, conformance_case, ElementType::kFloat, random);
//   if (call.fits()) status = call.run(reference, cuda);
//
// Errors: kUnsupported: there is no such kernel; else the error of the run or of a wrong value.
// Threads: one.
#pragma once

#include <vector>

#include "graph/ir/op.h"
#include "ops/contract/registry.h"
#include "tools/gpu/call_values.h"
#include "tools/gpu/report_part.h"

namespace eddy {

class DeviceCall {
 public:
  DeviceCall(const GpuUnderReport& gpu, const OpDef& op, const ConformanceCase& call,
             ElementType element, Random& random)
      : gpu_(gpu), op_(op), call_(call), inputs_(make_inputs(call, element, random)) {}
  // The operator takes the types.
  bool fits() const;
  // Once, from upload to download.
  Status run(const KernelRegistry& reference, const KernelRegistry& cuda) {
    return run(reference, cuda, 0, nullptr);
  }
  // From now on, as far from the reference as TF32's rounding of two factors may lead.
  void allow_tf32() { slack_ = kTf32Slack; }
  // The same, and then as many recordings of kCallsARecording calls, one behind the other; the
  // microseconds of a call in each, sorted.
  static constexpr int kCallsARecording = 20;
  Result<std::vector<double>> measure(const KernelRegistry& reference, const KernelRegistry& cuda,
                                      int num_recordings);

 private:
  struct Issue;
  Status run(const KernelRegistry& reference, const KernelRegistry& cuda, int num_recordings,
             std::vector<double>* times_us_or_null);
  Result<std::vector<ValueType>> infer_outputs(const std::vector<ValueType>& inputs) const;
  Status run_on_device(const BoundKernel& kernel, const std::vector<TensorView>& views,
                       const std::vector<OwnedTensor>& expected, int num_recordings,
                       std::vector<double>* times_us_or_null);
  Status wait(Stream& stream) const;
  Status replay(Issue& issue, int num_recordings, std::vector<double>& times_us) const;
  bool is_omitted(size_t i) const { return call_.inputs[i].of == ConformanceInput::Of::kOmitted; }
  bool is_given(size_t i) const;

  const GpuUnderReport& gpu_;
  const OpDef& op_;
  // The slack of float32: 2 of 2^-10.
  static constexpr double kTf32Slack = 1000;

  const ConformanceCase& call_;
  double slack_ = 1;  // times the call's
  std::vector<OwnedTensor> inputs_;
};

}  // namespace eddy
