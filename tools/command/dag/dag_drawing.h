// draw_dag_plan: the plan of a DAG file as a picture (graph/compile/plan_drawing.h).
//
// Threads: pure. Cost: O(nodes + edges + waits).
#pragma once

#include "graph/compile/plan_drawing.h"
#include "tools/command/dag/dag_file.h"
#include "tools/command/dag/dag_plan.h"

namespace eddy {

DrawnRegion draw_dag_plan(const DagFile& file, const DagPlan& plan);

}  // namespace eddy
