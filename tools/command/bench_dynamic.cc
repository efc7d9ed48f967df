#include "tools/command/bench_dynamic.h"

#include <unistd.h>
#include <filesystem>

#include <fmt/format.h>

#include "examples/dynamic_models/model.h"
#include "graph/io/export.h"
#include "tools/command/bench_loops.h"
#include "tools/command/compare.h"
#include "tools/command/loop_cases.h"
#include "tools/command/ort_rival.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

// Where plain loops and libraries add up in another order, thousands of steps on.
constexpr Tolerance kTolerance = {.rtol = 1e-3, .atol = 1e-4};

// A file that goes when the object does.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name) {
    std::error_code error;
    fs::path folder = fs::temp_directory_path(error);
    if (error) folder = ".";
    path_ = (folder / fmt::format("eddy_bench_{}_{}", getpid(), name)).string();
  }
  ~ScratchFile() {
    std::error_code error;
    fs::remove(path_, error);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One line of the table.
struct Row {
  std::string name;
  std::string size;
  int64_t batch = 1;
  int64_t trips = 0;
  Samples eddy = {};
  std::optional<Samples> rival = {};
  std::string rival_missing = {};  // why there is none

  // Of the best times: what else runs on the machine disturbs them least.
  double ratio() const { return eddy.best() / rival->best(); }
};

Json row_json(const Row& row) {
  Json json = {{"model", row.name},
               {"size", row.size},
               {"batch", row.batch},
               {"trips", row.trips},
               {"eddy", samples_json(row.eddy)}};
  json["onnxruntime"] = row.rival ? samples_json(*row.rival) : Json{{"missing", row.rival_missing}};
  if (row.rival) json["ratio"] = row.ratio();
  return json;
}

constexpr const char* kLine = "{:<14}{:>5} {:>6}  {:<38}{:<38}{:>6}  {}";

std::string header_text() {
  return fmt::format(kLine, "model", "batch", "trips", "Eddy: best (median, 10 to 90 %)",
                     "ONNX Runtime", "ratio", "size");
}

std::string samples_text(const Samples& samples) {
  return fmt::format("{} ({}, {} to {})", duration_text(samples.best()),
                     duration_text(samples.median()), duration_text(samples.low()),
                     duration_text(samples.high()));
}

std::string row_text(const Row& row) {
  const std::string eddy = samples_text(row.eddy);
  if (!row.rival) {
    return fmt::format(kLine, row.name, row.batch, row.trips, eddy, "-", "",
                       row.size + "; " + row.rival_missing);
  }
  return fmt::format(kLine, row.name, row.batch, row.trips, eddy, samples_text(*row.rival),
                     fmt::format("{:.2f}", row.ratio()), row.size);
}

class DynamicBench {
 public:
  DynamicBench(const BenchDynamicArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), console_(console), interrupts_(interrupts) {}

  Outcome run() {
    auto ort = OrtLibrary::open(arguments_.ort);
    if (ort.is_ok()) {
      ort_ = std::move(ort).value();
    } else if (!arguments_.ort.empty()) {
      return ort.take_status();
    } else {
      ort_missing_ = ort.status().message();
      console_.remark(ort_missing_);
    }
    for (const dynamic::Recipe& recipe : dynamic::all_models(dynamic::Scale::kFull)) {
      if (recipe.name.find(arguments_.filter) == std::string::npos) continue;
      const Status status = add_row(recipe.make());
      if (!status.is_ok()) return Outcome::of_run(status);
    }
    if (rows_.empty()) {
      return Status(invalid_argument(
          fmt::format("no model has '{}' in its name; leave --filter out", arguments_.filter)));
    }
    if (console_.is_json()) console_.print(report());
    if (!differences_.empty()) return Outcome::differs(differences_[0]);
    return Outcome::success();
  }

 private:
  Status add_row(const dynamic::Model& model) {
    console_.progress(fmt::format("measuring {}, batch {}", model.name, model.batch));
    EDDY_ASSIGN_OR_RETURN(Graph graph, model.build(library_.ops()));
    const ScratchFile file(model.name + ".onnx");
    if (ort_ != nullptr) EDDY_RETURN_IF_ERROR(export_onnx(graph, file.path()));
    SessionOptions options;
    options.num_threads = 1;
    EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library_, std::move(graph), options));
    std::vector<HostValue> feed;
    for (const auto& [name, value] : model.inputs) feed.push_back(value);
    EDDY_ASSIGN_OR_RETURN(auto run, EddyRun::make(std::move(session), std::move(feed)));
    const Interrupts::Attachment attachment(interrupts_, run->session());

    Row row{model.name, model.size, model.batch};
    std::unique_ptr<OrtModel> rival = load_rival(file.path(), *run, row.rival_missing);
    EDDY_RETURN_IF_ERROR(measure(row, *run, rival.get()));
    EDDY_ASSIGN_OR_RETURN(row.trips, count_trips(model, *run));
    EDDY_RETURN_IF_ERROR(check(model, row, *run, rival.get()));
    if (!console_.is_json()) {
      if (rows_.empty()) console_.say(header_text());
      console_.say(row_text(row));
    }
    rows_.push_back(std::move(row));
    return Status::ok();
  }

  // Null, and why, where there is no rival or it refuses the model.
  std::unique_ptr<OrtModel> load_rival(const std::string& path, EddyRun& run,
                                       std::string& missing) {
    missing = ort_missing_;
    if (ort_ == nullptr) return nullptr;
    std::vector<std::pair<std::string, const HostValue*>> inputs;
    std::vector<std::string> outputs;
    for (size_t i = 0; i < run.feed().size(); ++i) {
      inputs.emplace_back(run.session().inputs()[i].name, &run.feed()[i]);
    }
    for (const ValueDescription& output : run.session().outputs()) outputs.push_back(output.name);
    auto rival = OrtModel::load(*ort_, path, 1, inputs, outputs);
    Status status = rival.is_ok() ? (*rival)->run() : rival.take_status();
    if (status.is_ok()) return std::move(*rival);
    missing = one_line(status.message());
    return nullptr;
  }

  Status measure(Row& row, EddyRun& run, OrtModel* rival_or_null) {
    std::vector<Contender> contenders = {run.contender("Eddy")};
    if (rival_or_null != nullptr) {
      contenders.push_back({"ONNX Runtime", [rival_or_null] { return rival_or_null->run(); }});
    }
    MeasureOptions options;
    options.rounds = arguments_.rounds;
    options.budget_s = arguments_.budget_s;
    EDDY_ASSIGN_OR_RETURN(auto samples, measure_runs(contenders, 1, options, [this] {
                            return interrupts_.is_interrupted();
                          }));
    row.eddy = samples[0];
    if (rival_or_null != nullptr) row.rival = samples[1];
    return Status::ok();
  }

  // Prepared runs do not say how often their loops went round, so this runs once more.
  static Result<int64_t> count_trips(const dynamic::Model& model, EddyRun& run) {
    if (model.counted_loop.empty()) return run.outputs().back().view().as<int64_t>()[0];
    NamedTensors inputs;
    for (const auto& [name, value] : model.inputs) {
      inputs.emplace_back(name, Tensor::borrow(value.view()));
    }
    EDDY_RETURN_IF_ERROR(run.session().run(inputs).status());
    for (const LoopReport& loop : run.session().loop_reports()) {
      if (loop.path == model.counted_loop) return loop.iterations;
    }
    return not_found(fmt::format("{}: no loop {}", model.name, model.counted_loop));
  }

  Status check(const dynamic::Model& model, const Row& row, const EddyRun& run,
               const OrtModel* rival_or_null) {
    const std::string name = fmt::format("{}, batch {}", model.name, model.batch);
    const std::vector<HostValue> found = run.outputs();
    if (rival_or_null != nullptr) {
      EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, rival_or_null->outputs());
      compare(name, "ONNX Runtime", found, expected);
    }
    if (model.batch > 1) return Status::ok();
    const dynamic::PlainResult plain = model.run_plainly();
    compare(name, "plain loops", found, plain.outputs);
    if (row.trips != plain.trips) {
      differs(fmt::format("{}: {} trips, {} in plain loops", name, row.trips, plain.trips));
    }
    return Status::ok();
  }

  void compare(const std::string& name, const char* other, const std::vector<HostValue>& found,
               const std::vector<HostValue>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto text = find_difference(found[i], expected[i], kTolerance);
      if (!text) continue;
      differs(fmt::format("{}: Eddy and {} differ: output {} {}", name, other, i, *text));
    }
  }

  void differs(std::string text) {
    console_.remark(text);
    differences_.push_back(std::move(text));
  }

  Json report() const {
    Json rows = Json::array();
    for (const Row& row : rows_) rows.push_back(row_json(row));
    return {{"benchmark", "dynamic"},
            {"machine", machine_name()},
            {"onnxruntime", ort_ == nullptr ? Json(nullptr) : Json(ort_->version())},
            {"rounds", arguments_.rounds},
            {"differences", differences_},
            {"rows", std::move(rows)}};
  }

  const BenchDynamicArguments& arguments_;
  Console& console_;
  Interrupts& interrupts_;
  const Library library_;
  std::unique_ptr<OrtLibrary> ort_;
  std::string ort_missing_;
  std::vector<Row> rows_;
  std::vector<std::string> differences_;
};

}  // namespace

Outcome bench_dynamic(const BenchDynamicArguments& arguments, Console& console,
                      Interrupts& interrupts) {
  return DynamicBench(arguments, console, interrupts).run();
}

}  // namespace eddy
