#include "tools/bench/bench_embedding.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "examples/greedy_decoder/decoder.h"
#include "graph/io/export.h"
#include "graph/ir/builder.h"
#include "runtime/api/c/eddy.h"
#include "tools/bench/clients.h"
#include "tools/bench/scratch_folder.h"

namespace eddy {
namespace {

constexpr int64_t kTrips = 1'000'000;
constexpr int64_t kNumTokens = 100;
constexpr uint64_t kSeed = 2;  // its decoder does not stop before
using Clock = std::chrono::steady_clock;
constexpr const char* kDomain = "bench";
constexpr const char* kIncrement = "Increment";
constexpr const char* kLine = "{:<11} {:<26}{:>36}{:>8}";

// y = x + 1 on one element: a C++ kernel, and a C function behind the table.
bool increment(const KernelArgs& args) {
  *args.outputs[0].mutable_as<float>() = *args.inputs[0].as<float>() + 1;
  return true;
}
eddy_code increment_in_c(void*, const eddy_call* call) {
  *static_cast<float*>(call->outputs[0].data) =
      *static_cast<const float*>(call->inputs[0].data) + 1;
  return EDDY_OK;
}

Status add_increment(Library& library) {
  OpDef def;
  def.name = kIncrement;
  def.domain = kDomain;
  def.inputs = {{"x"}};
  def.infer = [](InferContext& context) {
    context.set_output(0, context.input(0));
    return Status::ok();
  };
  return library.add_operator(std::move(def), [](const KernelInit&) -> Result<BoundKernel> {
    BoundKernel bound;
    bound.run = increment;
    return bound;
  });
}

eddy_operator increment_table() {
  eddy_operator op = {};
  op.struct_size = sizeof(op);
  op.name = kIncrement;
  op.domain = kDomain;
  op.since_version = 1;
  op.min_inputs = op.max_inputs = op.num_outputs = 1;
  op.shapes = [](void*, const eddy_shapes* shapes) -> eddy_code {
    shapes->outputs[0] = shapes->inputs[0];
    return EDDY_OK;
  };
  op.run = increment_in_c;
  return op;
}

Result<Graph> identity(const OpTable& ops) {
  GraphBuilder b(ops);
  b.output("y", b.op("Identity", {b.input("x", tensor_type(ElementType::kFloat, {1}))}));
  return b.finish();
}

// Counts to kTrips, by `step`.
Result<Graph> loop(const OpTable& ops, const std::function<Value(GraphBuilder&, Value)>& step) {
  GraphBuilder b(ops);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const Value most = b.tensor<float>({1}, {static_cast<float>(kTrips)});
  const auto made = b.while_loop(
      {.name = "count", .initial = {x}},
      [&](Value, ValueSpan c) {
        return WhileTest{b.op("Less", {c[0], most}), {c[0]}};
      },
      [&](Value, ValueSpan c) { return std::vector<Value>{step(b, c[0])}; });
  b.output("y", made[0]);
  return b.finish();
}
Result<Graph> plain_loop(const OpTable& ops) {
  return loop(ops, [](GraphBuilder& b, Value x) { return b.op("Add", {x, b.scalar(1.0f)}); });
}
Result<Graph> operator_loop(const OpTable& ops) {
  return loop(ops, [](GraphBuilder& b, Value x) {
    return b.op(kIncrement, {x}, {}, {.domain = kDomain, .opset_version = 1});
  });
}

const eddy_api& api() { return *eddy_get_api(EDDY_API_VERSION); }

// What a call of the C interface says, as a Status.
template <typename Function>
Status c_call(Function call) {
  eddy_error error = nullptr;
  const eddy_code code = call(&error);
  if (code == EDDY_OK) return Status::ok();
  std::string line = error == nullptr ? api().code_name(code) : api().error_message(error);
  if (error != nullptr) api().release(error);
  return run_failed("the C interface: " + line);
}

struct Release {
  void operator()(void* handle) const { api().release(handle); }
};
template <typename T>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Release>;

// One graph in C++ and behind the C interface, bound to one element in and out.
struct Model {
  std::unique_ptr<Session> session;
  std::unique_ptr<Call> call;
  Handle<eddy_session> c_session;
  Handle<eddy_run> c_run;
  std::unique_ptr<OrtModel> rival;  // null: there is none
  std::vector<HostValue> fed;
  float x = 0;
  float y = 0;
  float c_y = 0;
};

class EmbeddingBench {
 public:
  EmbeddingBench(const BenchOptions& options, Console& console, Interrupts& interrupts)
      : options_(options), suite_("embedding", options, console, interrupts) {}

