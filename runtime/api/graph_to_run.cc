#include "runtime/api/graph_to_run.h"

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/compile/allow_winograd.h"
#include "graph/compile/fold_into_products.h"
#include "graph/compile/fold_norms.h"
#include "graph/compile/join_expansions.h"
#include "graph/compile/lay_out_images.h"
#include "graph/compile/pack_before_loops.h"
#include "graph/compile/simplify.h"
#include "ops/contract/evaluate.h"
#include "ops/cpu/cpu_kernels.h"

namespace eddy {
namespace {

Result<Graph> simplified(const Library& library, Graph graph, const SessionOptions& options) {
  SimplifyOptions simplify_options;
  simplify_options.dims = options.dims;
  simplify_options.input_dims = options.input_dims;
  simplify_options.check = options.check;
  if (options.simplify) {
    simplify_options.evaluate =
        [&library](const Node& node,
                   std::span<const TensorView> inputs) -> Result<std::vector<OwnedTensor>> {
      try {
        return evaluate_node(library.cpu_kernels(), *node.op, node.attributes, node.opset_version,
                             inputs, node.outputs.size());
      } catch (const std::exception& error) {
        return run_failed(std::string("the kernel threw: ") + error.what());
      } catch (...) {
        return run_failed("the kernel threw something");
      }
    };
  } else if (options.dims.empty() && options.input_dims.empty()) {
    return graph;
  }
  return simplify(std::move(graph), library.ops(), simplify_options);
}

// How images are to lie between convolutions; null: as they come.
struct WantedLayout {
  std::unique_ptr<ImageLayout> layout_or_null;
  bool scales_norms = false;
  std::string device = {};
};
WantedLayout wanted_layout(const SessionOptions& options,
                           std::span<const ExecutionDevice> devices) {
  if (!options.blocks_channels) return {};
  if (options.make_devices.empty()) {
    return {std::make_unique<BlockedLayout>(channels_in_block()),
            options.folds_norms && options.simplify};
  }
  // The device of nodes that name none; weights are put in order by evaluating nodes.
  if (!options.simplify || devices.size() < 2 || !devices[1].wants_channels_last) return {};
  return {std::make_unique<ChannelsLastLayout>(), true, std::string(devices[1].device->kind())};
}

// The passes that change bits within rounding; they see constants, and leave some to be evaluated.
Result<Graph> with_other_rounding(const Library& library, Graph graph,
                                  const SessionOptions& options,
                                  std::span<const ExecutionDevice> devices, StepLog& log) {
  size_t num_changes = 0;
  if (options.folds_norms) {
    EDDY_ASSIGN_OR_RETURN(FoldedNorms folded, fold_norms(std::move(graph), library.ops()));
    graph = std::move(folded.graph);
    num_changes += folded.num_folded;
    log.done("folded " + count_text(folded.num_folded, "normalization"));
  }
  if (const WantedLayout wanted = wanted_layout(options, devices); wanted.layout_or_null) {
    // Evaluates the weights that were folded: only convolutions of constant ones are laid out.
    if (num_changes > 0) {
      EDDY_ASSIGN_OR_RETURN(graph, simplified(library, std::move(graph), options));
    }
    EDDY_ASSIGN_OR_RETURN(LaidOutGraph laid, lay_out_images(std::move(graph), library.ops(),
                                                            {*wanted.layout_or_null,
                                                             wanted.scales_norms, wanted.device}));
    graph = std::move(laid.graph);
    num_changes = laid.num_convolutions;
    log.done("laid out the images of " + count_text(num_changes, "convolution"));
  }
  return num_changes > 0 ? simplified(library, std::move(graph), options)
                         : Result<Graph>(std::move(graph));
}

// Operators of the CPU in the place of several, or of those whose operands may change.
Result<Graph> with_host_operators(const Library& library, Graph graph, StepLog& log) {
  EDDY_ASSIGN_OR_RETURN(JoinedExpansions joined, join_expansions(std::move(graph), library.ops()));
  log.done("joined " + count_text(joined.num_joined, "expansion") + " with what reads it");
  EDDY_ASSIGN_OR_RETURN(WinogradGraph allowed,
                        allow_winograd(std::move(joined.graph), library.ops()));
  log.done("allowed Winograd's transforms for " +
           count_text(allowed.num_convolutions, "convolution"));
  EDDY_ASSIGN_OR_RETURN(PackedGraph packed,
                        pack_before_loops(std::move(allowed.graph), library.ops(),
                                          {.panel_width = columns_in_panel()}));
  log.done("packed matrices of " + count_text(packed.num_packed, "product") +
           " and turned those of " + std::to_string(packed.num_turned) + " before loops");
  std::vector<uint32_t> on_host(packed.graph.num_values(), 0);
  EDDY_ASSIGN_OR_RETURN(
      FoldedProducts folded,
      fold_into_products(std::move(packed.graph), library.ops(), std::move(on_host),
                         {.device = "", .panel_columns = columns_in_panel()}));
  log.done("folded " + count_text(folded.num_folded, "node") + " into products");
  return std::move(folded.graph);
}

}  // namespace

Result<Graph> make_graph_to_run(const Library& library, Graph graph, const SessionOptions& options,
                                std::span<const ExecutionDevice> devices, StepLog& log) {
  const size_t num_given = graph.num_nodes();
  EDDY_ASSIGN_OR_RETURN(Graph ready, simplified(library, std::move(graph), options));
  EDDY_ASSIGN_OR_RETURN(ready,
                        with_other_rounding(library, std::move(ready), options, devices, log));
  // Devices fold more, and once nodes are placed. Batches of requests, which block no channels
  // either, have rules for the operators of models.
  if (options.simplify && options.blocks_channels && options.make_devices.empty()) {
    EDDY_ASSIGN_OR_RETURN(ready, with_host_operators(library, std::move(ready), log));
  }
  log.done("simplified " + count_text(num_given, "node") + " to " +
           std::to_string(ready.num_nodes()));
  return ready;
}

}  // namespace eddy
