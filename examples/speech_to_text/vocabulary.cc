#include "examples/speech_to_text/vocabulary.h"

#include <array>
#include <charconv>
#include <fstream>
#include <iterator>

namespace eddy::speech {
namespace {

constexpr std::array<std::string_view, 3> kNoText = {"<unk>", "<s>", "</s>"};
constexpr std::string_view kSpace = "\u2581";
constexpr std::string_view kReplacement = "\uFFFD";

// The text that a token stands for.
std::string piece_of(std::string_view token) {
  if (token.size() == 6 && token.starts_with("<0x") && token.ends_with(">")) {
    unsigned byte = 0;
    const auto end = token.data() + 5;
    if (std::from_chars(token.data() + 3, end, byte, 16).ptr == end) {
      return std::string(1, static_cast<char>(byte));
    }
  }
  std::string text;
  while (!token.empty()) {
    const size_t size = token.starts_with(kSpace) ? kSpace.size() : 1;
    text += size == 1 ? token.front() : ' ';
    token.remove_prefix(size);
  }
  return text;
}

// Length of the character that `bytes` start with, 0 if they start with none. (Forms longer than
// needed, surrogates and what lies beyond U+10FFFF are none.)
size_t character_bytes(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = at(1);
  const bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return is_wrong ? 0 : size;
}

std::string made_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t size = character_bytes(bytes);
    text += size == 0 ? kReplacement : bytes.substr(0, size);
    bytes.remove_prefix(size == 0 ? 1 : size);
  }
  return text;
}

}  // namespace

Result<Vocabulary> Vocabulary::parse(std::string_view lines) {
  Vocabulary vocabulary;
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  for (size_t at = 0; at <= lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view token = lines.substr(at, end - at);
    const size_t number = vocabulary.pieces_.size();
    if (number < kNoText.size() && token != kNoText[number]) {
      return invalid_argument("line " + std::to_string(number + 1) + " is not '" +
                              std::string(kNoText[number]) + "': it is no vocabulary of tokens");
    }
    vocabulary.pieces_.push_back(number < kNoText.size() ? "" : piece_of(token));
    at = end + 1;
  }
  if (vocabulary.pieces_.size() < kNoText.size()) {
    return invalid_argument("it has fewer than three lines: it is no vocabulary of tokens");
  }
  return vocabulary;
}

Result<Vocabulary> Vocabulary::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string lines{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) return not_found(path + ": it cannot be read");
  Result<Vocabulary> vocabulary = parse(lines);
  if (!vocabulary.is_ok()) return std::move(vocabulary.take_status().prepend_message(path));
  return vocabulary;
}

Result<std::string> Vocabulary::text(std::span<const int64_t> tokens) const {
  std::string bytes;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= static_cast<int64_t>(pieces_.size())) {
      return invalid_argument("the vocabulary of " + std::to_string(pieces_.size()) +
                              " tokens has no token " + std::to_string(token));
    }
    bytes += pieces_[static_cast<size_t>(token)];
  }
  if (bytes.starts_with(' ')) bytes.erase(0, 1);
  return made_utf8(bytes);
}

}  // namespace eddy::speech
