// BMP: rows of pixels, from the bottom unless the height is negative, each padded to four bytes;
// colors as bits of a number, or as places in a table.
#include <array>
#include <bit>

#include "ops/cpu/images/picture.h"

namespace eddy::images {
namespace {

enum Compression : uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksAlpha = 6 };

// Little endian; beyond the end it is zero, and header sizes are checked before that matters.
uint32_t read(Bytes bytes, size_t at, int num_bytes) {
  uint32_t value = 0;
  for (int i = 0; i < num_bytes; ++i) {
    const size_t place = at + static_cast<size_t>(i);
    if (place < bytes.size()) value |= static_cast<uint32_t>(bytes[place]) << (8 * i);
  }
  return value;
}

struct Header {
  size_t pixels_at = 0;
  size_t table_at = 0;
  size_t table_entry_bytes = 4;
  int64_t width = 0;
  int64_t height = 0;
  bool from_top = false;
  int bits = 0;
  uint32_t compression = kPlain;
  std::array<uint32_t, 3> masks = {};  // red, green, blue; of 16 and 32 bits
};

bool read_header(Bytes bytes, Header& h) {
  const uint32_t size = read(bytes, 14, 4);
  h.pixels_at = read(bytes, 10, 4);
  h.table_at = size_t{14} + size;
  if (size == 12) {
    h.width = read(bytes, 18, 2);
    h.height = read(bytes, 20, 2);
    h.bits = static_cast<int>(read(bytes, 24, 2));
    h.table_entry_bytes = 3;
  } else {
    if (size < 40 || size > 1024) return false;
    h.width = static_cast<int32_t>(read(bytes, 18, 4));
    h.height = static_cast<int32_t>(read(bytes, 22, 4));
    h.bits = static_cast<int>(read(bytes, 28, 2));
    h.compression = read(bytes, 30, 4);
  }
  h.from_top = h.height < 0;
  if (h.from_top) h.height = -h.height;
  const bool has_masks = h.compression == kMasks || h.compression == kMasksAlpha;
  if (h.bits == 16) h.masks = {0x7c00, 0x03e0, 0x001f};
  if (h.bits == 32) h.masks = {0xff0000, 0xff00, 0xff};
  if (has_masks) {  // behind the header of 40 bytes, or in a longer one: at the same place
    for (size_t i = 0; i < 3; ++i) h.masks[i] = read(bytes, 54 + 4 * i, 4);
    if (size == 40) h.table_at += 12;
  }
  return h.pixels_at <= bytes.size() && h.table_at <= bytes.size();
}

// The bits of a mask, stretched to 0..255.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift;
  const uint64_t value = (pixel & mask) >> shift;
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

void read_row(Bytes bytes, const Header& h, size_t at, uint8_t* out) {
  for (int64_t x = 0; x < h.width; ++x, out += 3) {
    const size_t first_bit = static_cast<size_t>(x) * static_cast<size_t>(h.bits);
    const size_t place = at + first_bit / 8;
    if (h.bits >= 16) {
      const uint32_t pixel = read(bytes, place, h.bits / 8);
      if (h.bits == 24) {
        for (int i = 0; i < 3; ++i) out[i] = static_cast<uint8_t>(pixel >> (16 - 8 * i));
      } else {
        for (size_t i = 0; i < 3; ++i) out[i] = masked(pixel, h.masks[i]);
      }
      continue;
    }
    const int shift = 8 - h.bits - static_cast<int>(first_bit % 8);
    const uint32_t index = (bytes[place] >> shift) & ((1u << h.bits) - 1);
    const size_t entry = h.table_at + index * h.table_entry_bytes;
    for (size_t i = 0; i < 3; ++i) out[i] = static_cast<uint8_t>(read(bytes, entry + 2 - i, 1));
  }
}

}  // namespace

Result<Picture> decode_bmp(Bytes bytes) {
  Header h;
  if (bytes.size() < 26 || !read_header(bytes, h)) return Picture{};
  if (h.compression == kRuns8 || h.compression == kRuns4) {
    return unsupported("a BMP picture of runs is not supported; store it without compression");
  }
  const bool has_masks = h.compression == kMasks || h.compression == kMasksAlpha;
  const bool is_known =
      h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32;
  const bool may_have_masks = h.bits == 16 || h.bits == 32;
  if (!is_known || (h.compression != kPlain && !(has_masks && may_have_masks))) return Picture{};
  Picture picture;
  if (!picture.resize(h.height, h.width, bytes.size())) return Picture{};
  const size_t row_bytes =
      (static_cast<size_t>(h.width) * static_cast<size_t>(h.bits) + 31) / 32 * 4;
  if ((bytes.size() - h.pixels_at) / row_bytes < static_cast<size_t>(h.height)) return Picture{};
  for (int64_t y = 0; y < h.height; ++y) {
    const int64_t place = h.from_top ? y : h.height - 1 - y;
    read_row(bytes, h, h.pixels_at + static_cast<size_t>(y) * row_bytes, picture.row(place));
  }
  return picture;
}

}  // namespace eddy::images
