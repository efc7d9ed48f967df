// import_operators: what the importer itself turns into control flow or constants.
#pragma once

#include <span>
#include <string_view>

namespace eddy {

// The operators of a domain that become control flow while a model is read; no OpTable has them.
std::span<const std::string_view> import_operators(std::string_view domain);

}  // namespace eddy
