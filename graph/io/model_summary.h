// summarize_model: what an ONNX file holds, without a graph being built: inputs, outputs, opsets,
// operators, loops, branches and parameters.
//
// Reads every file that parse_model() reads, also one that the importer refuses: operators that
// nothing knows are listed as such. Nodes are counted as they stand in the file: those of the
// graph, of the graphs in its attributes and, once each, of the functions that are called from
// there. Tensor data are not read.
//
// Errors: those of read_file() and parse_model(), and a function that is defined twice, with the
// file's path. Threads: pure. Cost: O(file size) without tensor data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/import_limits.h"
#include "graph/ir/op.h"

namespace eddy {

struct DimSummary {
  int64_t size = -1;      // -1: not a number
  std::string name = {};  // of a symbolic dimension; empty: a size, or unknown
};

// Further dimensions of a value are one with the name "...".
inline constexpr size_t kMaxDimsListed = 64;

struct ValueSummary {
  std::string name;
  std::string type;  // "float", "sequence(int64)", "map", "undeclared"
  bool has_shape = false;
  std::vector<DimSummary> dims = {};
};

struct OperatorSummary {
  enum class Meaning {
    kOperator,    // of the OpTable
    kImporter,    // If, Loop, Constant ...: read as control flow or constants
    kFunction,    // the file defines it
    kUnknown,     // nothing knows it
    kKnownLater,  // the OpTable has it for later opsets only
  };
  std::string domain;  // "": ONNX's own
  std::string name;
  int version = 1;  // the opset that decides its definition
  Meaning meaning = Meaning::kOperator;
  int64_t num_nodes = 0;
};

// A node that is a loop or a branch.
struct ControlSummary {
  std::string name;      // of the node, else of its first output
  std::string op;        // "Loop"
  std::string function;  // that it stands in, a long name cut; empty: none
  bool is_loop = false;
  int depth = 1;          // of loops and branches around it, itself included, within the function
  int64_t num_nodes = 0;  // in its graphs, nested ones included
};

// Tensors of one kind.
struct TensorsSummary {
  int64_t num_tensors = 0;
  int64_t num_elements = 0;
  int64_t num_bytes = 0;     // as raw data
  int64_t num_external = 0;  // tensors whose data stand in other files
  int64_t num_refused = 0;   // tensors whose types or shapes the importer refuses; not in the sums
};

// One training_info.
struct TrainingSummary {
  int64_t num_nodes = 0;  // of the algorithm
  int64_t num_initialization_nodes = 0;
  std::vector<std::pair<std::string, std::string>> updates = {};  // initializer, output
};

struct ModelSummary {
  int64_t file_bytes = 0;  // without external data
  int64_t ir_version = 0;
  std::vector<std::pair<std::string, int64_t>> opsets = {};  // canonical domain, version
  std::vector<ValueSummary> inputs = {};                     // without those that have a default
  std::vector<ValueSummary> outputs = {};
  int64_t num_default_inputs = 0;  // graph inputs with an initializer
  int64_t num_functions = 0;       // defined in the file
  int64_t num_nodes = 0;
  std::vector<OperatorSummary> operators = {};  // by domain, name and version
  std::vector<ControlSummary> control = {};     // outer before inner, as in the file
  TensorsSummary initializers = {};             // of all graphs
  TensorsSummary constants = {};                // tensors of Constant nodes
  std::vector<TrainingSummary> training = {};   // not counted in the above
};

Result<ModelSummary> summarize_model(const std::string& path, const OpTable& ops,
                                     const ImportLimits& limits = {});

}  // namespace eddy
