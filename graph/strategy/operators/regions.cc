#include "graph/strategy/operators/regions.h"

#include <algorithm>
#include <string_view>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int64_t kMaxWindow = 1 << 16;
constexpr int64_t kMaxExtent = int64_t{1} << 31;
constexpr double kMaxElements = 0x1p48;
constexpr double kMaxFlops = 1e30;

constexpr InputDim whole() { return {}; }
constexpr InputDim along(int axis) { return {.axis = axis}; }

double count(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// One operator while its regions are found.
class RegionRules {
 public:
  RegionRules(Operator& op, const OperatorAttributes& attributes, const std::vector<Dims>& shapes)
      : op_(op), attributes_(attributes), shapes_(shapes) {}

  Status elementwise();
  Status product();
  Status windows(int spatial, bool is_pool);
  Status global_pool();
  Status concat();
  Status normalized();
  Status transpose();
  Status reduce();
  Status reshape();
  Status all();

 private:
  int rank() const { return op_.shape.rank(); }
  Status fail(const std::string& what) const {
    return invalid_argument("operator '" + op_.name + "' (" + op_.type + " " +
                            to_string(op_.shape) + "): " + what);
  }
  Status misfit(size_t input, const std::string& what) const {
    return fail("input " + std::to_string(input) + " of shape " + to_string(shapes_[input]) + " " +
                what);
  }
  Status expect_inputs(size_t least, size_t most) const {
    if (shapes_.size() >= least && shapes_.size() <= most) return Status::ok();
    return fail("has " + std::to_string(shapes_.size()) + " inputs, expected " +
                std::to_string(least) + (most > least ? ".." + std::to_string(most) : ""));
  }
  Result<int> axis(int64_t given, int of_rank) const {
    const int64_t at = given < 0 ? given + of_rank : given;
    if (at < 0 || at >= of_rank) {
      return fail("axis " + std::to_string(given) + " is out of range for rank " +
                  std::to_string(of_rank));
    }
    return static_cast<int>(at);
  }
  Result<InputDim> window(int axis, size_t input, int64_t kernel, int64_t stride) const;
  Result<int64_t> at_or(const std::vector<int64_t>& values, int i, int64_t fallback,
                        const char* name) const;
  Status set_windows_work(const std::vector<int64_t>& kernel, int64_t in_channels, bool is_pool);

  Operator& op_;
  const OperatorAttributes& attributes_;
  const std::vector<Dims>& shapes_;
};

Status RegionRules::elementwise() {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const Dims& from = shapes_[i];
    if (from.rank() > rank()) return misfit(i, "does not broadcast to it");
    for (int k = 0; k < from.rank(); ++k) {
      const int d = k + rank() - from.rank();
      if (from[k] != op_.shape[d] && from[k] != 1) return misfit(i, "does not broadcast to it");
      op_.inputs[i].dims[static_cast<size_t>(k)] = from[k] == op_.shape[d] ? along(d) : whole();
    }
  }
  op_.flops = count(op_.shape);
  return Status::ok();
}

Status RegionRules::product() {
  if (rank() < 2) return fail("a product needs a shape of at least [rows, columns]");
  const int columns = rank() - 1;
  int64_t features = attributes_.in_features;
  if (features == 0 && !shapes_.empty() && shapes_[0].rank() > 0) {
    features = shapes_[0][shapes_[0].rank() - 1];
  }
  if (features <= 0 || features > kMaxExtent) return fail("needs \"in_features\" in 1..2^31");
  const bool has_factor = shapes_.size() == 2 && shapes_[1].rank() >= 2 &&
                          shapes_[1][shapes_[1].rank() - 2] == features &&
                          shapes_[1][shapes_[1].rank() - 1] == op_.shape[columns] &&
                          shapes_[0].rank() > 0 && shapes_[0][shapes_[0].rank() - 1] == features;
  const bool is_flattened = shapes_.size() == 1 && shapes_[0].rank() > rank();
  int64_t sum = 0;
  for (size_t i = 0; i < shapes_.size() && !is_flattened; ++i) {
    const Dims& from = shapes_[i];
    if (from.rank() == 0 || from.rank() > rank()) return misfit(i, "has the wrong rank");
    const bool is_factor = has_factor && i == 1;
    const int last = from.rank() - 1;
    for (int k = 0; k < last; ++k) {
      const int d = k + rank() - from.rank();
      const bool is_inner = is_factor && k == last - 1;
      if (!is_inner && from[k] != op_.shape[d] && from[k] != 1) {
        return misfit(i, "does not fit its rows");
      }
      op_.inputs[i].dims[static_cast<size_t>(k)] = is_inner                  ? along(rank())
                                                   : from[k] == op_.shape[d] ? along(d)
                                                                             : whole();
    }
    op_.inputs[i].dims[static_cast<size_t>(last)] = is_factor ? along(columns)
                                                    : shapes_.size() == 1 || has_factor
                                                        ? along(rank())
                                                        : whole();
    if (!is_factor) sum += from[last];
  }
  if (is_flattened) {
    sum = static_cast<int64_t>(count(shapes_[0]) / static_cast<double>(shapes_[0][0]));
    if (shapes_[0][0] != op_.shape[0]) return misfit(0, "does not fit its rows");
    op_.inputs[0].dims[0] = along(0);
  }
  if (!shapes_.empty() && sum != features) {
    return misfit(0, "gives " + std::to_string(sum) + " features, in_features is " +
                         std::to_string(features));
  }
  const bool is_cuttable = shapes_.size() <= 1 || has_factor;
  op_.reduction = is_cuttable && !is_flattened ? features : 1;
  if (!has_factor) {
    op_.weight_elements = features * op_.shape[columns];
    op_.weight_axes = 1u << columns;
  }
  op_.flops = 2 * count(op_.shape) * static_cast<double>(features);
  return Status::ok();
}

