// The lines part: each case by our own kernels and by CUB, whatever the limits of long_lines.h say.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

#include "graph/base/random.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/schema/standard.h"
#include "tools/gpu/device_scratch.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kOpset = 17;
constexpr size_t kNumSamples = 9;

struct LineCase {
  const char* op;
  ElementType element;
  int64_t length;
  int64_t k = 0;  // TopK

  std::string text() const {
    return std::string(op) + " " + std::string(element_type_name(element)) + " 1x" +
           std::to_string(length) + (k > 0 ? " k=" + std::to_string(k) : "");
  }
  bool is_cum_sum() const { return std::string_view(op) == "CumSum"; }
  // A sum whose order shows.
  bool is_rounded() const {
    return element == ElementType::kFloat && std::string_view(op).starts_with("Reduce");
  }
};

std::vector<LineCase> line_cases(bool is_small) {
  std::vector<LineCase> cases;
  for (const int64_t length : {1 << 12, 1 << 14, 1 << 15, 1 << 17, 1 << 20, 1 << 24}) {
    cases.push_back({"ReduceSum", ElementType::kFloat, length});
  }
  for (const int64_t length : {1 << 14, 1 << 15, 1 << 17, 1 << 20}) {
    cases.push_back({"ArgMax", ElementType::kFloat, length});
    cases.push_back({"CumSum", ElementType::kInt64, length});
  }
  for (const auto& [length, k] : {std::pair{1024, 32},
                                  {1024, 256},
                                  {50000, 1},
                                  {50000, 5},
                                  {50000, 50},
                                  {50000, 1000},
                                  {1 << 20, 10}}) {
    cases.push_back({"TopK", ElementType::kFloat, length, k});
  }
  if (!is_small) return cases;
  for (LineCase& each : cases) each.length = std::max(each.k, each.length / 1000 + 3);
  return cases;
}

// A line in the device's memory and one kernel on it.
class LineKernel {
 public:
  static Result<std::unique_ptr<LineKernel>> create(const GpuUnderReport& gpu, const OpTable& ops,
                                                    const KernelRegistry& kernels,
                                                    const LineCase& what,
                                                    const std::vector<std::byte>& line) {
    std::unique_ptr<LineKernel> made(new LineKernel(gpu, what));
    EDDY_RETURN_IF_ERROR(made->set_up(ops, kernels, line));
    return made;
  }

  // Enqueues it that often, and returns when all is done.
  Status run(int times) {
    return on_stream([&]() -> Status {
      for (int i = 0; i < times; ++i) {
        Status failed;
        KernelArgs args;
        args.inputs = inputs_.data();
        args.outputs = outputs_.data();
        args.state = kernel_.state.get();
        args.scratch = &scratch_;
        args.stream = stream_->native();
        args.error = &failed;
        args.num_inputs = static_cast<uint32_t>(inputs_.size());
        args.num_outputs = static_cast<uint32_t>(outputs_.size());
        if (!kernel_.run(args)) return failed;
      }
      return Status::ok();
    });
  }
  // Every output's bytes.
  Result<std::vector<std::vector<std::byte>>> read() {
    std::vector<std::vector<std::byte>> all;
    for (const TensorView& output : outputs_) {
      EDDY_ASSIGN_OR_RETURN(const BufferRef staged,
                            gpu_.device.staging().allocate(output.size_bytes()));
      EDDY_RETURN_IF_ERROR(
          on_stream([&] { return copy(staged.data(), output.data, output.size_bytes()); }));
      const auto* const bytes = static_cast<const std::byte*>(staged.data());
      all.emplace_back(bytes, bytes + output.size_bytes());
    }
    return all;
  }

 private:
  LineKernel(const GpuUnderReport& gpu, const LineCase& what)
      : gpu_(gpu), what_(what), scratch_(gpu.device.allocator()) {}