  Outcome run() {
    const Status status = run_all();
    return status.is_ok() ? suite_.finish() : Outcome::of_run(status);
  }

 private:
  Status run_all() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    EDDY_RETURN_IF_ERROR(open());
    if (suite_.is_wanted("identity")) EDDY_RETURN_IF_ERROR(add_identity());
    if (suite_.is_wanted("loop")) EDDY_RETURN_IF_ERROR(add_loop("loop", plain_loop));
    if (suite_.is_wanted("operator")) EDDY_RETURN_IF_ERROR(add_loop("operator", operator_loop));
    if (suite_.is_wanted("round trip")) EDDY_RETURN_IF_ERROR(add_round_trips());
    if (suite_.is_wanted("first token")) EDDY_RETURN_IF_ERROR(add_first_tokens());
    return Status::ok();
  }

  Status open() {
    EDDY_RETURN_IF_ERROR(add_increment(library_));
    eddy_context context = nullptr;
    EDDY_RETURN_IF_ERROR(
        c_call([&](auto e) { return api().context_create(nullptr, 0, &context, e); }));
    context_.reset(context);
    eddy_library library = nullptr;
    EDDY_RETURN_IF_ERROR(
        c_call([&](auto e) { return api().library_create(context, &library, e); }));
    c_library_.reset(library);
    const eddy_operator op = increment_table();
    return c_call([&](auto e) { return api().library_add_operator(library, &op, e); });
  }

  Result<std::unique_ptr<Model>> make(Result<Graph> (*build)(const OpTable&), bool with_rival) {
    auto model = std::make_unique<Model>();
    EDDY_ASSIGN_OR_RETURN(Graph graph, build(library_.ops()));
    EDDY_ASSIGN_OR_RETURN(const std::string file, format_onnx(graph));
    if (with_rival && suite_.has_rival()) EDDY_RETURN_IF_ERROR(load_rival(graph, *model));
    EDDY_ASSIGN_OR_RETURN(model->session, Session::create(library_, std::move(graph), {}));
    EDDY_ASSIGN_OR_RETURN(model->call, model->session->prepare());
    const int64_t one = 1;
    const TensorView in = {&model->x, &one, 1, ElementType::kFloat};
    const TensorView out = {&model->y, &one, 1, ElementType::kFloat};
    EDDY_RETURN_IF_ERROR(model->call->bind_input(0, in));
    EDDY_RETURN_IF_ERROR(model->call->bind_output(0, out));
    EDDY_RETURN_IF_ERROR(make_in_c(file, *model));
    EDDY_RETURN_IF_ERROR(model->call->run());
    EDDY_RETURN_IF_ERROR(execute(*model));
    if (model->y != model->c_y) {
      suite_.differs(fmt::format("C gives {}, C++ {}", model->c_y, model->y));
    }
    return model;
  }

