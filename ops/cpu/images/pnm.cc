// PNM: P1 to P3 are numbers as text, P4 to P6 bytes; of bits (1 is black), grays, and colors.
#include <algorithm>

#include "ops/cpu/images/picture.h"

namespace eddy::images {
namespace {

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  // A number after spaces and comments; -1: there is none.
  int64_t number() {
    skip_space();
    int64_t value = -1;
    while (at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9') {
      value = std::min<int64_t>(std::max<int64_t>(value, 0) * 10 + (bytes_[at_++] - '0'), 1 << 30);
    }
    return value;
  }
  // A bit of P1, which may stand right beside the next.
  int64_t digit() {
    skip_space();
    const bool is_bit = at_ < bytes_.size() && (bytes_[at_] == '0' || bytes_[at_] == '1');
    return is_bit ? bytes_[at_++] - '0' : -1;
  }
  Bytes rest() const { return bytes_.subspan(std::min(at_, bytes_.size())); }
  void skip(size_t count) { at_ += count; }

 private:
  void skip_space() {
    for (bool in_comment = false; at_ < bytes_.size(); ++at_) {
      const uint8_t c = bytes_[at_];
      if (c == '#') in_comment = true;
      if (c == '\n') in_comment = false;
      const bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
      if (!in_comment && !is_space) return;
    }
  }
  Bytes bytes_;
  size_t at_ = 0;
};

struct Form {
  bool is_text;
  bool is_bits;
  int channels;
  int64_t most;  // the value of white
};

uint8_t to_byte(int64_t value, int64_t most) {
  return static_cast<uint8_t>((std::min(value, most) * 255 + most / 2) / most);
}

bool read_text(Reader& reader, const Form& form, Picture& picture) {
  const int64_t count = picture.height * picture.width;
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* const out = picture.rgb.data() + i * 3;
    for (int c = 0; c < form.channels; ++c) {
      const int64_t value = form.is_bits ? reader.digit() : reader.number();
      if (value < 0) return false;
      out[c] = to_byte(form.is_bits ? 1 - value : value, form.most);
    }
    if (form.channels == 1) out[1] = out[2] = out[0];
  }
  return true;
}

bool read_bytes(Bytes bytes, const Form& form, Picture& picture) {
  const size_t each = form.most > 255 ? 2 : 1;
  const auto width = static_cast<size_t>(picture.width);
  const size_t row_bytes =
      form.is_bits ? (width + 7) / 8 : width * each * static_cast<size_t>(form.channels);
  if (bytes.size() / row_bytes < static_cast<size_t>(picture.height)) return false;
  for (int64_t y = 0; y < picture.height; ++y) {
    const uint8_t* const row = bytes.data() + static_cast<size_t>(y) * row_bytes;
    uint8_t* out = picture.row(y);
    for (size_t x = 0; x < width; ++x, out += 3) {
      for (size_t c = 0; c < static_cast<size_t>(form.channels); ++c) {
        const size_t at = (x * static_cast<size_t>(form.channels) + c) * each;
        const int64_t value = form.is_bits ? 1 - ((row[x / 8] >> (7 - x % 8)) & 1)
                              : each == 2  ? row[at] * 256 + row[at + 1]
                                           : row[at];
        out[c] = to_byte(value, form.most);
      }
      if (form.channels == 1) out[1] = out[2] = out[0];
    }
  }
  return true;
}

}  // namespace

Result<Picture> decode_pnm(Bytes bytes) {
  const int kind = bytes[1] - '0';
  Form form = {kind <= 3, kind == 1 || kind == 4, kind == 3 || kind == 6 ? 3 : 1, 1};
  Reader reader(bytes);
  reader.skip(2);
  const int64_t width = reader.number(), height = reader.number();
  if (!form.is_bits) form.most = reader.number();
  Picture picture;
  if (form.most < 1 || form.most > 65535 || !picture.resize(height, width, bytes.size())) {
    return Picture{};
  }
  if (!form.is_text) reader.skip(1);
  const bool is_whole =
      form.is_text ? read_text(reader, form, picture) : read_bytes(reader.rest(), form, picture);
  if (!is_whole) return Picture{};
  return picture;
}

}  // namespace eddy::images
