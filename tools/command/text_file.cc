#include "tools/command/text_file.h"

#include <iostream>
#include <iterator>

#include "graph/io/file_bytes.h"

namespace eddy {

Result<std::string> read_text(const std::string& path, uint64_t max_bytes) {
  EDDY_ASSIGN_OR_RETURN(const auto file, read_file(path, max_bytes));
  const auto bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::string> read_text_or_input(const std::string& path, uint64_t max_bytes,
                                       const std::string& remedy) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  auto text = read_text(path, max_bytes);
  if (text.is_ok()) return text;
  return Status(text.status().code(), text.status().message() + remedy);
}

}  // namespace eddy
