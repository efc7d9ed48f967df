// JPEG 2000 by OpenJPEG: a bare stream or one in a file of boxes, of gray or of red, green and
// blue, of which samples of other widths than 8 bits are stretched or rounded to it.
#include <openjpeg-2.5/openjpeg.h>

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

constexpr auto kEnd = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T read_some(void* out, OPJ_SIZE_T count, void* user) {
  auto& source = *static_cast<Source*>(user);
  const uint64_t taken = std::min<uint64_t>(count, source.bytes.size() - source.at);
  if (taken == 0) return kEnd;
  std::memcpy(out, source.bytes.data() + source.at, taken);
  source.at += taken;
  return taken;
}
OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  auto& source = *static_cast<Source*>(user);
  if (count < 0) return -1;
  source.at += std::min<uint64_t>(static_cast<uint64_t>(count), source.bytes.size() - source.at);
  return count;
}
OPJ_BOOL seek(OPJ_OFF_T offset, void* user) {
  auto& source = *static_cast<Source*>(user);
  if (offset < 0 || static_cast<uint64_t>(offset) > source.bytes.size()) return OPJ_FALSE;
  source.at = static_cast<uint64_t>(offset);
  return OPJ_TRUE;
}

template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};
using Stream = std::unique_ptr<opj_stream_t, Destroy<opj_stream_destroy>>;
using Codec = std::unique_ptr<opj_codec_t, Destroy<opj_destroy_codec>>;
using Image = std::unique_ptr<opj_image_t, Destroy<opj_image_destroy>>;

uint8_t to_byte(const opj_image_comp_t& component, size_t i) {
  const int64_t most = (int64_t{1} << component.prec) - 1;
  int64_t value = component.data[i];
  if (component.sgnd != 0) value += int64_t{1} << (component.prec - 1);
  return static_cast<uint8_t>((std::clamp<int64_t>(value, 0, most) * 255 + most / 2) / most);
}

Status check_kind(const opj_image_t& image) {
  const OPJ_COLOR_SPACE space = image.color_space;
  if (space == OPJ_CLRSPC_SYCC || space == OPJ_CLRSPC_EYCC || space == OPJ_CLRSPC_CMYK) {
    return unsupported(std::string("a JPEG 2000 picture of ") +
                       (space == OPJ_CLRSPC_CMYK ? "four inks (CMYK)" : "luma and chroma (YCC)") +
                       " is not supported; store it as RGB");
  }
  for (OPJ_UINT32 i = 1; i < std::min(image.numcomps, 3u); ++i) {
    if (image.comps[i].dx != image.comps[0].dx || image.comps[i].dy != image.comps[0].dy) {
      return unsupported(
          "a JPEG 2000 picture whose colors have other sizes is not supported; store it as RGB");
    }
  }
  return Status::ok();
}

// Gray, with or without transparency, or three colors, of the size of the picture.
bool copy(const opj_image_t& image, Picture& picture) {
  const OPJ_UINT32 num_colors = image.numcomps < 3 ? 1 : 3;
  for (OPJ_UINT32 c = 0; c < num_colors; ++c) {
    const opj_image_comp_t& component = image.comps[c];
    if (component.data == nullptr || component.w != picture.width ||
        component.h != picture.height || component.prec < 1 || component.prec > 31) {
      return false;
    }
    const auto count = static_cast<size_t>(picture.width * picture.height);
    for (size_t i = 0; i < count; ++i) {
      const uint8_t value = to_byte(component, i);
      for (size_t to = c; to < 3; to += num_colors) picture.rgb[i * 3 + to] = value;
    }
  }
  return true;
}

}  // namespace

Result<Picture> decode_jpeg2000(Bytes bytes) {
  Source source{bytes};
  const Stream stream(opj_stream_default_create(OPJ_TRUE));
  const Codec codec(opj_create_decompress(bytes[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  if (stream == nullptr || codec == nullptr) return resource_exhausted("OpenJPEG could not begin");
  opj_stream_set_read_function(stream.get(), read_some);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE) return Picture{};
  opj_image_t* header = nullptr;
  const bool has_header = opj_read_header(stream.get(), codec.get(), &header) == OPJ_TRUE;
  const Image image(header);
  if (!has_header || image == nullptr || image->numcomps < 1 || image->numcomps > 4) {
    return Picture{};
  }
  EDDY_RETURN_IF_ERROR(check_kind(*image));
  Picture picture;
  // The sizes that decoding will take memory for.
  if (!picture.resize(image->comps[0].h, image->comps[0].w, bytes.size())) return Picture{};
  const bool is_whole = opj_decode(codec.get(), stream.get(), image.get()) == OPJ_TRUE &&
                        opj_end_decompress(codec.get(), stream.get()) == OPJ_TRUE;
  if (!is_whole) return Picture{};
  EDDY_RETURN_IF_ERROR(check_kind(*image));
  if (!copy(*image, picture)) return Picture{};
  return picture;
}

}  // namespace eddy::images
