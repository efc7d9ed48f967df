// CastMap, DictVectorizer and ZipMap of domain ai.onnx.ml, without maps: a map is a pair of lists,
// its keys and its values, and a list of maps with equal keys is a table of their values.
//
//   DictVectorizer(keys [n], values [n]) -> [1, words]    the value of each word, or zero
//   CastMap(keys [n], values [n])        -> [1, n]        the values in the order of their keys
//   ZipMap(X [rows, labels])             -> X             column i holds the values of label i
//
// The standard's node has one input where these have two: the importer reads a graph's input of a
// map type as two inputs (graph/io/importer.h). What looks a key up takes the first that is equal.
#include <string>
#include <vector>

#include "graph/ir/expansion.h"
#include "ops/schema/families.h"
#include "ops/schema/ml/ml.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr ElementType kInt64 = ElementType::kInt64;
constexpr TypeSet kKeyTypes = {ElementType::kInt64, ElementType::kString};
constexpr TypeSet kValueTypes = {ElementType::kInt64, ElementType::kFloat, ElementType::kDouble,
                                 ElementType::kString};
// Enough for any table of words, and no bomb.
constexpr int64_t kMostPlaces = 1 << 20;

// keys and values are lists of one length.
Status check_map(const InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* keys, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* values, tensor_input(context, 1));
  if (!keys->is_ranked || !values->is_ranked) return Status::ok();
  const bool are_lists = keys->dims.rank() == 1 && values->dims.rank() == 1;
  if (are_lists && merge_dim(keys->dims[0], values->dims[0])) return Status::ok();
  return invalid_argument("keys and values of a map must be lists of one length, not " +
                          to_string(keys->dims) + " and " + to_string(values->dims));
}

// The values of `wanted` keys [m], as [1, m]: the place of the first equal key, or the one after
// the last value, where the default is.
Value look_up(Expansion& e, Value wanted, Value keys, Value values, Value fallback) {
  const Value end = e.int64s({1});
  const Value rows = e.op("Unsqueeze", {wanted, end});
  const Value equal = e.cast(e.op("Equal", {rows, keys}), ElementType::kInt32);
  const Value always = e.cast(e.op("Equal", {rows, rows}), ElementType::kInt32);
  const Value found = e.op("Concat", {equal, always}, {{"axis", int64_t{1}}});
  const Value place = e.op("ArgMax", {found}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  const Value all = e.op("Concat", {values, fallback}, {{"axis", int64_t{0}}});
  return e.op("Unsqueeze", {e.op("Gather", {all, place}), e.int64s({0})});
}

// Zero, or the empty text, as a list of one.
Value default_of(Expansion& e, ElementType element) {
  if (element == ElementType::kString) {
    return e.op("Constant", {}, {{"value_strings", std::vector<std::string>{""}}});
  }
  return e.op("Reshape", {e.number(element, 0), e.int64s({1})});
}

Status infer_dict_vectorizer(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_map(context));
  const auto words = context.attributes().get_strings("string_vocabulary");
  const auto numbers = context.attributes().get_ints("int64_vocabulary");
  if (words.empty() == numbers.empty()) {
    return invalid_argument("exactly one of int64_vocabulary and string_vocabulary must hold keys");
  }
  const bool is_text = context.input(0).tensor.element == ElementType::kString;
  if (is_text == words.empty()) {
    return invalid_argument(std::string("the keys are ") + (is_text ? "string" : "int64") +
                            ", but the vocabulary is " + (is_text ? "int64" : "string"));
  }
  const auto size = static_cast<int64_t>(words.size() + numbers.size());
  context.set_output(0, TensorType(context.input(1).tensor.element, {1, size}));
  return Status::ok();
}

void expand_dict_vectorizer(Expansion& e) {
  const auto words = e.attributes().get_strings("string_vocabulary");
  const Value wanted =
      words.empty()
          ? e.int64s(e.attributes().get_ints("int64_vocabulary"))
          : e.op("Constant", {},
                 {{"value_strings", std::vector<std::string>(words.begin(), words.end())}});
  const Value values = e.input(1);
  e.set_output(0, look_up(e, wanted, e.input(0), values, default_of(e, e.element(values))));
}

