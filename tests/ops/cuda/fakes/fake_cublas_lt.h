// FakeCublasLt: cuBLASLt without a GPU: the door's table, which computes by plain loops what
// descriptors and layouts define, and as strict: a wrong attribute, size or leading dimension is an
// error, an algorithm that came from no heuristic too, and objects that are not destroyed are
// counted. Operands of other alignments have another algorithm, which sums in another order and to
// other low bits.
//
// Products run when `enqueue` runs them: at once, or in a fake stream's order. Each product checks
// that its operands have the alignment that the heuristic received. Threads: one. Outlives its
// table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda/libraries/cublas_lt.h"

namespace eddy::testing {

class FakeCublasLt {
 public:
  // Runs a product that was enqueued on the stream; `addresses`: what it reads and writes.
  using Enqueue = std::function<void(void* stream, std::vector<const void*> addresses,
                                     std::function<void()> product)>;
  explicit FakeCublasLt(Enqueue enqueue = nullptr);
  ~FakeCublasLt();

  std::shared_ptr<const CublasLtApi> api() const { return api_; }
  int num_products() const { return num_products_; }
  int num_heuristics() const { return num_heuristics_; }
  int num_tf32() const { return num_tf32_; }
  // Descriptors, layouts and preferences that are not yet destroyed.
  int num_alive() const { return num_alive_; }
  int num_created() const { return num_created_; }      // handles
  int num_destroyed() const { return num_destroyed_; }  // handles
  // Called where the library may synchronize the device: it makes a handle or destroys one.
  void when_handles_change(std::function<void()> synchronize) {
    synchronize_ = std::move(synchronize);
  }
  std::vector<std::string> violations() const { return violations_; }
  // The heuristic returns no algorithm for these many calls.
  void know_nothing(int calls) { unknown_ = calls; }
  // The next product answers with this status.
  void fail_product(int status) { fail_with_ = status; }
  // All products, heuristics or descriptions of products answer so; 0: none do any more.
  void refuse_products(int status) { product_refusal_ = status; }
  void refuse_heuristics(int status) { heuristic_refusal_ = status; }
  void refuse_descriptions(int status) { description_refusal_ = status; }

 private:
  struct Matmul;
  struct Layout;
  struct Preference;

  void fill(CublasLtApi& api);
  void fill_products(CublasLtApi& api);
  void fill_layouts(CublasLtApi& api);
  void fill_preferences(CublasLtApi& api);
  // Empty, or why these cannot be multiplied.
  static std::string misfit(const Matmul& matmul, const Layout& a, const Layout& b, const Layout& c,
                            const Layout& d);
  static void multiply(const Matmul& matmul, double by, double add, const void* a, const Layout& la,
                       const void* b, const Layout& lb, const void* c, const Layout& lc, void* d,
                       const Layout& ld, uint64_t order);
  int find_algorithm(const Matmul& matmul, const Preference& preference, int num_wanted,
                     LtHeuristic* found, int* num_found);
  int violation(const std::string& what);

  const Enqueue enqueue_;
  int num_products_ = 0, num_heuristics_ = 0, num_tf32_ = 0, num_alive_ = 0;
  int num_created_ = 0, num_destroyed_ = 0;
  int unknown_ = 0, fail_with_ = 0;
  int product_refusal_ = 0, heuristic_refusal_ = 0, description_refusal_ = 0;
  std::function<void()> synchronize_ = [] {};
  std::vector<std::string> violations_;
  std::shared_ptr<const CublasLtApi> api_;
};

}  // namespace eddy::testing
