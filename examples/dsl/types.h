// Types: an element type and a shape, whose sizes may be unknown: real[3, ?].
//
// Elements are checked by the language, which chooses operators by them; sizes are inferred by the
// graph as it is built. A type that a program writes down is proved: the inferred one must be as
// narrow or narrower.
#pragma once

#include "runtime/api/c/eddy.hpp"

namespace dsl {

constexpr eddy_element kInt = EDDY_INT64;
constexpr eddy_element kReal = EDDY_DOUBLE;
constexpr eddy_element kBool = EDDY_BOOL;

const char* name_of(eddy_element element);
// "real[3, ?]", "int"; "real[...]" where not even the number of dimensions is known.
std::string print_type(const eddy_type& type);
// The narrowest type that is as wide as both, which have the same elements.
eddy_type join(const eddy_type& a, const eddy_type& b);
// Whether each value of `narrow` is one of `wide`.
bool fits(const eddy_type& narrow, const eddy_type& wide);

}  // namespace dsl
