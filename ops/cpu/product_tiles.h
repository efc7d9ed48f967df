// ProductTiles: how a product by a packed B is cut into tiles of about so many terms: into rows of
// the result or into panels of its columns, whichever are more; where B is larger than a cache,
// rows into as many times fewer as panels into more, so that a tile reads less of B.
//
// Where rows are few, the time goes to reading B: an element of it counts as so many terms at
// least. Tiles by the same panels follow each other. Determinism: by sizes alone. Threads: a value.
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
    int64_t terms = 1;         // of a tile
    int64_t min_terms = 1;     // of an element of B
    int64_t row_step = 1;      // whole register tiles
    int64_t cached_terms = 1;  // elements of B that a second-level cache holds beside others
  };

  ProductTiles(const Sizes& sizes, const Grain& grain) : sizes_(sizes) {
    const int64_t all_panels = std::max<int64_t>(num_panels(), 1), rows = sizes.rows;
    const int64_t b_terms = std::max<int64_t>(sizes.depth * sizes.columns, 1);
    const int64_t wanted = std::max<int64_t>((grain.terms / b_terms + grain.row_step - 1), 1);
    rows_each_ = std::max(wanted / grain.row_step * grain.row_step, grain.row_step);
    panels_each_ = all_panels;
    const Tiles by_panels =
        Tiles::of(num_panels(), sizes.depth * sizes.panel_width * std::max(rows, grain.min_terms),
                  grain.terms);
    if ((rows + rows_each_ - 1) / rows_each_ < by_panels.count()) {
      rows_each_ = std::max<int64_t>(rows, 1);
      panels_each_ = by_panels.units_each;
    } else if (b_terms > grain.cached_terms) {
      constexpr int64_t kParts = 4;
      rows_each_ *= kParts;
      panels_each_ = (all_panels + kParts - 1) / kParts;
    }
  }

  // A unit is a tile.
  Tiles tiles() const { return {(sizes_.rows + rows_each_ - 1) / rows_each_ * num_groups(), 1}; }

  // Rows and columns of the result.
  struct Part {
    int64_t first_row, end_row;
    int64_t first_panel, end_panel;
    int64_t first_column, end_column;
  };
  Part part(int64_t tile) const {
    const int64_t num_blocks = (sizes_.rows + rows_each_ - 1) / rows_each_;
    const int64_t row = tile % num_blocks * rows_each_, panel = tile / num_blocks * panels_each_;
    const int64_t end_panel = std::min(panel + panels_each_, num_panels());
    const int64_t width = sizes_.panel_width;
    return {row,           std::min(row + rows_each_, sizes_.rows),    panel, end_panel,
            panel * width, std::min(end_panel * width, sizes_.columns)};
  }

 private:
  int64_t num_panels() const {
    return (sizes_.columns + sizes_.panel_width - 1) / sizes_.panel_width;
  }
  int64_t num_groups() const { return (num_panels() + panels_each_ - 1) / panels_each_; }

  Sizes sizes_;
  int64_t rows_each_ = 1, panels_each_ = 1;
};

// Of floats: hundreds of microseconds where B is large.
inline constexpr ProductTiles::Grain kFloatProductGrain = {
    .terms = 4'000'000, .min_terms = 32, .row_step = 24, .cached_terms = 262'144};

}  // namespace eddy::cpu
