// What fuzz targets share. A target is LLVMFuzzerTestOneInput; what must hold is CHECKed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "graph/base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace eddy::fuzz {

inline std::span<const std::byte> as_bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}
inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A failure has a message of one line, and is never a defect of Eddy's own.
inline void expect_one_line(const Status& status) {
  EDDY_CHECK(!status.message().empty()) << "an error without a message";
  EDDY_CHECK(status.message().find('\n') == std::string::npos) << status.to_string();
  EDDY_CHECK(status.code() != StatusCode::kInternal) << status.to_string();
}

}  // namespace eddy::fuzz
