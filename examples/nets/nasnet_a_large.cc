#include "examples/nets/images.h"
#include "examples/nets/net.h"

namespace eddy::nets {
namespace {

struct Shape {
  int64_t image, stem, filters, cells, classes;  // `cells` of each of three widths
};

Shape shape_of(Scale scale) {
  if (scale == Scale::kSmall) return {43, 8, 8, 1, 10};
  return {331, 96, 168, 6, 1000};
}

// A cell reads the outputs of the two before it.
struct State {
  Image last, before;
};

// Cells of one width.
class Cells {
 public:
  Cells(ImageParts& parts, int64_t filters) : parts_(parts), filters_(filters) {}

  // The paper's figure 4, left.
  Image normal(const State& state) {
    const Image p = fitted(state);
    const Image h = projected(state.last);
    const Image made[] = {p,
                          parts_.add({separable(h, 5), separable(p, 3)}),
                          parts_.add({separable(p, 5), separable(p, 3)}),
                          parts_.add({parts_.average_pool(h), p}),
                          parts_.add({parts_.average_pool(p), parts_.average_pool(p)}),
                          parts_.add({separable(h, 3), h})};
    return parts_.concat(made);
  }

  // The same, right: half the size.
  Image reduction(const State& state) {
    const Image p = fitted(state);
    const Image h = projected(state.last);
    const Image first = parts_.add({separable(h, 5, 2), separable(p, 7, 2)});
    const Image second = parts_.add({parts_.max_pool(h), separable(p, 7, 2)});
    const Image made[] = {second, parts_.add({parts_.average_pool(h, 2), separable(p, 5, 2)}),
                          parts_.add({parts_.average_pool(first), second}),
                          parts_.add({separable(first, 3), parts_.max_pool(h)})};
    return parts_.concat(made);
  }

 private:
  // Applied twice, the stride at first.
  Image separable(const Image& x, int64_t kernel, int64_t stride = 1) {
    const Image once = parts_.depthwise(parts_.relu(x), kernel, stride);
    const Image between = parts_.relu(parts_.norm(parts_.conv(once, filters_, 1)));
    return parts_.norm(parts_.conv(parts_.depthwise(between, kernel), filters_, 1));
  }

  Image projected(const Image& x) { return parts_.norm(parts_.conv(parts_.relu(x), filters_, 1)); }

  // The output before the last in the size and width of the last: where it is twice as large,
  // half of the channels from each of two grids. The first cell of all takes its input as it is.
  Image fitted(const State& state) {
    const Image& x = state.before;
    if (x.size != state.last.size) {
      const Image active = parts_.relu(x);
      const Image halves[] = {parts_.conv(parts_.thin_out(active, false), filters_ / 2, 1),
                              parts_.conv(parts_.thin_out(active, true), filters_ / 2, 1)};
      return parts_.norm(parts_.concat(halves));
    }
    return x.channels == filters_ || is_first(state) ? x : projected(x);
  }

  static bool is_first(const State& state) { return state.last.value.id == state.before.value.id; }

  ImageParts& parts_;
  const int64_t filters_;
};

}  // namespace

Result<Net> nasnet_a_large(const OpTable& ops, Scale scale, uint64_t seed) {
  const Shape shape = shape_of(scale);
  Random random(seed);
  GraphBuilder b(ops, "nasnet_a_large");
  ImageParts parts(b, random);
  const Image input = parts.input("image", shape.image);
  const Image stem = parts.norm(parts.conv_unpadded(input, shape.stem, 3, 2));
  State state{stem, stem};
  for (const int64_t part : {4, 2}) {
    state = {Cells(parts, shape.filters / part).reduction(state), state.last};
  }
  for (const int64_t width : {1, 2, 4}) {
    Cells cells(parts, width * shape.filters);
    // The cell behind a reduction reads what stands two before the reduction.
    if (width > 1) state.last = cells.reduction(state);
    for (int64_t i = 0; i < shape.cells; ++i) state = {cells.normal(state), state.last};
  }
  b.output("scores", parts.classify(parts.relu(state.last), shape.classes));
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return Net{std::move(graph), {{"image", random_image(random, shape.image)}}};
}

}  // namespace eddy::nets
