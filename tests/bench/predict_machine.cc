#include "tests/bench/predict_machine.h"


#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "graph/base/processor.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "tools/command/measure_runs.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

const ValueType kScalar = tensor_type(ElementType::kFloat, {});
const ValueType kCount = tensor_type(ElementType::kInt64, {});

// Lasts as many nanoseconds as its second input holds, on any worker.
bool run_spin(const KernelArgs& args) {
  const uint64_t start = processor_ticks();
  const auto wanted =
      static_cast<uint64_t>(static_cast<double>(args.inputs[1].as<int64_t>()[0]) / tick_ns());
  args.outputs[0].mutable_as<float>()[0] = args.inputs[0].as<float>()[0];
  while (processor_ticks() - start < wanted) {
  }
  return true;
}

Result<BoundKernel> bind_spin(const KernelInit&) {
  BoundKernel kernel;
  kernel.run = run_spin;
  return kernel;
}

Status add_spin(Library& library) {
  OpDef def;
  def.name = "Spin";
  def.domain = "bench";
  def.inputs = {{"x", {ElementType::kFloat}, InputFlag::kNone},
                {"ns", {ElementType::kInt64}, InputFlag::kNone}};
  def.infer = [](InferContext& context) {
    context.set_output(0, context.input(0));
    return Status::ok();
  };
  return library.add_operator(std::move(def), bind_spin);
}

// The inputs of every micrograph: a number, trips, and lengths of kernels in nanoseconds.
struct MicroInputs {
  Value x, n, a, b, c;
};

// A session of a micrograph and a prepared run.
class Micrograph {
 public:
  using Build = std::function<void(GraphBuilder&, const MicroInputs&)>;

  static Result<std::unique_ptr<Micrograph>> make(const Library& library, const Build& build,
                                                  bool is_parallel, StepObserver* observer) {
    GraphBuilder builder(library.ops());
    builder.set_opset("bench", 1);
    const Value x = builder.input("x", kScalar);
    const Value n = builder.input("n", kCount);
    const Value a = builder.input("a", kCount);
    const Value b = builder.input("b", kCount);
    const Value c = builder.input("c", kCount);
    build(builder, {x, n, a, b, c});
    EDDY_ASSIGN_OR_RETURN(Graph graph, builder.finish());
    SessionOptions options;
    options.num_threads = 2;
    options.simplify = false;
    options.assignment = is_parallel ? Assignment::kRank : Assignment::kSerial;
    options.max_streams = 2;
    options.observer_or_null = observer;
    std::unique_ptr<Micrograph> self(new Micrograph);
    EDDY_ASSIGN_OR_RETURN(self->session_, Session::create(library, std::move(graph), options));
    EDDY_ASSIGN_OR_RETURN(self->call_, self->session_->prepare());
    EDDY_RETURN_IF_ERROR(self->call_->bind_input(0, scalar(&self->x_, ElementType::kFloat)));
    for (size_t i = 0; i < std::size(self->counts_); ++i) {
      EDDY_RETURN_IF_ERROR(
          self->call_->bind_input(i + 1, scalar(&self->counts_[i], ElementType::kInt64)));
    }
    return self;
  }

  // The best of `rounds` runs, or of the means of short ones.
  Result<double> best_ns(int rounds, int64_t n, int64_t a = 0, int64_t b = 0, int64_t c = 0) {
    counts_[0] = n, counts_[1] = a, counts_[2] = b, counts_[3] = c;
    MeasureOptions options;
    options.rounds = rounds;
    options.min_sample_ns = 2e5;
    EDDY_ASSIGN_OR_RETURN(
        const std::vector<Samples> samples,
        measure_runs({{"", [this] { return call_->run(); }}}, 1, options, [] { return false; }));
    return samples[0].best();
  }
  Status run_once(int64_t n) {
    counts_[0] = n;
    return call_->run();
  }
  const Graph& graph() const { return session_->graph(); }

 private:
  static TensorView scalar(void* data, ElementType element) { return {data, nullptr, 0, element}; }

  float x_ = 1;
  int64_t counts_[4] = {0, 0, 0, 0};  // n, a, b, c
  std::unique_ptr<Session> session_;
  std::unique_ptr<Call> call_;
};

Value spin(GraphBuilder& b, Value x, Value ns) {
  return b.op("Spin", {x, ns}, {}, {.domain = "bench"});
}

void build_chain(GraphBuilder& b, const MicroInputs& inputs) {
  Value x = inputs.x;
  for (int i = 0; i < 1000; ++i) x = b.op("Neg", {x});
  b.output("y", x);
}

// `n` rounds of `body`.
using Body = std::function<Value(GraphBuilder&, Value x, const MicroInputs&)>;
Micrograph::Build loop_of(const Body& body) {
  return [body](GraphBuilder& builder, const MicroInputs& inputs) {
    const Value always = builder.scalar(true);
    WhileOptions options;
    options.name = "loop";
    options.initial = {inputs.x};
    options.trip_limit = inputs.n;
    const std::vector<Value> results = builder.while_loop(
        options,
        [&](Value, std::span<const Value> v) {
          return WhileTest{always, {v[0]}};
        },
        [&](Value, std::span<const Value> v) -> std::vector<Value> {
          return {body(builder, v[0], inputs)};
        });
    builder.output("y", results[0]);
  };
}