  Status set_up(const OpTable& ops, const KernelRegistry& kernels,
                const std::vector<std::byte>& line) {
    EDDY_ASSIGN_OR_RETURN(stream_, gpu_.device.create_stream());
    const bool is_top_k = what_.k > 0;
    const int64_t results = is_top_k ? what_.k : what_.is_cum_sum() ? what_.length : 1;
    EDDY_RETURN_IF_ERROR(add(inputs_, what_.element, what_.length));
    given_ = is_top_k ? what_.k : 1;  // CumSum: the axis
    if (is_top_k || what_.is_cum_sum()) {
      inputs_.push_back({&given_, one_.data(), 1, ElementType::kInt64});
    }
    const bool gives_places = std::string_view(what_.op) == "ArgMax";
    EDDY_RETURN_IF_ERROR(
        add(outputs_, gives_places ? ElementType::kInt64 : what_.element, results));
    if (is_top_k) EDDY_RETURN_IF_ERROR(add(outputs_, ElementType::kInt64, results));
    EDDY_RETURN_IF_ERROR(bind(ops, kernels));
    EDDY_ASSIGN_OR_RETURN(const BufferRef staged, gpu_.device.staging().allocate(line.size()));
    std::memcpy(staged.data(), line.data(), line.size());
    return on_stream([&] { return copy(inputs_[0].data, staged.data(), line.size()); });
  }

  Status bind(const OpTable& ops, const KernelRegistry& kernels) {
    const OpDef* const op = ops.find_or_null("", what_.op, kOpset);
    if (op == nullptr) return internal_error(std::string("no operator ") + what_.op);
    Attributes attributes;
    if (std::string_view(what_.op) == "ArgMax") attributes.set("axis", int64_t{1});
    std::vector<ValueType> inputs, outputs;
    std::vector<TensorView> constants(inputs_.size());
    for (const TensorView& view : inputs_) inputs.push_back(type_of(view));
    for (const TensorView& view : outputs_) outputs.push_back(type_of(view));
    const KernelInit init{*op, attributes, kOpset, what_.op, inputs, outputs, constants};
    EDDY_ASSIGN_OR_RETURN(kernel_, kernels.bind(init));
    return Status::ok();
  }
  static ValueType type_of(const TensorView& view) {
    return TensorType(view.element, Dims(view.shape()));
  }

  Status add(std::vector<TensorView>& views, ElementType element, int64_t length) {
    const std::array<int64_t, 2>& dims = *dims_.emplace_back(
        std::make_unique<std::array<int64_t, 2>>(std::array<int64_t, 2>{1, length}));
    TensorView view{nullptr, dims.data(), 2, element};
    EDDY_ASSIGN_OR_RETURN(BufferRef buffer, gpu_.device.allocator().allocate(view.size_bytes()));
    view.data = buffer.data();
    memory_.push_back(std::move(buffer));
    views.push_back(view);
    return Status::ok();
  }

  // Enqueues in the stream, and returns when the stream is idle.
  Status on_stream(const std::function<Status()>& enqueue) {
    struct Task {
      const std::function<Status()>& enqueue;
      Status status;
      static bool run(void* self) {
        Task& task = *static_cast<Task*>(self);
        task.status = task.enqueue();
        return task.status.is_ok();
      }
    } task{enqueue, {}};
    if (!stream_->launch({Task::run, &task, false})) return gpu_.device.health();
    while (!stream_->is_idle()) {
      gpu_.progress();
      gpu_.device.poll();
    }
    EDDY_RETURN_IF_ERROR(task.status);
    return gpu_.device.health();
  }
  Status copy(void* to, const void* from, size_t size_bytes) {
    CudaContext& context = gpu_.device.context();
    const CudaContext::Use use(context);
    return context.check(
        context.api().copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                           size_bytes, static_cast<CuStream>(stream_->native())),
        "cuMemcpyAsync");
  }

  const GpuUnderReport& gpu_;
  const LineCase what_;
  int64_t given_ = 0;
  const std::array<int64_t, 1> one_ = {1};
  std::vector<std::unique_ptr<std::array<int64_t, 2>>> dims_;
  std::vector<TensorView> inputs_, outputs_;
  BoundKernel kernel_;
  std::vector<BufferRef> memory_;
  DeviceScratch scratch_;
  std::unique_ptr<Stream> stream_;  // goes first: idle by then
};