  // A session of the file, and a run of it.
  Status open_in_c(const std::string& file, Model& model) {
    eddy_graph graph = nullptr;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) {
      return api().graph_import_bytes(c_library_.get(), file.data(), file.size(), &graph, e);
    }));
    const Handle<eddy_graph> kept(graph);
    eddy_session session = nullptr;
    EDDY_RETURN_IF_ERROR(
        c_call([&](auto e) { return api().session_create(graph, nullptr, 0, &session, e); }));
    model.c_session.reset(session);
    eddy_run run = nullptr;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) { return api().run_create(session, &run, e); }));
    model.c_run.reset(run);
    return Status::ok();
  }

  Status make_in_c(const std::string& file, Model& model) {
    EDDY_RETURN_IF_ERROR(open_in_c(file, model));
    const eddy_run run = model.c_run.get();
    const int64_t one = 1;
    const eddy_tensor in = {&model.x, &one, 1, EDDY_FLOAT, {}};
    const eddy_tensor out = {&model.c_y, &one, 1, EDDY_FLOAT, {}};
    EDDY_RETURN_IF_ERROR(
        c_call([&](auto e) { return api().run_bind_input_memory(run, 0, &in, e); }));
    return c_call([&](auto e) { return api().run_bind_output_memory(run, 0, &out, e); });
  }

  Status load_rival(const Graph& graph, Model& model) {
    EDDY_ASSIGN_OR_RETURN(const auto scratch, ScratchFolder::make());
    const std::string path = scratch->file("model.onnx");
    EDDY_RETURN_IF_ERROR(export_onnx(graph, path));
    const int64_t one = 1;
    model.fed.push_back(HostValue::copy_of({&model.x, &one, 1, ElementType::kFloat}));
    EDDY_ASSIGN_OR_RETURN(model.rival,
                          OrtModel::load(suite_.rival(), path, 1, {{"x", &model.fed[0]}}, {"y"}));
    return model.rival->run();
  }

  static Status execute(Model& model) {
    return c_call([&](auto e) { return api().run_execute(model.c_run.get(), nullptr, e); });
  }
  static Status by_name(Model& model, eddy_value x) {
    const char* const in = "x";
    const char* const out = "y";
    eddy_value made = nullptr;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) {
      return api().session_run(model.c_session.get(), &in, &x, 1, &out, &made, 1, nullptr, e);
    }));
    api().release(made);
    return Status::ok();
  }
  static Contender in_cpp(Model& model) {
    return {"C++, bound", [&model] { return model.call->run(); }};
  }
  static Contender in_c(Model& model) {
    return {"C, bound", [&model] { return execute(model); }};
  }

  Status add_identity() {
    suite_.console().progress("measuring identity");
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make(identity, true));
    const int64_t one = 1;
    const eddy_tensor in = {&model->x, &one, 1, EDDY_FLOAT, {}};
    eddy_value x = nullptr;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) { return api().value_copy(&in, &x, e); }));
    const Handle<eddy_value> kept(x);
    std::vector<Contender> contenders = {
        in_cpp(*model), in_c(*model), {"C, by name", [&] { return by_name(*model, x); }}};
    if (model->rival != nullptr) {
      contenders.push_back({"ONNX Runtime, Run", [&] { return model->rival->run(); }});
    }
    return add_rows("identity", contenders, 1);
  }

  Status add_loop(const std::string& name, Result<Graph> (*build)(const OpTable&)) {
    suite_.console().progress("measuring " + name);
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make(build, false));
    return add_rows(name, {in_cpp(*model), in_c(*model)}, static_cast<double>(kTrips));
  }

  Status add_rows(const std::string& name, const std::vector<Contender>& contenders, double units) {
    EDDY_ASSIGN_OR_RETURN(const auto all, suite_.measure(contenders, units));
    for (const Samples& one : all) {
      const double ratio = one.median() / all.front().median();
      Json json = {{"case", name}, {"way", one.name}, {"by_cpp", ratio}};
      json["ns"] = samples_json(one);
      add_row(name, one.name, samples_text(one), ratio, std::move(json));
    }
    return Status::ok();
  }

  void add_row(const std::string& name, const std::string& way, const std::string& time,
               double ratio, Json json) {
    std::string text = fmt::format(kLine, name, way, time, fmt::format("{:.2f}", ratio));
    if (suite_.is_empty()) {
      text =
          fmt::format(kLine, "case", "way", "a run or trip: best (median, 10 to 90 %)", "ratio") +
          "\n" + text;
    }
    suite_.add_row(text, std::move(json));
  }

  // Submitted, and called back where the caller's own loop runs what its descriptor tells of.
  static Status through_executor(Model& model, eddy_executor executor, int fd) {
    bool is_done = false;
    const eddy_run_callback callback = [](void* user, eddy_run, eddy_code) {
      *static_cast<bool*>(user) = true;
    };
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) {
      return api().run_submit(model.c_run.get(), nullptr, executor, callback, &is_done, e);
    }));
    while (!is_done) {
      pollfd file = {fd, POLLIN, 0};
      if (poll(&file, 1, -1) < 0) return internal_error("poll");
      EDDY_RETURN_IF_ERROR(
          c_call([&](auto e) { return api().executor_run(executor, SIZE_MAX, nullptr, e); }));
    }
    return Status::ok();
  }
  static Status through_wait(Model& model) {
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) {
      return api().run_submit(model.c_run.get(), nullptr, nullptr, nullptr, nullptr, e);
    }));
    return c_call([&](auto e) { return api().run_wait(model.c_run.get(), -1, e); });
  }

  Status add_round_trips() {
    suite_.console().progress("measuring round trips");
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make(identity, false));
    eddy_executor made = nullptr;
    EDDY_RETURN_IF_ERROR(
        c_call([&](auto e) { return api().executor_create(EDDY_EXECUTOR_CALLER, &made, e); }));
    const Handle<eddy_executor> executor(made);
    int fd = -1;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) { return api().executor_fd(made, &fd, e); }));
    const auto one_client = [](std::string name, Request request) {
      return ServeContender{std::move(name),
                            [request]() -> Result<Request> { return Request(request); }};
    };
    const std::vector<ServeContender> contenders = {
        wake_of_a_thread(),
        one_client("C, run_submit, run_wait", [&] { return through_wait(*model); }),
        one_client("C, callback on own loop", [&] { return through_executor(*model, made, fd); })};
    for (const bool is_idle : {false, true}) {
      ClientsOptions options;
      options.rounds = options_.rounds;
      options.window_s = std::max(0.01, options_.budget_s / options.rounds / 6);
      options.pause_s = is_idle ? 2e-3 : 0;
      EDDY_ASSIGN_OR_RETURN(const auto all, measure_clients(contenders, options, [this] {
                              return suite_.interrupts().is_interrupted();
                            }));
      for (const Latencies& one : all) add_latency(one, all.front(), is_idle);
    }
    return Status::ok();
  }

  void add_latency(const Latencies& one, const Latencies& wake, bool is_idle) {
    const double ratio = one.quantile(0.5) / wake.quantile(0.5);
    const std::string name = is_idle ? "round, idle" : "round trip";
    Json json = {{"case", name}, {"way", one.name}, {"by_wake", ratio}};
    json.update(latencies_json(one));
    add_row(name, one.name,
            fmt::format("p50 {}, p99 {}", duration_text(one.quantile(0.5)),
                        duration_text(one.quantile(0.99))),
            ratio, std::move(json));
  }

  // The rows of a run of the decoder, and when they came.
  struct Tokens {
    std::string name;
    Handle<eddy_executor> executor = {};
    Handle<eddy_rows> rows = {};
    Clock::time_point begun = {};
    std::atomic<int64_t> count = 0;  // called from the loop or another thread
    double first_ns = 0;
    double last_ns = 0;
    std::vector<double> firsts = {};
    std::vector<double> shares = {};  // of the last one's time, times tokens

    static void take(void* tokens, eddy_value row) {
      auto& self = *static_cast<Tokens*>(tokens);
      self.last_ns = std::chrono::duration<double, std::nano>(Clock::now() - self.begun).count();
      if (self.count == 0) self.first_ns = self.last_ns;
      api().release(row);
      ++self.count;
    }
    void add() {
      firsts.push_back(first_ns);
      shares.push_back(first_ns / last_ns * static_cast<double>(count));
    }
  };

  Status open_tokens(int32_t kind, Tokens& tokens) {
    eddy_executor executor = nullptr;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) { return api().executor_create(kind, &executor, e); }));
    tokens.executor.reset(executor);
    eddy_rows rows = nullptr;
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) {
      return api().rows_create(kNumTokens, executor, Tokens::take, &tokens, &rows, e);
    }));
    tokens.rows.reset(rows);
    return Status::ok();
  }

  static Status decode(Model& model, Tokens& tokens) {
    eddy_run run = model.c_run.get();
    EDDY_RETURN_IF_ERROR(
        c_call([&](auto e) { return api().run_stream_output(run, 0, tokens.rows.get(), e); }));
    tokens.count = 0;
    tokens.begun = Clock::now();
    EDDY_RETURN_IF_ERROR(c_call([&](auto e) { return api().run_execute(run, nullptr, e); }));
    while (tokens.count < kNumTokens) std::this_thread::yield();
    tokens.add();
    return Status::ok();
  }

  // examples/greedy_decoder: what the first token costs, and how much of the last one's time.
  Status add_first_tokens() {
    suite_.console().progress("measuring first tokens");
    EDDY_ASSIGN_OR_RETURN(
        Graph graph, decoder::build_decoder(library_.ops(), decoder::make_weights(kSeed, 32, 64)));
    EDDY_ASSIGN_OR_RETURN(const std::string file, format_onnx(graph));
    Model model;
    EDDY_RETURN_IF_ERROR(open_in_c(file, model));
    int64_t first = 1, most = kNumTokens;
    const int64_t one = 1;
    const eddy_tensor inputs[] = {{&first, &one, 1, EDDY_INT64, {}},
                                  {&most, nullptr, 0, EDDY_INT64, {}}};
    for (size_t i = 0; i < std::size(inputs); ++i) {
      EDDY_RETURN_IF_ERROR(c_call([&](auto e) {
        return api().run_bind_input_memory(model.c_run.get(), i, &inputs[i], e);
      }));
    }
    Tokens in_loop{.name = "C, rows in the loop"}, by_thread{.name = "C, rows by a thread"};
    EDDY_RETURN_IF_ERROR(open_tokens(EDDY_EXECUTOR_INLINE, in_loop));
    EDDY_RETURN_IF_ERROR(open_tokens(EDDY_EXECUTOR_THREAD, by_thread));
    const int num_rounds = std::max(options_.rounds, 1);
    for (int i = 0; i < num_rounds && !suite_.interrupts().is_interrupted(); ++i) {
      for (Tokens* const each : {&in_loop, &by_thread}) {
        constexpr int kRuns = 20;
        for (int run = 0; run < kRuns; ++run) EDDY_RETURN_IF_ERROR(decode(model, *each));
      }
    }
    for (Tokens* const each : {&in_loop, &by_thread}) add_tokens(*each);
    return Status::ok();
  }

  void add_tokens(Tokens& tokens) {
    if (tokens.firsts.empty()) return;
    std::ranges::sort(tokens.firsts);
    std::ranges::sort(tokens.shares);
    const Samples firsts = {tokens.name, tokens.firsts}, shares = {tokens.name, tokens.shares};
    Json json = {{"case", "first token"}, {"way", tokens.name}, {"of_last", shares.median()}};
    json["of_last_low"] = shares.low();
    json["of_last_high"] = shares.high();
    json["ns"] = samples_json(firsts);
    add_row("first token", tokens.name, samples_text(firsts), shares.median(), std::move(json));
  }

  const BenchOptions& options_;
  BenchSuite suite_;
  Library library_;
  Handle<eddy_context> context_;
  Handle<eddy_library> c_library_;
};

}  // namespace

Outcome bench_embedding(const BenchOptions& options, Console& console, Interrupts& interrupts) {
  return EmbeddingBench(options, console, interrupts).run();
}

}  // namespace eddy
