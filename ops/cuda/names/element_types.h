// The names that kernels carry for the types they compute or move: "f32" of kFloat.
#pragma once

#include <string_view>

#include "graph/ir/types.h"

namespace eddy::cuda {

// Empty where no kernel computes the type.
std::string_view type_suffix(ElementType element);
// kUndefined: no type has it.
ElementType element_type_of(std::string_view suffix);

}  // namespace eddy::cuda
