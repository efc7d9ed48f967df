// ProductTiles: how a product by a packed B is cut into tiles of about so many terms: into rows of
// the result, or into panels of its columns, whichever are more.
//
// Where rows are few, the time goes to reading B: an element of it counts as so many terms at
// least. Determinism: by sizes alone. Threads: a value.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cpu/tiles.h"

namespace eddy::cpu {

class ProductTiles {
 public:
  struct Sizes {
    int64_t rows = 0, depth = 0, columns = 0;
    int64_t panel_width = 1;
  };
  struct Grain {
    int64_t terms = 1;      // of a tile
    int64_t min_terms = 1;  // of an element of B
    int64_t row_step = 1;   // whole register tiles
  };

  ProductTiles(const Sizes& sizes, const Grain& grain) : sizes_(sizes) {
    const int64_t row_terms = std::max<int64_t>(sizes.depth * sizes.columns, 1),
                  step = grain.row_step;
    const int64_t wanted_rows = (grain.terms / row_terms + step - 1) / step * step;
    const Tiles rows = {sizes.rows, std::max(wanted_rows, step)};
    const Tiles panels = Tiles::of(
        num_panels(), sizes.depth * sizes.panel_width * std::max(sizes.rows, grain.min_terms),
        grain.terms);
    is_by_rows_ = rows.count() >= panels.count();
    tiles_ = is_by_rows_ ? rows : panels;
  }
  const Tiles& tiles() const { return tiles_; }

  // Rows and columns of the result.
  struct Part {
    int64_t first_row, end_row;
    int64_t first_panel, end_panel;
    int64_t first_column, end_column;
  };
  Part part(int64_t first, int64_t end) const {
    if (is_by_rows_) return {first, end, 0, num_panels(), 0, sizes_.columns};
    const int64_t width = sizes_.panel_width;
    return {0, sizes_.rows, first, end, first * width, std::min(end * width, sizes_.columns)};
  }

 private:
  int64_t num_panels() const {
    return (sizes_.columns + sizes_.panel_width - 1) / sizes_.panel_width;
  }

  Sizes sizes_;
  bool is_by_rows_;
  Tiles tiles_;
};

}  // namespace eddy::cpu
