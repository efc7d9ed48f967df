// WebP by libwebp.
#include <webp/decode.h>

#include "ops/cpu/images/picture.h"

namespace eddy::images {

Result<Picture> decode_webp(Bytes bytes) {
  int width = 0, height = 0;
  Picture picture;
  if (WebPGetInfo(bytes.data(), bytes.size(), &width, &height) == 0 ||
      !picture.resize(height, width, bytes.size())) {
    return Picture{};
  }
  const uint8_t* const end = WebPDecodeRGBInto(bytes.data(), bytes.size(), picture.rgb.data(),
                                               picture.rgb.size(), width * 3);
  if (end == nullptr) return Picture{};
  return picture;
}

}  // namespace eddy::images
