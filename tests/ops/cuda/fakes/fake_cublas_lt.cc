#include "tests/ops/cuda/fakes/fake_cublas_lt.h"

#include <array>
#include <cstring>

#include "tests/ops/cuda/fakes/library_numbers.h"

namespace eddy::testing {
namespace {

constexpr int kInvalidValue = 7;
constexpr uint64_t kMagic = 0x1eddc0de;
constexpr size_t kWorkspaceBytes = 4096;

FakeFloat float_of(LtType type) {
  switch (type) {
    case LtType::kDouble:
      return FakeFloat::kDouble;
    case LtType::kHalf:
      return FakeFloat::kHalf;
    case LtType::kBfloat16:
      return FakeFloat::kBfloat16;
    default:
      return FakeFloat::kFloat;
  }
}
double read_one(LtType type, const void* data, int64_t i) {
  return read_number(float_of(type), data, i);
}
void write_one(LtType type, void* data, int64_t i, double value) {
  write_number(float_of(type), data, i, value);
}

}  // namespace

struct FakeCublasLt::Matmul {
  LtCompute compute;
  bool is_first_transposed = false, is_second_transposed = false, adds_row = false;
  const void* row = nullptr;
};

struct FakeCublasLt::Layout {
  LtType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t num_batches = 1;
  int64_t stride = 0;

  int64_t at(int64_t batch, int64_t row, int64_t column) const {
    return batch * stride + column * leading + row;
  }
  uint64_t rows_of(bool is_transposed) const { return is_transposed ? columns : rows; }
};

struct FakeCublasLt::Preference {
  uint64_t max_workspace_bytes = 0;
  std::array<uint32_t, 4> alignments{256, 256, 256, 256};
};

FakeCublasLt::FakeCublasLt(Enqueue enqueue) : enqueue_(std::move(enqueue)) {
  auto api = std::make_shared<CublasLtApi>();
  fill(*api);
  fill_products(*api);
  fill_layouts(*api);
  fill_preferences(*api);
  api_ = std::move(api);
}

FakeCublasLt::~FakeCublasLt() = default;

int FakeCublasLt::violation(const std::string& what) {
  violations_.push_back(what);
  return kInvalidValue;
}

void FakeCublasLt::fill_products(CublasLtApi& api) {
  api.matmul_create = [this](LtMatmul* matmul, LtCompute compute, LtType scale) {
    if (description_refusal_ != 0) return description_refusal_;
    if ((scale == LtType::kDouble) != (compute == LtCompute::kDouble)) {
      return violation("factors of another type than sums");
    }
    ++num_alive_;
    *matmul = reinterpret_cast<LtMatmul>(new Matmul{.compute = compute});
    return kLtSuccess;
  };
  api.matmul_destroy = [this](LtMatmul matmul) {
    --num_alive_;
    delete reinterpret_cast<Matmul*>(matmul);
    return kLtSuccess;
  };
  api.matmul_set = [this](LtMatmul handle, int attribute, const void* value, size_t bytes) {
    auto& matmul = *reinterpret_cast<Matmul*>(handle);
    if (bytes != (attribute == kLtBiasPointer ? 8u : 4u)) return violation("an attribute's size");
    int32_t number;
    std::memcpy(&number, value, sizeof(number));
    if (attribute == kLtTransposeA) {
      matmul.is_first_transposed = number == kLtTransposed;
    } else if (attribute == kLtTransposeB) {
      matmul.is_second_transposed = number == kLtTransposed;
    } else if (attribute == kLtEpilogue) {
      matmul.adds_row = number == static_cast<int32_t>(kLtEpilogueBias);
    } else if (attribute == kLtBiasPointer) {
      std::memcpy(&matmul.row, value, sizeof(matmul.row));
    } else {
      return violation("an unknown attribute of a product");
    }
    return kLtSuccess;
  };
}

void FakeCublasLt::fill_layouts(CublasLtApi& api) {
  api.layout_create = [this](LtLayout* layout, LtType type, uint64_t rows, uint64_t columns,
                             int64_t leading) {
    if (rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)) {
      return violation("a leading dimension below the rows");
    }
    ++num_alive_;
    *layout = reinterpret_cast<LtLayout>(new Layout{type, rows, columns, leading});
    return kLtSuccess;
  };
  api.layout_destroy = [this](LtLayout layout) {
    --num_alive_;
    delete reinterpret_cast<Layout*>(layout);
    return kLtSuccess;
  };
  api.layout_set = [this](LtLayout handle, int attribute, const void* value, size_t bytes) {
    auto& layout = *reinterpret_cast<Layout*>(handle);
    if (attribute == kLtBatchCount && bytes == 4) {
      std::memcpy(&layout.num_batches, value, bytes);
    } else if (attribute == kLtBatchStride && bytes == 8) {
      std::memcpy(&layout.stride, value, bytes);
    } else {
      return violation("an unknown attribute of a matrix");
    }
    return kLtSuccess;
  };
}

