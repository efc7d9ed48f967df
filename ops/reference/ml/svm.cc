// SVMClassifier and SVMRegressor of domain ai.onnx.ml.
//
// A classifier with vectors compares classes pairwise, (0,1), (0,2), ...: the kernel function of a
// row and the vectors of both, weighed by the coefficients of one class against the other, plus
// rho. A positive sum is a vote for the first of the pair. Scores are these sums (of one pair: the
// sum with both signs), or probabilities coupled from all pairs.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/ml/scores.h"
#include "ops/reference/parts/outputs.h"
#include "ops/schema/ml/linear.h"

namespace eddy {
namespace {

using Row = std::span<const double>;

struct SvmState : KernelState {
  SvmFunction function;
  SvmSizes sizes;
  std::vector<float> vectors, coefficients, rho, prob_a, prob_b;
  std::vector<size_t> first_vectors;  // of each class; those of the next end them
  PostTransform transform = PostTransform::kNone;
  LabelSet labels;
  bool is_one_class = false;
};

// Row `index` of a matrix with rows as long as x, through the kernel function.
double kernel_of(const SvmFunction& function, Row x, const std::vector<float>& matrix,
                 size_t index) {
  const float* const row = matrix.data() + index * x.size();
  double dot = 0, distance = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    dot += x[i] * double{row[i]};
    distance += (x[i] - double{row[i]}) * (x[i] - double{row[i]});
  }
  switch (function.kernel) {
    case SvmKernel::kLinear:
      return dot;
    case SvmKernel::kPoly:
      return std::pow(function.gamma * dot + function.coef0, function.degree);
    case SvmKernel::kRbf:
      return std::exp(-function.gamma * distance);
    case SvmKernel::kSigmoid:
      return std::tanh(function.gamma * dot + function.coef0);
  }
  return 0;
}

// Sums of all pairs, and their votes.
void compare_pairs(const SvmState& state, Row x, std::vector<double>& sums,
                   std::vector<double>& votes) {
  const auto vectors = static_cast<size_t>(state.sizes.vectors);
  const auto classes = static_cast<size_t>(state.sizes.classes);
  std::vector<double> kernels(vectors);
  for (size_t v = 0; v < vectors; ++v) {
    kernels[v] = kernel_of(state.function, x, state.vectors, v);
  }
  const auto weigh = [&](size_t of_class, size_t row) {
    double sum = 0;
    for (size_t v = state.first_vectors[of_class]; v < state.first_vectors[of_class + 1]; ++v) {
      sum += double{state.coefficients[row * vectors + v]} * kernels[v];
    }
    return sum;
  };
  std::fill(votes.begin(), votes.end(), 0);
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      sums[pair] = weigh(i, j - 1) + weigh(j, i) + double{state.rho[pair]};
      ++votes[sums[pair] > 0 ? i : j];
    }
  }
}

// Probabilities p of classes, given those of each against each other (r[i][j] of i against j): the
// fixed point of Wu, Lin and Weng (2004), their second method.
void couple(const std::vector<std::vector<double>>& r, std::vector<double>& p) {
  const size_t k = r.size();
  std::vector<std::vector<double>> q(k, std::vector<double>(k, 0));
  for (size_t i = 0; i < k; ++i) {
    for (size_t j = 0; j < k; ++j) {
      if (i == j) continue;
      q[i][i] += r[j][i] * r[j][i];
      q[i][j] = -r[j][i] * r[i][j];
    }
  }
  std::fill(p.begin(), p.end(), 1.0 / static_cast<double>(k));
  std::vector<double> qp(k);
  for (size_t step = 0; step < std::max<size_t>(100, k); ++step) {
    double pqp = 0, error = 0;
    for (size_t i = 0; i < k; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < k; ++j) qp[i] += q[i][j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (size_t i = 0; i < k; ++i) error = std::max(error, std::abs(qp[i] - pqp));
    if (error < 0.005 / static_cast<double>(k)) return;
    for (size_t i = 0; i < k; ++i) {
      const double change = (pqp - qp[i]) / q[i][i];
      const double scale = 1 + change;
      p[i] += change;
      pqp = (pqp + change * (change * q[i][i] + 2 * qp[i])) / (scale * scale);
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + change * q[i][j]) / scale;
        p[j] /= scale;
      }
    }
  }
}

void probabilities_of(const SvmState& state, Row sums, std::vector<double>& scores) {
  constexpr double kLeast = 1e-7;
  const auto classes = static_cast<size_t>(state.sizes.classes);
  std::vector<std::vector<double>> r(classes, std::vector<double>(classes, 0));
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      const double against =
          logistic(sums[pair] * double{state.prob_a[pair]} + double{state.prob_b[pair]});
      r[i][j] = std::clamp(1 - against, kLeast, 1 - kLeast);
      r[j][i] = 1 - r[i][j];
    }
  }
  couple(r, scores);
}

