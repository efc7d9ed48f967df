// Where a command writes: checked before the work that the content costs.
//
// Every file to write lies in a folder that is there, is none that the command reads, and none
// that another option writes: else a table of costs would replace the model that it was taken of.
// Links and other spellings of a path are seen through. A file that appears between this check
// and the writing is not noticed.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

struct OutputPath {
  const char* option;  // "--svg"
  std::string path;    // empty: not given
};

// Inputs that are empty are not given.
Status check_output_paths(const std::vector<OutputPath>& outputs,
                          const std::vector<std::string>& inputs);

// For CLI11: a file is meant, not nothing, and not standard output.
std::string check_file_name(const std::string& text);

}  // namespace eddy
