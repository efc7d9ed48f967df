// A JSON file as a document, with errors in one line that say where.
//
// Numbers keep what they are: an integer that no 64-bit integer holds is an error, not a rounded
// fraction. NaN and infinities are no JSON, and the message names them.
// Errors: invalid argument; nesting beyond kMaxJsonDepth, before memory is taken for it.
// Cost: linear; some 600 bytes a task of a task file.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "graph/base/status.h"

namespace eddy {

// Lists and objects in each other.
inline constexpr int kMaxJsonDepth = 1000;

Result<nlohmann::json> parse_json_document(std::string_view text);

}  // namespace eddy
