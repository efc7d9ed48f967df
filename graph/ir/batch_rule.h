// Batched, BatchContext: how a value depends on the samples that share one run, and what a rule
// sees that derives it through an operator (OpDef::batch).
//
// A batch is the samples of several requests, laid behind each other along one axis of some inputs.
// A value then is one of three things:
//
//   shared   the same for all samples, whatever they are and however many
//   along    axis k has, for the samples in order, `each` entries for one; entries of one sample
//            depend on this sample and on shared values alone
//   counts   a short list of integers, some of which are multiples of the number of samples: a
//            shape that the program computes
//
// A rule states what of it holds for an operator's outputs, given that it holds for the inputs. It
// refuses (kUnsupported) where an output's entries could depend on two samples; the message
// continues "OPERATOR ...". Sizes need to be right for two samples and more.
// Soundness beats completeness: what is not known is refused.
//
// Threads: none. Cost: O(rank) for a rule.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir/op.h"

namespace eddy {

// A product of a number and symbols; or not known, but the same for all samples.
class Extent {
 public:
  Extent() = default;  // not known
  static Extent number(int64_t number);
  // A size, a symbol or kUnknownDim.
  static Extent dim(int64_t dim);

  bool is_known() const { return is_known_; }
  bool is_number() const { return is_known_ && symbols_.empty(); }
  bool is_number(int64_t number) const { return is_number() && number_ == number; }
  int64_t number() const { return number_; }
  // Both are known, and equal for any sizes of the symbols.
  bool equals(const Extent& other) const;
  // Both are known, and differ for any sizes of the symbols.
  bool differs(const Extent& other) const;
  Extent operator*(const Extent& other) const;
  // What this is of `whole`; not known where it does not divide it for all sizes.
  Extent divided_into(const Extent& whole) const;

 private:
  bool is_known_ = false;
  int64_t number_ = 1;
  std::vector<int64_t> symbols_;  // ascending; may be repeated
};

// `each`, or that often the number of samples.
struct Count {
  bool is_of_samples = false;
  Extent each;
};

struct Batched {
  enum class Kind : uint8_t { kShared, kAlong, kCounts };

  Kind kind = Kind::kShared;
  int axis = 0;               // kAlong
  Extent each;                // kAlong
  std::vector<Count> counts;  // kCounts; of a shared value: its content, empty where not followed

  static Batched shared() { return {}; }
  static Batched along(int axis, Extent each) { return {Kind::kAlong, axis, std::move(each), {}}; }
  // Counts, or shared where none is of samples.
  static Batched of_counts(std::vector<Count> counts);

  bool is_along() const { return kind == Kind::kAlong; }
  bool is_counts() const { return kind == Kind::kCounts; }
};

class BatchContext {
 public:
  // `types`: of the node, with the content of constants. By input and by output; an omitted input
  // is shared.
  BatchContext(const InferContext& types, std::span<const Batched* const> inputs,
               std::span<Batched> outputs)
      : types_(types), inputs_(inputs), outputs_(outputs) {}

  const InferContext& types() const { return types_; }
  const Attributes& attributes() const { return types_.attributes(); }
  size_t num_inputs() const { return types_.num_inputs(); }
  size_t num_outputs() const { return outputs_.size(); }
  bool has_input(size_t i) const { return types_.has_input(i); }

  const Batched& input(size_t i) const {
    static const Batched kOmitted;
    return has_input(i) ? *inputs_[i] : kOmitted;
  }
  bool is_along(size_t i) const { return input(i).is_along(); }
  bool is_counts(size_t i) const { return input(i).is_counts(); }
  int axis(size_t i) const { return input(i).axis; }
  bool is_ranked(size_t i) const {
    return has_input(i) && types_.input(i).is_tensor() && types_.input(i).tensor.is_ranked;
  }
  // Of a ranked one, which each input along an axis is.
  const Dims& dims(size_t i) const { return types_.input(i).tensor.dims; }
  int rank(size_t i) const { return dims(i).rank(); }

  void set_output(size_t i, Batched batched) {
    if (i < outputs_.size()) outputs_[i] = std::move(batched);
  }
  void set_outputs(const Batched& batched) {
    for (Batched& output : outputs_) output = batched;
  }

 private:
  const InferContext& types_;
  std::span<const Batched* const> inputs_;
  std::span<Batched> outputs_;
};

}  // namespace eddy
