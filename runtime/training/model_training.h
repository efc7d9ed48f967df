// read_model_training: the training that an ONNX file describes (graph/io/import_training.h), ready
// for a Trainer.
//
//   EDDY_ASSIGN_OR_RETURN(ModelTraining own, read_model_training(library, path, {}));
//   EDDY_ASSIGN_OR_RETURN(auto trainer, Trainer::create(library, std::move(own.model),
//                                                       std::move(own.step), {}));
//
// Its initialization is run here, once; Gradient nodes are expanded, and random numbers of the
// steps are drawn by key (ops/gradient/keyed_random.h). Initializers that the algorithm has of its
// own (rates, counts, moments) are states where it updates them. Errors: those of
// import_training(), of expand_gradients() and of the run; kInvalidArgument where no output, or
// more than one, can be the loss and none is named. Threads: pure.
#pragma once

#include <string>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "ops/gradient/training_step.h"
#include "runtime/api/library.h"

namespace eddy {

struct ModelTrainingOptions {
  std::string loss = {};  // an output; empty: the one of floating point and one element
  uint64_t seed = 1;      // of what steps draw
};

struct ModelTraining {
  Graph model;  // without the algorithm
  TrainingStep step;
};

Result<ModelTraining> read_model_training(const Library& library, const std::string& path,
                                          const ModelTrainingOptions& options);

}  // namespace eddy
