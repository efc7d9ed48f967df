// What a program of the fluid model costs over all that its loops and branches may decide; never
// one run at the mean. A plan's table of costs is made by graph/compile/predict_plan.h.
//
// Decisions with distributions: every sequence of them is simulated with its probability where
// they are at most max_exact, else num_samples samples are drawn as in scenario.h, with common
// random numbers: programs whose controls bear the same names see the same scenarios. Where not
// exact, `worst` includes the scenario with every loop at its most trips and every case in the
// branch with the most work.
//
// Decisions with traces: the record is cut into runs, each of which goes on where the one before
// it ended; the record ends with the run by which every trace that is read has come to its end,
// shorter ones having begun anew. All its runs are equally likely. Beside distributions, sample
// after sample reads on.
//
// ScenarioOptions::max_tasks is not read: FluidOptions::max_steps bounds each scenario; its seed
// and sample are not read either. Predicates cost what the machine has for them: deciding, reading
// back
// and what the host does next.
// Errors: those of simulate_fluid, and of options as evaluate_scenarios has them. Threads: pure.
// Cost: scenarios * simulate_fluid.
#pragma once

#include "graph/base/status.h"
#include "graph/simulate/fluid_model.h"
#include "graph/simulate/scenario.h"

namespace eddy {

Result<ScenarioReport> evaluate_fluid_scenarios(const Program& program, const FluidCosts& costs,
                                                const FluidMachine& machine,
                                                const ScenarioOptions& options = {},
                                                const FluidOptions& fluid = {});

}  // namespace eddy
