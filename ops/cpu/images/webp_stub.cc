// WebP where Debian's libwebp-dev was not there when Eddy was built.
#include "ops/cpu/images/picture.h"

namespace eddy::images {

Result<Picture> decode_webp(Bytes) {
  return unsupported("this build reads no WebP pictures: install libwebp-dev and build Eddy again");
}

}  // namespace eddy::images
