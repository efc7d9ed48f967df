// What eddy run says and writes of a model's runs: outputs, their comparison with a data set's,
// files, times, loops and memory.
//
// Errors: kInvalidArgument where a folder or file can't be written. Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/command/compare.h"
#include "tools/command/console.h"
#include "tools/command/inputs.h"
#include "tools/command/model.h"
#include "tools/command/outcome.h"

namespace eddy {

struct RunReport {
  NamedTensors outputs;
  std::vector<int64_t> runs_ns;
  std::vector<std::string> differences;
  bool is_compared = false;
  std::vector<std::string> files;  // by output; empty where none was written
  bool has_ended = false;          // all runs went well
};

// With those of the data set that it has.
void compare_outputs(const DataSet& data_set, const Tolerance& tolerance, RunReport& report);
// Files .npy where NumPy has such values, else .pb.
Status write_outputs(const std::string& folder, RunReport& report);
// For the reader, or a document.
std::string report_text(const Model& model, const RunReport& report, bool is_json);
// kDiffers where outputs do.
Outcome verdict_of(const RunReport& report);
// Both.
Outcome show(const Model& model, const RunReport& report, Console& console);

}  // namespace eddy
