#include "graph/program/step_nodes.h"

#include <unordered_map>

namespace eddy {
namespace {

bool does_something(Program::Op op) { return is_node(op) || op == Program::Op::kRetain; }

}  // namespace

std::vector<uint32_t> find_step_nodes(const Program::Block& block) {
  const std::vector<Program::Step>& steps = block.steps;
  std::vector<uint32_t> found(steps.size(), Program::kNone);
  const auto look = [](const std::unordered_map<uint32_t, uint32_t>& at, uint32_t stream) {
    const auto there = at.find(stream);
    return there == at.end() ? Program::kNone : there->second;
  };
  std::unordered_map<uint32_t, uint32_t> latest, next;  // by stream
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (does_something(steps[i].op)) latest[steps[i].stream] = i;
    if (steps[i].op == Program::Op::kRecord) found[i] = look(latest, steps[i].stream);
  }
  for (auto i = static_cast<uint32_t>(steps.size()); i-- > 0;) {
    if (does_something(steps[i].op)) next[steps[i].stream] = i;
    const bool is_wait =
        steps[i].op == Program::Op::kWait || steps[i].op == Program::Op::kWaitPrevious;
    if (is_wait) found[i] = look(next, steps[i].stream);
  }
  return found;
}

}  // namespace eddy
