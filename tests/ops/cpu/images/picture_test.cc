// Claim: pictures of each format come out as the pixels that went in, in the order asked for; bytes
// that are no picture give one of no rows; and whatever is cut off or flipped in a file (seeds are
// printed), decoding ends in a picture whose size the file can hold or in a refusal of one line.
#include "ops/cpu/images/picture.h"

#include <gtest/gtest.h>

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

std::vector<std::pair<std::string, Buffer>> files() {
  const auto of = [](auto& bytes) { return Buffer(std::begin(bytes), std::end(bytes)); };
  return {{"jpeg", of(kJpeg)},
          {"png", of(kPng)},
          {"png, interlaced", of(kInterlacedPng)},
          {"png, table", of(kTablePng)},
          {"webp, lossless", of(kLosslessWebp)},
          {"webp", of(kWebp)},
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
  EXPECT_EQ(said(text(std::string("II*\0rest", 8))),
            "a TIFF picture is not supported; store it as PNG");
  EXPECT_EQ(said(text("\xff\x4f\xff\x51")),
            "a JPEG 2000 picture is not supported; store it as PNG or JPEG");
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
