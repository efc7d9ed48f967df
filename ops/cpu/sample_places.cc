#include "ops/cpu/sample_places.h"

#include <bit>

namespace eddy::cpu {
namespace {

float sample(const float* plane, const Place& place) {
  const auto part = [&](size_t i) {
    const int64_t offset = place.offset[i], mask = ~(offset >> 63);
    const auto bits = std::bit_cast<uint32_t>(plane[offset & mask]) & static_cast<uint32_t>(mask);
    return place.weight[i] * std::bit_cast<float>(bits);
  };
  return (part(0) + part(1)) + (part(2) + part(3));
}

}  // namespace

const SampleLoops& sample_loops() { return sample_loops(tile_kernels().isa); }

void sample_plane(const float* plane, int64_t width, const Places& places, int64_t count,
                  float* out) {
  if (places.num_others < count) {
    sample_loops().sample({.plane = plane,
                           .width = width,
                           .first = places.first,
                           .right = places.right,
                           .down = places.down,
                           .count = count,
                           .out = out});
  }
  for (int64_t k = 0; k < places.num_others; ++k) {
    out[places.index[k]] = sample(plane, places.others[k]);
  }
}

}  // namespace eddy::cpu
