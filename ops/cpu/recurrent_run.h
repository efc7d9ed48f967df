// RecurrentRun: one direction of LSTM, GRU or RNN over a batch whose sequences have one length.
//
// Products of the input with W do not depend on the state, so they are done for a block of steps
// at once; only the products with R go step by step. LSTM cells with the usual functions run in
// one vector loop (tile.h), everything else gate by gate.
//
// Contract: the pointers are those of this batch (item 0) and direction; h and c hold the initial
// state and, after run(), the last one.
// Threads: one for each run.
#pragma once

#include "ops/cpu/gemm.h"
#include "ops/reference/products/recurrent_shape.h"

namespace eddy::cpu {

// A gate's values through its function, clipped before where the rules say so.
void clip_and_activate(const RecurrentRules& rules, int direction, int function, float* values,
                       int64_t count);
// LSTM cells that tiles know: the usual functions and no more.
bool has_plain_lstm_cell(const RecurrentRules& rules, int direction, bool has_peephole);
// A GRU whose reset comes behind the product: R's bias of gate h waits for it.
bool has_candidate_bias(const RecurrentRules& rules);
// How a step reads R, of which a thread has so many floats: to and fro.
PackedMatrix::Reading reading_of(int64_t step, int64_t num_floats);
// GRU: gate += reset * states_part; after = (1 - z) * candidate + z * before.
void add_reset(const float* reset, const float* states_part, float* gate, int64_t count);
void gru_state(const float* z, const float* candidate, const float* before, float* after,
               int64_t count);

// Some rows of W or R of one direction, used transposed: packed, or as they lie in the input.
struct RecurrentWeights {
  const PackedMatrix* packed_or_null = nullptr;
  const float* rows = nullptr;
  int64_t count = 0, depth = 0;

  // c = (c if accumulate) + bias + a * rows transposed, for m rows of a.
  void multiply(int64_t m, const float* a, int64_t a_row, float* c, int64_t c_row,
                const float* bias_or_null, bool accumulate,
                PackedMatrix::Reading reading = {}) const;
};

struct RecurrentRun {
  const RecurrentRules& rules;
  const RecurrentShape& shape;
  const TileKernels& tiles;
  int direction = 0;
  int64_t batch = 0, steps = 0;
  // GRU's R is in two parts: the gates z and r, then the candidate h.
  RecurrentWeights w, r, r_candidate;
  const float* x = nullptr;
  const float* bias = nullptr;  // of all gates: what of W's and R's biases is only added
  const float* candidate_bias_or_null = nullptr;  // GRU, linear before reset: R's, of gate h
  const float* peephole_or_null = nullptr;
  float* y_or_null = nullptr;
  float* h = nullptr;      // [batch][hidden]
  float* c = nullptr;      // LSTM: [batch][hidden]
  float* other = nullptr;  // GRU: [batch][hidden] to work in
  float* gates = nullptr;  // block_steps * batch * width() to work in

  // Steps whose gates are computed ahead, for a batch of this size.
  static int64_t block_steps(RecurrentKind kind, int64_t batch, int64_t hidden);

  void run();

 private:
  int64_t hidden() const { return shape.hidden; }
  int64_t width() const { return num_gates(rules.kind) * shape.hidden; }
  void clip_and_activate(int function, float* values, int64_t count) const;
  void project(int64_t first_step, int64_t count) const;
  void step(float* gate, PackedMatrix::Reading reading) const;
  void step_lstm(float* gate, PackedMatrix::Reading reading) const;
  void add_peephole(int gate, const float* cell, float* values) const;
  void lstm_cell(float* row, float* cell, float* state) const;
  void step_gru(float* gate, PackedMatrix::Reading reading) const;
  void add_candidate(float* gate, PackedMatrix::Reading reading) const;
  void step_rnn(float* gate, PackedMatrix::Reading reading) const;
  void store(int64_t t) const;
};

}  // namespace eddy::cpu