// Two streams from the start of a round to its end.
Value fork_and_join(GraphBuilder& b, Value x, const MicroInputs& inputs) {
  return b.op("Add", {spin(b, x, inputs.a), spin(b, x, inputs.b)});
}
// The second stream waits for c first, so its worker idles as long.
Value late_fork(GraphBuilder& b, Value x, const MicroInputs& inputs) {
  return fork_and_join(b, spin(b, x, inputs.c), inputs);
}

// What looking costs: observed micrographs then add up to what they take unobserved.
Status measure_looking(const Library& library, int rounds, MeasuredMachine& measured) {
  StepProfile profile;
  const auto negate = [](GraphBuilder& b, Value x, const MicroInputs&) { return b.op("Neg", {x}); };
  const struct {
    Micrograph::Build build;
    int64_t trips;
  } graphs[] = {{build_chain, 0}, {loop_of(negate), 1000}};
  for (const auto& [build, trips] : graphs) {
    EDDY_ASSIGN_OR_RETURN(auto plain, Micrograph::make(library, build, false, nullptr));
    EDDY_ASSIGN_OR_RETURN(auto watched, Micrograph::make(library, build, false, &profile));
    EDDY_ASSIGN_OR_RETURN(const double plain_ns, plain->best_ns(rounds, trips));
    double seen_ns = 1e300;
    for (int round = 0; round < 20 * rounds; ++round) {
      profile.begin(watched->graph().num_nodes());
      EDDY_RETURN_IF_ERROR(watched->run_once(trips));
      seen_ns = std::min(seen_ns, static_cast<double>(profile.total_ticks()) * tick_ns());
    }
    const auto num_exec = static_cast<double>(profile.num_steps(true));
    const auto num_control = static_cast<double>(profile.num_steps(false));
    const double extra_ns = seen_ns - (plain_ns - measured.machine.run_ns);
    if (trips == 0) {
      measured.looking.exec_ns = std::max(0.0, extra_ns / num_exec);
    } else {
      measured.looking.control_ns =
          std::max(0.0, (extra_ns - measured.looking.exec_ns * num_exec) / num_control);
    }
  }
  return Status::ok();
}

// The machine's costs of streams, one after the other; each micrograph in best times, so that
// what else runs disturbs least.
class StreamCosts {
 public:
  StreamCosts(const Library& library, int rounds, FluidMachine& machine)
      : library_(library), rounds_(rounds), machine_(machine) {}

  Status measure() {
    const auto pair = [](GraphBuilder& b, const MicroInputs& inputs) {
      b.output("y", spin(b, inputs.x, inputs.a));
      b.output("z", spin(b, inputs.x, inputs.b));
    };
    EDDY_ASSIGN_OR_RETURN(pair_, Micrograph::make(library_, pair, true, nullptr));
    EDDY_ASSIGN_OR_RETURN(join_, Micrograph::make(library_, loop_of(fork_and_join), true, nullptr));
    EDDY_ASSIGN_OR_RETURN(late_, Micrograph::make(library_, loop_of(late_fork), true, nullptr));
    EDDY_RETURN_IF_ERROR(measure_joins());
    EDDY_RETURN_IF_ERROR(measure_sleep());
    return measure_runs_of_two();
  }

 private:
  static constexpr int64_t kTrips = 20;
  static constexpr int64_t kShort = 40'000;    // ns: no worker falls asleep
  static constexpr int64_t kLong = 1'000'000;  // a worker does

  // The time of a round beside `beside_ns`.
  Result<double> round_ns(Micrograph& graph, int64_t beside_ns, int64_t a, int64_t b,
                          int64_t c = 0) {
    EDDY_ASSIGN_OR_RETURN(const double ns, graph.best_ns(rounds_, kTrips, a, b, c));
    return std::max(0.0, ns / static_cast<double>(kTrips) - static_cast<double>(beside_ns));
  }

