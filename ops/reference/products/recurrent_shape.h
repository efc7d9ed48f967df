// RecurrentShape: sizes and strides of one call of LSTM, GRU or RNN, for either layout, and the
// lengths of its sequences.
//
// Errors: as check_lengths.
#pragma once

#include "graph/base/check.h"
#include "ops/contract/kernel.h"
#include "ops/reference/parts/outputs.h"
#include "ops/schema/products/recurrent_rules.h"

namespace eddy {

struct RecurrentShape {
  int64_t sequence = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  // Elements from one step, batch item or direction to the next.
  int64_t x_step = 0, x_batch = 0;
  int64_t y_step = 0, y_batch = 0, y_direction = 0;
  int64_t state_batch = 0, state_direction = 0;
  const int32_t* lengths_or_null = nullptr;

  int64_t length(int64_t b) const { return lengths_or_null ? lengths_or_null[b] : sequence; }
};

inline Status make_recurrent_shape(const RecurrentRules& rules, const KernelArgs& args,
                                   RecurrentShape& s) {
  const TensorView &x = args.inputs[0], &r = args.inputs[2];
  EDDY_DCHECK(x.rank == 3 && r.rank == 3) << "ranks " << x.rank << " and " << r.rank;
  s.sequence = x.dims[rules.batch_first ? 1 : 0];
  s.batch = x.dims[rules.batch_first ? 0 : 1];
  s.input = x.dims[2];
  s.hidden = r.dims[2];
  s.directions = rules.num_directions;
  const int64_t d = s.directions, h = s.hidden;
  s.x_step = rules.batch_first ? s.input : s.batch * s.input;
  s.x_batch = rules.batch_first ? s.sequence * s.input : s.input;
  s.y_direction = rules.batch_first ? h : s.batch * h;
  s.y_step = rules.batch_first ? d * h : d * s.batch * h;
  s.y_batch = rules.batch_first ? s.sequence * d * h : h;
  s.state_batch = rules.batch_first ? d * h : h;
  s.state_direction = rules.batch_first ? h : s.batch * h;
  if (!args.has_input(4)) return Status::ok();
  EDDY_DCHECK(args.inputs[4].count() == s.batch) << "not a length for each of " << s.batch;
  s.lengths_or_null = args.inputs[4].as<int32_t>();
  return check_lengths({s.lengths_or_null, static_cast<size_t>(s.batch)}, s.sequence);
}

}  // namespace eddy
