// RecurrentTiles: the steps of an LSTM, GRU or RNN in tiles that workers share, by blocks of hidden
// units.
//
// A tile is one step of one block in one direction: the gates of its units for the whole batch,
// then their cells. Tiles of one step run at once, of both directions if a few threads' caches hold
// R of both, else the second direction follows the first; the next step's need all of them
// (BoundKernel::count_at_once), because its products read the whole state, of which there are two
// copies in turn. A GRU that resets the state before its product takes two rounds a step: gates,
// then candidates, which read the whole reset state. The first tiles of all load the states;
// products with W are made ahead, as RecurrentRun makes them, by the step that comes first of
// those.
//
// Contract: packed weights, plain LSTM cells, sequences of one length, and steps of so many
// multiplications that a meeting of threads is little beside them: suits(). Blocks are of whole
// panels and follow from the shape alone; every sum has RecurrentRun's order, so bits are equal.
// Threads: tiles as the kernel's contract has them. Cost: a call of a product for each gate.
#pragma once

#include <array>
#include <cstdint>

#include "ops/contract/kernel.h"
#include "ops/cpu/gemm.h"
#include "ops/reference/products/recurrent_shape.h"

namespace eddy::cpu {

class RecurrentTiles {
 public:
  // Of one direction; not packed: null.
  struct Weights {
    const PackedMatrix* w_or_null = nullptr;
    const PackedMatrix* r_or_null = nullptr;
    const PackedMatrix* candidate_or_null = nullptr;  // GRU: R of gate h, which r lacks
  };

  RecurrentTiles(const KernelArgs& args, const RecurrentRules& rules, const RecurrentShape& shape,
                 const std::array<Weights, 2>& weights);

  static bool suits(const KernelArgs& args, const RecurrentRules& rules,
                    const RecurrentShape& shape, const std::array<Weights, 2>& weights);

  // Of one step.
  uint32_t num_at_once() const { return static_cast<uint32_t>(directions_at_once_ * num_blocks_); }
  uint32_t count() const {
    return static_cast<uint32_t>(rules_.num_directions * num_blocks_ * num_phases());
  }
  size_t shared_bytes() const;
  void run(uint32_t tile) const;

 private:
  // A direction's part of the shared memory, and the units at hand.
  struct Block {
    int64_t direction, first, end;
    float *bias, *h[2];
    float* c;  // LSTM: cells; GRU: the state's part of gate h, or the reset state
    float* gates;
    int64_t size() const { return end - first; }
  };
  // Of a direction: it is loaded, then come the steps.
  int64_t num_phases() const { return 1 + rounds_each_ * s_.sequence; }
  int64_t width() const { return num_gates(rules_.kind) * s_.hidden; }
  const Weights& weights_of(const Block& block) const {
    return weights_[static_cast<size_t>(block.direction)];
  }
  bool resets_before() const {
    return rules_.kind == RecurrentKind::kGru && !rules_.linear_before_reset;
  }
  int64_t floats_of_direction() const;
  Block block_of(int64_t direction, int64_t place) const;
  void load(const Block& block) const;
  void project(const Block& block, int64_t first_step, int64_t count) const;
  void step(const Block& block, int64_t step, bool is_second_round) const;
  void lstm_cells(const Block& block, const float* gates, float* next) const;
  void gru_gates(const Block& block, float* gates, const float* h) const;
  void gru_candidates(const Block& block, float* gates, const float* h, float* next,
                      PackedMatrix::Reading reading) const;
  void rnn_cells(const Block& block, float* gates, float* next) const;
  void store(const Block& block, int64_t t, const float* next) const;
  void save(const Block& block, const float* h) const;
  void multiply(const PackedMatrix& matrix, PackedMatrix::Product product, const Block& block,
                int64_t gates) const;
  void activate(const Block& block, int function, float* values) const;

  const KernelArgs& args_;
  const RecurrentRules& rules_;
  const RecurrentShape& s_;
  const std::array<Weights, 2>& weights_;
  int64_t block_size_ = 0, num_blocks_ = 0;  // hidden units; of a direction
  int64_t steps_ahead_ = 1;                  // whose products with W are made at once
  int64_t rounds_each_ = 1;                  // of a step
  int64_t directions_at_once_ = 1;
};

}  // namespace eddy::cpu
