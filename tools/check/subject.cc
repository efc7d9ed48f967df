#include "tools/check/subject.h"

namespace eddy::check {

const Graph* Subject::graph_or_null() {
  if (!graph_ && status_.is_ok()) {
    auto built = build(recipe_, library_);
    status_ = built.status();
    if (built.is_ok()) graph_.emplace(std::move(*built));
  }
  return graph_ ? &*graph_ : nullptr;
}

Result<Graph> Subject::copy_graph() {
  if (graph_or_null() == nullptr) return status_;
  return graph_->copy();
}

const Subject::Expected& Subject::expected(uint64_t variant) {
  const auto [it, is_new] = expected_.try_emplace(variant);
  Expected& expected = it->second;
  if (!is_new) return expected;
  expected.inputs = make_inputs(recipe_, variant);
  const Graph* const graph = graph_or_null();
  if (graph == nullptr) {
    expected.status = status_;
    return expected;
  }
  auto result = interpret(*graph, library_, expected.inputs);
  expected.status = result.status();
  if (result.is_ok()) expected.result = std::move(*result);
  return expected;
}

}  // namespace eddy::check
