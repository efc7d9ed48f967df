// The rows of unary_list.h as data.
#pragma once

#include <string_view>

#include "graph/ir/element_type.h"
#include "ops/schema/unary_list.h"

namespace eddy {

inline constexpr TypeSet kSignedTypes = kFloatTypes | kSignedIntTypes;

struct FloatAttribute {
  std::string_view name;
  float fallback = 0;
};

struct UnaryOperator {
  std::string_view name;
  int since;
  TypeSet types;
  FloatAttribute attributes[2];  // without a name: none
};

inline constexpr UnaryOperator kUnaryOperators[] = {
#define EDDY_UNARY_DATA(X, name, since, types, kernels, ...) {#name, since, types, {__VA_ARGS__}},
    EDDY_UNARY_OPERATORS(EDDY_UNARY_DATA, )
#undef EDDY_UNARY_DATA
};

}  // namespace eddy
