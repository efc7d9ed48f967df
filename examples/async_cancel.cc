// Async and cancel: runs that do not make the caller wait, and an endless one that is stopped.
//
// Shows: run_async with a callback, which is called exactly once however the run ends; a handle
// that waits and cancels; a deadline.
#include <atomic>
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// Counts down from n to zero; endless when n is no whole number.
Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const auto end = b.while_loop(
      {.name = "countdown", .initial = {b.input("n", tensor_type(ElementType::kDouble, {}))}},
      [&](Value, ValueSpan n) {
        return WhileTest{b.op("Not", {b.op("Equal", {n[0], b.scalar(0.0)})}), {n[0]}};
      },
      [&](Value, ValueSpan n) {
        return std::vector<Value>{b.op("Sub", {n[0], b.scalar(1.0)})};
      });
  b.output("end", end[0]);
  return b.finish();
}

Status run() {
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));

  std::atomic<int> calls = 0;
  RunHandle finite = session->run_async({{"n", Tensor::scalar(1e5)}}, [&](auto outputs) {
    if (outputs.is_ok()) ++calls;
  });
  const Status finished = finite.wait();
  std::printf("finite: %s\n", finished.to_string().c_str());

  RunHandle endless = session->run_async({{"n", Tensor::scalar(0.5)}}, [&](auto outputs) {
    if (outputs.status().code() == StatusCode::kCancelled) ++calls;
  });
  std::printf("endless: %s\n", endless.is_done() ? "done" : "running");
  endless.cancel();
  std::printf("endless: %s\n", std::string(status_code_name(endless.wait().code())).c_str());

  const auto late =
      session->run({{"n", Tensor::scalar(0.5)}}, {.timeout = std::chrono::milliseconds(20)});
  std::printf("late: %s\n", std::string(status_code_name(late.status().code())).c_str());

  session->close();  // the last callback has returned
  std::printf("callbacks: %d\n", calls.load());
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
