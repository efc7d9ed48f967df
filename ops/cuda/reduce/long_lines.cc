#include "ops/cuda/reduce/long_lines.h"

#include <optional>
#include <vector>

#include "graph/base/check.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy {
namespace {

using cuda::LineParams;
using cuda::LineType;
using cuda::LongLine;
using cuda::RowParams;

std::optional<LineType> line_type(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return LineType::kF32;
    case ElementType::kDouble:
      return LineType::kF64;
    case ElementType::kFloat16:
      return LineType::kF16;
    case ElementType::kBfloat16:
      return LineType::kBf16;
    case ElementType::kInt8:
      return LineType::kI8;
    case ElementType::kUint8:
      return LineType::kU8;
    case ElementType::kInt32:
      return LineType::kI32;
    case ElementType::kInt64:
      return LineType::kI64;
    default:
      return std::nullopt;
  }
}

bool is_integer(LineType type) { return type >= LineType::kI8; }

const void* moved(const void* data, int64_t elements, size_t element_bytes) {
  return static_cast<const char*>(data) + elements * static_cast<int64_t>(element_bytes);
}
void* moved(void* data, int64_t elements, size_t element_bytes) {
  return static_cast<char*>(data) + elements * static_cast<int64_t>(element_bytes);
}

// The distance of a row's elements; nothing where it is not one.
std::optional<int64_t> stride_of(const RowParams& p) {
  int64_t stride = 0, next = 0;
  for (int axis = p.num_reduced - 1; axis >= 0; --axis) {
    if (p.reduced_dims[axis] == 1) continue;
    if (stride == 0) stride = next = p.reduced_strides[axis];
    if (p.reduced_strides[axis] != next) return std::nullopt;
    next *= static_cast<int64_t>(p.reduced_dims[axis]);
  }
  return stride;
}

// The line of each row, its result `out_bytes` behind the one before.
std::vector<LongLine> lines_of(const RowParams& p, LineType type, int64_t stride,
                               size_t element_bytes, size_t out_bytes) {
  std::vector<LongLine> lines;
  for (uint64_t row = 0; row < p.count; ++row) {
    lines.push_back({.type = type,
                     .in = moved(p.in, cuda::row_start(p, row), element_bytes),
                     .out = moved(p.out, static_cast<int64_t>(row), out_bytes),
                     .length = p.length,
                     .stride = stride});
  }
  return lines;
}

// Where line `i` of [outer, length, inner] begins.
int64_t line_start(const LineParams& p, uint64_t i, uint64_t length) {
  EDDY_DCHECK(p.inner > 0 && i < p.num_lines) << "line " << i << " of " << p.num_lines;
  return static_cast<int64_t>(i / p.inner * length * p.inner + i % p.inner);
}

// The lines along an axis, the results being lines of `out_length` along it.
std::vector<LongLine> lines_of(const LineParams& p, LineType type, size_t element_bytes,
                               uint64_t out_length) {
  std::vector<LongLine> lines;
  for (uint64_t i = 0; i < p.num_lines; ++i) {
    lines.push_back({.type = type,
                     .in = moved(p.in, line_start(p, i, p.length), element_bytes),
                     .out = moved(p.out, line_start(p, i, out_length), element_bytes),
                     .length = p.length,
                     .stride = static_cast<int64_t>(p.inner)});
  }
  return lines;
}

}  // namespace

LongLines::LongLines(std::shared_ptr<const CubApi> api, CudaLauncher& launcher,
                     const LongLinesOptions& options)
    : api_(std::move(api)), launcher_(launcher), options_(options) {}

bool LongLines::takes(uint64_t num_lines, uint64_t length) const {
  return num_lines > 0 && num_lines <= options_.max_lines &&
         length >= options_.min_length + (num_lines - 1) * options_.more_a_line;
}

