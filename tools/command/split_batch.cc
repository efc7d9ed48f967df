#include "tools/command/split_batch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/compile/open_samples.h"
#include "graph/ir/symbols.h"
#include "runtime/api/rank_values.h"
#include "runtime/batching/batch_values.h"
#include "runtime/net/gather.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

// The first dimension of every input that has one by name, where they all have the same.
std::string first_dimension(const Graph& graph) {
  std::set<std::string> names;
  for (const ValueId input : graph.inputs()) {
    const ValueType& type = graph.value(input).type;
    const bool has_dims = type.is_tensor() && type.tensor.is_ranked && type.tensor.dims.rank() > 0;
    if (!has_dims || type.tensor.dims[0] >= kUnknownDim) continue;
    names.insert(graph.symbol(type.tensor.dims[0]));
  }
  return names.size() == 1 ? *names.begin() : "";
}

// The status of the lowest rank whose result is none.
Status agree_on(World& world, const Result<NamedTensors>& own) {
  return gather_at_first(world, own.is_ok() ? Status::ok() : own.status(), "").status();
}

// Of the first input that has dimensions.
int64_t first_size(const Graph& graph) {
  for (const ValueId input : graph.inputs()) {
    const ValueType& type = graph.value(input).type;
    const bool has_dims = type.is_tensor() && type.tensor.is_ranked && type.tensor.dims.rank() > 0;
    if (has_dims) return type.tensor.dims[0];
  }
  return 0;
}

// With the dimension's size in its place; 0: not known.
ValueDescription describe(const Graph& graph, std::string name, ValueType type,
                          const std::string& dimension, int64_t size) {
  if (type.is_tensor() && type.tensor.is_ranked && size > 0) {
    for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
      int64_t& dim = type.tensor.dims[axis];
      if (dim < kUnknownDim && graph.symbol(dim) == dimension) dim = size;
    }
  }
  std::string text = to_string(type);
  return {std::move(name), std::move(type), std::move(text)};
}

// Bytes of what lies behind an axis, and how many times that comes.
struct Rows {
  Rows(const Dims& dims, int axis, ElementType element) : entry_bytes(element_size_bytes(element)) {
    for (int d = 0; d < axis; ++d) num_rows *= static_cast<size_t>(dims[d]);
    for (int d = axis + 1; d < dims.rank(); ++d) entry_bytes *= static_cast<size_t>(dims[d]);
  }
  size_t num_rows = 1;
  size_t entry_bytes = 0;
};

void copy_entries(const std::byte* from, size_t bytes, ElementType element, std::byte* to) {
  if (bytes == 0) return;
  if (element != ElementType::kString) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto* const texts = reinterpret_cast<const std::string*>(from);
  std::copy_n(texts, bytes / sizeof(std::string), reinterpret_cast<std::string*>(to));
}

// Behind each other along the axis.
Tensor joined(const std::vector<Tensor>& parts, int axis) {
  Dims dims = parts[0].dims();
  dims[axis] = 0;
  for (const Tensor& part : parts) dims[axis] += part.dims()[axis];
  const ElementType element = parts[0].element_type();
  Tensor whole = Tensor::zeros(element, dims);
  const Rows rows(dims, axis, element);
  auto* to = static_cast<std::byte*>(const_cast<void*>(whole.view().data));
  for (size_t row = 0; row < rows.num_rows; ++row) {
    for (const Tensor& part : parts) {
      const size_t bytes = rows.entry_bytes * static_cast<size_t>(part.dims()[axis]);
      const auto* const from = static_cast<const std::byte*>(part.view().data);
      copy_entries(from + row * bytes, bytes, element, to);
      to += bytes;
    }
  }
  return whole;
}

bool fit_together(const Tensor& a, const Tensor& b, int axis) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  if (a.element_type() != b.element_type() || a.dims().rank() != b.dims().rank()) return false;
  for (int d = 0; d < a.dims().rank(); ++d) {
    if (d != axis && a.dims()[d] != b.dims()[d]) return false;
  }
  return true;
}

// `name`: the dimension's in the graph, which is opened where all inputs have one fixed size first:
// `size`, else 0.
Status find_dimension(const Library& library, const std::string& path, const std::string& wanted,
                      Graph& graph, std::string& name, int64_t& size) {
  const std::set<std::string> names = symbolic_dims(graph);
  name = wanted;
  if (names.contains(wanted)) return Status::ok();
  const bool is_any = wanted == "batch";
  if (is_any) name = first_dimension(graph);
  if (!name.empty() && names.contains(name)) return Status::ok();
  if (!is_any) {
    return unsupported(fmt::format("--split {}: {} has no dimension of that name; {}", wanted, path,
                                   names.empty()
                                       ? "all its sizes are fixed"
                                       : fmt::format("it has {}", fmt::join(names, ", "))));
  }
  name = wanted;
  const int64_t first = first_size(graph);
  auto opened = open_samples(std::move(graph), library.ops(), name);
  if (opened.is_ok()) {
    graph = std::move(*opened);
    size = first;
    return Status::ok();
  }
  Status why = unsupported(opened.status().message());
  why.prepend_path(opened.status().path());
  return std::move(
      why.prepend_message(fmt::format("--split {}: {} can't be run in parts", wanted, path)));
}

}  // namespace

SampleShare share_of(int64_t num_samples, uint32_t rank, uint32_t num_ranks) {
  const int64_t each = num_samples / num_ranks, more = num_samples % num_ranks;
  const int64_t r = rank;
  return {r * each + std::min(r, more), each + (r < more ? 1 : 0)};
}