std::vector<std::byte> make_line(const LineCase& what, Random& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(what.length) * element_size_bytes(what.element));
  for (int64_t i = 0; i < what.length; ++i) {
    const float number = random.uniform(0.25f, 3.0f);
    const auto whole = static_cast<int64_t>(random.below(1000));
    if (what.element == ElementType::kFloat) {
      std::memcpy(bytes.data() + i * 4, &number, 4);
    } else {
      std::memcpy(bytes.data() + i * 8, &whole, 8);
    }
  }
  return bytes;
}

using Outputs = std::vector<std::vector<std::byte>>;

// Times, and what came out.
Result<Outputs> measure(LineKernel& kernel, const std::string& name, int num_calls, Json& row) {
  EDDY_RETURN_IF_ERROR(kernel.run(2));
  std::array<double, kNumSamples> times_us{};
  for (double& time_us : times_us) {
    const Clock::time_point start = Clock::now();
    EDDY_RETURN_IF_ERROR(kernel.run(num_calls));
    time_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / num_calls;
  }
  std::sort(times_us.begin(), times_us.end());
  row[name + "_us"] = times_us[kNumSamples / 2];
  row[name + "_us_fastest"] = times_us.front();
  row[name + "_us_slowest"] = times_us.back();
  return kernel.read();
}

Status compare(const LineCase& what, const Outputs& own, const Outputs& cub) {
  if (!what.is_rounded()) {
    return own == cub ? Status::ok() : run_failed("CUB gives other bits than our own kernel");
  }
  float a = 0, b = 0;
  std::memcpy(&a, own[0].data(), sizeof(a));
  std::memcpy(&b, cub[0].data(), sizeof(b));
  if (std::fabs(a - b) <= 1e-6f * std::fabs(a)) return Status::ok();
  return run_failed("CUB's sum is " + std::to_string(b) + ", ours " + std::to_string(a));
}

}  // namespace

Json report_lines(const GpuUnderReport& gpu, bool is_small) {
  Json report = {{"part", "lines"}, {"rows", Json::array()}};
  OpTable ops;
  Status status = add_standard_schemas(ops);
  KernelRegistry own, cub;
  add_cuda_kernels(own, gpu.module);
  std::unique_ptr<LongLines> long_lines;
  if (gpu.cub_or_null != nullptr) {
    const LongLinesOptions all = {.min_length = 1, .min_top_k_work = 0};
    long_lines = std::make_unique<LongLines>(gpu.cub_or_null, gpu.module, all);
    add_cuda_kernels(cub, gpu.module, {.long_lines = long_lines.get()});
  } else {
    report["without_cub"] = gpu.why_no_cub;
  }
  Random random(7);
  int num_failed = 0;
  const auto measure_case = [&](const LineCase& what, Json& row) -> Status {
    const int num_calls = is_small ? 1 : 20;
    const std::vector<std::byte> line = make_line(what, random);
    EDDY_ASSIGN_OR_RETURN(const auto ours, LineKernel::create(gpu, ops, own, what, line));
    EDDY_ASSIGN_OR_RETURN(const Outputs expected, measure(*ours, "own", num_calls, row));
    if (long_lines == nullptr) return Status::ok();
    EDDY_ASSIGN_OR_RETURN(const auto theirs, LineKernel::create(gpu, ops, cub, what, line));
    EDDY_ASSIGN_OR_RETURN(const Outputs found, measure(*theirs, "cub", num_calls, row));
    return compare(what, expected, found);
  };
  for (const LineCase& what : line_cases(is_small)) {
    if (!status.is_ok()) break;
    Json row = {{"case", what.text()}};
    const Status measured = measure_case(what, row);
    row["status"] = measured.is_ok() ? "passed" : "failed";
    if (!measured.is_ok()) row["reason"] = measured.to_string();
    num_failed += measured.is_ok() ? 0 : 1;
    report["rows"].push_back(std::move(row));
    status = gpu.device.health();
  }
  if (!status.is_ok()) report["error"] = status.to_string();
  report["failed"] = num_failed;
  return report;
}

}  // namespace eddy
