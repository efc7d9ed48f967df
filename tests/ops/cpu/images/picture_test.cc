// Claim: pictures of each format come out as the pixels that went in, in the order asked for; bytes
// that are no picture give one of no rows; and whatever is cut off or flipped in a file (seeds are
// printed), decoding ends in a picture whose size the file can hold or in a refusal of one line.
#include "ops/cpu/images/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "graph/base/random.h"
#include "tests/ops/cpu/images/picture_files.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::images {
namespace {

using namespace testing;  // NOLINT: the files
using eddy::testing::KernelSet;
using eddy::testing::OpCall;
using eddy::testing::run_op;
using eddy::testing::TestTensor;

using Buffer = std::vector<uint8_t>;

void append(Buffer& to, uint32_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}
Buffer text(const std::string& header, const Buffer& pixels = {}) {
  Buffer file(header.begin(), header.end());
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

// Of 40 bytes of header; a negative height stores rows from the top.
Buffer bmp(int32_t width, int32_t height, int bits, const Buffer& table, const Buffer& pixels,
           uint32_t compression = 0) {
  Buffer file = {'B', 'M'};
  file.resize(10);
  append(file, static_cast<uint32_t>(54 + table.size()), 4);
  append(file, 40, 4);
  append(file, static_cast<uint32_t>(width), 4);
  append(file, static_cast<uint32_t>(height), 4);
  append(file, 1, 2);
  append(file, static_cast<uint32_t>(bits), 2);
  append(file, compression, 4);
  file.resize(54);
  file.insert(file.end(), table.begin(), table.end());
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

struct Tag {
  uint32_t id;
  std::vector<uint32_t> values;
};

// A TIFF picture of uncompressed bytes, one strip unless `tags` say otherwise; the pixels stand
// first, at byte 8. All values are of 32 bits, but where the format wants those of 16.
Buffer tiff(uint32_t width, uint32_t height, uint32_t bits, uint32_t photometric,
            uint32_t num_samples, const Buffer& pixels, const std::vector<Tag>& more = {}) {
  constexpr uint32_t kShort = 3, kLong = 4;
  std::vector<Tag> tags = {
      {256, {width}},       {257, {height}},      {258, std::vector<uint32_t>(num_samples, bits)},
      {259, {1}},           {262, {photometric}}, {273, {8}},
      {277, {num_samples}}, {278, {height}},      {279, {static_cast<uint32_t>(pixels.size())}}};
  for (const Tag& tag : more) {
    std::erase_if(tags, [&](const Tag& other) { return other.id == tag.id; });
    if (!tag.values.empty()) tags.push_back(tag);
  }
  std::sort(tags.begin(), tags.end(), [](const Tag& a, const Tag& b) { return a.id < b.id; });
  Buffer file = {'I', 'I', 42, 0};
  const auto directory_at = static_cast<uint32_t>(8 + (pixels.size() + 1) / 2 * 2);
  append(file, directory_at, 4);
  file.insert(file.end(), pixels.begin(), pixels.end());
  file.resize(directory_at);
  append(file, static_cast<uint32_t>(tags.size()), 2);
  const size_t values_at = file.size() + tags.size() * 12 + 4;
  Buffer values;
  for (const Tag& tag : tags) {
    const bool is_short = tag.id == 258 || tag.id == 320 || tag.id == 338;
    append(file, tag.id, 2);
    append(file, is_short ? kShort : kLong, 2);
    append(file, static_cast<uint32_t>(tag.values.size()), 4);
    Buffer bytes;
    for (const uint32_t value : tag.values) append(bytes, value, is_short ? 2 : 4);
    if (bytes.size() > 4) {
      append(file, static_cast<uint32_t>(values_at + values.size()), 4);
      values.insert(values.end(), bytes.begin(), bytes.end());
    } else {
      bytes.resize(4);
      file.insert(file.end(), bytes.begin(), bytes.end());
    }
  }
  append(file, 0, 4);
  file.insert(file.end(), values.begin(), values.end());
  return file;
}

std::vector<std::pair<std::string, Buffer>> files() {
  const auto of = [](auto& bytes) { return Buffer(std::begin(bytes), std::end(bytes)); };
  return {{"jpeg", of(kJpeg)},
          {"png", of(kPng)},
          {"png, interlaced", of(kInterlacedPng)},
          {"png, table", of(kTablePng)},
          {"webp, lossless", of(kLosslessWebp)},
          {"webp", of(kWebp)},
          {"tiff", of(kTiff)},
          {"tiff, tiles", of(kTiledTiff)},
          {"tiff, jpeg", of(kJpegTiff)},
          {"tiff, fax", of(kFaxTiff)},
          {"tiff, plain", tiff(2, 1, 8, 2, 3, {1, 2, 3, 4, 5, 6})},
          {"tiff, gray of 16 bits", tiff(2, 1, 16, 1, 1, {0x00, 0x80, 0xff, 0xff})},
          {"jpeg 2000", of(kJp2)},
          {"jpeg 2000, bare", of(kJ2k)},
          {"bmp 24", bmp(1, 2, 24, {}, {3, 2, 1, 0, 6, 5, 4, 0})},
          {"bmp 4", bmp(3, 1, 4, {0, 0, 0, 0, 9, 8, 7, 0, 6, 5, 4, 0}, {0x12, 0x00, 0, 0})},
          {"bmp 16", bmp(2, -1, 16, {}, {0xff, 0x7f, 0x1f, 0x00})},
          {"pbm", text("P1 # bits\n3 1\n101")},
          {"pgm", text("P2 2 1 4 0 3")},
          {"ppm", text("P6 1 2 255\n", {1, 2, 3, 4, 5, 6})},
          {"pgm of 16 bits", text("P5 2 1 65535\n", {0x80, 0x00, 0xff, 0xff})}};
}

Buffer pixels_of(const Buffer& file) {
  Result<Picture> picture = decode_picture(file);
  EXPECT_TRUE(picture.is_ok()) << picture.status().message();
  return picture.is_ok() ? std::move(picture)->rgb : Buffer{};
}

// The build has the library, or the refusal says which to install.
bool is_built(const Buffer& file, const std::string& package) {
  const Result<Picture> picture = decode_picture(file);
  if (picture.is_ok()) return true;
  EXPECT_NE(picture.status().message().find("install " + package), std::string::npos);
  return false;
}

void expect_gradient(const Buffer& file, int tolerance) {
  const Result<Picture> picture = decode_picture(file);
  ASSERT_TRUE(picture.is_ok()) << picture.status().message();
  ASSERT_EQ(picture->height, 12);
  ASSERT_EQ(picture->width, 16);
  for (int y = 0; y < 12; ++y) {
    for (int x = 0; x < 16; ++x) {
      const uint8_t* const pixel = picture->rgb.data() + (y * 16 + x) * 3;
      EXPECT_NEAR(pixel[0], 16 * x, tolerance) << x << ", " << y;
      EXPECT_NEAR(pixel[1], 20 * y, tolerance) << x << ", " << y;
      EXPECT_NEAR(pixel[2], 128, tolerance) << x << ", " << y;
    }
  }
}

Buffer file_of(const std::string& name) {
  for (auto& [other, file] : files()) {
    if (other == name) return file;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(PictureTest, FilesOfLibraries) {
  const auto all = files();
  if (is_built(all[0].second, "libjpeg-dev")) expect_gradient(all[0].second, 16);
  if (is_built(all[4].second, "libwebp-dev")) {
    expect_gradient(all[4].second, 0);
    expect_gradient(all[5].second, 24);
  }
  if (!is_built(all[1].second, "libpng-dev")) return;
  expect_gradient(all[1].second, 0);
  expect_gradient(all[2].second, 0);
  const Buffer table = pixels_of(all[3].second);
  ASSERT_EQ(table.size(), 16u * 12 * 3);
  EXPECT_EQ(Buffer(table.begin(), table.begin() + 12),
            (Buffer{0, 0, 0, 255, 0, 0, 0, 255, 0, 10, 20, 30}));
}

TEST(PictureTest, TiffHasStripsTilesAndCompressions) {
  if (!is_built(file_of("tiff"), "libtiff-dev")) return;
  expect_gradient(file_of("tiff"), 0);
  expect_gradient(file_of("tiff, tiles"), 0);
  expect_gradient(file_of("tiff, jpeg"), 16);
  const Buffer fax = pixels_of(file_of("tiff, fax"));
  ASSERT_EQ(fax.size(), 16u * 12 * 3);
  for (int y = 0; y < 12; ++y) {
    for (int x = 0; x < 16; ++x) {
      const bool is_white = x < 8 ? x < y % 8 : y >= 6;
      EXPECT_EQ(fax[static_cast<size_t>(y * 16 + x) * 3], is_white ? 255 : 0) << x << ", " << y;
    }
  }
}

TEST(PictureTest, TiffHasBitsTablesGraysAndColors) {
  if (!is_built(file_of("tiff"), "libtiff-dev")) return;
  const Buffer grays = {0, 0, 0, 255, 255, 255};
  EXPECT_EQ(pixels_of(tiff(2, 1, 1, 1, 1, {0x40})), grays);
  EXPECT_EQ(pixels_of(tiff(2, 1, 1, 0, 1, {0x80})), grays);  // 0 is white
  EXPECT_EQ(pixels_of(tiff(2, 1, 4, 1, 1, {0x0f})), grays);
  EXPECT_EQ(pixels_of(tiff(2, 1, 8, 1, 1, {0, 255})), grays);
  EXPECT_EQ(pixels_of(tiff(2, 1, 16, 1, 1, {0, 0, 0xff, 0xff})), grays);
  EXPECT_EQ(pixels_of(tiff(1, 1, 16, 2, 3, {0xff, 0xff, 0, 0x80, 0, 0})), (Buffer{255, 128, 0}));
  std::vector<uint32_t> table(48);
  for (uint32_t i = 0; i < 48; ++i) table[i] = i * 257;
  EXPECT_EQ(pixels_of(tiff(2, 1, 4, 3, 1, {0x2f}, {{320, table}})),
            (Buffer{2, 18, 34, 15, 31, 47}));
  // Transparency is left out, whether colors have been multiplied by it (1) or not (2).
  for (const uint32_t kind : {1u, 2u}) {
    EXPECT_EQ(pixels_of(tiff(1, 1, 8, 2, 4, {9, 8, 7, 6}, {{338, {kind}}})), (Buffer{9, 8, 7}));
    EXPECT_EQ(pixels_of(tiff(1, 1, 8, 1, 2, {9, 6}, {{338, {kind}}})), (Buffer{9, 9, 9}));
  }
}

// Where the first row and the first column of the file are seen.
TEST(PictureTest, TiffIsTurnedAsItSays) {
  if (!is_built(file_of("tiff"), "libtiff-dev")) return;
  const Buffer expected[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                             {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                             {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    const Result<Picture> picture =
        decode_picture(tiff(3, 2, 8, 1, 1, {1, 2, 3, 4, 5, 6}, {{274, {orientation}}}));
    ASSERT_TRUE(picture.is_ok()) << picture.status().message();
    EXPECT_EQ(picture->width, orientation < 5 ? 3 : 2);
    EXPECT_EQ(picture->height, orientation < 5 ? 2 : 3);
    Buffer reds;
    for (size_t i = 0; i < picture->rgb.size(); i += 3) reds.push_back(picture->rgb[i]);
    EXPECT_EQ(reds, expected[orientation - 1]) << orientation;
  }
}

TEST(PictureTest, TiffThatIsNotReadIsNamed) {
  if (!is_built(file_of("tiff"), "libtiff-dev")) return;
  const auto said = [](const Buffer& file) { return decode_picture(file).status().message(); };
  EXPECT_EQ(said(tiff(1, 1, 8, 5, 4, {1, 2, 3, 4})),
            "a TIFF picture of inks (CMYK) is not supported; store it as RGB");
  EXPECT_EQ(said(tiff(1, 1, 8, 8, 3, {1, 2, 3})),
            "a TIFF picture of colors of kind 8 is not supported; store it as RGB");
  EXPECT_EQ(said(tiff(1, 1, 32, 1, 1, {1, 2, 3, 4})),
            "a TIFF picture of 32 bits a sample is not supported; store it with 8 or 16");
  EXPECT_EQ(said(tiff(1, 1, 16, 1, 1, {1, 2}, {{339, {3}}})),
            "a TIFF picture of floats is not supported; store it as unsigned integers");
  EXPECT_EQ(said(tiff(1, 1, 8, 1, 1, {1}, {{259, {34925}}})),
            "a TIFF picture compressed by scheme 34925 is not supported; store it with Deflate");
}

TEST(PictureTest, TiffThatLiesAboutItsSizeHasNoRows) {
  if (!is_built(file_of("tiff"), "libtiff-dev")) return;
  const auto expect_none = [](const Buffer& file) {
    const Result<Picture> picture = decode_picture(file);
    ASSERT_TRUE(picture.is_ok()) << picture.status().message();
    EXPECT_EQ(picture->height, 0);
  };
  expect_none(tiff(1u << 30, 1u << 30, 8, 1, 1, {1}));
  expect_none(tiff(100, 100, 8, 1, 1, {1}));
  expect_none(tiff(1, 1, 8, 1, 1, {1}, {{273, {1u << 30}}}));
  // One tile of 4 GB for a picture of one pixel.
  expect_none(tiff(
      1, 1, 8, 1, 1, {1},
      {{273, {}}, {278, {}}, {279, {}}, {322, {65536}}, {323, {65536}}, {324, {8}}, {325, {1}}}));
}

TEST(PictureTest, Jpeg2000IsAFileOrABareStream) {
  if (!is_built(file_of("jpeg 2000"), "libopenjp2-7-dev")) return;
  expect_gradient(file_of("jpeg 2000"), 0);
  expect_gradient(file_of("jpeg 2000, bare"), 24);
}

TEST(PictureTest, BmpStoresRowsFromTheBottomAndBlueFirst) {
  EXPECT_EQ(pixels_of(bmp(1, 2, 24, {}, {3, 2, 1, 0, 6, 5, 4, 0})), (Buffer{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(pixels_of(bmp(1, -2, 24, {}, {3, 2, 1, 0, 6, 5, 4, 0})), (Buffer{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels_of(bmp(3, 1, 4, {0, 0, 0, 0, 9, 8, 7, 0, 6, 5, 4, 0}, {0x12, 0x00, 0, 0})),
            (Buffer{7, 8, 9, 4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(pixels_of(bmp(2, 1, 1, {0, 0, 0, 0, 9, 8, 7, 0}, {0x40, 0, 0, 0})),
            (Buffer{0, 0, 0, 7, 8, 9}));
  EXPECT_EQ(pixels_of(bmp(2, 1, 16, {}, {0xff, 0x7f, 0x1f, 0x00})),
            (Buffer{255, 255, 255, 0, 0, 255}));
  // The masks of a file that says which bits are which.
  Buffer masks;
  for (const uint32_t mask : {0xf800u, 0x07e0u, 0x001fu}) append(masks, mask, 4);
  EXPECT_EQ(pixels_of(bmp(2, 1, 16, masks, {0xe0, 0x07, 0x00, 0xf8}, 3)),
            (Buffer{0, 255, 0, 255, 0, 0}));
}

TEST(PictureTest, PnmIsTextOrBytes) {
  EXPECT_EQ(pixels_of(text("P1 # bits\n3 1\n101")), (Buffer{0, 0, 0, 255, 255, 255, 0, 0, 0}));
  EXPECT_EQ(pixels_of(text("P4\n9 1\n", {0x80, 0x80})).size(), 27u);
  EXPECT_EQ(pixels_of(text("P2 2 1 4 0 3")), (Buffer{0, 0, 0, 191, 191, 191}));
  EXPECT_EQ(pixels_of(text("P3 1 1 255 1 2 3")), (Buffer{1, 2, 3}));
  EXPECT_EQ(pixels_of(text("P6 1 2 255\n", {1, 2, 3, 4, 5, 6})), (Buffer{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels_of(text("P5 2 1 65535\n", {0x80, 0x00, 0xff, 0xff})),
            (Buffer{128, 128, 128, 255, 255, 255}));
}

TEST(PictureTest, WhatIsNoPictureHasNoRows) {
  for (const Buffer& file :
       {Buffer{}, Buffer{'B', 'M'}, text("P6 2 2 255\n", {1, 2, 3}), text("P6 1 1 0\n", {1, 2, 3}),
        text("P2 2 1 4 0"), text("P6 -1 1 255\n"), text("hello, world"),
        bmp(2, 2, 24, {}, {1, 2, 3}), bmp(0, 1, 24, {}, {}), bmp(1, 1, 7, {}, {0, 0, 0, 0}),
        bmp(1, INT32_MIN, 24, {}, {0, 0, 0, 0}), text("P5 1000000000 1000000000 255\n")}) {
    const Result<Picture> picture = decode_picture(file);
    ASSERT_TRUE(picture.is_ok()) << picture.status().message();
    EXPECT_EQ(picture->height, 0);
    EXPECT_TRUE(picture->rgb.empty());
  }
}

TEST(PictureTest, FormatsThatEddyDoesNotReadAreNamed) {
  const auto said = [](const Buffer& file) {
    const Result<Picture> picture = decode_picture(file);
    return picture.is_ok() ? "accepted" : picture.status().message();
  };
  EXPECT_EQ(said(bmp(1, 1, 8, {}, {0, 0, 0, 0}, 1)),
            "a BMP picture of runs is not supported; store it without compression");
}

// Each prefix, and thousands of copies with bytes flipped, replaced or cut.
TEST(PictureTest, HostileBytesEndInAPictureOrARefusal) {
  constexpr uint64_t kSeed = 20261128;
  printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  const auto check = [](const std::string& name, const Buffer& file) {
    const Result<Picture> picture = decode_picture(file);
    if (!picture.is_ok()) {
      EXPECT_EQ(picture.status().message().find('\n'), std::string::npos) << name;
      return;
    }
    const auto size = static_cast<int64_t>(picture->rgb.size());
    EXPECT_EQ(size, picture->height * picture->width * 3) << name;
    EXPECT_LE(size / 3,
              std::max(kAlwaysPixels, static_cast<int64_t>(file.size()) * kMostPixelsPerByte))
        << name;
  };
  Random random(kSeed);
  for (const auto& [name, file] : files()) {
    for (size_t size = 0; size < file.size(); ++size) {
      check(name, Buffer(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
    }
    for (int round = 0; round < 1500; ++round) {
      Buffer broken = file;
      const uint64_t num_changes = 1 + random.below(4);
      for (uint64_t i = 0; i < num_changes; ++i) {
        uint8_t& byte = broken[random.below(broken.size())];
        byte = random.below(2) == 0 ? static_cast<uint8_t>(byte ^ (1u << random.below(8)))
                                    : static_cast<uint8_t>(random.below(256));
      }
      if (random.below(4) == 0) broken.resize(random.below(broken.size()));
      check(name, broken);
    }
  }
}

TEST(ImageDecoderTest, PixelsComeInTheOrderAskedFor) {
  const Buffer file = text("P6 2 1 255\n", {255, 0, 0, 10, 20, 30});
  const auto decode = [&](const Buffer& bytes, const char* format) {
    OpCall call;
    call.op = "ImageDecoder";
    call.opset = 20;
    call.inputs = {TestTensor::of<uint8_t>({static_cast<int64_t>(bytes.size())}, bytes)};
    if (format != nullptr) call.attributes = {{"pixel_format", format}};
    return run_op(call, KernelSet::kCpu);
  };
  const auto expect = [&](const char* format, const TestTensor& expected) {
    const auto result = decode(file, format);
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_TRUE(is_same_bits((*result)[0].tensor(), expected));
  };
  expect(nullptr, TestTensor::of<uint8_t>({1, 2, 3}, {255, 0, 0, 10, 20, 30}));
  expect("BGR", TestTensor::of<uint8_t>({1, 2, 3}, {0, 0, 255, 30, 20, 10}));
  expect("Grayscale", TestTensor::of<uint8_t>({1, 2, 1}, {76, 18}));
  EXPECT_EQ(decode(file, "HSV").status().message(),
            "attribute 'pixel_format' must be one of RGB, BGR, Grayscale, not 'HSV'");
  const auto none = decode({1, 2, 3}, nullptr);
  ASSERT_TRUE(none.is_ok()) << none.status().message();
  EXPECT_TRUE(is_same_bits((*none)[0].tensor(), TestTensor::of<uint8_t>({0, 0, 3}, {})));
}

}  // namespace
}  // namespace eddy::images
