#include "ops/schema/standard.h"
#include "tools/gpu/hand_graphs.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// x = 0; while (x < limit) { x += 1, by each of num_kernels }. x is set by kernels of the loop
// alone, and is not 0 before: so num_kernels * num_rounds means that all rounds ran.
TensorView make_loop(HandGraph& g, int64_t num_rounds, int num_kernels) {
  const TensorView x = g.number(-1.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  const TensorView end = g.number(static_cast<float>(num_rounds * num_kernels));
  const TensorView test = g.truth();
  g.begin();
  g.copy(x, zero);
  g.repeat(
      g.loop_words(), test,
      [&] {
        g.play("Less", {x, end}, test);
      },
      [&] {
        for (int k = 0; k < num_kernels; ++k) g.play("Add", {x, one}, x);
      });
  return x;
}

}  // namespace

Json report_probe(const SessionsUnderReport& what, int num_loops, int num_kernels) {
  const int64_t n = what.is_small ? 5 : 2000;
  PartReport report("probe", what.pace);
  OpTable ops;
  Status status = add_standard_schemas(ops);
  Result<std::shared_ptr<const Accelerator>> made = what.make_accelerator();
  if (status.is_ok() && !made.is_ok()) status = made.take_status();
  std::vector<std::unique_ptr<HandGraph>> graphs;
  std::vector<TensorView> counted;
  for (int i = 0; i < num_loops && status.is_ok(); ++i) {
    HandGraph& g = *graphs.emplace_back(std::make_unique<HandGraph>(**made, ops, what.progress));
    counted.push_back(make_loop(g, n, num_kernels));
    status = g.finish();
  }
  for (auto& graph : graphs) {
    if (status.is_ok()) status = graph->start();
  }
  for (auto& graph : graphs) {
    if (status.is_ok()) status = graph->wait();
  }
  for (size_t i = 0; i < graphs.size() && status.is_ok(); ++i) {
    Result<float> found = graphs[i]->read(counted[i]);
    if (!found.is_ok()) {
      status = found.take_status();
    } else if (*found != static_cast<float>(n * num_kernels)) {
      status = run_failed("a loop counted to " + std::to_string(*found) + ", expected " +
                          std::to_string(n * num_kernels));
    }
  }
  Json row = {{"loops", num_loops}, {"kernels", num_kernels}};
  set_status(status, row);
  report.add(std::move(row));
  return report.take();
}

}  // namespace eddy