Result<int64_t> RegionRules::at_or(const std::vector<int64_t>& values, int i, int64_t fallback,
                                   const char* name) const {
  if (values.empty()) return fallback;
  const size_t place = values.size() == 1 ? 0 : static_cast<size_t>(i);
  if (place >= values.size()) return fail(std::string(name) + " has too few entries");
  if (values[place] < 1 || values[place] > kMaxWindow) {
    return fail(std::string(name) + " " + std::to_string(values[place]) + " must be in 1.." +
                std::to_string(kMaxWindow));
  }
  return values[place];
}

Result<InputDim> RegionRules::window(int axis, size_t input, int64_t kernel, int64_t stride) const {
  const int64_t extent = shapes_[input][axis];
  const int64_t covered = (op_.shape[axis] - 1) * stride + kernel;
  const int64_t padding = std::max<int64_t>(covered - extent, 0);
  if (padding >= kernel || extent - covered >= stride) {
    return misfit(input, "does not give extent " + std::to_string(op_.shape[axis]) +
                             " in dimension " + std::to_string(axis) + " with kernel " +
                             std::to_string(kernel) + " and stride " + std::to_string(stride));
  }
  const int64_t before = padding / 2;
  return InputDim{.axis = axis, .stride = stride, .before = before, .after = kernel - 1 - before};
}

Status RegionRules::set_windows_work(const std::vector<int64_t>& kernel, int64_t in_channels,
                                     bool is_pool) {
  double size = 1;
  for (const int64_t k : kernel) size *= static_cast<double>(k);
  const int64_t per_group = is_pool ? 1 : std::max<int64_t>(in_channels / attributes_.groups, 1);
  op_.flops = count(op_.shape) * size * (is_pool ? 1 : 2 * static_cast<double>(per_group));
  if (is_pool) return Status::ok();
  const bool has_channels = rank() == static_cast<int>(kernel.size()) + 2;
  const double weights = size * static_cast<double>(per_group * (has_channels ? op_.shape[1] : 1));
  if (weights > kMaxElements) return fail("its weights are too many to count");
  op_.weight_elements = static_cast<int64_t>(weights);
  op_.weight_axes = has_channels ? 2 : 0;
  op_.reduction = has_channels && attributes_.groups == 1 ? std::max<int64_t>(in_channels, 1) : 1;
  return Status::ok();
}

