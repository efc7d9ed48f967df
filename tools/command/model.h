// The options that all subcommands with a model share, and the model made ready with them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "graph/base/status.h"
#include "graph/io/import_options.h"
#include "runtime/api/session.h"

namespace eddy {

struct ModelArguments {
  std::string device = "cpu";
  uint64_t order_seed = 0;  // of the virtual device, as is the policy
  std::string policy = "uniform";
  std::string assign = "auto";
  std::string loops = "auto";
  uint32_t streams = 0;
  int threads = 0;
  uint64_t memory_bytes = 0;  // of all tensors; 0: three quarters of the machine's
  bool exact = false;         // what the CPU does anyway
  bool tf32 = false;          // of --device cuda, as are the next three
  bool measure_convolutions = false;
  std::optional<bool> channels_last = {};
  bool locate_faults = false;
  std::vector<std::string> dims;    // NAME=N
  std::vector<std::string> shapes;  // NAME=2x3
  std::string costs;
  std::string rank_by = "nodes";
};

// --assign, --streams, --costs, --rank-by: of everything that plans.
void add_planning_options(CLI::App& app, ModelArguments& arguments);
// --device, --seed, --policy, --loops, --tf32, --measure-convolutions, --channels-last, --exact,
// --locate-faults, --threads, --memory and those of add_shape_options: of what plans models. Not
// the former.
void add_model_options(CLI::App& app, ModelArguments& arguments);
// --dim, --shape: of everything that reads a model.
void add_shape_options(CLI::App& app, std::vector<std::string>& dims,
                       std::vector<std::string>& shapes);

// kDeviceLost for a device that this build does not have.
Result<SessionOptions> make_session_options(const ModelArguments& arguments);

// Refuses sizes for symbolic dimensions that the graph of this file does not have.
Status check_dims(const Graph& graph, const SessionOptions& options, const std::string& path);

struct Model {
  std::unique_ptr<Session> session;
  int64_t load_ns = 0;                // reading and importing the file
  std::vector<std::string> warnings;  // about the file, each with its path, and what --costs lacks
};
// The graph of an ONNX file, or of a saved plan.
Result<Graph> import_file(const Library& library, const std::string& path,
                          const ImportOptions& options = {});
// `library` must outlive the model. Refuses sizes for symbolic dimensions that the file does
// not have. With ranks (options.ranks.world), a file that this rank refuses is refused by all.
Result<Model> load_model(const Library& library, const std::string& path,
                         const SessionOptions& options);

// Splits "NAME=VALUE" at its first '='; `option` and `form` are for the message.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                             const char* option, const char* form);

// Steady time, for measuring.
int64_t now_ns();

}  // namespace eddy