  // Kernels of no length: one worker runs both streams and takes each from the queue. Then one
  // stream twice as long as the other: the first shows what waking the other takes of it, the
  // second when it has begun.
  Status measure_joins() {
    EDDY_ASSIGN_OR_RETURN(auto serial,
                          Micrograph::make(library_, loop_of(fork_and_join), false, nullptr));
    EDDY_ASSIGN_OR_RETURN(const double serial_ns, round_ns(*serial, 0, 0, 0));
    EDDY_ASSIGN_OR_RETURN(const double joined_ns, round_ns(*join_, 0, 0, 0));
    machine_.pickup_ns = std::max(0.0, joined_ns - serial_ns) / 3;
    EDDY_ASSIGN_OR_RETURN(const double first_ns, round_ns(*join_, kShort, kShort, kShort / 2));
    EDDY_ASSIGN_OR_RETURN(const double second_ns, round_ns(*join_, kShort, kShort / 2, kShort));
    const double rest_ns = serial_ns + machine_.pickup_ns;
    machine_.stream.fork_ns = machine_.pickup_ns;
    machine_.handing_ns = std::max(0.0, first_ns - serial_ns - machine_.stream.fork_ns);
    const double handed_ns = second_ns - rest_ns - machine_.stream.fork_ns;
    machine_.handoff_ns = std::max(machine_.pickup_ns, handed_ns - machine_.handing_ns);
    EDDY_ASSIGN_OR_RETURN(const double waking_ns, round_ns(*join_, kLong, kLong, kLong / 2));
    EDDY_ASSIGN_OR_RETURN(const double woken_ns, round_ns(*join_, kLong, kLong / 2, kLong));
    machine_.waking_ns = std::max(0.0, waking_ns - serial_ns - machine_.stream.fork_ns);
    machine_.wake_ns = std::max(machine_.handoff_ns,
                                woken_ns - rest_ns - machine_.waking_ns - machine_.stream.fork_ns);
    return Status::ok();
  }

  // A second stream that is needed only after its worker has idled for c.
  Status measure_sleep() {
    const double asleep_ns = machine_.waking_ns + machine_.wake_ns;
    const double awake_ns = machine_.handing_ns + machine_.handoff_ns;
    for (const int64_t c : {8'000, 16'000, 32'000, 64'000, 96'000, 128'000, 192'000, 256'000}) {
      EDDY_ASSIGN_OR_RETURN(const double ns, round_ns(*late_, kShort + c, kShort, kShort, c));
      if (ns > (awake_ns + asleep_ns) / 2) break;
      machine_.spin_ns = static_cast<double>(c);
    }
    return Status::ok();
  }

  Status measure_runs_of_two() {
    EDDY_ASSIGN_OR_RETURN(machine_.start_ns, pair_->best_ns(rounds_, 0));
    EDDY_ASSIGN_OR_RETURN(const double long_ns, pair_->best_ns(rounds_, 0, kLong));
    machine_.sleeping_start_ns = std::max(machine_.start_ns, long_ns - double{kLong});
    for (const int64_t a : {10'000, 20'000, 40'000, 60'000, 80'000, 100'000, 130'000, 160'000}) {
      EDDY_ASSIGN_OR_RETURN(const double ns, pair_->best_ns(rounds_, 0, a));
      if (ns - static_cast<double>(a) > machine_.sleeping_start_ns / 2) break;
      machine_.caller_spin_ns = static_cast<double>(a);
    }
    return Status::ok();
  }

  const Library& library_;
  const int rounds_;
  FluidMachine& machine_;
  std::unique_ptr<Micrograph> pair_;  // a beside b
  std::unique_ptr<Micrograph> join_;
  std::unique_ptr<Micrograph> late_;
};

}  // namespace

Result<MeasuredMachine> measure_machine(int rounds) {
  Library library;
  EDDY_RETURN_IF_ERROR(add_spin(library));
  MeasuredMachine measured;
  measured.machine = cpu_machine(2);
  FluidMachine& machine = measured.machine;
  machine.stream = {};  // steps are measured with what it takes to get to them
  machine.spin_ns = machine.caller_spin_ns = 0;
  const auto one = [](GraphBuilder& b, const MicroInputs& inputs) {
    b.output("y", spin(b, inputs.x, inputs.a));
  };
  EDDY_ASSIGN_OR_RETURN(auto single, Micrograph::make(library, one, false, nullptr));
  EDDY_ASSIGN_OR_RETURN(machine.run_ns, single->best_ns(rounds, 0));
  EDDY_RETURN_IF_ERROR(measure_looking(library, rounds, measured));
  EDDY_RETURN_IF_ERROR(StreamCosts(library, rounds, machine).measure());
  return measured;
}

std::string to_text(const MeasuredMachine& measured) {
  const FluidMachine& machine = measured.machine;
  return fmt::format(
      "a run {:.0f} ns; looking {:.1f} ns a kernel, {:.1f} ns a control step\n"
      "two streams: a run {:.0f} ns, {:.0f} ns where it takes more than {:.0f} ns; a wake from "
      "rest "
      "{:.0f} ns, a strand taken by a free worker {:.0f} ns,\n  handed to an idle one {:.0f} + "
      "{:.0f} ns, to one that has idled for more than {:.0f} ns {:.0f} + {:.0f} ns\n",
      machine.run_ns, measured.looking.exec_ns, measured.looking.control_ns, machine.start_ns,
      machine.sleeping_start_ns, machine.caller_spin_ns, machine.stream.fork_ns, machine.pickup_ns,
      machine.handing_ns, machine.handoff_ns, machine.spin_ns, machine.waking_ns, machine.wake_ns);
}

}  // namespace eddy