Status RegionRules::windows(int spatial, bool is_pool) {
  EDDY_RETURN_IF_ERROR(expect_inputs(0, 1));
  const bool may_lack_channels = spatial == 1 && op_.type == "conv1d";
  if (rank() != spatial + 2 && !(may_lack_channels && rank() == 2)) {
    return fail("needs a shape of " + std::string(may_lack_channels ? "2 or " : "") +
                std::to_string(spatial + 2) + " dimensions");
  }
  if (attributes_.kernel.empty()) return fail("needs \"kernel\"");
  const int first = rank() - spatial;
  if (!shapes_.empty() && shapes_[0].rank() != rank()) return misfit(0, "has another rank");
  if (!shapes_.empty() && shapes_[0][0] != op_.shape[0]) return misfit(0, "has another batch");
  std::vector<int64_t> kernel;
  for (int s = 0; s < spatial; ++s) {
    EDDY_ASSIGN_OR_RETURN(const int64_t k, at_or(attributes_.kernel, s, 1, "kernel"));
    EDDY_ASSIGN_OR_RETURN(const int64_t stride, at_or(attributes_.stride, s, 1, "stride"));
    kernel.push_back(k);
    if (shapes_.empty()) continue;
    EDDY_ASSIGN_OR_RETURN(op_.inputs[0].dims[static_cast<size_t>(first + s)],
                          window(first + s, 0, k, stride));
  }
  int64_t in_channels = std::max<int64_t>(attributes_.in_channels, 1);
  if (first == 2 && !shapes_.empty()) in_channels = shapes_[0][1];
  if (attributes_.groups < 1 || in_channels % attributes_.groups != 0) {
    return fail("groups " + std::to_string(attributes_.groups) + " do not divide the channels");
  }
  if (is_pool && !shapes_.empty() && shapes_[0][1] != op_.shape[1]) {
    return misfit(0, "has another number of channels");
  }
  EDDY_RETURN_IF_ERROR(set_windows_work(kernel, in_channels, is_pool));
  if (shapes_.empty()) return Status::ok();
  op_.inputs[0].dims[0] = along(0);
  const bool is_depthwise =
      attributes_.groups > 1 && attributes_.groups == in_channels && op_.shape[1] == in_channels;
  if (first == 2) {
    op_.inputs[0].dims[1] = is_pool || is_depthwise   ? along(1)
                            : attributes_.groups == 1 ? along(rank())
                                                      : whole();
  }
  return Status::ok();
}

Status RegionRules::global_pool() {
  EDDY_RETURN_IF_ERROR(expect_inputs(0, 1));
  if (!shapes_.empty()) {
    for (int k = 0; k < std::min(2, std::min(rank(), shapes_[0].rank())); ++k) {
      if (shapes_[0][k] != op_.shape[k]) return misfit(0, "has another batch or channels");
      op_.inputs[0].dims[static_cast<size_t>(k)] = along(k);
    }
    op_.flops = count(shapes_[0]);
  }
  return Status::ok();
}

Status RegionRules::concat() {
  EDDY_ASSIGN_OR_RETURN(const int at,
                        axis(attributes_.axes.empty() ? 1 : attributes_.axes[0], rank()));
  int64_t offset = 0;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i].rank() != rank()) return misfit(i, "has another rank");
    for (int k = 0; k < rank(); ++k) {
      if (k != at && shapes_[i][k] != op_.shape[k]) {
        return misfit(i, "differs in dimension " + std::to_string(k));
      }
      op_.inputs[i].dims[static_cast<size_t>(k)] = along(k);
    }
    auto& dim = op_.inputs[i].dims[static_cast<size_t>(at)];
    dim.before = offset;
    dim.after = -offset;
    offset += shapes_[i][at];
  }
  if (!shapes_.empty() && offset != op_.shape[at]) {
    return fail("its inputs add up to " + std::to_string(offset) + " along axis " +
                std::to_string(at));
  }
  return Status::ok();
}

Status RegionRules::normalized() {
  EDDY_RETURN_IF_ERROR(elementwise());
  if (rank() == 0) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int at,
                        axis(attributes_.axes.empty() ? -1 : attributes_.axes[0], rank()));
  const int last = op_.type.ends_with("oftmax") ? at : rank() - 1;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    for (int k = at; k <= last && k < shapes_[i].rank(); ++k) {
      op_.inputs[i].dims[static_cast<size_t>(k)] = whole();
    }
  }
  op_.flops = 4 * count(op_.shape);
  return Status::ok();
}

Status RegionRules::transpose() {
  EDDY_RETURN_IF_ERROR(expect_inputs(0, 1));
  if (shapes_.empty()) return Status::ok();
  std::vector<int64_t> perm = attributes_.perm;
  for (int k = rank() - 1; perm.size() < static_cast<size_t>(rank()); --k) perm.push_back(k);
  if (shapes_[0].rank() != rank() || perm.size() != static_cast<size_t>(rank())) {
    return misfit(0, "has another rank");
  }
  for (int d = 0; d < rank(); ++d) {
    EDDY_ASSIGN_OR_RETURN(const int from, axis(perm[static_cast<size_t>(d)], rank()));
    if (shapes_[0][from] != op_.shape[d]) return misfit(0, "is no permutation of it");
    op_.inputs[0].dims[static_cast<size_t>(from)] = along(d);
  }
  return Status::ok();
}

