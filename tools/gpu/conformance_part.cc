#include <algorithm>
#include <map>
#include <set>

#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/names/kernel_names.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"
#include "tools/gpu/counted_launches.h"
#include "tools/gpu/device_call.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// All that any kernel computes or moves.
constexpr ElementType kTypes[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
    ElementType::kInt8,  ElementType::kUint8,  ElementType::kInt16,   ElementType::kUint16,
    ElementType::kInt32, ElementType::kUint32, ElementType::kInt64,   ElementType::kUint64,
    ElementType::kBool};
// The types among them for which libraries are used.
constexpr TypeSet kLibraryTypes{ElementType::kFloat,    ElementType::kDouble, ElementType::kFloat16,
                                ElementType::kBfloat16, ElementType::kInt32,  ElementType::kInt64,
                                ElementType::kBool};
const Dims kRows{257, 129};  // tails of packs and of blocks

// Rows of numbers, the second input broadcast; variadic operators (Max, Min) take two.
ConformanceCase rows_of(const OpDef& op) {
  using Of = ConformanceInput::Of;
  ConformanceCase call{op.name, {}};
  const bool is_division = op.name == "Div" || op.name == "Mod";
  const bool is_variadic = has_flag(op.inputs.back().flags, InputFlag::kVariadic);
  const auto is_optional = [](const FormalInput& input) {
    return has_flag(input.flags, InputFlag::kOptional);
  };
  const auto num_optional =
      static_cast<size_t>(std::count_if(op.inputs.begin(), op.inputs.end(), is_optional));
  const size_t num_inputs = is_variadic ? 2 : op.inputs.size() - num_optional;
  for (size_t i = 0; i < num_inputs; ++i) {
    ConformanceInput input{i == 1 ? Dims{kRows[1]} : kRows};
    if (is_division && i == 1) input.of = Of::kDivisor;
    if (op.name == "Where" && i == 0) input.type = ElementType::kBool;
    call.inputs.push_back(std::move(input));
  }
  return call;
}

// The operator's own cases, or rows; none: it needs lists of numbers or is none of ONNX's, and has
// no case.
std::vector<ConformanceCase> cases_of(const OpDef& op) {
  std::vector<ConformanceCase> cases;
  for (const ConformanceCase& each : conformance_cases()) {
    if (each.op == op.name && each.domain == op.domain) cases.push_back(each);
  }
  const bool needs_lists = op.inputs.size() > 1 &&
                           has_flag(op.inputs[1].flags, InputFlag::kHostValue) &&
                           !has_flag(op.inputs[1].flags, InputFlag::kOptional);
  if (cases.empty() && !needs_lists && op.domain.empty()) cases.push_back(rows_of(op));
  return cases;
}

class Conformance {
 public:
  Conformance(const GpuUnderReport& gpu, const OpTable& ops, uint64_t seed)
      : gpu_(gpu), ops_(ops), launches_(gpu.module), random_(seed) {
    add_reference_kernels(reference_);
    add_cuda_kernels(own_, launches_);
    add_cuda_kernels(libraries_, launches_, gpu.libraries);
    add_cuda_kernels(tf32_, launches_, gpu.tf32_libraries);
  }
  // Until the device is lost. Adds to the report's rows, failures, and operators left out.
  Status run(PartReport& report, std::set<std::string>& left_out) {
    for (const KernelEntry& entry : own_.entries()) {
      const OpDef* op = ops_.find_or_null(entry.domain, entry.op, kNewestOpset);
      if (op == nullptr || op->is_view || !done_.insert(op).second) continue;
      if (!report.may_begin(op->name)) return Status::ok();
      const std::vector<ConformanceCase> cases = cases_of(*op);
      refused_.clear();
      if (cases.empty()) left_out.insert(std::string(entry.op));
      for (const ConformanceCase& call : cases) {
        EDDY_RETURN_IF_ERROR(run_rows(call, report));
      }
      add_refused(*op, report);
    }
    return Status::ok();
  }
  // Compares the expected operators with those present and those that ran: an image that lacks
  // kernels would otherwise leave their operators to the CPU unnoticed.
  void hold_against_lists(PartReport& report) const {
    Json not_run = Json::array();
    const std::vector<std::string> names = cuda::kernel_names();
    for (const std::string& name : names) {
      if (launches_.launched().contains(name)) continue;
      not_run.push_back(name);
      const Result<CudaFunction> found = gpu_.module.find(name);
      if (found.is_ok()) continue;
      Json row = {{"kernel", name}};
      set_status(found.status(), row);
      report.add(std::move(row));
    }
    report.document()["kernels"] = names.size();
    report.document()["kernels_run"] = names.size() - not_run.size();
    report.document()["not_run"] = std::move(not_run);
  }

