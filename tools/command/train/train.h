// eddy train: a subcommand in a room of its own, so that nothing else of the command depends on
// training. As subcommand.h has them.
#pragma once

#include "tools/command/subcommand.h"

namespace eddy {

Action add_train(CLI::App& app);

}  // namespace eddy
