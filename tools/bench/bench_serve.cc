#include "tools/bench/bench_serve.h"

#include <cmath>
#include <future>

#include <fmt/format.h>

#include "examples/dynamic_models/parts.h"
#include "graph/base/random.h"
#include "graph/io/export.h"
#include "graph/ir/builder.h"
#include "runtime/batching/batching_session.h"
#include "tools/bench/clients.h"
#include "tools/bench/scratch_folder.h"

namespace eddy {
namespace {

constexpr int64_t kInputSize = 64;
constexpr uint64_t kSeed = 1;

Value random_weights(GraphBuilder& b, Random& random, int64_t rows, int64_t columns) {
  const float bound = 1.0f / std::sqrt(static_cast<float>(rows));
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (float& value : values) value = random.uniform(-bound, bound);
  return b.tensor<float>({rows, columns}, values);
}

enum class Rows { kOne, kOpen };

Value rows_input(GraphBuilder& b, Rows rows) {
  const int64_t size = rows == Rows::kOne ? 1 : b.symbol("N");
  return b.input("x", tensor_type(ElementType::kFloat, {size, kInputSize}));
}

// What a run costs besides its kernels.
Result<Graph> negate(const OpTable& ops, Rows rows) {
  GraphBuilder b(ops);
  b.output("y", b.op("Neg", {rows_input(b, rows)}));
  return b.finish();
}

Result<Graph> perceptron(const OpTable& ops, Rows rows) {
  Random random(kSeed);
  GraphBuilder b(ops);
  Value x = rows_input(b, rows);
  const int64_t sizes[] = {kInputSize, 256, 256, 10};
  for (size_t i = 0; i + 1 < std::size(sizes); ++i) {
    if (i > 0) x = b.op("Relu", {x});
    x = b.op("MatMul", {x, random_weights(b, random, sizes[i], sizes[i + 1])});
  }
  b.output("y", b.op("Softmax", {x}));
  return b.finish();
}

// h = tanh(h w + x) until it moves less than the tolerance, some tens of times.
Result<Graph> fixed_point(const OpTable& ops, Rows rows) {
  Random random(kSeed);
  GraphBuilder b(ops);
  const Value x = rows_input(b, rows);
  const Value weights = random_weights(b, random, kInputSize, kInputSize);
  const Value zero = b.op("Sub", {x, x});
  const auto results = dynamic::while_true(
      b, "settle", b.scalar(int64_t{100}), {zero}, 0, [&](Value, ValueSpan carried) {
        const Value next = b.op("Tanh", {b.op("Add", {b.op("MatMul", {carried[0], weights}), x})});
        const Value move = b.op("ReduceMax", {b.op("Abs", {b.op("Sub", {next, carried[0]})})},
                                {{"keepdims", int64_t{0}}});
        return dynamic::Values{b.op("Greater", {move, b.scalar(1e-4f)}), next};
      });
  b.output("y", results[0]);
  return b.finish();
}

struct Case {
  const char* name;
  Result<Graph> (*build)(const OpTable&, Rows);
};
constexpr Case kCases[] = {
    {"negate", negate}, {"perceptron", perceptron}, {"fixed_point", fixed_point}};

constexpr const char* kLine = "{:<13}{:>8}  {:<26}{:>11}{:>11}{:>14}{:>16}{:>8}";

std::string header_text() {
  return fmt::format(kLine, "model", "clients", "driven by", "p50", "p99", "requests/s",
                     "(lowest, best)", "ratio");
}

// `ratio`: of throughput to the rival's; of a median to a thread's wake in the idle rows.
std::string row_text(const std::string& model, const std::string& clients, const Latencies& one,
                     const std::string& ratio) {
  return fmt::format(
      kLine, model, clients, one.name, duration_text(one.quantile(0.5)),
      duration_text(one.quantile(0.99)), fmt::format("{:.0f}", one.median_per_second()),
      fmt::format("({:.0f}, {:.0f})", one.per_second.front(), one.best_per_second()), ratio);
}

class ServeBench {
 public:
  ServeBench(const BenchServeArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), suite_("serve", arguments.common, console, interrupts) {}

