// What rules and kernels of linear models and support vector machines read of their attributes.
#pragma once

#include <cstdint>

#include "graph/ir/attributes.h"
#include "ops/schema/ml/ml.h"

namespace eddy {

// How many scores LinearClassifier's coefficients make: one for each class, or one for two classes
// (the second's) or for one. -1 where the number of features is not known, and does not matter yet.
Status read_linear_scores(const Attributes& attributes, int64_t classes, int64_t features,
                          int64_t& scores);

enum class SvmKernel : uint8_t { kLinear, kPoly, kRbf, kSigmoid };
struct SvmFunction {
  SvmKernel kernel = SvmKernel::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;
};
Status read_svm_function(const Attributes& attributes, SvmFunction& function);

// SVMClassifier: what stands in its lists. Without vectors it is linear, one row of coefficients
// for each class.
struct SvmSizes {
  int64_t classes = 0;
  int64_t vectors = 0;   // of all classes
  int64_t features = 0;  // of a vector, or of a row of coefficients
  bool has_probabilities = false;

  int64_t pairs() const { return classes * (classes - 1) / 2; }
  // A score for each class; of raw votes one for each pair, but two for one pair.
  int64_t scores() const {
    return vectors == 0 || has_probabilities || classes == 2 ? classes : pairs();
  }
};
Status read_svm_sizes(const Attributes& attributes, SvmSizes& sizes);

}  // namespace eddy
