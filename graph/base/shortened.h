// shortened: how a message shows a name that may be long. Names come from files, and a line that
// holds all of one of thousands of letters hides what the message says.
#pragma once

#include <string>
#include <string_view>

#include "graph/base/status.h"

namespace eddy {

// Of a longer name its beginning and its end, with "..." between; whole letters of UTF-8.
std::string shortened(std::string_view name, size_t most_bytes = 120);

// The status' path, as a message shows it: names of nodes in nodes.
std::string shown_path(const Status& status);

}  // namespace eddy
