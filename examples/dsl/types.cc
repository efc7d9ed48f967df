#include "examples/dsl/types.h"

namespace dsl {

const char* name_of(eddy_element element) {
  return element == kInt ? "int" : element == kReal ? "real" : "bool";
}

std::string print_type(const eddy_type& type) {
  std::string text = name_of(type.element);
  if (type.rank == EDDY_UNRANKED) return text + "[...]";
  for (int32_t i = 0; i < type.rank; ++i) {
    text += i == 0 ? "[" : ", ";
    text += type.dims[i] < 0 ? "?" : std::to_string(type.dims[i]);
  }
  return text + (type.rank > 0 ? "]" : "");
}

eddy_type join(const eddy_type& a, const eddy_type& b) {
  eddy_type made = a;
  if (a.rank != b.rank) made.rank = EDDY_UNRANKED;
  for (int32_t i = 0; i < made.rank; ++i) {
    if (a.dims[i] != b.dims[i] || a.dims[i] < 0) made.dims[i] = EDDY_UNKNOWN_DIM;
  }
  return made;
}

bool fits(const eddy_type& narrow, const eddy_type& wide) {
  return narrow.element == wide.element && print_type(join(narrow, wide)) == print_type(wide);
}

}  // namespace dsl
