// A DAG file to a plan that is proved, or to an error of one line: parse_dag_file, plan_dag.
#include "tests/fuzz/fuzz_input.h"
#include "tools/command/dag/dag_file.h"
#include "tools/command/dag/dag_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace eddy;
  const Result<DagFile> file =
      parse_dag_file(fuzz::as_text(data, size), {.max_nodes = 2000, .max_edges = 20000});
  if (!file.is_ok()) {
    fuzz::expect_one_line(file.status());
    return 0;
  }
  for (const AssignPolicy policy : {AssignPolicy::kRank, AssignPolicy::kMatching}) {
    DagPlanOptions options;
    options.policy = policy;
    options.max_streams = static_cast<uint32_t>(size % 4);
    const Result<DagPlan> plan = plan_dag(*file, options);
    if (!plan.is_ok()) {
      fuzz::expect_one_line(plan.status());
    } else {
      EDDY_CHECK(plan->proof.is_safe()) << "a plan of ours is not safe";
    }
  }
  return 0;
}
