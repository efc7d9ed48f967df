#include "ops/cuda/text/element_functions.h"

#include <algorithm>

#include "ops/cuda/names/element_types.h"
#include "ops/cuda/names/kernel_list.h"

namespace eddy::cuda {
namespace {

struct ListedFunction {
  std::string_view name;
  ElementCall call;
  bool is_test;  // gives bool
};

constexpr ListedFunction kFunctions[] = {
#define EDDY_LISTED_BINARY(op, type) {#op "_" #type, ElementCall::kBinary, false},
#define EDDY_LISTED_COMPARE(op, type) {#op "_" #type, ElementCall::kBinary, true},
#define EDDY_LISTED_UNARY(op, type) {#op "_" #type, ElementCall::kUnary, false},
#define EDDY_LISTED_TEST(op, type) {#op "_" #type, ElementCall::kUnary, true},
#define EDDY_LISTED_TERNARY(op, type) {#op "_" #type, ElementCall::kTernary, false},
#define EDDY_LISTED_WORDS(size, word)
    EDDY_CUDA_KERNELS(EDDY_LISTED) EDDY_CUDA_ACTIVATIONS(EDDY_LISTED)};

std::optional<ElementSignature> cast_signature(std::string_view types) {
  const size_t at = types.find('_');
  if (at == std::string_view::npos) return std::nullopt;
  const ElementType from = element_type_of(types.substr(0, at));
  const ElementType to = element_type_of(types.substr(at + 1));
  if (from == ElementType::kUndefined || to == ElementType::kUndefined) return std::nullopt;
  return ElementSignature{ElementCall::kCast, "Cast", 1, {from}, to};
}

std::optional<ElementSignature> where_signature(std::string_view suffix) {
  const ElementType type = element_type_of(suffix);
  if (type == ElementType::kUndefined) return std::nullopt;
  return ElementSignature{ElementCall::kWhere, "Where", 3, {ElementType::kBool, type, type}, type};
}

}  // namespace

std::vector<std::string_view> element_function_names() {
  std::vector<std::string_view> names;
  for (const ListedFunction& function : kFunctions) names.push_back(function.name);
  return names;
}

std::optional<ElementSignature> element_signature(std::string_view name) {
  if (name.starts_with("Cast_")) return cast_signature(name.substr(5));
  if (name.starts_with("Where_")) return where_signature(name.substr(6));
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [&](const ListedFunction& f) { return f.name == name; });
  if (found == std::end(kFunctions)) return std::nullopt;
  const size_t at = found->name.rfind('_');
  const ElementType type = element_type_of(found->name.substr(at + 1));
  const size_t count = found->call == ElementCall::kBinary    ? 2
                       : found->call == ElementCall::kTernary ? 3
                                                              : 1;
  return ElementSignature{found->call,
                          found->name.substr(0, at),
                          count,
                          {type, type, type},
                          found->is_test ? ElementType::kBool : type};
}

}  // namespace eddy::cuda
