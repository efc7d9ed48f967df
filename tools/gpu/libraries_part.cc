#include <algorithm>
#include <optional>
#include <utility>

#include "graph/base/check.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"
#include "tools/gpu/counted_launches.h"
#include "tools/gpu/device_call.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// The same result from the same input; mostly by the same operator.
struct LibraryCase {
  std::string name;
  ConformanceCase own;
  ConformanceCase library;
  std::vector<ElementType> elements = {ElementType::kFloat, ElementType::kFloat16};
  bool has_tf32 = false;
  std::optional<ConformanceCase> channels_last = {};  // a convolution of the same sizes
};

std::string text_of(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

LibraryCase pool(std::string_view op, const Dims& x, int64_t size, int64_t stride, int64_t pad) {
  ConformanceCase call{op, {{x}}, {}, 1, 8};
  call.attributes.set("kernel_shape", std::vector<int64_t>(2, size));
  call.attributes.set("strides", std::vector<int64_t>(2, stride));
  call.attributes.set("pads", std::vector<int64_t>(4, pad));
  const std::string window = std::to_string(size) + "/" + std::to_string(stride);
  return {std::string(op) + " " + window + " of " + text_of(x), call, call};
}

// Our kernels see rows; the library sees a pool with the whole plane as its window.
LibraryCase global_pool(const Dims& x) {
  ConformanceCase library{"AveragePool", {{x}}, {}, 1, 8};
  library.attributes.set("kernel_shape", std::vector<int64_t>{x[2], x[3]});
  return {"GlobalAveragePool of " + text_of(x), {"GlobalAveragePool", {{x}}, {}, 1, 8}, library};
}

LibraryCase batch_norm(const Dims& x) {
  const Dims c = {x[1]};
  const ConformanceCase call{"BatchNormalization", {{x}, {c}, {c}, {c}, {c}}, {}, 1, 16};
  return {"BatchNormalization of " + text_of(x), call, call};
}

LibraryCase product(int64_t rows, int64_t depth, int64_t columns) {
  const ConformanceCase call{"MatMul", {{{rows, depth}}, {{depth, columns}}}, {}, 1, 64};
  const std::string name = "MatMul of " + text_of({rows, depth, columns});
  return {name, call, call, {ElementType::kFloat}, true};
}

// A 3 x 3 convolution as in ResNet; with as many groups as channels as in MobileNet, where our own
// kernel may be the faster one.
LibraryCase convolution(int64_t channels, int64_t side, bool is_depthwise = false) {
  const int64_t group = is_depthwise ? channels : 1;
  ConformanceCase call{
      "Conv", {{{1, channels, side, side}}, {{channels, channels / group, 3, 3}}}, {}, 1, 64};
  call.attributes.set("kernel_shape", std::vector<int64_t>{3, 3});
  call.attributes.set("pads", std::vector<int64_t>(4, 1));
  call.attributes.set("group", group);
  const std::string name = is_depthwise ? "Conv 3/1 by channel of " : "Conv 3/1 of ";
  ConformanceCase last = call;
  last.op = "ChannelsLastConv";
  last.domain = "eddy";
  last.inputs = {{{1, side, side, channels}}, {{channels, 3, 3, channels / group}}};
  return {name + text_of({1, channels, side, side}), call, call, {ElementType::kFloat}, true, last};
}

// One long line: `given` is TopK's k, or CumSum's axis.
LibraryCase line(std::string_view op, ElementType element, int64_t length,
                 const std::vector<int64_t>& given = {}) {
  ConformanceCase call{op, {{{1, length}}}, {}, op == "TopK" ? size_t{2} : size_t{1}};
  if (op == "ArgMax") call.attributes.set("axis", int64_t{1});
  if (!given.empty())
    call.inputs.push_back({{1}, ConformanceInput::Of::kGiven, 0, given, ElementType::kInt64});
  const std::string k = op == "TopK" ? " k=" + std::to_string(given[0]) : "";
  return {std::string(op) + k + " of " + text_of({1, length}), call, call, {element}};
}

void add_lines(std::vector<LibraryCase>& cases, bool is_small) {
  const auto sized = [&](int64_t length) { return is_small ? length / 1000 + 3 : length; };
  for (const int64_t length : {1 << 12, 1 << 14, 1 << 15, 1 << 17, 1 << 20, 1 << 24}) {
    cases.push_back(line("ReduceSum", ElementType::kFloat, sized(length)));
  }
  for (const int64_t length : {1 << 14, 1 << 15, 1 << 17, 1 << 20}) {
    cases.push_back(line("ArgMax", ElementType::kFloat, sized(length)));
    cases.push_back(line("CumSum", ElementType::kInt64, sized(length), {1}));
  }
  for (const auto& [length, k] : {std::pair{1024, 32},
                                  {1024, 256},
                                  {50000, 1},
                                  {50000, 5},
                                  {50000, 50},
                                  {50000, 1000},
                                  {1 << 20, 10}}) {
    const int64_t most = sized(length);
    cases.push_back(line("TopK", ElementType::kFloat, most, {std::min<int64_t>(k, most)}));
  }
}

std::vector<LibraryCase> make_cases(bool is_small) {
  const int64_t most_batch = is_small ? 1 : 32, most_side = is_small ? 14 : 112;
  const int64_t channels = is_small ? 4 : 64;
  std::vector<LibraryCase> cases;
  for (int64_t side = 14; side <= most_side; side *= 2) {
    for (int64_t batch = 1; batch <= most_batch; batch *= 32) {
      const Dims x = {batch, channels, side, side};
      cases.push_back(pool("MaxPool", x, 3, 2, 1));      // ResNet's
      cases.push_back(pool("AveragePool", x, 3, 1, 1));  // Inception's
      cases.push_back(batch_norm(x));
    }
  }
  for (int64_t batch = 1; batch <= most_batch; batch *= 32) {
    cases.push_back(global_pool({batch, is_small ? 8 : 2048, 7, 7}));
  }
  add_lines(cases, is_small);
  for (const int64_t given : {256, 1024}) {
    const int64_t width = is_small ? given / 64 : given;
    cases.push_back(product(width, width, width));
    // A step of a decoder or a recurrent cell.
    for (const int64_t rows : {1, 4}) cases.push_back(product(rows, width, 4 * width));
  }
  for (const int64_t side : {56, 14}) {
    for (const bool is_depthwise : {false, true}) {
      cases.push_back(
          convolution(is_small ? 4 : 64 * 56 / side, is_small ? side / 7 : side, is_depthwise));
    }
  }
  return cases;
}

class Comparison {
 public:
  Comparison(const GpuUnderReport& gpu, int num_runs)
      : gpu_(gpu), num_runs_(num_runs), launches_(gpu.module) {
    add_reference_kernels(reference_);
    add_cuda_kernels(own_, launches_);
    add_cuda_kernels(libraries_, launches_, gpu.libraries);
    add_cuda_kernels(tf32_, launches_, gpu.tf32_libraries);
    add_cuda_kernels(measured_, launches_, gpu.measured_libraries);
  }
  Status add_schemas() { return add_standard_schemas(ops_); }
  Json row(const LibraryCase& one, ElementType element) {
    Json row = {{"case", one.name}, {"type", element_type_name(element)}};
    Status status = measure(one.own, own_, element, "own", row);
    if (status.is_ok()) {
      const uint64_t before = launches_.count();
      Json by_library = Json::object();
      status = measure(one.library, libraries_, element, "library", by_library);
      const bool is_done = launches_.count() == before;
      row["library"] = is_done ? "takes it" : "does not take it";
      if (is_done) row.update(by_library);
      if (is_done && has_tf32(one) && status.is_ok()) {
        status = measure(one.library, tf32_, element, "tf32", row);
      }
      const bool is_measured = one.library.op == "Conv" && gpu_.measured_libraries.dnn != nullptr;
      if (is_done && is_measured && status.is_ok()) {
        status = measure(one.library, measured_, element, "measured", row);
      }
      if (is_done && has_tf32(one) && one.channels_last && status.is_ok()) {
        status = measure(*one.channels_last, tf32_, element, "channels_last", row);
      }
    }
    set_status(status, row);
    return row;
  }

 private:
  bool has_tf32(const LibraryCase& one) const {
    if (!one.has_tf32) return false;
    return one.library.op == "Conv" ? gpu_.tf32_libraries.dnn != nullptr
                                    : gpu_.tf32_libraries.products != nullptr;
  }
  Status measure(const ConformanceCase& call, const KernelRegistry& kernels, ElementType element,
                 const std::string& way, Json& row) {
    Random random(kSeed);
    const OpDef* const op = ops_.find_or_null(call.domain, call.op, call.opset);
    EDDY_CHECK(op != nullptr) << "there is no operator " << call.op;
    DeviceCall one(gpu_, *op, call, element, random);
    if (way == "tf32" || way == "measured" || way == "channels_last") one.allow_tf32();
    EDDY_ASSIGN_OR_RETURN(const std::vector<double> times_us,
                          one.measure(reference_, kernels, num_runs_));
    row[way + "_us"] = times_us[times_us.size() / 2];
    row[way + "_us_fastest"] = times_us.front();
    row[way + "_us_slowest"] = times_us.back();
    return Status::ok();
  }

  static constexpr uint64_t kSeed = 21;
  const GpuUnderReport& gpu_;
  const int num_runs_;
  CountedLaunches launches_;
  OpTable ops_;
  KernelRegistry reference_, own_, libraries_, tf32_, measured_;
};

}  // namespace

Json report_libraries(const GpuUnderReport& gpu, bool is_small, int num_runs) {
  PartReport report("libraries", gpu.pace);
  Comparison comparison(gpu, num_runs);
  Status status = comparison.add_schemas();
  if (status.is_ok() && gpu.libraries.dnn == nullptr && gpu.libraries.long_lines == nullptr) {
    status = unsupported(
        "there is neither cuDNN nor CUB to compare with; install cuDNN 9, or a driver for the "
        "toolkit that this was built with");
  }
  report.end_with(status);
  for (const LibraryCase& one : make_cases(is_small)) {
    for (const ElementType element : one.elements) {
      if (!report.may_begin(one.name)) return report.take();
      report.add(comparison.row(one, element));
      report.end_with(gpu.device.health());
    }
  }
  return report.take();
}

}  // namespace eddy
