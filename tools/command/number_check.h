// The checks of options that take a number, or a name and what it gets. CLI11's own ranges let NaN
// through: it is neither below nor above, and no clock or difference ever reaches it.
//
// In CLI11's form: a function from the text to the reason for a refusal, empty when it is not.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace eddy {

// `what` describes the right value, as in "give a tolerance, 0 or more, not 'nan'".
inline auto check_number(std::string what, double low, double high) {
  return [what = std::move(what), low, high](const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const bool is_fine = !text.empty() && *end == '\0' && number >= low && number <= high;
    return is_fine ? std::string() : fmt::format("give {}, not '{}'", what, text);
  };
}

// `form`: "NAME=FILE".
inline auto check_assignment(std::string form) {
  return [form = std::move(form)](const std::string& text) {
    const size_t equals = text.find('=');
    const bool is_fine = equals != std::string::npos && equals > 0;
    return is_fine ? std::string() : fmt::format("give {}, not '{}'", form, text);
  };
}

// `what`: "a dimension's name".
inline auto check_filled(std::string what) {
  return [what = std::move(what)](const std::string& text) {
    return text.empty() ? fmt::format("give {}", what) : std::string();
  };
}

// CLI11 makes a large number of a negative one, and the largest of what is too large.
inline auto check_seed() {
  return [](const std::string& text) {
    uint64_t seed = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, seed);
    const bool is_fine = error == std::errc() && at == end;
    return is_fine ? std::string()
                   : fmt::format("give a seed, a whole number from 0 to {}, not '{}'", UINT64_MAX,
                                 text);
  };
}

inline auto check_seconds() { return check_number("seconds above 0, at most 1e9", 1e-9, 1e9); }
inline auto check_tolerance() { return check_number("a tolerance, 0 or more", 0, HUGE_VAL); }

}  // namespace eddy
