// Files that are read as a whole, as text.
//
// Errors: those of graph/io/file_bytes.h, and of a file longer than `max_bytes`.
#pragma once

#include <cstdint>
#include <string>

#include "graph/base/status.h"

namespace eddy {

Result<std::string> read_text(const std::string& path, uint64_t max_bytes);
// The same, or standard input for "-"; `remedy` follows the error: "; --dag takes a JSON file".
Result<std::string> read_text_or_input(const std::string& path, uint64_t max_bytes,
                                       const std::string& remedy);

}  // namespace eddy
