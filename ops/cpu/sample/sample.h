// SampleLoops: places between four elements of a plane, those of GridSample and of DeformConv, and
// what lies there, by a loop for each instruction set.
//
//   find     ((c + 1) * factor - minus) / 2 on each axis, kept within the plane where it clamps
//   moved    (row + down, column + i * step + right) for element i of a row of taps
//   sample   four neighbours times (1 - right, right) x (1 - down, down)
//
//      first ──┬── first + 1         first: the upper left one, of those all four of which are
//              │ . down              inside and have a weight
//   first + width ──┴── + 1
//
// Places are computed in double, as the reference does, and kept as floats; weights and samples in
// float. Determinism: a place and a sample depend on their own coordinates only; instruction sets
// differ in the last bits. Errors: none. Threads: pure functions.
#pragma once

#include <cstdint>

#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

inline constexpr int32_t kNowhere = -1;    // nothing lies there: the sample is 0
inline constexpr int32_t kElsewhere = -2;  // not between four: the caller's to find

struct SampleAxis {
  double size = 0;
  double factor = 0, minus = 0;
  bool clamps = false;
};

struct FindArgs {
  const float* grid = nullptr;  // (x, y) of each place
  int64_t count = 0;
  SampleAxis x, y;
  int32_t* first = nullptr;  // of the plane's elements, kNowhere or kElsewhere
  float* right = nullptr;    // between 0 and 1 where first is not negative
  float* down = nullptr;
};

struct MovedArgs {
  const float* down_by = nullptr;
  const float* right_by = nullptr;
  int64_t count = 0;
  double row = 0, column = 0, step = 0;  // of the first place, not moved; to the next one
  int64_t height = 0, width = 0;
  int32_t* first = nullptr;  // as in FindArgs
  float* right = nullptr;
  float* down = nullptr;
};

struct SampleArgs {
  const float* plane = nullptr;
  int64_t width = 0;  // of a row
  const int32_t* first = nullptr;
  const float* right = nullptr;
  const float* down = nullptr;
  int64_t count = 0;
  float* out = nullptr;  // 0 where first is negative
};

struct SampleLoops {
  void (*find)(const FindArgs& args) = nullptr;
  void (*find_moved)(const MovedArgs& args) = nullptr;
  void (*sample)(const SampleArgs& args) = nullptr;
};

// Of a set that this processor has (tile_kernels().isa).
const SampleLoops& sample_loops(Isa isa);

}  // namespace eddy::cpu