  Outcome run() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    for (const Case& one : kCases) {
      if (!suite_.is_wanted(one.name)) continue;
      const Status status = add_case(one);
      if (!status.is_ok()) return Outcome::of_run(status);
    }
    return suite_.finish();
  }

 private:
  struct Model {
    std::string name;
    std::unique_ptr<EddyRun> run;     // the session and its feed
    std::unique_ptr<OrtModel> rival;  // null: there is none
    NamedTensors inputs;
    std::unique_ptr<BatchingSession> batches = {};  // null: not wanted, or refused
  };

  Status add_case(const Case& one) {
    EDDY_ASSIGN_OR_RETURN(Graph graph, one.build(library_.ops(), Rows::kOne));
    EDDY_ASSIGN_OR_RETURN(const auto scratch, ScratchFolder::make());
    const std::string path = scratch->file("model.onnx");
    EDDY_RETURN_IF_ERROR(export_onnx(graph, path));
    EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library_, std::move(graph), {}));
    Random random(kSeed);
    std::vector<float> x(kInputSize);
    for (float& value : x) value = random.uniform(-1.0f, 1.0f);
    const int64_t dims[] = {1, kInputSize};
    const TensorView view = {x.data(), dims, 2, ElementType::kFloat};
    Model model{one.name, nullptr, nullptr, {{"x", Tensor::copy_of(view)}}, nullptr};
    std::vector<HostValue> feed;
    feed.push_back(HostValue::copy_of(view));
    EDDY_ASSIGN_OR_RETURN(model.run, EddyRun::make(std::move(session), std::move(feed)));
    const Interrupts::Attachment attachment(suite_.interrupts(), model.run->session());
    EDDY_RETURN_IF_ERROR(model.run->contender("Eddy").run());
    EDDY_RETURN_IF_ERROR(load_rival(model, path));
    if (arguments_.batches) EDDY_RETURN_IF_ERROR(make_batches(one, model));
    for (const int clients : arguments_.clients) EDDY_RETURN_IF_ERROR(add_rows(model, clients));
    return add_idle_rows(model);
  }

  Status load_rival(Model& model, const std::string& path) {
    if (!suite_.has_rival()) return Status::ok();
    EDDY_ASSIGN_OR_RETURN(model.rival, suite_.load_rival(path, *model.run, 1));
    EDDY_RETURN_IF_ERROR(model.rival->run());
    EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, model.rival->outputs());
    suite_.compare(model.name, "ONNX Runtime", model.run->outputs(), expected);
    return Status::ok();
  }

  Status make_batches(const Case& one, Model& model) {
    EDDY_ASSIGN_OR_RETURN(Graph graph, one.build(library_.ops(), Rows::kOpen));
    auto made = BatchingSession::create(library_, std::move(graph), {}, {.dimension = "N"});
    if (!made.is_ok()) {
      suite_.console().progress(model.name + ": " + made.status().to_string());
      return made.status().code() == StatusCode::kUnsupported ? Status::ok() : made.take_status();
    }
    model.batches = std::move(*made);
    return model.batches->run(model.inputs).status();
  }

  static ServeContender shared_runs(const Model& model) {
    return {"Eddy, batches", [&model]() -> Result<Request> {
              return Request([&model] { return model.batches->run(model.inputs).status(); });
            }};
  }
  static ServeContender runs(const Model& model) {
    return {"Eddy, run", [&model]() -> Result<Request> {
              return Request([&model] { return model.run->session().run(model.inputs).status(); });
            }};
  }
  static ServeContender async_runs(const Model& model) {
    return {"Eddy, run_async, wait", [&model]() -> Result<Request> {
              return Request([&model] {
                return model.run->session()
                    .run_async(model.inputs, [](const Result<NamedTensors>&) {})
                    .wait();
              });
            }};
  }
  static ServeContender promised_runs(const Model& model) {
    return {"Eddy, run_async, promise", [&model]() -> Result<Request> {
              return Request([&model] {
                const auto ended = std::make_shared<std::promise<Status>>();
                auto future = ended->get_future();
                model.run->session().run_async(model.inputs, [ended](Result<NamedTensors> outputs) {
                  ended->set_value(outputs.status());
                });
                return future.get();
              });
            }};
  }
  static ServeContender calls(const Model& model) {
    return {"Eddy, submit, wait", [&model]() -> Result<Request> {
              EDDY_ASSIGN_OR_RETURN(std::shared_ptr<Call> call, model.run->session().prepare());
              for (size_t i = 0; i < model.inputs.size(); ++i) {
                EDDY_RETURN_IF_ERROR(call->bind_input(i, model.inputs[i].second));
              }
              return Request([call] {
                EDDY_RETURN_IF_ERROR(call->submit());
                return call->wait();
              });
            }};
  }
  static ServeContender rival_runs(const Model& model) {
    return {"ONNX Runtime, Run", [&model]() -> Result<Request> {
              std::shared_ptr<OrtModel> mine = model.rival->share();
              return Request([mine] { return mine->run(); });
            }};
  }

  Result<std::vector<Latencies>> measure(const std::vector<ServeContender>& contenders, int clients,
                                         double pause_s) {
    suite_.console().progress(fmt::format("measuring {} client(s)", clients));
    ClientsOptions options;
    options.num_clients = clients;
    options.rounds = arguments_.common.rounds;
    options.window_s = std::max(
        0.01, arguments_.common.budget_s / options.rounds / static_cast<double>(contenders.size()));
    options.pause_s = pause_s;
    return measure_clients(contenders, options,
                           [this] { return suite_.interrupts().is_interrupted(); });
  }

  void add_row(const Model& model, const std::string& clients, const Latencies& one, Json json,
               const std::string& ratio) {
    const std::string text = row_text(model.name, clients, one, ratio);
    suite_.add_row(suite_.is_empty() ? header_text() + "\n" + text : text, std::move(json));
  }

  Status add_rows(const Model& model, int clients) {
    std::vector<ServeContender> contenders = {runs(model), async_runs(model)};
    if (model.batches != nullptr) contenders.push_back(shared_runs(model));
    if (model.rival != nullptr) contenders.push_back(rival_runs(model));
    EDDY_ASSIGN_OR_RETURN(const auto all, measure(contenders, clients, 0));
    for (const Latencies& one : all) {
      Json json = {{"model", model.name}, {"clients", clients}, {"driven_by", one.name}};
      json.update(latencies_json(one));
      std::string text;
      if (model.rival != nullptr) {
        const double ratio = one.median_per_second() / all.back().median_per_second();
        json["throughput_ratio"] = ratio;
        text = fmt::format("{:.2f}", ratio);
      }
      add_row(model, std::to_string(clients), one, std::move(json), text);
    }
    return Status::ok();
  }

  Status add_idle_rows(const Model& model) {
    constexpr double kPauseS = 2e-3;
    std::vector<ServeContender> contenders = {wake_of_a_thread(), runs(model), calls(model),
                                              async_runs(model), promised_runs(model)};
    if (model.rival != nullptr) contenders.push_back(rival_runs(model));
    EDDY_ASSIGN_OR_RETURN(const auto all, measure(contenders, 1, kPauseS));
    for (const Latencies& one : all) {
      const double ratio = one.quantile(0.5) / all.front().quantile(0.5);
      Json json = {{"model", model.name}, {"clients", 1}, {"idle", true}, {"driven_by", one.name}};
      json.update(latencies_json(one));
      json["by_wake"] = ratio;
      add_row(model, "1, idle", one, std::move(json), fmt::format("{:.2f}", ratio));
    }
    return Status::ok();
  }

  const BenchServeArguments& arguments_;
  BenchSuite suite_;
  const Library library_;
};

}  // namespace

Outcome bench_serve(const BenchServeArguments& arguments, Console& console,
                    Interrupts& interrupts) {
  return ServeBench(arguments, console, interrupts).run();
}

}  // namespace eddy
