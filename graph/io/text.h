// Small helpers for text that comes from files. Internal to graph/io.
#pragma once

#include <string>
#include <string_view>

namespace eddy {

// True for well-formed UTF-8 without control characters (below 0x20, and 0x7f).
bool is_clean_utf8(std::string_view text);

// Text for a message: cut when long; the second in quotes.
std::string shortened(std::string_view text);
std::string quoted(std::string_view text);
// A file's path in full, so that the reader of the message can find the file.
std::string quoted_path(std::string_view path);

}  // namespace eddy
