// import_training: the training that an ONNX file describes (ModelProto.training_info, IR version
// 7).
//
//   step             the model's graph and the algorithm's as one: all inputs and outputs of both,
//                    and an input more for each initializer that a step changes
//   updates          which output is the initializer's next value, and its value in the file
//   initialization   a graph without inputs, whose outputs are first values; where the file has one
//
// The algorithm's Gradient nodes stay nodes (graph/differentiate/expand_gradients.h). What has to
// be done with all this, step by step, is runtime/training's business.
//
// Errors: those of import_onnx(); kNotFound for a file without training_info; kUnsupported for
// several; kInvalidArgument for a binding whose initializer or output is not there, or that stands
// twice, or whose types differ. Threads: pure. Cost: three readings of the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/import_options.h"
#include "graph/ir/graph.h"
#include "graph/ir/owned_tensor.h"

namespace eddy {

struct ImportedUpdate {
  std::string initializer;     // an input of the step
  std::string output;          // of the step
  std::string initial_output;  // of the initialization; empty: the file's value is the first one
  OwnedTensor value;           // in the file
  bool is_of_model = false;    // else of the algorithm: a state
};

struct ImportedTraining {
  Graph step;
  std::vector<ImportedUpdate> updates;
  std::optional<Graph> initialization;
};

Result<ImportedTraining> import_training(const std::string& path, const OpTable& ops,
                                         const ImportOptions& options = {});

}  // namespace eddy