Result<SplitModel> split_model(const Library& library, const std::string& path,
                               const SessionOptions& options, const std::string& dimension) {
  SplitModel model;
  const int64_t start_ns = now_ns();
  ImportOptions import_options;
  import_options.warn = [&](std::string_view line) {
    model.warnings.push_back(fmt::format("warning: {}: {}", path, line));
  };
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_file(library, path, import_options));
  EDDY_RETURN_IF_ERROR(check_dims(graph, options, path));
  int64_t size = 0;
  EDDY_RETURN_IF_ERROR(find_dimension(library, path, dimension, graph, model.dimension, size));
  // As it is before passes that other operators come from, and for any number of samples.
  SessionOptions simple = options;
  simple.folds_norms = simple.blocks_channels = false;
  simple.log = {};
  std::erase_if(simple.dims, [&](const auto& dim) {
    if (dim.first != model.dimension) return false;
    size = dim.second;
    return true;
  });
  EDDY_ASSIGN_OR_RETURN(const Graph shown, Session::graph_to_run(library, graph.copy(), simple));
  auto axes = find_batch_axes(shown, model.dimension);
  if (!axes.is_ok()) {
    return std::move(axes.take_status().prepend_message(
        fmt::format("--split {}: {} can't be run in parts", dimension, path)));
  }
  model.axes = std::move(*axes);
  for (const ValueId input : shown.inputs()) {
    const ValueInfo& info = shown.value(input);
    model.inputs.push_back(describe(shown, info.name, info.type, model.dimension, size));
  }
  for (size_t o = 0; o < shown.outputs().size(); ++o) {
    const ValueInfo& info = shown.value(shown.outputs()[o]);
    model.outputs.push_back(
        describe(shown, shown.output_names()[o], info.type, model.dimension, size));
  }
  model.graph = std::move(graph);
  model.load_ns = now_ns() - start_ns;
  return model;
}

Status SplitModel::take_share(const Library& library, const NamedTensors& whole, uint32_t rank,
                              uint32_t num_ranks, SessionOptions options) {
  num_samples = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    const int axis = axes.inputs[i];
    if (axis == kNoSamples) continue;
    const auto& [name, tensor] = whole[i];
    const bool has_axis = tensor.is_tensor() && axis < tensor.dims().rank();
    const int64_t size = has_axis ? tensor.dims()[axis] : 0;
    if (size <= 0) {
      return invalid_argument(
          fmt::format("--split {}: input {} has no samples along axis {}", dimension, name, axis));
    }
    if (num_samples > 0 && size != num_samples) {
      return invalid_argument(
          fmt::format("--split {}: input {} has {} samples along axis {}, and others have {}",
                      dimension, name, size, axis, num_samples));
    }
    num_samples = size;
  }
  own = share_of(num_samples, rank, num_ranks);
  if (own.count == 0) return Status::ok();
  const BatchValues values({}, {{}, axes.inputs});
  EDDY_ASSIGN_OR_RETURN(share, values.part(whole, num_samples, own.begin, own.count));
  std::erase_if(options.dims, [&](const auto& dim) { return dim.first == dimension; });
  options.dims.emplace_back(dimension, own.count);
  EDDY_ASSIGN_OR_RETURN(session, Session::create(library, std::move(*graph), options));
  graph.reset();
  return Status::ok();
}

Result<NamedTensors> SplitModel::run_share(const RunOptions& options) {
  return session == nullptr ? NamedTensors() : session->run(share, options);
}

Result<NamedTensors> SplitModel::run(World& world, const RunOptions& options) {
  const Result<NamedTensors> own = run_share(options);
  EDDY_ASSIGN_OR_RETURN(const std::vector<NamedTensors> parts, gather_values(world, own));
  Result<NamedTensors> all = world.rank() > 0 ? own : join(parts);
  // Parts that can't be joined are a failure of all ranks.
  const Status agreed = agree_on(world, all);
  EDDY_RETURN_IF_ERROR(all.status());
  EDDY_RETURN_IF_ERROR(agreed);
  return all;
}

Result<NamedTensors> SplitModel::run_apart(World& world, const RunOptions& options) {
  Result<NamedTensors> own = run_share(options);
  EDDY_RETURN_IF_ERROR(agree_on(world, own));
  return own;
}

// Ranks without samples are the last ones.
Result<NamedTensors> SplitModel::join(const std::vector<NamedTensors>& parts) const {
  NamedTensors all;
  for (size_t o = 0; o < parts[0].size(); ++o) {
    const auto& [name, first] = parts[0][o];
    const int axis = axes.outputs[o];
    if (axis == kNoSamples) {
      all.emplace_back(name, first);
      continue;
    }
    std::vector<Tensor> of_ranks;
    for (size_t r = 0; r < parts.size() && !parts[r].empty(); ++r) {
      const Tensor& part = parts[r][o].second;
      if (!fit_together(first, part, axis)) {
        return invalid_argument(fmt::format(
            "output {} is {} on rank 0 and {} on rank {}: parts of unlike sizes can't be joined "
            "along axis {}",
            name, to_string(first.dims()), to_string(part.dims()), r, axis));
      }
      of_ranks.push_back(part);
    }
    all.emplace_back(name, joined(of_ranks, axis));
  }
  return all;
}

}  // namespace eddy
