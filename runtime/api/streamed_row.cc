#include "runtime/api/streamed_row.h"

#include <algorithm>
#include <optional>

#include "graph/ir/control_view.h"

namespace eddy {
namespace {

std::optional<StreamedRow> row_of(const Graph& graph, ValueId output) {
  const ValueInfo& made = graph.value(output);
  if (made.origin != ValueOrigin::kNodeOutput) return std::nullopt;
  if (graph.node(made.producer).kind != NodeKind::kWhile) return std::nullopt;
  const LoopView loop(graph, made.producer);
  if (made.index < loop.num_forwarded()) return std::nullopt;
  const size_t row = loop.num_carried() + made.index - loop.num_forwarded();
  return StreamedRow{made.producer, static_cast<uint32_t>(row)};
}

}  // namespace

Result<StreamedRow> find_streamed_row(const Graph& graph,
                                      const std::vector<ValueDescription>& outputs,
                                      const std::string& name) {
  const auto is_it = [&](const ValueDescription& output) { return output.name == name; };
  const auto found = std::ranges::find_if(outputs, is_it);
  if (found == outputs.end()) return not_found("there is no output '" + name + "'");
  const auto index = static_cast<size_t>(found - outputs.begin());
  if (const auto row = row_of(graph, graph.outputs()[index])) return *row;
  std::string others;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!row_of(graph, graph.outputs()[i])) continue;
    others += (others.empty() ? "" : ", ") + ("'" + outputs[i].name + "'");
  }
  return invalid_argument(
      "output '" + name +
      "' cannot be streamed: only rows that a loop of the graph itself stacks can, one in each "
      "iteration (a scan output); " +
      (others.empty() ? "this graph has no such output" : "of this graph: " + others));
}

}  // namespace eddy
