#include "examples/dynamic_models/parts.h"
#include "examples/nets/images.h"
#include "examples/nets/net.h"

namespace eddy::nets {
namespace {

// Blocks of one width.
struct Stage {
  int64_t expansion, channels, blocks, stride;
};

struct Shape {
  int64_t image, stem, last, classes;
  std::vector<Stage> stages;
};

Shape shape_of(Scale scale) {
  if (scale == Scale::kSmall) return {32, 8, 40, 10, {{1, 8, 1, 1}, {6, 12, 2, 2}, {6, 20, 2, 2}}};
  return {224,
          32,
          1280,
          1000,
          {{1, 16, 1, 1},
           {6, 24, 2, 2},
           {6, 32, 3, 2},
           {6, 64, 4, 2},
           {6, 96, 3, 1},
           {6, 160, 3, 2},
           {6, 320, 1, 1}}};
}

// Wide inside, narrow outside.
Image inverted_residual(ImageParts& parts, const Image& x, const Stage& stage, int64_t stride) {
  Image inner = x;
  if (stage.expansion > 1) {
    inner = parts.relu6(parts.norm(parts.conv(inner, x.channels * stage.expansion, 1)));
  }
  inner = parts.relu6(parts.norm(parts.depthwise(inner, 3, stride)));
  inner = parts.norm(parts.conv(inner, stage.channels, 1));
  return stride == 1 && x.channels == stage.channels ? parts.add({x, inner}) : inner;
}

}  // namespace

Result<Net> mobilenet_v2(const OpTable& ops, Scale scale, uint64_t seed) {
  const Shape shape = shape_of(scale);
  Random random(seed);
  GraphBuilder b(ops, "mobilenet_v2");
  ImageParts parts(b, random);
  Image x = parts.input("image", shape.image);
  x = parts.relu6(parts.norm(parts.conv(x, shape.stem, 3, 2)));
  for (const Stage& stage : shape.stages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = inverted_residual(parts, x, stage, i == 0 ? stage.stride : 1);
    }
  }
  x = parts.relu6(parts.norm(parts.conv(x, shape.last, 1)));
  b.output("scores", parts.classify(x, shape.classes));
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return Net{std::move(graph), {{"image", random_image(random, shape.image)}}};
}

}  // namespace eddy::nets