// The scores of a row; returns its class.
size_t classify(const SvmState& state, Row x, std::vector<double>& sums, std::vector<double>& votes,
                std::vector<double>& scores) {
  if (state.sizes.vectors == 0) {
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = kernel_of({}, x, state.coefficients, i) + double{state.rho[0]};
    }
    return greatest(scores);
  }
  compare_pairs(state, x, sums, votes);
  if (state.sizes.has_probabilities) {
    probabilities_of(state, sums, scores);
  } else if (state.sizes.classes == 2) {
    scores = {-sums[0], sums[0]};
  } else {
    scores = sums;
  }
  return greatest(votes);
}

bool run_classifier(const KernelArgs& args) {
  const auto& state = static_cast<const SvmState&>(*args.state);
  const RowsOf rows(args.inputs[0]);
  std::vector<double> x(static_cast<size_t>(rows.features));
  // As many as rho has values; a linear model compares no pairs.
  std::vector<double> sums(state.sizes.vectors == 0 ? 0 : state.rho.size());
  std::vector<double> votes(static_cast<size_t>(state.sizes.classes));
  std::vector<double> scores(static_cast<size_t>(state.sizes.scores()));
  for (int64_t row = 0; row < rows.rows; ++row) {
    load_row(args.inputs[0], row, x);
    state.labels.write(args.outputs[0], row, classify(state, x, sums, votes, scores));
    transform_scores(state.transform, scores);
    if (has_output(args, 1)) write_scores(args.outputs[1], row, scores);
  }
  return true;
}

bool run_regressor(const KernelArgs& args) {
  const auto& state = static_cast<const SvmState&>(*args.state);
  const RowsOf rows(args.inputs[0]);
  std::vector<double> x(static_cast<size_t>(rows.features));
  for (int64_t row = 0; row < rows.rows; ++row) {
    load_row(args.inputs[0], row, x);
    double sum = 0;
    if (state.vectors.empty()) {
      sum = kernel_of({}, x, state.coefficients, 0);
    } else {
      for (size_t v = 0; v < state.coefficients.size(); ++v) {
        sum += double{state.coefficients[v]} * kernel_of(state.function, x, state.vectors, v);
      }
    }
    sum += double{state.rho[0]};
    if (state.is_one_class) sum = sum > 0 ? 1 : -1;
    transform_scores(state.transform, {&sum, 1});
    write_scores(args.outputs[0], row, {&sum, 1});
  }
  return true;
}

Result<BoundKernel> bind_svm(const KernelInit& init, bool is_classifier) {
  auto state = std::make_unique<SvmState>();
  const auto copy = [&](const char* name, std::vector<float>& list) {
    const auto values = init.attributes.get_floats(name);
    list.assign(values.begin(), values.end());
  };
  copy("coefficients", state->coefficients);
  copy("rho", state->rho);
  EDDY_RETURN_IF_ERROR(read_svm_function(init.attributes, state->function));
  EDDY_RETURN_IF_ERROR(read_post_transform(init.attributes, state->transform));
  BoundKernel kernel;
  kernel.run = is_classifier ? run_classifier : run_regressor;
  if (is_classifier) {
    ClassLabels labels;
    EDDY_RETURN_IF_ERROR(read_class_labels(init.attributes, "classlabels_ints", labels));
    EDDY_RETURN_IF_ERROR(read_svm_sizes(init.attributes, state->sizes));
    state->labels = LabelSet::of(labels);
    state->first_vectors = {0};
    for (const int64_t count : init.attributes.get_ints("vectors_per_class")) {
      state->first_vectors.push_back(state->first_vectors.back() + static_cast<size_t>(count));
    }
    copy("prob_a", state->prob_a);
    copy("prob_b", state->prob_b);
    if (state->sizes.vectors > 0) copy("support_vectors", state->vectors);
  } else {
    state->is_one_class = init.attributes.get_int("one_class", 0) != 0;
    if (init.attributes.get_int("n_supports", 0) > 0) copy("support_vectors", state->vectors);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_ml_svm_reference(KernelRegistry& registry) {
  registry.add({.op = "SVMClassifier",
                .bind = [](const KernelInit& init) { return bind_svm(init, true); },
                .provider = "reference",
                .domain = kMlDomain});
  registry.add({.op = "SVMRegressor",
                .bind = [](const KernelInit& init) { return bind_svm(init, false); },
                .provider = "reference",
                .domain = kMlDomain});
}

}  // namespace eddy
