#include "runtime/execute/case_state.h"

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"

namespace eddy {

CaseState::CaseState(RunSlots& run, NodeId id) : run_(run), id_(id) {}

void CaseState::connect() {
  EDDY_DCHECK(selector_ == nullptr && branches_.empty()) << "a case is connected twice";
  const Graph& graph = run_.graph();
  const CaseView choice(graph, id_);
  selector_ = &run_.slot(choice.selector());
  has_pass_through_ = choice.has_pass_through();
  for (size_t b = 0; b < choice.num_branches(); ++b) {
    Branch& branch = branches_.emplace_back();
    branch.owner = this;
    for (size_t k = 0; k < choice.outputs().size(); ++k) {
      EDDY_DCHECK(k < choice.results(b).size()) << "branch " << b << " lacks result " << k;
      const ValueId from = choice.results(b)[k], output = choice.outputs()[k];
      if (run_.hand_on(branch.results, output, from, Program::Moment::kWithin, id_)) continue;
      branch.results.add(run_.slot(output), run_.slot_for(from, output),
                         is_region_local(graph, from, choice.node().regions[b]),
                         is_static_pair(graph, output, from), graph.value(from).type);
    }
    branch.results.finish();
  }
  for (size_t k = 0; k < choice.pass_through().size(); ++k) {
    const ValueId from = choice.pass_through()[k], output = choice.outputs()[k];
    if (run_.hand_on(pass_through_, output, from, Program::Moment::kWithin, id_)) continue;
    pass_through_.add(run_.slot(output), run_.slot_for(from, output), false, false,
                      graph.value(from).type);
  }
  pass_through_.finish();
}

namespace {

// False when the selector is not one element of a type that selects.
bool read_selector(const Slot& slot, int64_t& value) {
  if (slot.kind != ValueKind::kTensor || slot.view.count() != 1) return false;
  switch (slot.view.element) {
    case ElementType::kBool:
      value = *slot.view.as<uint8_t>() != 0 ? 1 : 0;
      return true;
    case ElementType::kInt32:
      value = *slot.view.as<int32_t>();
      return true;
    case ElementType::kInt64:
      value = *slot.view.as<int64_t>();
      return true;
    default:
      return false;
  }
}

}  // namespace

int32_t CaseState::select(void* case_state) {
  CaseState& self = *static_cast<CaseState*>(case_state);
  int64_t value = 0;
  if (!read_selector(*self.selector_, value)) [[unlikely]] {
    self.run_.fail(self.id_,
                   run_failed("the selector must be one bool, int32 or int64, but has shape " +
                              to_string(Dims(self.selector_->view.shape()))));
    return -1;
  }
  const int64_t count = static_cast<int64_t>(self.branches_.size());
  if (value >= 0 && value < count) [[likely]]
    return static_cast<int32_t>(value);
  const int32_t fallback = self.run_.graph().node(self.id_).default_region;
  EDDY_DCHECK(fallback < count) << "the default is branch " << fallback << " of " << count;
  if (fallback >= 0) return fallback;
  if (!self.has_pass_through_) {
    self.run_.fail(
        self.id_,
        run_failed("the selector is " + std::to_string(value) + ", but there are branches 0 to " +
                   std::to_string(count - 1) + ", no default and nothing to pass through"));
    return -1;
  }
  Status status = self.pass_through_.run(self.run_.allocator());
  if (status.is_ok()) return static_cast<int32_t>(count);
  self.run_.fail(self.id_, std::move(status));
  return -1;
}

bool CaseState::finish_branch(void* branch) {
  Branch& self = *static_cast<Branch*>(branch);
  Status status = self.results.run(self.owner->run_.allocator());
  return status.is_ok() || self.owner->run_.fail(self.owner->id_, std::move(status));
}

}  // namespace eddy
