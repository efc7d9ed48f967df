#include "tools/bench/bench_dynamic.h"

#include <fmt/format.h>

#include "examples/dynamic_models/model.h"
#include "graph/io/export.h"
#include "tools/bench/peak_memory.h"
#include "tools/bench/scratch_folder.h"

namespace eddy {
namespace {

// One line of the table.
struct Row {
  std::string name;
  std::string size;
  int64_t batch = 1;
  int threads = 1;
  int64_t trips = 0;
  Samples eddy = {};
  std::optional<Samples> rival = {};
  std::string rival_missing = {};  // why there is none
  Peaks peaks = {};

  // The ratio of the best times: other load on the machine disturbs them least.
  double ratio() const { return eddy.best() / rival->best(); }
};

Json row_json(const Row& row) {
  Json json = {{"model", row.name},      {"size", row.size},   {"batch", row.batch},
               {"threads", row.threads}, {"trips", row.trips}, {"eddy", samples_json(row.eddy)}};
  json["onnxruntime"] = row.rival ? samples_json(*row.rival) : Json{{"missing", row.rival_missing}};
  if (row.rival) json["ratio"] = row.ratio();
  add_peaks(row.peaks, json);
  return json;
}

constexpr const char* kLine = "{:<14}{:>5} {:>7} {:>6}  {:<38}{:<38}{:>6}  {:>13}  {}";

std::string header_text() {
  return fmt::format(kLine, "model", "batch", "threads", "trips", "Eddy: best (median, 10 to 90 %)",
                     "ONNX Runtime", "ratio", "peak MB", "size");
}

std::string row_text(const Row& row) {
  const std::string eddy = samples_text(row.eddy);
  if (!row.rival) {
    return fmt::format(kLine, row.name, row.batch, row.threads, row.trips, eddy, "-", "",
                       peaks_text(row.peaks), row.size + "; " + row.rival_missing);
  }
  return fmt::format(kLine, row.name, row.batch, row.threads, row.trips, eddy,
                     samples_text(*row.rival), fmt::format("{:.2f}", row.ratio()),
                     peaks_text(row.peaks), row.size);
}

class DynamicBench {
 public:
  DynamicBench(const BenchOptions& options, Console& console, Interrupts& interrupts)
      : ort_(options.ort),
        threads_(thread_counts(options.threads, {1})),
        suite_("dynamic", options, console, interrupts) {}

  Outcome run() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    for (const dynamic::Recipe& recipe : dynamic::all_models(dynamic::Scale::kFull)) {
      if (!suite_.is_wanted(recipe.name)) continue;
      for (const int threads : threads_) {
        const Status status = add_row(recipe.make(), threads);
        if (!status.is_ok()) return Outcome::of_run(status);
      }
    }
    return suite_.finish();
  }

 private:
  Status add_row(const dynamic::Model& model, int threads) {
    suite_.console().progress(fmt::format("measuring {}, batch {}", model.name, model.batch));
    EDDY_ASSIGN_OR_RETURN(Graph graph, model.build(library_.ops()));
    EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
    const std::string path = folder->file(model.name + ".onnx");
    EDDY_RETURN_IF_ERROR(export_onnx(graph, path));
    SessionOptions options;
    options.num_threads = threads;
    EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library_, std::move(graph), options));
    std::vector<HostValue> feed;
    for (const auto& [name, value] : model.inputs) feed.push_back(value);
    EDDY_ASSIGN_OR_RETURN(auto run, EddyRun::make(std::move(session), std::move(feed)));
    const Interrupts::Attachment attachment(suite_.interrupts(), run->session());

    Row row{model.name, model.size, model.batch, threads};
    std::unique_ptr<OrtModel> rival = suite_.rival_or_null(path, *run, threads, row.rival_missing);
    EDDY_RETURN_IF_ERROR(measure(row, *run, rival.get()));
    // Their processes run on one thread.
    if (threads == 1) {
      EDDY_ASSIGN_OR_RETURN(row.peaks, measure_peaks(path, *run, row.rival.has_value(), ort_));
    }
    EDDY_ASSIGN_OR_RETURN(row.trips, count_trips(model, *run));
    EDDY_RETURN_IF_ERROR(check(model, row, *run, rival.get()));
    const std::string text = row_text(row);
    suite_.add_row(suite_.is_empty() ? header_text() + "\n" + text : text, row_json(row));
    return Status::ok();
  }

  Status measure(Row& row, EddyRun& run, OrtModel* rival_or_null) {
    std::vector<Contender> contenders = {run.contender("Eddy")};
    if (rival_or_null != nullptr) {
      contenders.push_back({"ONNX Runtime", [rival_or_null] { return rival_or_null->run(); }});
    }
    EDDY_ASSIGN_OR_RETURN(auto samples, row.threads == 1 ? suite_.measure(contenders, 1)
                                                         : suite_.measure_with_threads(contenders));
    row.eddy = samples[0];
    if (rival_or_null != nullptr) row.rival = samples[1];
    return Status::ok();
  }

  // Prepared runs do not report their loops' trips, so this runs the model once more.
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
      suite_.compare(name, "ONNX Runtime", found, expected);
    }
    if (model.batch > 1) return Status::ok();
    const dynamic::PlainResult plain = model.run_plainly();
    suite_.compare(name, "plain loops", found, plain.outputs);
    if (row.trips != plain.trips) {
      suite_.differs(fmt::format("{}: {} trips, {} in plain loops", name, row.trips, plain.trips));
    }
    return Status::ok();
  }

  const std::string ort_;
  const std::vector<int> threads_;
  BenchSuite suite_;
  const Library library_;
};

}  // namespace

Outcome bench_dynamic(const BenchOptions& options, Console& console, Interrupts& interrupts) {
  return DynamicBench(options, console, interrupts).run();
}

}  // namespace eddy
