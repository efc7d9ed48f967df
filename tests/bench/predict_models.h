// The models on which predicted and measured times of plans are compared: loops, nested loops,
// branches, dynamic models, a convolutional network, and graphs that two streams halve.
//
// The fluid model's terms and the micrographs that measure its constants (predict_machine.h) were
// chosen with ten of them in view. The others are held out: they were added after all choices, and
// their results may change neither terms nor constants.
//
// Threads: pure. Errors: those of import and building.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/host_value.h"
#include "runtime/api/session.h"

namespace eddy {

struct PredictModel {
  std::string name;
  std::function<Result<Graph>(const Library&)> build;
  // For the inputs of a session of it.
  std::function<Result<std::vector<HostValue>>(const std::vector<ValueDescription>&)> feed;
  bool is_held_out = false;
};

// `models` is the folder with the ONNX files of tests/bench/models. One more, held out, where
// `silero_path` names that model's file.
std::vector<PredictModel> predict_models(const std::string& models, const std::string& silero_path);

}  // namespace eddy
