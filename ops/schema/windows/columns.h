// Columns: the geometry of Col2Im, which puts the columns of windows back where they were cut from
// an image and adds up where they overlap: the reverse of cutting, not of what was cut.
//
//   [N, C * block, windows]  ──>  [N, C, image...]
//
// Source: ONNX operator Col2Im, opset 18. Errors: kInvalidArgument naming the attribute or axis.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/window.h"

namespace eddy {

struct Columns {
  int rank = 0;  // spatial axes
  std::array<WindowAxis, kMaxSpatialRank> axes{};
  std::array<int64_t, kMaxSpatialRank> image{}, windows{};
  int64_t block_size = 1, num_windows = 1, image_size = 1;
};

// Checked against each other and against the columns' dimensions, of which some may be unknown.
Status resolve_columns(const Attributes& attributes, const IntList& image, const IntList& block,
                       const Dims& columns, Columns& result);

}  // namespace eddy