Result<ElementType> cast_target(const Attributes& attributes) {
  const std::string_view to = attributes.get_string("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return ElementType::kFloat;
  if (to == "TO_INT64") return ElementType::kInt64;
  if (to == "TO_STRING") return ElementType::kString;
  return invalid_argument("cast_to must be TO_FLOAT, TO_INT64 or TO_STRING, not '" +
                          std::string(to.substr(0, 40)) + "'");
}
bool is_sparse(const Attributes& attributes) {
  return attributes.get_string("map_form", "DENSE") == "SPARSE";
}

Status infer_cast_map(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_map(context));
  const Attributes& given = context.attributes();
  EDDY_ASSIGN_OR_RETURN(const ElementType element, cast_target(given));
  const std::string_view form = given.get_string("map_form", "DENSE");
  const int64_t most = given.get_int("max_map", 1);
  if (form != "DENSE" && form != "SPARSE") {
    return invalid_argument("map_form must be DENSE or SPARSE, not '" +
                            std::string(form.substr(0, 40)) + "'");
  }
  if (is_sparse(given) && (most < 1 || most > kMostPlaces)) {
    return invalid_argument("max_map must be from 1 to " + std::to_string(kMostPlaces) + ", not " +
                            std::to_string(most));
  }
  context.set_output(0, TensorType(element, {1, is_sparse(given) ? most : kUnknownDim}));
  return Status::ok();
}

// DENSE: every value, keys ascending. SPARSE: the value of key i at place i, up to max_map.
void expand_cast_map(Expansion& e) {
  const Value keys = e.input(0);
  Result<ElementType> element = cast_target(e.attributes());
  if (!element.is_ok()) return e.fail(element.take_status());
  const Value values = e.cast(e.input(1), *element);
  if (is_sparse(e.attributes())) {
    const auto most = static_cast<double>(e.attributes().get_int("max_map", 1));
    const Value places =
        e.op("Range", {e.number(kInt64, 0), e.number(kInt64, most), e.number(kInt64, 1)});
    return e.set_output(0, look_up(e, places, keys, values, default_of(e, *element)));
  }
  const Value inputs[] = {keys, e.shape(keys)};
  const Value order = e.ops("TopK", inputs, {{"largest", int64_t{0}}}, 2)[1];
  e.set_output(0, e.op("Unsqueeze", {e.op("Gather", {values, order}), e.int64s({0})}));
}

Status infer_zip_map(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const auto words = context.attributes().get_strings("classlabels_strings");
  const auto numbers = context.attributes().get_ints("classlabels_int64s");
  if (words.empty() == numbers.empty()) {
    return invalid_argument(
        "exactly one of classlabels_int64s and classlabels_strings must hold labels");
  }
  context.set_output(0, *x);
  if (!x->is_ranked) return Status::ok();
  const auto size = static_cast<int64_t>(words.size() + numbers.size());
  const int rank = x->dims.rank();
  if ((rank == 1 || rank == 2) && merge_dim(x->dims[rank - 1], size)) return Status::ok();
  return invalid_argument("X must have a column for each of the " + std::to_string(size) +
                          " labels, not the shape " + to_string(x->dims));
}

void expand_zip_map(Expansion& e) { e.set_output(0, e.op("Identity", {e.input(0)})); }

}  // namespace

Status add_ml_map_schemas(OpTable& table) {
  return add_schemas(table,
                     {{.name = "CastMap",
                       .domain = kMlDomain,
                       .inputs = {in("keys", {ElementType::kInt64}),
                                  in("values", {ElementType::kFloat, ElementType::kString})},
                       .attributes = {attribute("cast_to", kString), attribute("map_form", kString),
                                      attribute("max_map", kInt)},
                       .infer = infer_cast_map,
                       .expand = expand_cast_map},
                      {.name = "DictVectorizer",
                       .domain = kMlDomain,
                       .inputs = {in("keys", kKeyTypes), in("values", kValueTypes)},
                       .attributes = {attribute("int64_vocabulary", kInts),
                                      attribute("string_vocabulary", kStrings)},
                       .infer = infer_dict_vectorizer,
                       .expand = expand_dict_vectorizer},
                      {.name = "ZipMap",
                       .domain = kMlDomain,
                       .inputs = {in("X", {ElementType::kFloat})},
                       .attributes = {attribute("classlabels_int64s", kInts),
                                      attribute("classlabels_strings", kStrings)},
                       .infer = infer_zip_map,
                       .expand = expand_zip_map}});
}

}  // namespace eddy
