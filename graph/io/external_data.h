// ExternalData: tensors whose bytes stand in files of their own beside the model, or behind it
// where its reader says so.
//
// A file is opened once, with open_beneath() (the only way to open one), and stays until its bytes
// are handed to a graph with release().
//
// Errors: as open_beneath; kInvalidArgument when offset and length do not fit the file or the
// shape. Threads: one at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/io/decode_tensor.h"
#include "graph/io/file_bytes.h"
#include "graph/io/memory_budget.h"

namespace eddy {

class ExternalData {
 public:
  // `folder`: where the model lies; empty when it came from memory (then any use is an error).
  // Files that are opened add to the budget.
  ExternalData(std::string folder, const ImportLimits& limits, MemoryBudget& budget)
      : folder_(std::move(folder)), limits_(limits), budget_(budget) {}

  // What tensors without a location stand in; it outlives what is decoded.
  void set_own(std::span<const std::byte> data) { own_ = data; }

  Result<DecodedTensor> load(const OnnxTensor& tensor);

  // Evicts the pages of all files opened so far from memory until they are read again.
  void evict() {
    for (const auto& file : files_) file->evict();
  }
  // The files opened so far; tensors decoded from them point into these.
  std::vector<std::unique_ptr<FileBytes>> release() { return std::move(files_); }

 private:
  Result<std::span<const std::byte>> file(const std::string& location);

  std::string folder_;
  const ImportLimits& limits_;
  MemoryBudget& budget_;
  std::optional<std::span<const std::byte>> own_ = {};
  std::vector<std::string> locations_;  // of files_
  std::vector<std::unique_ptr<FileBytes>> files_;
};

}  // namespace eddy
