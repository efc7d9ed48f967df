// JPEG 2000 where Debian's libopenjp2-7-dev was not there when Eddy was built.
#include "ops/cpu/images/picture.h"

namespace eddy::images {

Result<Picture> decode_jpeg2000(Bytes) {
  return unsupported(
      "this build reads no JPEG 2000 pictures: install libopenjp2-7-dev and build Eddy again");
}

}  // namespace eddy::images
