// Small helpers for text that comes from files and callers. Internal to graph/io and runtime/api/c.
#pragma once

#include <string>
#include <string_view>

namespace eddy {

// True for well-formed UTF-8 without control characters (below 0x20, and 0x7f).
bool is_clean_utf8(std::string_view text);
// The same text, with U+FFFD in place of each byte that keeps it from being that.
std::string as_clean_utf8(std::string_view text);

// Text for a message: shortened where it is long, in quotes.
std::string quoted(std::string_view text);
// A file's whole path, in quotes: the reader of the message must find the file.
std::string quoted_path(std::string_view path);

}  // namespace eddy
