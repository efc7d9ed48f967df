// LargeProduct: gemm() in tiles, where B may change from call to call and there is work for many
// threads. Long sums of many rows take two steps of as many tiles:
//
//   pack  a share of B's panels, and of A^T turned over, into memory that all tiles read
//   run   some rows by some panels, once all is packed
//
// Others are gemm() by some columns, or some rows, in one step. For a part that a caller wants to
// begin otherwise or to go on with, run() takes bias and accumulate itself. Tiles of a step write
// apart. Determinism: tiles depend on sizes alone. Contract: suits(); memory aligned to 64.
// Errors: none. Threads: const use from any number.
#pragma once

#include <optional>

#include "graph/base/check.h"
#include "ops/contract/kernel.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/product_tiles.h"

namespace eddy::cpu {

class LargeProduct {
 public:
  using Part = ProductTiles::Part;

  // Whether there are several tiles, and enough to do for each.
  static bool suits(int64_t m, int64_t n, int64_t k);
  // bias_or_null and accumulate are run()'s.
  explicit LargeProduct(const GemmArgs& args);

  bool packs() const { return packs_; }
  uint32_t num_tiles() const;  // of each step
  size_t shared_bytes() const;
  Part part(uint32_t tile) const;

  void pack(void* shared, uint32_t tile) const;
  void run(const void* shared, const Part& part, const float* bias_or_null, bool accumulate) const;

 private:
  size_t b_bytes() const;
  void run_packed(const std::byte* packed, const Part& part, const float* bias_or_null,
                  bool accumulate) const;

  const GemmArgs args_;
  const bool packs_;
  const ProductTiles packed_tiles_;
  int64_t rows_each_ = 1, columns_each_ = 1;  // of tiles that are not packed
};

// Of a kernel: one call's, by one tile.
struct LargeCall {
  const LargeProduct& product;
  const void* shared;
};
using LargeFunction = std::optional<LargeProduct> (*)(const KernelArgs& args);
using LargeTileFunction = bool (*)(const KernelArgs& args, const LargeCall& call, uint32_t tile);

// All of it, tile by tile.
template <LargeTileFunction run_tile>
bool run_large(const KernelArgs& args, const LargeProduct& product) {
  void* memory = nullptr;
  if (product.packs()) {
    memory = args.scratch->reserve(product.shared_bytes());
    if (memory == nullptr) return args.fail(resource_exhausted("no memory to pack a matrix"));
    for (uint32_t tile = 0; tile < product.num_tiles(); ++tile) product.pack(memory, tile);
  }
  const LargeCall call = {product, memory};
  for (uint32_t tile = 0; tile < product.num_tiles(); ++tile) {
    if (!run_tile(args, call, tile)) return false;
  }
  return true;
}

// The same by tiles, where a call's sizes suit.
template <LargeFunction large_or_none, LargeTileFunction run_tile>
void set_large_tiles(BoundKernel& kernel) {
  kernel.count_tiles = [](const KernelArgs& args) -> uint32_t {
    const auto product = large_or_none(args);
    return product ? product->num_tiles() * (product->packs() ? 2 : 1) : 1;
  };
  kernel.count_at_once = [](const KernelArgs& args) -> uint32_t {
    const auto product = large_or_none(args);
    return product ? product->num_tiles() : 1;
  };
  kernel.shared_bytes = [](const KernelArgs& args) -> size_t {
    const auto product = large_or_none(args);
    return product ? product->shared_bytes() : 0;
  };
  kernel.run_tile = [](const KernelArgs& args, uint32_t tile) {
    const auto product = large_or_none(args);
    EDDY_CHECK(product && tile < 2 * product->num_tiles()) << "tile " << tile;
    if (!product->packs()) return run_tile(args, {*product, nullptr}, tile);
    if (tile < product->num_tiles()) {
      product->pack(args.shared, tile);
      return true;
    }
    return run_tile(args, {*product, args.shared}, tile - product->num_tiles());
  };
}

// Whether rows of the first type (of A, or of the result) by such a B may be one, as far as is
// known.
bool may_be_large(const TensorType& rows, const TensorType& b);

}  // namespace eddy::cpu
