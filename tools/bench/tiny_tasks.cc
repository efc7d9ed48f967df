#include "tools/bench/tiny_tasks.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <climits>
#include <deque>
#include <optional>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

constexpr const char* kDomain = "bench";

uint64_t step(uint64_t sum) { return sum * 6364136223846793005u + 1442695040888963407u; }

struct Values {
  explicit Values(const TaskShape& shape) : shape(&shape), made(shape.size()) {}
  void run(uint32_t task) {
    uint64_t sum = 0;
    for (const uint32_t predecessor : shape->predecessors[task]) sum += made[predecessor];
    made[task] = step(sum);
  }
  const TaskShape* shape;
  std::vector<uint64_t> made;  // by task
};

std::vector<std::vector<uint32_t>> successors_of(const TaskShape& shape) {
  std::vector<std::vector<uint32_t>> successors(shape.size());
  for (uint32_t task = 0; task < shape.size(); ++task) {
    for (const uint32_t predecessor : shape.predecessors[task]) {
      successors[predecessor].push_back(task);
    }
  }
  return successors;
}

// As a user's operator.
bool run_task(const KernelArgs& args) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < args.num_inputs; ++i) sum += *args.inputs[i].as<uint64_t>();
  *args.outputs[0].mutable_as<uint64_t>() = step(sum);
  return true;
}

Status add_task_operator(Library& library) {
  OpDef def{
      .name = "Task",
      .domain = kDomain,
      .inputs = {{.name = "sums", .types = {ElementType::kUint64}, .flags = InputFlag::kVariadic}},
      .infer = [](InferContext& context) {
        context.set_output(0, tensor_type(ElementType::kUint64, {}));
        return Status::ok();
      }};
  return library.add_operator(std::move(def), [](const KernelInit&) -> Result<BoundKernel> {
    BoundKernel kernel;
    kernel.run = run_task;
    return kernel;
  });
}

class EddyRunner : public TaskRunner {
 public:
  static Result<std::unique_ptr<TaskRunner>> make(const TaskShape& shape, int num_threads) {
    auto runner = std::make_unique<EddyRunner>();
    EDDY_RETURN_IF_ERROR(add_task_operator(runner->library_));
    GraphBuilder b(runner->library_.ops());
    std::vector<Value> made;
    std::vector<Value> inputs;
    // A source reads what the graph is given: nothing of it is folded.
    const Value zero = b.input("zero", tensor_type(ElementType::kUint64, {}));
    for (const std::vector<uint32_t>& predecessors : shape.predecessors) {
      inputs.clear();
      for (const uint32_t predecessor : predecessors) inputs.push_back(made[predecessor]);
      if (inputs.empty()) inputs.push_back(zero);
      made.push_back(b.op("Task", inputs, {}, {.domain = kDomain}));
    }
    b.output("made", made.back());
    EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
    SessionOptions options;
    options.num_threads = num_threads;
    options.simplify = false;  // most tasks lead to no output
    EDDY_ASSIGN_OR_RETURN(runner->session_,
                          Session::create(runner->library_, std::move(graph), options));
    EDDY_ASSIGN_OR_RETURN(runner->call_, runner->session_->prepare());
    EDDY_RETURN_IF_ERROR(runner->call_->bind_input(0, runner->zero_));
    return std::unique_ptr<TaskRunner>(std::move(runner));
  }
  Result<uint64_t> run() override {
    EDDY_RETURN_IF_ERROR(call_->run());
    return *call_->output(0).as<uint64_t>();
  }

 private:
  const Tensor zero_ = Tensor::of<uint64_t>({}, {0});  // what the call borrows
  Library library_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<Call> call_;
};

// So many threads of oneTBB's, whatever the processors are.
struct TbbThreads {
  explicit TbbThreads(int num_threads)
      : limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(num_threads)),
        arena(num_threads) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

class FlowGraphRunner : public TaskRunner {
 public:
  FlowGraphRunner(const TaskShape& shape, int num_threads) : threads_(num_threads), values_(shape) {
    threads_.arena.execute([&] {
      graph_.emplace();
      for (uint32_t task = 0; task < shape.size(); ++task) {
        nodes_.emplace_back(*graph_, [this, task](Message) { values_.run(task); });
        for (const uint32_t predecessor : shape.predecessors[task]) {
          tbb::flow::make_edge(nodes_[predecessor], nodes_[task]);
        }
        if (shape.predecessors[task].empty()) sources_.push_back(task);
      }
    });
  }
  Result<uint64_t> run() override {
    threads_.arena.execute([this] {
      for (const uint32_t source : sources_) nodes_[source].try_put(Message());
      graph_->wait_for_all();
    });
    return values_.made.back();
  }

 private:
  using Message = tbb::flow::continue_msg;
  TbbThreads threads_;
  Values values_;
  std::optional<tbb::flow::graph> graph_;  // made in the arena, whose threads run it
  std::deque<tbb::flow::continue_node<Message>> nodes_;
  std::vector<uint32_t> sources_;
};