void FakeCublasLt::fill_preferences(CublasLtApi& api) {
  api.preference_create = [this](LtPreference* preference) {
    ++num_alive_;
    *preference = reinterpret_cast<LtPreference>(new Preference());
    return kLtSuccess;
  };
  api.preference_destroy = [this](LtPreference preference) {
    --num_alive_;
    delete reinterpret_cast<Preference*>(preference);
    return kLtSuccess;
  };
  api.preference_set = [this](LtPreference handle, int attribute, const void* value, size_t bytes) {
    auto& preference = *reinterpret_cast<Preference*>(handle);
    const int side = attribute - kLtMinAlignmentA;
    if (attribute == kLtMaxWorkspace && bytes == 8) {
      std::memcpy(&preference.max_workspace_bytes, value, bytes);
    } else if (side >= 0 && side < 4 && bytes == 4) {
      std::memcpy(&preference.alignments[static_cast<size_t>(side)], value, bytes);
    } else {
      return violation("an unknown preference");
    }
    return kLtSuccess;
  };
}

// The algorithm holds the arguments it was chosen for.
int FakeCublasLt::find_algorithm(const Matmul& matmul, const Preference& preference, int num_wanted,
                                 LtHeuristic* found, int* num_found) {
  ++num_heuristics_;
  *num_found = 0;
  if (heuristic_refusal_ != 0) return heuristic_refusal_;
  if (num_wanted < 1) return violation("no algorithm was asked for");
  if (unknown_ > 0) {
    --unknown_;
    return kLtNotSupported;
  }
  *found = {};
  found->algorithm.data[0] = kMagic;
  for (size_t i = 0; i < 4; ++i) found->algorithm.data[1 + i] = preference.alignments[i];
  const auto row = reinterpret_cast<uintptr_t>(matmul.row);
  found->algorithm.data[5] = row == 0 ? 256 : std::min<uint64_t>(row & -row, 256);
  found->workspace_bytes = std::min<size_t>(kWorkspaceBytes, preference.max_workspace_bytes);
  *num_found = 1;
  return kLtSuccess;
}

std::string FakeCublasLt::misfit(const Matmul& matmul, const Layout& a, const Layout& b,
                                 const Layout& c, const Layout& d) {
  const bool fits =
      a.rows_of(matmul.is_first_transposed) == d.rows &&
      b.rows_of(!matmul.is_second_transposed) == d.columns &&
      b.rows_of(matmul.is_second_transposed) == a.rows_of(!matmul.is_first_transposed) &&
      c.rows == d.rows && c.columns == d.columns;
  return fits ? "" : "matrices that do not fit";
}

