// table_part: what a run has measured, held against others (peers.h): Eddy's figure, every rival's,
// the ratio to the best of them, the limit and whether it is met.
//
// There are two kinds of rivals: "in this run" (graphs by hand, floors; JAX and PyTorch where the
// machine has them), and "earlier, not in this run". One that was measured in this run takes the
// place of its earlier figure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace eddy {

// From the JSON files that the parts have left in `folder`, as the bundle's `run` names them;
// needs no GPU. A row's verdict: "met", "missed", "shown" (it has no limit), "failed" (Eddy's row
// has), "not measured". "failed" counts those missed and failed. Files that are no JSON are
// passed over and named in "unreadable"; those of parts that ended early in "cut_short", their rows
// count; "missing" counts both, and nothing measured at all. "error", and no rows, where there is
// no part's file.
nlohmann::json report_table(const std::string& folder);

// For people: a line for each row, its rivals below.
std::string table_text(const nlohmann::json& report);

}  // namespace eddy
