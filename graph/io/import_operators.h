// import_operators: what the importer itself turns into other nodes or constants.
#pragma once

#include <span>
#include <string_view>

namespace eddy {

// The operators of a domain that become other nodes while a model is read, as graphs stand among
// their attributes; no OpTable has them.
std::span<const std::string_view> import_operators(std::string_view domain);
// The domains that have such operators.
std::span<const std::string_view> import_domains();

}  // namespace eddy
