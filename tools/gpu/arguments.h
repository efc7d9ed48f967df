// The options of gpu_report, checked before anything is measured, and the parts by name.
#pragma once

#include <string>

namespace eddy {

struct ReportArguments {
  std::string part;
  std::string json_file;
  std::string networks;  // a folder
  std::string speech;    // likewise
  std::string results;   // likewise, of a table
  std::string kind;      // of loops; empty: all of a drift, device of a loss
  int ordinal = 0;
  int loops = 4;    // of a probe
  int kernels = 1;  // of a probe
  bool wants_help = false;
};

// Empty when they are fine: folders are there, and the JSON file can be written.
std::string parse_report_arguments(int argc, char** argv, ReportArguments& arguments);

// One line for each part.
std::string report_help();

}  // namespace eddy
