// decode_picture: pixels from the bytes of a picture file. BMP and PNM are read here, the others by
// Debian's libraries, where these were installed when Eddy was built.
//
// Contract: the bytes are hostile until proved otherwise. Bytes that are no picture, one that ends
// too early or breaks its format's rules give a picture of no rows, as ONNX's ImageDecoder wants
// it. A size is believed only where the bytes can hold it: kMostPixelsPerByte bounds what any
// format packs, so memory is in proportion to the file. Errors: kUnsupported, in one line, for a
// format that this build, or Eddy, does not read. Threads: any; no state is kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/status.h"

namespace eddy::images {

struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> rgb = {};  // rows from the top, of red, green and blue

  // Makes room for a picture of that size; false where so many bytes can't hold it.
  bool resize(int64_t new_height, int64_t new_width, size_t num_bytes);
  uint8_t* row(int64_t y) { return rgb.data() + y * width * 3; }
};

// One bit a pixel, packed 1032 times by deflate.
inline constexpr int64_t kMostPixelsPerByte = 8 * 1032;
inline constexpr int64_t kAlwaysPixels = int64_t{1} << 20;  // WebP packs one color into nothing
inline constexpr int64_t kMostPixels = int64_t{1} << 28;

// The pixels that a file of so many bytes may have.
int64_t most_pixels(size_t num_bytes);

using Bytes = std::span<const uint8_t>;

Result<Picture> decode_picture(Bytes bytes);

// One of each format; the first bytes have been looked at. Those of libraries are refusals in
// *_stub.cc where the library was not there.
Result<Picture> decode_bmp(Bytes bytes);
Result<Picture> decode_jpeg(Bytes bytes);
Result<Picture> decode_jpeg2000(Bytes bytes);
Result<Picture> decode_png(Bytes bytes);
Result<Picture> decode_pnm(Bytes bytes);
Result<Picture> decode_tiff(Bytes bytes);
Result<Picture> decode_webp(Bytes bytes);

}  // namespace eddy::images
