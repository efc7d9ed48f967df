#include "ops/schema/standard.h"
#include "tools/gpu/hand_graphs.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

// counter = 0; while (counter < limit) { body; counter += 1 }
void count(HandGraph& g, int64_t limit, const std::function<void()>& body) {
  const TensorView counter = g.number(0.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  const TensorView end = g.number(static_cast<float>(limit));
  const TensorView test = g.truth();
  g.copy(counter, zero);
  g.repeat(
      g.loop_words(), test,
      [&] {
        g.play("Less", {counter, end}, test);
      },
      [&] {
        body();
        g.play("Add", {counter, one}, counter);
      });
}

}  // namespace

Json report_probe(const SessionsUnderReport& what, int num_loops, int num_kernels) {
  const int64_t n = what.is_small ? 5 : 2000;
  Json report = {{"part", "probe"}, {"rows", Json::array()}, {"failed", 0}};
  OpTable ops;
  Status status = add_standard_schemas(ops);
  Result<std::shared_ptr<const Accelerator>> made = what.make_accelerator();
  if (status.is_ok() && !made.is_ok()) status = made.take_status();
  std::vector<std::unique_ptr<HandGraph>> graphs;
  std::vector<TensorView> counted;
  for (int i = 0; i < num_loops && status.is_ok(); ++i) {
    HandGraph& g = *graphs.emplace_back(std::make_unique<HandGraph>(**made, ops, what.progress));
    const TensorView x = g.number(0.0f);
    const TensorView zero = g.number(0.0f);
    const TensorView one = g.number(1.0f);
    g.begin();
    g.copy(x, zero);
    count(g, n, [&] {
      for (int k = 1; k < num_kernels; ++k) g.play("Add", {x, one}, x);
    });
    counted.push_back(x);
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
    } else if (*found != static_cast<float>(n * (num_kernels - 1))) {
      status = run_failed("a loop counted to " + std::to_string(*found));
    }
  }
  report["rows"].push_back({{"loops", num_loops},
                            {"kernels", num_kernels},
                            {"status", status.is_ok() ? "passed" : "failed"},
                            {"reason", status.is_ok() ? "" : status.to_string()}});
  report["failed"] = status.is_ok() ? 0 : 1;
  return report;
}

}  // namespace eddy
