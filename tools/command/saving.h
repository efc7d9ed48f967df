// What loops keep for their way back, on the command line: --save and --explain of eddy gradient
// and eddy train.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/differentiate/gradient_report.h"
#include "graph/differentiate/save_policy.h"
#include "tools/command/subcommand.h"

namespace eddy {

struct SavingArguments {
  std::vector<std::string> save;  // POLICY or PATH=POLICY
  bool explains = false;

  // An error is one of usage.
  Result<SavePolicies> policies() const;
};

void add_saving_options(CLI::App& app, SavingArguments& arguments);

// A line for each loop; with `explains` a table of all that is read on the way back.
void print_saving(const GradientReport& report, bool explains, Console& console);
Json saving_to_json(const GradientReport& report);  // "kept", "loops"

}  // namespace eddy