 private:
  Status run_rows(const ConformanceCase& call, PartReport& report) {
    const OpDef* const op = ops_.find_or_null(call.domain, call.op, call.opset);
    if (op == nullptr) return internal_error("no operator " + std::string(call.op));
    for (const ElementType element : kTypes) {
      if (call.is_of_one_type() && element != kTypes[0]) break;
      const ElementType first = call.is_of_one_type() ? call.inputs[0].type : element;
      run_call(*op, call, first, report);
      EDDY_RETURN_IF_ERROR(gpu_.device.health());
    }
    return Status::ok();
  }
  void run_call(const OpDef& op, const ConformanceCase& call, ElementType element,
                PartReport& report) {
    DeviceCall one(gpu_, op, call, element, random_);
    if (!one.fits()) return;
    const uint64_t start = launches_.count();
    const Status ran = one.run(reference_, own_);
    if (ran.code() == StatusCode::kUnsupported) {
      refused_[std::string(element_type_name(element))] = ran.message();
      return;
    }
    add_row(op, call.inputs[0].dims, element, "own", ran, report);
    const uint64_t middle = launches_.count();
    if (!ran.is_ok() || !gpu_.has_libraries() || !kLibraryTypes.contains(element)) return;
    const Status by_library = one.run(reference_, libraries_);
    // Where a library did its work, a kernel of ours has not been launched.
    if (launches_.count() - middle == middle - start) return;
    add_row(op, call.inputs[0].dims, element, "library", by_library, report);
    if (!by_library.is_ok() || element != ElementType::kFloat || !has_tf32(op)) return;
    one.allow_tf32();
    add_row(op, call.inputs[0].dims, element, "library, tf32", one.run(reference_, tf32_), report);
  }
  bool has_tf32(const OpDef& op) const {
    const bool is_product = op.name == "MatMul" || op.name == "Gemm";
    return is_product ? gpu_.tf32_libraries.products != nullptr
                      : op.name == "Conv" && gpu_.tf32_libraries.dnn != nullptr;
  }
  // A row for all types that the operator takes and no kernel of ours does.
  void add_refused(const OpDef& op, PartReport& report) const {
    if (refused_.empty()) return;
    Json types = Json::array();
    for (const auto& [type, reason] : refused_) types.push_back(type);
    report.add({{"op", op.name},
                {"types", types},
                {"status", "skipped"},
                {"reason", refused_.begin()->second}});
  }
  static void add_row(const OpDef& op, const Dims& input, ElementType element, const char* way,
                      const Status& ran, PartReport& report) {
    Json row = {{"op", op.name},
                {"type", element_type_name(element)},
                {"input", to_string(input)},
                {"way", way}};
    set_status(ran, row);
    report.add(std::move(row));
  }

  const GpuUnderReport& gpu_;
  const OpTable& ops_;
  CountedLaunches launches_;
  KernelRegistry reference_, own_, libraries_, tf32_;
  std::set<const OpDef*> done_;                 // several kernels may be of one operator
  std::map<std::string, std::string> refused_;  // of one operator: types, and why
  Random random_;
};

}  // namespace

Json report_conformance(const GpuUnderReport& gpu, uint64_t seed) {
  OpTable ops;
  Status status = add_standard_schemas(ops);
  PartReport report("conformance", gpu.pace);
  report.document()["seed"] = seed;
  std::set<std::string> left_out;
  Conformance conformance(gpu, ops, seed);
  if (status.is_ok()) status = conformance.run(report, left_out);
  report.end_with(status);
  report.document()["left_out"] = left_out;
  if (report.is_whole()) conformance.hold_against_lists(report);
  return report.take();
}

}  // namespace eddy
