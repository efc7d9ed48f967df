#include "ops/cpu/images/picture.h"

#include <algorithm>
#include <string_view>

namespace eddy::images {
namespace {

bool starts_with(Bytes bytes, std::string_view magic, size_t at = 0) {
  return bytes.size() >= at + magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

}  // namespace

int64_t most_pixels(size_t num_bytes) {
  const auto size = static_cast<int64_t>(std::min<size_t>(num_bytes, kMostPixels));
  return std::clamp(size * kMostPixelsPerByte, kAlwaysPixels, kMostPixels);
}

bool Picture::resize(int64_t new_height, int64_t new_width, size_t num_bytes) {
  const int64_t most = most_pixels(num_bytes);
  if (new_height < 1 || new_width < 1 || new_height > most / new_width) return false;
  height = new_height;
  width = new_width;
  rgb.assign(static_cast<size_t>(height * width * 3), 0);
  return true;
}

Result<Picture> decode_picture(Bytes bytes) {
  if (starts_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes);
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes);
  if (starts_with(bytes, "BM")) return decode_bmp(bytes);
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return decode_webp(bytes);
  const bool is_pnm = bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6';
  if (is_pnm) return decode_pnm(bytes);
  for (const char* const magic : {"II*\0", "MM\0*", "II+\0", "MM\0+"}) {  // + is of 64 bits
    if (starts_with(bytes, {magic, 4})) return decode_tiff(bytes);
  }
  const bool is_jpeg2000 = starts_with(bytes, "\xff\x4f\xff\x51") ||
                           starts_with(bytes, std::string_view("\0\0\0\x0cjP  ", 8));
  if (is_jpeg2000) return decode_jpeg2000(bytes);
  return Picture{};
}

}  // namespace eddy::images
