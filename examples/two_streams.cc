// Two streams: two chains that need nothing of each other run at the same time.
//
// Shows: the plan puts each chain on a stream of its own, and two workers drain them at once. At
// the end of each chain a host function waits for the other chain to get there: only chains that
// overlap can meet.
#include <condition_variable>
#include <iostream>
#include <mutex>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

// Where two threads wait for each other.
class Meeting {
 public:
  // True when both are there; false when the other has not come for ten seconds.
  bool wait() {
    std::unique_lock lock(mutex_);
    ++num_here_;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return num_here_ == 2; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int num_here_ = 0;  // under the mutex
};

void build_chain(GraphBuilder& b, const std::string& name) {
  const Value x = b.input(name, tensor_type(ElementType::kFloat, {256, 256}));
  const Value square = b.op("MatMul", {x, x}, {}, {.name = name + ".square"});
  const Value met = b.op("HostPredicate", {square}, {{"name", "meet"}},
                         {.name = name + ".meet", .domain = "eddy"});
  b.output(name + ".met", met);
}

// Which nodes stand on which stream.
void print_streams(const Session& session) {
  const Program& program = session.plan().program;
  for (const uint32_t stream : program.blocks[0].streams) {
    std::cout << "stream " << stream << ":";
    for (const Program::Step& step : program.blocks[0].steps) {
      if (step.op != Program::Op::kLaunch || step.stream != stream) continue;
      std::cout << " " << session.graph().node(node_of(program, step)).name;
    }
    std::cout << "\n";
  }
}

Status run() {
  Library library;
  Meeting meeting;
  EDDY_RETURN_IF_ERROR(library.add_host_function(
      "meet", [&](std::span<const TensorView>) -> Result<int64_t> { return meeting.wait(); }));
  GraphBuilder b(library.ops());
  build_chain(b, "left");
  build_chain(b, "right");
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  EDDY_ASSIGN_OR_RETURN(auto session,
                        Session::create(library, std::move(graph), {.num_threads = 2}));
  print_streams(*session);

  const std::vector<float> values(256 * 256, 0.01f);
  const Tensor x = Tensor::of<float>({256, 256}, values);
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run({{"left", x}, {"right", x}}));
  for (const auto& [name, met] : outputs) {
    std::cout << name << ": " << (met.values<bool>()[0] ? "yes" : "no") << "\n";
  }
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
