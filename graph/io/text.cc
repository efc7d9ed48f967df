#include "graph/io/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "graph/base/check.h"
#include "graph/base/shortened.h"

namespace eddy {
namespace {

// Length of the well-formed sequence at `i`, or 0. Refuses overlong forms and surrogates.
size_t sequence_length(std::string_view text, size_t i) {
  EDDY_DCHECK(i < text.size()) << "letter " << i << " of " << text.size();
  const auto at = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
  const uint8_t lead = at(i);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() - i < length) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((at(i + k) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = at(i + 1);
  const bool is_overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool is_outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return is_overlong || is_outside ? 0 : length;
}

// Whether the next eight letters are ASCII and none is a control character; may say no of others.
bool are_eight_plain(std::string_view text, size_t i) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t word;
  if (text.size() - i < sizeof(word)) return false;
  std::memcpy(&word, text.data() + i, sizeof(word));
  // Of a byte: its high bit, a borrow below 0x20, a carry into the high bit at 0x7f.
  return ((word | (word - 0x20 * kOnes) | (word + kOnes)) & (0x80 * kOnes)) == 0;
}

}  // namespace

bool is_clean_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (are_eight_plain(text, i)) {
      i += 8;
      continue;
    }
    const size_t length = sequence_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string as_clean_utf8(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    clean += length == 0 ? "\xef\xbf\xbd" : text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return clean;
}

std::string quoted(std::string_view text) { return "'" + shortened(text) + "'"; }

std::string quoted_path(std::string_view path) {
  constexpr size_t kMaxPath = 4096;  // Linux opens nothing longer
  return "'" + std::string(path.substr(0, kMaxPath)) + "'";
}

}  // namespace eddy
