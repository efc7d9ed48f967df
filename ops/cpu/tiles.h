// Tiles of a kernel whose work is a line of units (elements, rows, planes) that read nothing of
// each other: a tile is some units in turn.
//
//   Tiles tiles_of(const KernelArgs& args);                               by the shapes alone
//   bool run_units(const KernelArgs& args, int64_t first, int64_t end);   as a KernelFunction
//
//   kernel.run = run_all_units<tiles_of, run_units>;   all tiles in order
//   set_tiles<tiles_of, run_units>(kernel);            the same, and one by one
//
// A kernel whose calls are known, or likely, to be small has no tiles, and costs what it would
// without them.
//
// Determinism: run() does the parts that the tiles do, so bits do not depend on threads.
// Errors: those of run_units. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/base/check.h"
#include "ops/contract/kernel.h"

namespace eddy::cpu {

// Elements of light work in a tile: tens of microseconds of the slower loops.
inline constexpr int64_t kTileElements = 65'536;

struct Tiles {
  int64_t num_units = 0;
  int64_t units_each = 1;

  // Even tiles of at most `wanted` elements, but for one unit; a unit has unit_elements of them.
  static Tiles of(int64_t num_units, int64_t unit_elements, int64_t wanted = kTileElements) {
    EDDY_DCHECK(num_units >= 0 && unit_elements >= 0) << num_units << " of " << unit_elements;
    const int64_t most = std::max<int64_t>(wanted / std::max<int64_t>(unit_elements, 1), 1);
    const int64_t count = std::max<int64_t>((num_units + most - 1) / most, 1);
    return {num_units, std::max<int64_t>((num_units + count - 1) / count, 1)};
  }
  uint32_t count() const {
    return static_cast<uint32_t>((num_units + units_each - 1) / units_each);
  }
  int64_t first(uint32_t tile) const { return tile * units_each; }
  int64_t end(uint32_t tile) const { return std::min(first(tile) + units_each, num_units); }
};

using TilesFunction = Tiles (*)(const KernelArgs& args);
using UnitsFunction = bool (*)(const KernelArgs& args, int64_t first, int64_t end);

template <TilesFunction tiles_of>
uint32_t count_tiles_of_units(const KernelArgs& args) {
  return tiles_of(args).count();
}

template <TilesFunction tiles_of, UnitsFunction run_units>
bool run_tile_of_units(const KernelArgs& args, uint32_t tile) {
  const Tiles tiles = tiles_of(args);
  EDDY_DCHECK(tile < tiles.count()) << "tile " << tile << " of " << tiles.count();
  return run_units(args, tiles.first(tile), tiles.end(tile));
}

template <TilesFunction tiles_of, UnitsFunction run_units>
bool run_all_units(const KernelArgs& args) {
  const Tiles tiles = tiles_of(args);
  const uint32_t count = tiles.count();
  for (uint32_t tile = 0; tile < count; ++tile) {
    if (!run_units(args, tiles.first(tile), tiles.end(tile))) return false;
  }
  return true;
}

template <TilesFunction tiles_of, UnitsFunction run_units>
void set_tiles(BoundKernel& kernel) {
  kernel.run = run_all_units<tiles_of, run_units>;
  kernel.count_tiles = count_tiles_of_units<tiles_of>;
  kernel.run_tile = run_tile_of_units<tiles_of, run_units>;
}

// Elements of a tensor, where a size that is unknown when binding counts as that of a short
// sequence; 0: no rank is known.
inline int64_t likely_count(const TensorType& type) {
  constexpr int64_t kLikelySize = 16;
  if (!type.is_ranked) return 0;
  Dims dims = type.dims;
  for (int axis = 0; axis < dims.rank(); ++axis)
    dims[axis] = dims[axis] < 0 ? kLikelySize : dims[axis];
  return dims.count().value_or(0);
}

// Whether a tensor has elements for several tiles, as far as is known.
inline bool fills_tiles(const ValueType& type, int64_t tile_elements = kTileElements) {
  return type.is_tensor() && likely_count(type.tensor) > tile_elements;
}

}  // namespace eddy::cpu
