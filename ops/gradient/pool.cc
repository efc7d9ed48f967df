// Pools. Averages spread over their windows, maxima go to the first element that is one.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/term.h"
#include "ops/gradient/windows.h"

namespace eddy {
namespace {

// All channels as images of one: [N * C, 1, ...].
Value one_by_one(GradientContext& c, Value value, Value sizes) {
  return c.op("Reshape",
              {value, c.op("Concat", {c.int64s({-1, 1}), sizes}, {{"axis", int64_t{0}}})});
}

Value kernel_of_ones(GradientContext& c, const Windows& windows) {
  Dims dims{1, 1};
  for (int i = 0; i < windows.rank; ++i) dims.push_back(windows[i].kernel);
  return c.op("Expand", {c.number(1), c.int64s(dims.span())});
}

// How many elements each window averages: all, those of the padded image, or those of the image.
// With ceil_mode the last window may reach beyond the padding.
Term window_counts(GradientContext& c, const Windows& windows, Value sizes, Value out_sizes) {
  WindowLists lists = lists_of(windows);
  const bool has_pads = std::ranges::any_of(lists.pads, [](int64_t pad) { return pad != 0; });
  const bool counts_padding = c.attributes().get_int("count_include_pad", 0) != 0;
  if (!windows.ceil_mode && (!has_pads || counts_padding)) {
    double count = 1;
    for (const int64_t size : lists.kernel) count *= static_cast<double>(size);
    return {c, c.number(count)};
  }
  const size_t rank = static_cast<size_t>(windows.rank);
  if (counts_padding) {
    std::vector<int64_t> both(rank);
    for (size_t i = 0; i < rank; ++i) both[i] = lists.pads[i] + lists.pads[rank + i];
    sizes = c.op("Add", {sizes, c.int64s(both)});
    std::ranges::fill(lists.pads, 0);
  }
  if (windows.ceil_mode) {
    for (size_t i = 0; i < rank; ++i) lists.pads[rank + i] += lists.strides[i] - 1;
  }
  const Value shape = c.op("Concat", {c.int64s({1, 1}), sizes}, {{"axis", int64_t{0}}});
  const Value ones = c.op("Expand", {c.number(1), shape});
  Value counts =
      c.op("Conv", {ones, kernel_of_ones(c, windows)},
           {{"strides", lists.strides}, {"dilations", lists.dilations}, {"pads", lists.pads}});
  if (windows.ceil_mode) {
    const std::vector<int64_t> begins(rank, 0);
    counts = c.op("Slice", {counts, c.int64s(begins), out_sizes,
                            c.int64s(axes_between(2, static_cast<int64_t>(rank) + 2))});
    counts = c.op("Max", {counts, c.number(1)});  // a window may see no element
  }
  return {c, counts};
}

void average_pool_gradient(GradientContext& c) {
  const auto windows = windows_of(c, c.input_type(0), nullptr);
  if (!windows) return;
  const Value sizes = spatial_sizes(c, 0);
  const Value out_sizes = c.op("Shape", {c.gradient()}, {{"start", int64_t{2}}});
  const Term g{c, one_by_one(c, c.gradient(), out_sizes)};
  const Term each = g / window_counts(c, *windows, sizes, out_sizes);
  const Value image =
      spread_windows(c, each.value(), kernel_of_ones(c, *windows), *windows, 1, sizes);
  c.set_gradient(0, reshape_to_input(c, image, 0));
}

// Whether each window has an element: padding is narrower than a window without gaps.
bool is_never_empty(const Attributes& attributes) {
  const std::span<const int64_t> kernel = attributes.get_ints("kernel_shape");
  const std::span<const int64_t> pads = attributes.get_ints("pads");
  const auto is_one = [](int64_t dilation) { return dilation == 1; };
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] >= kernel[i % kernel.size()]) return false;
  }
  return attributes.get_int("ceil_mode", 0) == 0 &&
         attributes.get_string("auto_pad", "NOTSET") == "NOTSET" &&
         std::ranges::all_of(attributes.get_ints("dilations"), is_one);
}

// The Relu whose result is pooled; null: something else is.
const Node* relu_or_null(const GraphBuilder& builder, Value pooled) {
  const Node* const node = builder.producer_or_null(pooled);
  const bool is_relu = node != nullptr && node->kind == NodeKind::kExec &&
                       node->op->domain.empty() && node->op->name == "Relu";
  return is_relu ? node : nullptr;
}