// The last predecessor of a task runs it, or, of several that it has made ready, the first itself
// and the others by the group.
class TaskGroupRunner : public TaskRunner {
 public:
  TaskGroupRunner(const TaskShape& shape, int num_threads)
      : threads_(num_threads),
        values_(shape),
        successors_(successors_of(shape)),
        num_missing_(shape.size()) {}
  Result<uint64_t> run() override {
    const auto& predecessors = values_.shape->predecessors;
    for (size_t task = 0; task < predecessors.size(); ++task) {
      num_missing_[task].store(static_cast<uint32_t>(predecessors[task].size()),
                               std::memory_order_relaxed);
    }
    threads_.arena.execute([&] {
      tbb::task_group group;
      for (uint32_t task = 0; task < predecessors.size(); ++task) {
        if (predecessors[task].empty()) group.run([this, task, &group] { follow(task, group); });
      }
      group.wait();
    });
    return values_.made.back();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  void follow(uint32_t task, tbb::task_group& group) {
    while (task != kNone) {
      values_.run(task);
      uint32_t next = kNone;
      for (const uint32_t successor : successors_[task]) {
        if (num_missing_[successor].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        if (next == kNone) {
          next = successor;
        } else {
          group.run([this, successor, &group] { follow(successor, group); });
        }
      }
      task = next;
    }
  }

  TbbThreads threads_;
  Values values_;
  const std::vector<std::vector<uint32_t>> successors_;
  std::vector<std::atomic<uint32_t>> num_missing_;  // predecessors that have not ended, by task
};

}  // namespace

TaskShape fan_out_tasks(uint32_t num_tasks) {
  TaskShape shape{"fan-out", {{}}};
  for (uint32_t task = 1; task < num_tasks; ++task) shape.predecessors.push_back({0});
  return shape;
}

TaskShape diamond_tasks(uint32_t num_tasks, uint32_t width) {
  TaskShape shape{"diamonds", {{}}};
  for (uint32_t fork = 0; fork + width + 1 < num_tasks; fork += width + 1) {
    std::vector<uint32_t> joined;
    for (uint32_t i = 1; i <= width; ++i) {
      shape.predecessors.push_back({fork});
      joined.push_back(fork + i);
    }
    shape.predecessors.push_back(std::move(joined));
  }
  return shape;
}

TaskShape chain_tasks(uint32_t num_tasks, uint32_t num_chains) {
  TaskShape shape{num_chains == 1 ? "chain" : "chains", {}};
  while (shape.size() + 1 < num_tasks) {
    const auto task = static_cast<uint32_t>(shape.size());
    shape.predecessors.emplace_back();
    if (task >= num_chains) shape.predecessors.back().push_back(task - num_chains);
  }
  std::vector<uint32_t> ends;
  for (uint32_t i = 1; i <= std::min<size_t>(num_chains, shape.size()); ++i) {
    ends.push_back(static_cast<uint32_t>(shape.size()) - i);
  }
  shape.predecessors.push_back(std::move(ends));
  return shape;
}

TaskShape fork_join_tasks(uint32_t num_tasks) {
  TaskShape shape{"fork-join", {{}}};
  std::vector<uint32_t> level = {0};
  std::vector<std::vector<uint32_t>> levels;
  // Forks and joins of L leaves are 3 L - 2 tasks.
  while (3 * level.size() * 2 - 2 <= num_tasks) {
    std::vector<uint32_t> next;
    for (const uint32_t task : level) {
      for (int i = 0; i < 2; ++i) {
        next.push_back(static_cast<uint32_t>(shape.size()));
        shape.predecessors.push_back({task});
      }
    }
    level = std::move(next);
  }
  while (level.size() > 1) {
    std::vector<uint32_t> next;
    for (size_t i = 0; i < level.size(); i += 2) {
      next.push_back(static_cast<uint32_t>(shape.size()));
      shape.predecessors.push_back({level[i], level[i + 1]});
    }
    level = std::move(next);
  }
  return shape;
}

uint64_t run_in_order(const TaskShape& shape) {
  Values values(shape);
  for (uint32_t task = 0; task < shape.size(); ++task) values.run(task);
  return values.made.back();
}

const char* name_of(TaskWay way) {
  switch (way) {
    case TaskWay::kEddy:
      return "Eddy";
    case TaskWay::kFlowGraph:
      return "oneTBB, flow graph";
    case TaskWay::kTaskGroup:
      return "oneTBB, task group";
  }
  return "";
}

Result<std::unique_ptr<TaskRunner>> make_task_runner(TaskWay way, const TaskShape& shape,
                                                     int num_threads) {
  switch (way) {
    case TaskWay::kEddy:
      return EddyRunner::make(shape, num_threads);
    case TaskWay::kFlowGraph:
      return {std::make_unique<FlowGraphRunner>(shape, num_threads)};
    case TaskWay::kTaskGroup:
      return {std::make_unique<TaskGroupRunner>(shape, num_threads)};
  }
  return invalid_argument("no such way to run tasks");
}

}  // namespace eddy
