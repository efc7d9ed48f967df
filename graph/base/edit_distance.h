// edit_distance: how many letters have to be put in, taken out or exchanged to make one text of the
// other (Levenshtein 1966), for messages that name what was perhaps meant.
//
// Cost: time of one length times the other, memory of the second. Threads: pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace eddy {

size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace eddy
