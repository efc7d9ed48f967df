// FileBytes: the content of a file as one span, mapped when it is big, read when it is small.
//
// read_file() opens what its caller named, wherever it is. open_beneath() is for names that come
// out of a model file: it reaches only regular files below the given folder, through no symbolic
// link, with no second hard link, whatever the name is.
//
// A mapped file must not be shortened while the bytes are used (the kernel then raises SIGBUS);
// files below `map_from_bytes` are copied and have no such condition.
//
// Errors: kNotFound (no such file), kInvalidArgument (not a regular file, outside the folder, a
// link), kResourceExhausted (longer than the limit). Threads: const access from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

class FileBytes : public Blob {
 public:
  ~FileBytes() override;
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::span<const std::byte> bytes() const override { return {data_, size_}; }
  void evict() override;

  // Takes the open descriptor over. `name` is for messages.
  static Result<std::unique_ptr<FileBytes>> from_descriptor(int descriptor, const std::string& name,
                                                            uint64_t max_bytes, bool refuse_links);
  // A copy of bytes already in memory.
  static std::unique_ptr<FileBytes> copy_of(std::span<const std::byte> bytes);

 private:
  FileBytes() = default;
  Status allocate(size_t size);

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool is_mapped_ = false;
};

Result<std::unique_ptr<FileBytes>> read_file(const std::string& path, uint64_t max_bytes);
Result<std::unique_ptr<FileBytes>> open_beneath(const std::string& folder,
                                                const std::string& location, uint64_t max_bytes);

// Creates or replaces the file.
Status write_file(const std::string& path, std::string_view content);

}  // namespace eddy