// With the maxima's places. The largest of what Relu makes is Relu of the largest, which has the
// same adjoint and fewer elements to compare on the way back.
std::vector<Value> max_pool_with_places(GraphBuilder& builder, const Node& call, ValueSpan inputs) {
  const Node* const relu = relu_or_null(builder, inputs[0]);
  if (relu != nullptr && is_never_empty(call.attributes)) {
    const OpOptions as_relu{
        .name = call.name + "/Relu", .opset_version = relu->opset_version, .device = call.device};
    const Value x{relu->inputs[0]};
    std::vector<Value> made = max_pool_with_places(builder, call, {&x, 1});
    made[0] = builder.op("Relu", {made[0]}, {}, as_relu);
    return made;
  }
  Attributes attributes;
  for (const auto& [name, value] : call.attributes.entries()) {
    if (name != "storage_order") attributes.set(name, value);
  }
  constexpr int kFirstWithPlaces = 8;
  return builder.ops("MaxPool", inputs, std::move(attributes),
                     {.name = call.name,
                      .opset_version = std::max(call.opset_version, kFirstWithPlaces),
                      .num_outputs = 2,
                      .device = call.device});
}

// Places of an image whose last axis is the slowest, as the rows of ONNX have them.
Value by_rows(GradientContext& c, Value places) {
  EDDY_DCHECK(c.input_type(0).is_ranked) << "places of an image of unknown rank";
  const Value sizes = spatial_sizes(c, 0);
  const int rank = c.input_type(0).dims.rank() - 2;
  std::vector<Value> axes;
  Value rest = places;
  for (int i = 0; i < rank; ++i) {
    const Value size = c.op("Gather", {sizes, c.int64s({i})});
    axes.push_back(c.op("Mod", {rest, size}));
    rest = c.op("Div", {rest, size});
  }
  for (int i = 0; i < rank; ++i) {
    const Value size = c.op("Gather", {sizes, c.int64s({i})});
    rest = c.op("Add", {c.op("Mul", {rest, size}), axes[static_cast<size_t>(i)]});
  }
  return rest;
}

void max_pool_gradient(GradientContext& c) {
  const bool is_by_columns = c.attributes().get_int("storage_order", 0) != 0;
  if (is_by_columns && c.rank_or_fail(c.input_type(0), "X") < 0) return;
  const Value places = c.output(1);
  add_at_places(c, is_by_columns ? by_rows(c, places) : places, c.gradient());
}

void global_average_gradient(GradientContext& c) {
  const Value sizes = spatial_sizes(c, 0);
  const Value count = c.cast(c.op("ReduceProd", {sizes}, {{"keepdims", int64_t{0}}}), c.element());
  c.set_gradient(0, c.op("Expand", {c.op("Div", {c.gradient(), count}), c.input_shape(0)}));
}

void global_max_gradient(GradientContext& c) {
  const Value rows = c.int64s({0, 0, -1});
  const Value first = c.op("ArgMax", {c.op("Reshape", {c.input(0), rows})},
                           {{"axis", int64_t{2}}, {"keepdims", int64_t{1}}});
  const Value sum = c.op("Reshape", {c.take_sum(0), rows});
  const Value g = c.op("Reshape", {c.gradient(), rows});
  const Value added = c.op("ScatterElements", {sum, first, g},
                           {{"axis", int64_t{2}}, {"reduction", std::string("add")}});
  c.set_gradient(0, reshape_to_input(c, added, 0));
}

}  // namespace

Status add_pool_gradients(GradientTable& table) {
  const GradientReads shape{.input_shapes = 1}, image{.inputs = 1, .input_shapes = 1};
  const GradientReads places{.outputs = 2, .input_shapes = 1};
  return add_rules(table,
                   {{.op = "AveragePool", .reads = {shape}, .build = average_pool_gradient},
                    {.op = "MaxPool",
                     .reads = {places},
                     .build = max_pool_gradient,
                     .expand = max_pool_with_places},
                    {.op = "GlobalAveragePool", .reads = {shape}, .build = global_average_gradient},
                    {.op = "GlobalMaxPool", .reads = {image}, .build = global_max_gradient}});
}

}  // namespace eddy