Status RegionRules::reduce() {
  if (shapes_.empty()) return Status::ok();
  const Dims& from = shapes_[0];
  uint32_t reduced = attributes_.axes.empty() ? ~0u : 0;
  for (const int64_t given : attributes_.axes) {
    EDDY_ASSIGN_OR_RETURN(const int at, axis(given, from.rank()));
    reduced |= 1u << at;
  }
  const bool keeps = from.rank() == rank();
  int d = 0;
  for (int k = 0; k < from.rank(); ++k) {
    const bool is_reduced = (reduced >> k & 1) != 0;
    if (!is_reduced) {
      if (d >= rank() || op_.shape[d] != from[k]) return misfit(0, "does not reduce to it");
      op_.inputs[0].dims[static_cast<size_t>(k)] = along(d);
    }
    if (keeps || !is_reduced) ++d;
  }
  op_.flops = count(from);
  return Status::ok();
}

// Leading dimensions that stay the same are read alike, all others whole.
Status RegionRules::reshape() {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    for (int k = 0; k < std::min(rank(), shapes_[i].rank()); ++k) {
      if (shapes_[i][k] != op_.shape[k]) break;
      op_.inputs[i].dims[static_cast<size_t>(k)] = along(k);
    }
  }
  return Status::ok();
}

Status RegionRules::all() {
  op_.flops = count(op_.shape);
  return Status::ok();
}

bool may_overwrite_input(const OpTable* ops_or_null, const std::string& type) {
  const OpDef* def = ops_or_null == nullptr ? nullptr : ops_or_null->find_or_null("", type, 22);
  return def != nullptr && def->in_place_inputs != 0;
}

Status apply(Operator& op, RegionRules& rules, const OperatorAttributes& attributes,
             const OpTable* ops_or_null) {
  const std::string_view type = op.type;
  if (type == "elementwise") return rules.elementwise();
  if (is_one_of(type, {"matmul", "MatMul", "Gemm"})) return rules.product();
  if (type == "conv1d") return rules.windows(1, false);
  if (type == "conv2d") return rules.windows(2, false);
  if (ops_or_null != nullptr && !ops_or_null->knows("", type)) {
    return unsupported("operator '" + op.name + "': type '" + op.type +
                       "' is unknown; use elementwise, matmul, conv1d, conv2d or an ONNX operator");
  }
  if (type == "Conv") return rules.windows(op.shape.rank() - 2, false);
  if (is_one_of(type, {"MaxPool", "AveragePool", "LpPool"})) {
    return rules.windows(op.shape.rank() - 2, true);
  }
  if (type.starts_with("Global") && type.ends_with("Pool")) return rules.global_pool();
  if (type == "Concat") return rules.concat();
  if (is_one_of(type, {"Softmax", "LogSoftmax", "LayerNormalization"})) return rules.normalized();
  if (type == "Transpose") return rules.transpose();
  if (type.starts_with("Reduce") || is_one_of(type, {"ArgMax", "ArgMin"})) {
    if (!attributes.axes.empty() || type.starts_with("Reduce")) return rules.reduce();
  }
  if (is_one_of(type, {"Reshape", "Flatten", "Squeeze", "Unsqueeze"})) return rules.reshape();
  if (may_overwrite_input(ops_or_null, op.type)) return rules.elementwise();
  return rules.all();
}

}  // namespace

Status set_regions(Operator& op, const OperatorAttributes& attributes,
                   const std::vector<Dims>& shapes, const OpTable* ops_or_null) {
  for (const int64_t dim : op.shape) {
    if (dim >= 1 && dim <= kMaxExtent) continue;
    return invalid_argument("operator '" + op.name + "': the size " + std::to_string(dim) +
                            " in its shape must be in 1..2^31");
  }
  if (count(op.shape) > kMaxElements) {
    return invalid_argument("operator '" + op.name + "': the shape " + to_string(op.shape) +
                            " has more elements than can be counted");
  }
  op.read_elements = 0;
  for (const Dims& shape : shapes) op.read_elements += count(shape);
  RegionRules rules(op, attributes, shapes);
  EDDY_RETURN_IF_ERROR(apply(op, rules, attributes, ops_or_null));
  if (op.flops > kMaxFlops) {
    return invalid_argument("operator '" + op.name + "': its work is too large to count");
  }
  EDDY_DCHECK(
      std::ranges::all_of(op.inputs,
                          [&](const OperatorInput& input) {
                            return std::ranges::all_of(input.dims, [&](const InputDim& dim) {
                              return dim.axis >= InputDim::kAll && dim.axis <= op.shape.rank();
                            });
                          }))
      << op.name << " reads along an axis that it does not have";
  EDDY_CHECK(op.reduction >= 1 && op.weight_elements >= 0)
      << op.name << " sums over " << op.reduction << " and has " << op.weight_elements;
  return Status::ok();
}

}  // namespace eddy