// All calls are of one length and type, so they want the same scratch memory, one after the other.
template <typename Call>
Result<bool> LongLines::run(const KernelArgs& args, const CubApi::Entry<Call>& entry,
                            const char* name, std::span<const Call> calls) const {
  EDDY_DCHECK(!calls.empty()) << name << " is given no line";
  const auto check = [&](int status) {
    if (status == 0) return Status::ok();
    const char* const text = api_->error_text(status);
    return run_failed(std::string(name) + " answered " +
                      (text != nullptr ? text : std::to_string(status)));
  };
  size_t bytes = 0;
  EDDY_RETURN_IF_ERROR(
      launcher_.in_context([&] { return check(entry(calls[0], nullptr, &bytes, args.stream)); }));
  void* const scratch = args.scratch->reserve(std::max<size_t>(bytes, 1));
  if (scratch == nullptr) {
    return resource_exhausted("no device memory for the " + std::to_string(bytes) + " bytes of " +
                              name);
  }
  for (const Call& call : calls) {  // each in its own, which counts what a library's call launches
    EDDY_RETURN_IF_ERROR(
        launcher_.in_context([&] { return check(entry(call, scratch, &bytes, args.stream)); }));
  }
  return true;
}

Result<bool> LongLines::sum(const KernelArgs& args, ElementType element, cuda::LineSum sum,
                            const RowParams& rows) const {
  const std::optional<LineType> type = line_type(element);
  const std::optional<int64_t> stride = stride_of(rows);
  if (!type || !stride || !takes(rows.count, rows.length)) return false;
  const size_t bytes = element_size_bytes(element);
  std::vector<cuda::SumCall> calls;
  for (const LongLine& line : lines_of(rows, *type, *stride, bytes, bytes)) {
    calls.push_back({line, sum});
  }
  return run<cuda::SumCall>(args, api_->sum, "CUB's DeviceReduce (a sum)", calls);
}

Result<bool> LongLines::extreme(const KernelArgs& args, ElementType element, bool is_least,
                                bool gives_place, const RowParams& rows) const {
  const std::optional<LineType> type = line_type(element);
  const std::optional<int64_t> stride = stride_of(rows);
  if (!type || !stride || !takes(rows.count, rows.length)) return false;
  const size_t bytes = element_size_bytes(element);
  std::vector<cuda::ExtremeCall> calls;
  for (const LongLine& line :
       lines_of(rows, *type, *stride, bytes, gives_place ? sizeof(int64_t) : bytes)) {
    calls.push_back({line, is_least ? 1 : 0, rows.takes_last, gives_place ? 1 : 0});
  }
  return run<cuda::ExtremeCall>(args, api_->extreme, "CUB's DeviceReduce (an extreme)", calls);
}

Result<bool> LongLines::cum_sum(const KernelArgs& args, ElementType element,
                                const LineParams& p) const {
  const std::optional<LineType> type = line_type(element);
  if (!type || !is_integer(*type) || !takes(p.num_lines, p.length)) return false;
  std::vector<cuda::CumSumCall> calls;
  for (const LongLine& line : lines_of(p, *type, element_size_bytes(element), p.length)) {
    calls.push_back({line, p.is_exclusive, p.is_reverse});
  }
  return run<cuda::CumSumCall>(args, api_->cum_sum, "CUB's DeviceScan", calls);
}

Result<bool> LongLines::top_k(const KernelArgs& args, ElementType element,
                              const LineParams& p) const {
  const std::optional<LineType> type = line_type(element);
  if (!type || p.num_lines == 0 || p.num_lines > options_.max_top_k_lines ||
      p.length > cuda::kMostSorted || p.k == 0 ||
      p.k * p.length < p.num_lines * options_.min_top_k_work) {
    return false;
  }
  std::vector<cuda::TopKCall> calls;
  for (const LongLine& line : lines_of(p, *type, element_size_bytes(element), p.k)) {
    int64_t* const places =
        p.indices == nullptr ? nullptr : p.indices + line_start(p, calls.size(), p.k);
    calls.push_back({line, p.k, places, p.is_largest});
  }
  return run<cuda::TopKCall>(args, api_->top_k, "CUB's DeviceRadixSort", calls);
}

}  // namespace eddy
