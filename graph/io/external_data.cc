#include "graph/io/external_data.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "graph/base/check.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

struct Extent {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

Status read_number(const OnnxEntry& entry, uint64_t* value) {
  const char* end = entry.value.data() + entry.value.size();
  const auto [at, error] = std::from_chars(entry.value.data(), end, *value);
  if (error == std::errc() && at == end && !entry.value.empty()) return Status::ok();
  return invalid_argument("external data has " + std::string(entry.key) + " " +
                          quoted(is_clean_utf8(entry.value) ? entry.value : "?") +
                          ", which is not a number of bytes");
}

Result<Extent> read_extent(const OnnxTensor& tensor) {
  Extent extent;
  for (const OnnxEntry& entry : tensor.external_data) {
    if (entry.key == "location") {
      if (!is_clean_utf8(entry.value)) {
        return invalid_argument("the name of an external file is not clean UTF-8 text");
      }
      extent.location = std::string(entry.value);
    } else if (entry.key == "offset") {
      EDDY_RETURN_IF_ERROR(read_number(entry, &extent.offset));
    } else if (entry.key == "length") {
      EDDY_RETURN_IF_ERROR(read_number(entry, &extent.length.emplace()));
    }
  }
  return extent;
}

}  // namespace

Result<std::span<const std::byte>> ExternalData::file(const std::string& location) {
  EDDY_CHECK(locations_.size() == files_.size()) << "the files were handed over";
  if (location.empty() && own_) return *own_;
  if (location.empty()) return invalid_argument("external data names no file");
  const auto known = std::find(locations_.begin(), locations_.end(), location);
  if (known != locations_.end()) {
    return files_[static_cast<size_t>(known - locations_.begin())]->bytes();
  }
  if (folder_.empty()) {
    return invalid_argument("external data in " + quoted(location) +
                            ", but the model came from memory: name its folder in the options");
  }
  EDDY_ASSIGN_OR_RETURN(auto bytes, open_beneath(folder_, location, limits_.max_file_bytes));
  budget_.add_file(bytes->bytes().size());
  locations_.push_back(location);
  files_.push_back(std::move(bytes));
  return files_.back()->bytes();
}

Result<DecodedTensor> ExternalData::load(const OnnxTensor& tensor) {
  EDDY_ASSIGN_OR_RETURN(const TensorLayout layout, layout_of(tensor, limits_));
  EDDY_ASSIGN_OR_RETURN(const Extent extent, read_extent(tensor));
  const uint64_t length = extent.length.value_or(layout.file_bytes);
  EDDY_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, file(extent.location));
  if (extent.offset > bytes.size() || length > bytes.size() - extent.offset) {
    return invalid_argument(
        "external data wants " + std::to_string(length) + " bytes at offset " +
        std::to_string(extent.offset) + " of " +
        (extent.location.empty() ? "the model's own" : quoted(extent.location)) + ", which has " +
        std::to_string(bytes.size()));
  }
  return decode_raw(layout, bytes.subspan(extent.offset, length));
}

}  // namespace eddy
