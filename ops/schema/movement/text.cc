// RegexFullMatch, StringConcat, StringNormalizer, StringSplit and TfIdfVectorizer.
#include <algorithm>
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kText = {ElementType::kString};

// X of one dimension, or of two.
Status read_lines(const InferContext& context, const TensorType*& x) {
  EDDY_ASSIGN_OR_RETURN(x, tensor_input(context, 0));
  if (!x->is_ranked || x->dims.rank() == 1 || x->dims.rank() == 2) return Status::ok();
  return invalid_argument("X must be [words] or [lines, words], not " + to_string(x->dims));
}

Status infer_string_normalizer(InferContext& context) {
  const TensorType* x;
  EDDY_RETURN_IF_ERROR(read_lines(context, x));
  const std::string_view action = context.attributes().get_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    return invalid_argument("case_change_action must be NONE, LOWER or UPPER, not '" +
                            std::string(action) + "'");
  }
  if (!x->is_ranked) {
    context.set_output(0, TensorType(ElementType::kString));
    return Status::ok();
  }
  if (x->dims.rank() == 2 && !merge_dim(x->dims[0], 1)) {
    return invalid_argument("X of two dimensions must be one line [1, words], not " +
                            to_string(x->dims));
  }
  const Dims line = x->dims.rank() == 2 ? Dims{1, kUnknownDim} : Dims{kUnknownDim};
  context.set_output(0, TensorType(ElementType::kString, line));
  return Status::ok();
}

// Where each length's grams begin in the pool, in words; how many grams there are in all.
Status count_grams(const Attributes& attributes, int64_t pool_size, int64_t& num_grams) {
  const std::span<const int64_t> starts = attributes.get_ints("ngram_counts");
  num_grams = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : pool_size;
    const auto length = static_cast<int64_t>(i) + 1;
    if (starts[i] < 0 || end < starts[i] || end > pool_size || (end - starts[i]) % length != 0) {
      return invalid_argument("ngram_counts does not divide a pool of " +
                              std::to_string(pool_size) + " words into grams of " +
                              std::to_string(length));
    }
    num_grams += (end - starts[i]) / length;
  }
  return Status::ok();
}

Status check_vectorizer(const InferContext& context, int64_t& width) {
  const Attributes& attributes = context.attributes();
  const bool has_text = context.input(0).tensor.element == ElementType::kString;
  const auto text = static_cast<int64_t>(attributes.get_strings("pool_strings").size());
  const auto numbers = static_cast<int64_t>(attributes.get_ints("pool_int64s").size());
  if (context.input(0).tensor.element != ElementType::kUndefined &&
      (has_text ? text : numbers) == 0) {
    return invalid_argument(std::string("X needs the attribute ") +
                            (has_text ? "pool_strings" : "pool_int64s"));
  }
  const std::string_view mode = attributes.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return invalid_argument("mode must be TF, IDF or TFIDF, not '" + std::string(mode) + "'");
  }
  const int64_t least = attributes.get_int("min_gram_length", 1);
  const int64_t most = attributes.get_int("max_gram_length", 1);
  const auto lengths = static_cast<int64_t>(attributes.get_ints("ngram_counts").size());
  const int64_t skips = attributes.get_int("max_skip_count", 0);
  if (least < 1 || most < least || most > lengths || skips < 0) {
    return invalid_argument("gram lengths must lie in 1 to the " + std::to_string(lengths) +
                            " of ngram_counts, the least first, and skips not be negative");
  }
  int64_t num_grams = 0;
  EDDY_RETURN_IF_ERROR(count_grams(attributes, has_text ? text : numbers, num_grams));
  const std::span<const int64_t> places = attributes.get_ints("ngram_indexes");
  const auto weights = static_cast<int64_t>(attributes.get_floats("weights").size());
  if (static_cast<int64_t>(places.size()) != num_grams || (weights != 0 && weights != num_grams)) {
    return invalid_argument("ngram_indexes and weights must hold one value for each of " +
                            std::to_string(num_grams) + " grams");
  }
  width = 0;
  for (const int64_t place : places) {
    if (place < 0 || place > INT32_MAX) {
      return invalid_argument("ngram_indexes holds " + std::to_string(place));
    }
    width = std::max(width, place + 1);
  }
  return Status::ok();
}

Status infer_vectorizer(InferContext& context) {
  const TensorType* x;
  int64_t width = 0;
  EDDY_RETURN_IF_ERROR(read_lines(context, x));
  EDDY_RETURN_IF_ERROR(check_vectorizer(context, width));
  TensorType y(ElementType::kFloat);
  if (x->is_ranked) {
    y = TensorType(ElementType::kFloat,
                   x->dims.rank() == 2 ? Dims{x->dims[0], width} : Dims{width});
  }
  context.set_output(0, y);
  return Status::ok();
}

// Y holds the parts of each text, filled up with empty ones; Z how many there are.
Status infer_split(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  const int64_t most = context.attributes().get_int("maxsplit", 0);
  if (most < 0) {
    return invalid_argument("attribute 'maxsplit' is " + std::to_string(most) +
                            "; leave it out to split everywhere");
  }
  TensorType parts(ElementType::kString), counts = *x;
  counts.element = ElementType::kInt64;
  if (x->is_ranked) {
    if (x->dims.rank() == kMaxRank) {
      return unsupported("X of " + std::to_string(kMaxRank) +
                         " dimensions leaves none for the parts");
    }
    Dims dims = x->dims;
    dims.push_back(kUnknownDim);
    parts = TensorType(ElementType::kString, dims);
  }
  context.set_output(0, parts);
  context.set_output(1, counts);
  return Status::ok();
}

Status infer_match(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  TensorType y = *x;
  y.element = ElementType::kBool;
  context.set_output(0, y);
  return Status::ok();
}

}  // namespace

Status add_text_schemas(OpTable& table) {
  return add_schemas(
      table,
      {{.name = "RegexFullMatch",
        .since_version = 20,
        .inputs = {in("X", kText)},
        .attributes = {attribute("pattern", kString, true)},
        .infer = infer_match},
       {.name = "StringConcat",
        .since_version = 20,
        .inputs = {in("X", kText), in("Y", kText)},
        .infer = infer_broadcast},
       {.name = "StringNormalizer",
        .since_version = 10,
        .inputs = {in("X", kText)},
        .attributes = {attribute("case_change_action", kString), flag("is_case_sensitive"),
                       attribute("locale", kString), attribute("stopwords", kStrings)},
        .infer = infer_string_normalizer,
        .is_value_op = true},
       {.name = "StringSplit",
        .since_version = 20,
        .inputs = {in("X", kText)},
        .min_outputs = 1,
        .max_outputs = 2,
        .attributes = {attribute("delimiter", kString), attribute("maxsplit", kInt)},
        .infer = infer_split,
        .is_value_op = true},
       {.name = "TfIdfVectorizer",
        .since_version = 9,
        .inputs = {in("X", kText | TypeSet{ElementType::kInt32, ElementType::kInt64})},
        .attributes = {attribute("max_gram_length", kInt, true),
                       attribute("max_skip_count", kInt, true),
                       attribute("min_gram_length", kInt, true), attribute("mode", kString, true),
                       attribute("ngram_counts", kInts, true),
                       attribute("ngram_indexes", kInts, true), attribute("pool_int64s", kInts),
                       attribute("pool_strings", kStrings), attribute("weights", kFloats)},
        .infer = infer_vectorizer}});
}

}  // namespace eddy
