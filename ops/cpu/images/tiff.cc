// TIFF by libtiff, whose own conversion gives red, green and blue of strips and tiles of bits,
// tables and grays. What it would do worse than refuse is looked at first: inks, floats, schemes of
// compression whose own libraries take memory as the file says. The first picture of a file counts.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "ops/cpu/images/picture.h"

namespace eddy::images {
namespace {

struct Source {
  Bytes bytes;
  uint64_t at = 0;
};

tmsize_t read_some(thandle_t handle, void* out, tmsize_t count) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t size = source.bytes.size();
  if (count <= 0 || source.at >= size) return 0;
  const uint64_t taken = std::min(static_cast<uint64_t>(count), size - source.at);
  std::memcpy(out, source.bytes.data() + source.at, taken);
  source.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t from = whence == SEEK_CUR   ? source.at
                        : whence == SEEK_END ? source.bytes.size()
                                             : 0;
  return source.at = from + offset;
}
int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
int stay_silent(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
  void operator()(TIFFRGBAImage* image) const { TIFFRGBAImageEnd(image); }
};

std::unique_ptr<TIFF, Close> open(Source& source) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return nullptr;
  // The largest that a picture of so many pixels needs: four samples of 16 bits each.
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most_pixels(source.bytes.size()) * 8);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), stay_silent, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), stay_silent, nullptr);
  return std::unique_ptr<TIFF, Close>(TIFFClientOpenExt("picture", "rm", &source, read_some,
                                                        write_nothing, seek, close_nothing, size_of,
                                                        nullptr, nullptr, options.get()));
}

uint16_t field(TIFF* tiff, uint32_t tag) {
  uint16_t value = 0;
  return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : 0;
}

Status check_kind(TIFF* tiff) {
  const uint16_t bits = field(tiff, TIFFTAG_BITSPERSAMPLE);
  const uint16_t colors = field(tiff, TIFFTAG_PHOTOMETRIC);
  const uint16_t scheme = field(tiff, TIFFTAG_COMPRESSION);
  const uint16_t samples = field(tiff, TIFFTAG_SAMPLEFORMAT);
  if (colors == PHOTOMETRIC_SEPARATED) {
    return unsupported("a TIFF picture of inks (CMYK) is not supported; store it as RGB");
  }
  const bool is_color = colors == PHOTOMETRIC_MINISWHITE || colors == PHOTOMETRIC_MINISBLACK ||
                        colors == PHOTOMETRIC_RGB || colors == PHOTOMETRIC_PALETTE ||
                        colors == PHOTOMETRIC_YCBCR;
  if (!is_color) {
    return unsupported("a TIFF picture of colors of kind " + std::to_string(colors) +
                       " is not supported; store it as RGB");
  }
  if (bits > 16) {
    return unsupported("a TIFF picture of " + std::to_string(bits) +
                       " bits a sample is not supported; store it with 8 or 16");
  }
  if (samples != SAMPLEFORMAT_UINT && samples != SAMPLEFORMAT_VOID) {
    return unsupported("a TIFF picture of " +
                       std::string(samples == SAMPLEFORMAT_INT ? "signed integers" : "floats") +
                       " is not supported; store it as unsigned integers");
  }
  constexpr uint16_t kSchemes[] = {
      COMPRESSION_NONE,      COMPRESSION_CCITTRLE, COMPRESSION_CCITTRLEW,     COMPRESSION_CCITTFAX3,
      COMPRESSION_CCITTFAX4, COMPRESSION_LZW,      COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
      COMPRESSION_PACKBITS,  COMPRESSION_JPEG};
  if (std::find(std::begin(kSchemes), std::end(kSchemes), scheme) == std::end(kSchemes)) {
    return unsupported("a TIFF picture compressed by scheme " + std::to_string(scheme) +
                       " is not supported; store it with Deflate");
  }
  return Status::ok();
}

// Turns stored rows as the file says they are seen: 1 to 4 flip, 5 to 8 also swap rows and columns.
bool turn(const std::vector<uint32_t>& raster, int64_t rows, int64_t columns, int orientation,
          size_t num_bytes, Picture& picture) {
  const bool is_swapped = orientation >= 5;
  const bool is_upside_down =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool is_mirrored = orientation == 2 || orientation == 3 || orientation >= 7;
  if (!picture.resize(is_swapped ? columns : rows, is_swapped ? rows : columns, num_bytes)) {
    return false;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t y = is_upside_down ? rows - 1 - row : row;
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t x = is_mirrored ? columns - 1 - column : column;
      const uint32_t pixel = raster[static_cast<size_t>(row * columns + column)];
      uint8_t* const out = is_swapped ? picture.row(x) + y * 3 : picture.row(y) + x * 3;
      out[0] = static_cast<uint8_t>(TIFFGetR(pixel));
      out[1] = static_cast<uint8_t>(TIFFGetG(pixel));
      out[2] = static_cast<uint8_t>(TIFFGetB(pixel));
    }
  }
  return true;
}

}  // namespace

Result<Picture> decode_tiff(Bytes bytes) {
  Source source{bytes};
  const std::unique_ptr<TIFF, Close> tiff = open(source);
  if (tiff == nullptr) return Picture{};
  EDDY_RETURN_IF_ERROR(check_kind(tiff.get()));
  uint32_t rows = 0, columns = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &rows);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &columns);
  if (rows < 1 || columns < 1 || rows > most_pixels(bytes.size()) / columns) return Picture{};
  // Colors that no alpha has multiplied stay so.
  uint16_t num_extra = 0, *extra = nullptr, unspecified = EXTRASAMPLE_UNSPECIFIED;
  if (TIFFGetField(tiff.get(), TIFFTAG_EXTRASAMPLES, &num_extra, &extra) == 1 && num_extra == 1) {
    TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, 1, &unspecified);
  }
  TIFFRGBAImage image = {};
  char why[1024] = "";
  if (TIFFRGBAImageBegin(&image, tiff.get(), 1, why) == 0) {
    return unsupported(std::string("libtiff makes no colors of a TIFF picture (") + why +
                       "); store it as 8-bit RGB");
  }
  const std::unique_ptr<TIFFRGBAImage, Close> end(&image);
  const int orientation = std::clamp<int>(image.orientation, 1, 8);
  image.req_orientation = image.orientation = ORIENTATION_TOPLEFT;
  std::vector<uint32_t> raster(static_cast<size_t>(rows) * columns);
  Picture picture;
  if (TIFFRGBAImageGet(&image, raster.data(), columns, rows) == 0 ||
      !turn(raster, rows, columns, orientation, bytes.size(), picture)) {
    return Picture{};
  }
  return picture;
}

}  // namespace eddy::images
