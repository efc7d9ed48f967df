// What the operators of domain ai.onnx.ml share: rows of features, labels of classes, transforms of
// scores, and lists of numbers that are floats or a tensor.
//
// Rules and kernels call the same functions. They allocate nothing on success, as rules run again
// while running. Errors: invalid_argument with one line that names attribute and numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/batch_rule.h"
#include "graph/ir/op.h"
#include "graph/ir/types.h"

namespace eddy {

inline constexpr const char* kMlDomain = "ai.onnx.ml";
// What most of the operators take.
inline constexpr TypeSet kFeatureTypes = {ElementType::kFloat, ElementType::kDouble,
                                          ElementType::kInt64, ElementType::kInt32};

// Input 0 as rows: [rows, features], or [features] as one row. Unknown where unranked.
struct FeatureRows {
  int64_t rows = kUnknownDim;
  int64_t features = kUnknownDim;
};
Status read_feature_rows(const InferContext& context, FeatureRows& x);

// "scale holds 3 values, but X has 4 features": `size` must be 1, or the last axis of X.
Status check_one_or_each(std::string_view name, size_t size, const TensorType& x);

// Batch rule: samples lie along an axis of input 0 before the last, where each row is done alone.
Status batch_feature_rows(BatchContext& context);

// The labels of a classifier: exactly one of its two attributes holds some.
struct ClassLabels {
  std::span<const std::string> texts;
  std::span<const int64_t> numbers;

  bool are_texts() const { return !texts.empty(); }
  int64_t count() const {
    return static_cast<int64_t>(are_texts() ? texts.size() : numbers.size());
  }
  ElementType element() const { return are_texts() ? ElementType::kString : ElementType::kInt64; }
};
// `numbers`: the name of the attribute with integers.
Status read_class_labels(const Attributes& attributes, const char* numbers, ClassLabels& labels);

// What is done to the scores of a row. The numbers are TreeEnsemble's.
enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
Status read_post_transform(const Attributes& attributes, PostTransform& transform);

// Numbers that stand in an attribute of floats or in one that is a tensor.
class NumberList {
 public:
  // `tensor_name` may be null. Fails where both are given, or the tensor is no list of float16,
  // float or double.
  static Status read(const Attributes& attributes, const char* name, const char* tensor_name,
                     NumberList& list);
  int64_t size() const { return size_; }
  ElementType element() const { return element_; }
  double operator[](int64_t i) const;

 private:
  const void* data_ = nullptr;
  int64_t size_ = 0;
  ElementType element_ = ElementType::kFloat;
};

// "nodes_modes holds 4 values, but nodes_treeids 3".
Status check_equal_sizes(std::string_view a, int64_t size_a, std::string_view b, int64_t size_b);

}  // namespace eddy
