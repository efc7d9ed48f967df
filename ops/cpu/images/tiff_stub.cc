// TIFF where Debian's libtiff-dev, 4.5 or newer, was not there when Eddy was built.
#include "ops/cpu/images/picture.h"

namespace eddy::images {

Result<Picture> decode_tiff(Bytes) {
  return unsupported(
      "this build reads no TIFF pictures: install libtiff-dev 4.5 or newer and build Eddy again");
}

}  // namespace eddy::images
