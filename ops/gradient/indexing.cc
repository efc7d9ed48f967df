// Gathering adds the adjoint at the places that were read, to the sum so far and in place; where
// several read one place, all are added. Scattering gathers it.
#include "graph/base/check.h"
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"

namespace eddy {
namespace {

const AttributeValue kAdd = std::string("add");

// Along axis 0 the rows that were read; other axes are turned to the front and back.
void gather_gradient(GradientContext& c) {
  const int64_t given = c.attributes().get_int("axis", 0);
  const Value places = c.op("Unsqueeze", {c.input(1), c.int64s({-1})});
  const Attributes add = {{"reduction", kAdd}};
  if (given == 0) {
    c.set_gradient(0, c.op("ScatterND", {c.take_sum(0), places, c.gradient()}, add));
    return;
  }
  const int rank = c.rank_or_fail(c.input_type(0), "the data");
  const int num_places = c.rank_or_fail(c.input_type(1), "the indices");
  if (rank < 0 || num_places < 0) return;
  const int64_t axis = place_of(given, rank);
  EDDY_DCHECK(axis >= 0 && axis < rank) << "axis " << given << " of " << rank;
  std::vector<int64_t> to_front = {axis}, back(static_cast<size_t>(rank));
  for (int64_t k = 0; k < rank; ++k) {
    if (k != axis) to_front.push_back(k);
  }
  for (size_t k = 0; k < to_front.size(); ++k) {
    back[static_cast<size_t>(to_front[k])] = static_cast<int64_t>(k);
  }
  std::vector<int64_t> rows = axes_between(axis, axis + num_places);
  for (int64_t k = 0; k < rank - 1 + num_places; ++k) {
    if (k < axis || k >= axis + num_places) rows.push_back(k);
  }
  const Value sum = c.op("Transpose", {c.take_sum(0)}, {{"perm", to_front}});
  const Value g = c.op("Transpose", {c.gradient()}, {{"perm", rows}});
  const Value added = c.op("ScatterND", {sum, places, g}, add);
  c.set_gradient(0, c.op("Transpose", {added}, {{"perm", back}}));
}

void gather_elements_gradient(GradientContext& c) {
  const int64_t axis = c.attributes().get_int("axis", 0);
  c.set_gradient(0, c.op("ScatterElements", {c.take_sum(0), c.input(1), c.gradient()},
                         {{"axis", axis}, {"reduction", kAdd}}));
}

void gather_nd_gradient(GradientContext& c) {
  if (c.attributes().get_int("batch_dims", 0) != 0) {
    c.fail(unsupported("the gradient of GatherND with batch_dims is not known; use batch_dims=0"));
    return;
  }
  c.set_gradient(
      0, c.op("ScatterND", {c.take_sum(0), c.input(1), c.gradient()}, {{"reduction", kAdd}}));
}

// Places that are written lose what was there; `add` keeps it.
bool scatter_adds(GradientContext& c, bool& adds) {
  const std::string_view reduction = c.attributes().get_string("reduction", "none");
  adds = reduction == "add";
  if (adds || reduction == "none") return true;
  c.fail(unsupported("the gradient of " + c.op_name() + " with reduction=" +
                     std::string(reduction) + " is not known; use none or add"));
  return false;
}

void scatter_elements_gradient(GradientContext& c) {
  bool adds = false;
  if (!scatter_adds(c, adds)) return;
  const Attributes along = {{"axis", c.attributes().get_int("axis", 0)}};
  if (c.wants(0)) {
    c.set_gradient(0, adds
                          ? c.gradient()
                          : c.op("ScatterElements",
                                 {c.gradient(), c.input(1), zeros_of(c, c.input_shape(2))}, along));
  }
  if (c.wants(2)) c.set_gradient(2, c.op("GatherElements", {c.gradient(), c.input(1)}, along));
}

void scatter_nd_gradient(GradientContext& c) {
  bool adds = false;
  if (!scatter_adds(c, adds)) return;
  if (c.wants(0)) {
    c.set_gradient(
        0, adds ? c.gradient()
                : c.op("ScatterND", {c.gradient(), c.input(1), zeros_of(c, c.input_shape(2))}));
  }
  if (c.wants(2)) c.set_gradient(2, c.op("GatherND", {c.gradient(), c.input(1)}));
}

void compress_gradient(GradientContext& c) {
  Attributes attributes;
  if (c.attributes().has("axis")) attributes.set("axis", c.attributes().get_int("axis", 0));
  add_at_places(c, c.op("Compress", {flat_places(c), c.input(1)}, attributes), c.gradient());
}

// Of the values; their places are output 1.
void top_k_gradient(GradientContext& c) {
  const int64_t axis = c.attributes().get_int("axis", -1);
  c.set_gradient(0, c.op("ScatterElements", {c.take_sum(0), c.output(1), c.gradient()},
                         {{"axis", axis}, {"reduction", kAdd}}));
}

// Of values = [off, on]: what lies at the marked places is `on`'s, the rest `off`'s.
void one_hot_gradient(GradientContext& c) {
  const Value ends = c.op("Concat",
                          {c.op("Reshape", {c.number(0), c.int64s({1})}),
                           c.op("Reshape", {c.number(1), c.int64s({1})})},
                          {{"axis", int64_t{0}}});
  const Value marked = c.op("OneHot", {c.input(0), c.input(1), ends},
                            {{"axis", c.attributes().get_int("axis", -1)}});
  const Attributes to_scalar = {{"keepdims", int64_t{0}}};
  const auto one = [&](Value value) {
    return c.op("Reshape", {c.op("ReduceSum", {value}, to_scalar), c.int64s({1})});
  };
  const Value on = one(c.op("Mul", {c.gradient(), marked}));
  const Value off = c.op("Sub", {one(c.gradient()), on});
  c.set_gradient(2, c.op("Concat", {off, on}, {{"axis", int64_t{0}}}));
}

}  // namespace

Status add_indexing_gradients(GradientTable& table) {
  const GradientReads gather{.inputs = 2, .input_shapes = 1};
  const GradientReads data{.inputs = 2, .input_shapes = 4}, updates{.inputs = 2};
  const auto scatter = [&](const char* op, GradientFunction build) {
    return GradientRule{.op = op, .reads = {data, kNothingBack, updates}, .build = build};
  };
  const auto read = [&](const char* op, GradientFunction build) {
    return GradientRule{.op = op, .reads = {gather, kNothingBack}, .build = build};
  };
  return add_rules(table, {read("Gather", gather_gradient),
                           read("GatherElements", gather_elements_gradient),
                           read("GatherND", gather_nd_gradient),
                           read("Compress", compress_gradient),
                           scatter("Scatter", scatter_elements_gradient),
                           scatter("ScatterElements", scatter_elements_gradient),
                           scatter("ScatterND", scatter_nd_gradient),
                           {.op = "TopK",
                            .reads = {GradientReads{.outputs = 2, .input_shapes = 1}, kNothingBack},
                            .build = top_k_gradient},
                           {.op = "OneHot",
                            .reads = {kNothingBack, kNothingBack, GradientReads{.inputs = 3}},
                            .build = one_hot_gradient}});
}

}  // namespace eddy
