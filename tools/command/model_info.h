// eddy info MODEL: what an ONNX file holds (graph/io/model_summary.h), and whether Eddy takes it.
//
// The listing does not depend on Eddy's support: an operator without a definition or without a CPU
// kernel is listed with the reason, and the importer's verdict stands beside the rest. Only a file
// that is no ONNX model at all is an error.
#pragma once

#include <string>

#include "runtime/api/library.h"
#include "tools/command/console.h"
#include "tools/command/outcome.h"

namespace eddy {

Outcome print_model_info(const std::string& path, const Library& library, Console& console);

}  // namespace eddy
