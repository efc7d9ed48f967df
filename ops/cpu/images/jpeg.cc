// JPEG by libjpeg (libjpeg-turbo), whose chroma upsampling is the one that ONNX asks for. It leaves
// by longjmp: no frame between setjmp and the library has an object with a destructor.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it before
// After <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "ops/cpu/images/picture.h"

namespace eddy::images {
namespace {

// A progressive file may go over the picture again and again; real ones do so some ten times.
constexpr int kMostScans = 100;

struct Errors {
  jpeg_error_mgr base;  // first: the library's pointer is ours
  std::jmp_buf jump;
};

[[noreturn]] void leave(j_common_ptr info) {
  std::longjmp(reinterpret_cast<Errors*>(info->err)->jump, 1);
}
// A picture that ends early is no picture; other warnings (bytes between markers) are harmless.
void hear(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool is_broken =
      code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE;
  if (level < 0 && is_broken) leave(info);
}
void stay_silent(j_common_ptr) {}
void watch(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) leave(info);
}

enum class Outcome { kBroken, kWhole, kFourInks };

Outcome read_jpeg(jpeg_decompress_struct& jpeg, Errors& errors, jpeg_progress_mgr& progress,
                  Bytes bytes, Picture& picture) {
  if (setjmp(errors.jump) != 0) return Outcome::kBroken;
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &progress;
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  if (jpeg.num_components > 3) return Outcome::kFourInks;
  if (!picture.resize(jpeg.image_height, jpeg.image_width, bytes.size())) return Outcome::kBroken;
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture.row(jpeg.output_scanline);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return Outcome::kWhole;
}

}  // namespace

Result<Picture> decode_jpeg(Bytes bytes) {
  jpeg_decompress_struct jpeg = {};
  jpeg_progress_mgr progress = {};
  Errors errors = {};
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = hear;
  errors.base.output_message = stay_silent;
  progress.progress_monitor = watch;
  Picture picture;
  const Outcome outcome = read_jpeg(jpeg, errors, progress, bytes, picture);
  jpeg_destroy_decompress(&jpeg);
  if (outcome == Outcome::kFourInks) {
    return unsupported("a JPEG picture of four inks (CMYK) is not supported; store it as RGB");
  }
  if (outcome == Outcome::kBroken) return Picture{};
  return picture;
}

}  // namespace eddy::images
