// LstmTiles: an LSTM's steps in tiles that workers share, by blocks of hidden units.
//
// A tile is one step of one block in one direction: the four gates of its units for the whole
// batch, then their cells. Tiles of one step run at once; the next step's need all of them
// (BoundKernel::count_at_once), because its products read the whole state, of which there are two
// copies in turn. The first tiles of all load the states; products with W are made ahead, as
// RecurrentRun makes them, by the step that comes first of those.
//
// Contract: packed weights, plain cells, sequences of one length, and steps of so many
// multiplications that a meeting of threads is little beside them: suits(). Blocks are of whole
// panels and follow from the shape alone; every sum has RecurrentRun's order, so bits are equal.
// Threads: tiles as the kernel's contract has them. Cost: four calls of a product for each tile.
#pragma once

#include <array>
#include <cstdint>

#include "ops/contract/kernel.h"
#include "ops/cpu/gemm.h"
#include "ops/reference/products/recurrent_shape.h"

namespace eddy::cpu {

class LstmTiles {
 public:
  // Of one direction; not packed: null.
  struct Weights {
    const PackedMatrix* w_or_null = nullptr;
    const PackedMatrix* r_or_null = nullptr;
  };

  LstmTiles(const KernelArgs& args, const RecurrentRules& rules, const RecurrentShape& shape,
            const std::array<Weights, 2>& weights);

  static bool suits(const KernelArgs& args, const RecurrentRules& rules,
                    const RecurrentShape& shape, const std::array<Weights, 2>& weights);

  // Of one step.
  uint32_t num_at_once() const {
    return static_cast<uint32_t>(rules_.num_directions * num_blocks_);
  }
  uint32_t count() const { return num_at_once() * (1 + static_cast<uint32_t>(s_.sequence)); }
  size_t shared_bytes() const;
  void run(uint32_t tile) const;

 private:
  // A direction's part of the shared memory, and the units at hand.
  struct Block {
    int64_t direction, first, end;
    float *bias, *h[2], *c, *gates;
  };
  int64_t width() const { return 4 * s_.hidden; }
  int64_t floats_of_direction() const;
  Block block_of(uint32_t tile) const;
  void load(const Block& block) const;
  void project(const Block& block, int64_t first_step, int64_t count) const;
  void step(const Block& block, int64_t step) const;
  void save(const Block& block, const float* h) const;
  void multiply(const PackedMatrix& matrix, PackedMatrix::Product product,
                const Block& block) const;

  const KernelArgs& args_;
  const RecurrentRules& rules_;
  const RecurrentShape& s_;
  const std::array<Weights, 2>& weights_;
  int64_t block_size_ = 0, num_blocks_ = 0;  // hidden units; of a direction
  int64_t steps_ahead_ = 1;                  // whose products with W are made at once
};

}  // namespace eddy::cpu
