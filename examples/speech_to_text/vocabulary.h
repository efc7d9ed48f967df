// Vocabulary: tokens become text.
//
// The file has one token a line, UTF-8, its number being the line's. "▁" (U+2581) stands for a
// space and "<0xNN>" for a byte; "<unk>", "<s>" and "</s>", the first three, are no text. One
// space before the first word is dropped. Bytes that are no UTF-8 together become U+FFFD.
//
// Errors: kNotFound when the file cannot be read; kInvalidArgument for a file that does not start
// with the three and for tokens that it does not have. Threads: const use from any number.
// Source: Kudo and Richardson, "SentencePiece" (2018).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy::speech {

class Vocabulary {
 public:
  static Result<Vocabulary> read(const std::string& path);
  static Result<Vocabulary> parse(std::string_view lines);
  Result<std::string> text(std::span<const int64_t> tokens) const;

 private:
  std::vector<std::string> pieces_;  // as bytes of text
};

}  // namespace eddy::speech
