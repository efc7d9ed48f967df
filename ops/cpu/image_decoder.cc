// ImageDecoder: the pixels of a picture file in the order that is asked for. Gray is the luma of
// ITU-R 601 in 16 bits of fraction.
#include <cstring>
#include <string>

#include "ops/cpu/families.h"
#include "ops/cpu/images/picture.h"

namespace eddy {
namespace {

enum class PixelFormat { kRgb, kBgr, kGray };

struct DecoderState : KernelState {
  PixelFormat format = PixelFormat::kRgb;
};

void convert(const images::Picture& picture, PixelFormat format, uint8_t* out) {
  const uint8_t* in = picture.rgb.data();
  const int64_t count = picture.height * picture.width;
  if (format == PixelFormat::kRgb) {
    if (count > 0) std::memcpy(out, in, static_cast<size_t>(count) * 3);
    return;
  }
  for (int64_t i = 0; i < count; ++i, in += 3) {
    if (format == PixelFormat::kBgr) {
      for (int c = 0; c < 3; ++c) *out++ = in[2 - c];
    } else {
      const uint32_t luma = 19595u * in[0] + 38470u * in[1] + 7471u * in[2] + 0x8000u;
      *out++ = static_cast<uint8_t>(luma >> 16);
    }
  }
}

Status run_decoder(ValueContext& context) {
  const PixelFormat format = static_cast<const DecoderState&>(*context.state()).format;
  const TensorView in = context.tensor(0);
  const images::Bytes bytes(in.as<uint8_t>(), static_cast<size_t>(in.count()));
  EDDY_ASSIGN_OR_RETURN(const images::Picture picture, images::decode_picture(bytes));
  const int64_t channels = format == PixelFormat::kGray ? 1 : 3;
  EDDY_ASSIGN_OR_RETURN(
      const TensorView out,
      context.allocate(0, ElementType::kUint8, {picture.height, picture.width, channels}));
  convert(picture, format, out.mutable_as<uint8_t>());
  return Status::ok();
}

Result<BoundKernel> bind_decoder(const KernelInit& init) {
  const std::string_view name = init.attributes.get_string("pixel_format", "RGB");
  auto state = std::make_unique<DecoderState>();
  if (name == "BGR") state->format = PixelFormat::kBgr;
  if (name == "Grayscale") state->format = PixelFormat::kGray;
  BoundKernel kernel;
  kernel.run_value = run_decoder;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_image_decoder_cpu(KernelRegistry& registry) {
  registry.add({.op = "ImageDecoder", .since_version = 20, .bind = bind_decoder});
}

}  // namespace eddy
