// PNG by libpng, which leaves by longjmp: no frame between setjmp and the library has an object
// with a destructor.
#include <png.h>

#include <cstring>

#include "ops/cpu/images/picture.h"

namespace eddy::images {
namespace {

struct Source {
  Bytes bytes;
  size_t at = 0;
};

void read_some(png_structp png, png_bytep out, size_t count) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (count > source.bytes.size() - source.at) png_error(png, "the end");
  std::memcpy(out, source.bytes.data() + source.at, count);
  source.at += count;
}

// The library's own would print the message.
[[noreturn]] void leave(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void stay_silent(png_structp, png_const_charp) {}

// False where the file breaks a rule.
bool read_png(png_structp png, png_infop info, Source& source, Picture& picture) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &source, read_some);
  png_set_user_limits(png, 1 << 24, 1 << 24);
  png_read_info(png, info);
  if (!picture.resize(png_get_image_height(png, info), png_get_image_width(png, info),
                      source.bytes.size())) {
    return false;
  }
  png_set_expand(png);  // tables to colors, bits to bytes
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  const int num_passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != static_cast<size_t>(picture.width) * 3) return false;
  for (int pass = 0; pass < num_passes; ++pass) {
    for (int64_t y = 0; y < picture.height; ++y) png_read_row(png, picture.row(y), nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

Result<Picture> decode_png(Bytes bytes) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave, stay_silent);
  if (png == nullptr) return resource_exhausted("libpng could not begin");
  png_infop info = png_create_info_struct(png);
  Source source{bytes};
  Picture picture;
  const bool is_whole = info != nullptr && read_png(png, info, source, picture);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!is_whole) return Picture{};
  return picture;
}

}  // namespace eddy::images