void FakeCublasLt::multiply(const Matmul& matmul, double by, double add, const void* a,
                            const Layout& la, const void* b, const Layout& lb, const void* c,
                            const Layout& lc, void* d, const Layout& ld, uint64_t order) {
  const auto depth = static_cast<int64_t>(la.rows_of(!matmul.is_first_transposed));
  for (int64_t batch = 0; batch < ld.num_batches; ++batch) {
    for (int64_t i = 0; i < static_cast<int64_t>(ld.rows); ++i) {
      for (int64_t j = 0; j < static_cast<int64_t>(ld.columns); ++j) {
        double sum = 0;
        for (int64_t step = 0; step < depth; ++step) {
          const int64_t k = (step + static_cast<int64_t>(order)) % depth;
          const int64_t first =
              matmul.is_first_transposed ? la.at(batch, k, i) : la.at(batch, i, k);
          const int64_t second =
              matmul.is_second_transposed ? lb.at(batch, j, k) : lb.at(batch, k, j);
          sum += read_one(la.type, a, first) * read_one(lb.type, b, second);
          if (order != 0 && la.type != LtType::kDouble) sum = static_cast<float>(sum);
        }
        double value = by * sum;
        if (add != 0) value += add * read_one(lc.type, c, lc.at(batch, i, j));
        if (matmul.adds_row) value += read_one(ld.type, matmul.row, i);
        write_one(ld.type, d, ld.at(batch, i, j), value);
      }
    }
  }
}

void FakeCublasLt::fill(CublasLtApi& api) {
  api.create = [this](LtHandle* handle) {
    ++num_created_;
    synchronize_();
    *handle = reinterpret_cast<LtHandle>(this);
    return kLtSuccess;
  };
  api.destroy = [this](LtHandle) {
    ++num_destroyed_;
    synchronize_();
    return kLtSuccess;
  };
  api.version = [] { return size_t{130000}; };
  api.status_name = [](int status) {
    return status == kInvalidValue ? "CUBLAS_STATUS_INVALID_VALUE"
                                   : "CUBLAS_STATUS_EXECUTION_FAILED";
  };
  api.heuristic = [this](LtHandle, LtMatmul matmul, LtLayout, LtLayout, LtLayout, LtLayout,
                         LtPreference preference, int num_wanted, LtHeuristic* found,
                         int* num_found) {
    return find_algorithm(*reinterpret_cast<Matmul*>(matmul),
                          *reinterpret_cast<Preference*>(preference), num_wanted, found, num_found);
  };
  api.matmul = [this](LtHandle, LtMatmul matmul_handle, const void* alpha, const void* a,
                      LtLayout a_layout, const void* b, LtLayout b_layout, const void* beta,
                      const void* c, LtLayout c_layout, void* d, LtLayout d_layout,
                      const LtAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                      void* stream) {
    if (fail_with_ != 0) return std::exchange(fail_with_, 0);
    if (product_refusal_ != 0) return product_refusal_;
    const auto matmul = *reinterpret_cast<Matmul*>(matmul_handle);
    const Layout la = *reinterpret_cast<Layout*>(a_layout),
                 lb = *reinterpret_cast<Layout*>(b_layout);
    const Layout lc = *reinterpret_cast<Layout*>(c_layout),
                 ld = *reinterpret_cast<Layout*>(d_layout);
    if (algorithm == nullptr || algorithm->data[0] != kMagic) return violation("no algorithm");
    const void* const operands[] = {a, b, c, d, matmul.row};
    uint64_t order = 0;
    for (size_t i = 0; i < 5; ++i) {
      // Up to what every block of memory has: then the order is the plain one.
      for (uint64_t bytes = algorithm->data[1 + i]; bytes != 0 && bytes < 16; bytes *= 2) ++order;
      if (reinterpret_cast<uintptr_t>(operands[i]) % algorithm->data[1 + i] != 0) {
        return violation("an operand is aligned less than the heuristic was told");
      }
    }
    if (workspace_bytes > 0 && workspace == nullptr) return violation("no workspace");
    const std::string problem = misfit(matmul, la, lb, lc, ld);
    if (!problem.empty()) return violation(problem);
    ++num_products_;
    num_tf32_ += matmul.compute == LtCompute::kFastTf32 ? 1 : 0;
    const LtType scale = matmul.compute == LtCompute::kDouble ? LtType::kDouble : LtType::kFloat;
    const double by = read_one(scale, alpha, 0), add = read_one(scale, beta, 0);
    const auto product = [=] { multiply(matmul, by, add, a, la, b, lb, c, lc, d, ld, order); };
    if (enqueue_) {
      enqueue_(stream, {a, b, c, d, workspace, matmul.row}, product);
    } else {
      product();
    }
    return kLtSuccess;
  };
}

}  // namespace eddy::testing
