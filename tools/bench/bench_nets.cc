#include "tools/bench/bench_nets.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "examples/nets/net.h"
#include "graph/base/check.h"
#include "graph/base/random.h"
#include "graph/io/export.h"
#include "graph/io/import.h"
#include "ops/reference/parts/number.h"
#include "runtime/cpu/worker_pool.h"
#include "tools/bench/peak_memory.h"
#include "tools/bench/scratch_folder.h"
#include "tools/bench/seeded_weights.h"
#include "tools/command/inputs.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

// The *.onnx files of a folder, sorted.
Result<std::vector<fs::path>> find_nets(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return not_found(
        fmt::format("--models {}: no such folder; name one that holds *.onnx files", folder));
  }
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code of_entry;
    if (it->path().extension() == ".onnx" && it->is_regular_file(of_entry)) {
      paths.push_back(it->path());
    }
  }
  if (error) {
    return invalid_argument(fmt::format(
        "--models {}: the folder cannot be read ({}); change its permissions or name another",
        folder, error.message()));
  }
  if (paths.empty()) {
    return not_found(
        fmt::format("--models {}: no *.onnx file in it; name a folder that holds some", folder));
  }
  std::ranges::sort(paths);
  return paths;
}

// A file to measure, and what it is fed; without inputs, random values.
struct NetFile {
  std::string name, path;
  std::vector<std::pair<std::string, HostValue>> inputs = {};
};

// One line of the table.
struct Row {
  std::string model;
  int threads = 1;
  uint64_t seed = 0;
  std::optional<Samples> eddy = {};
  std::optional<Samples> rival = {};
  std::string eddy_missing = {}, rival_missing = {};  // why there are none
  Peaks peaks = {};

  // Of two sets of samples.
  double ratio() const { return eddy->best() / rival->best(); }
  double median_ratio() const { return eddy->median() / rival->median(); }
};

Json samples_or_reason(const std::optional<Samples>& samples, const std::string& reason) {
  return samples ? samples_json(*samples) : Json{{"missing", reason}};
}

Json row_json(const Row& row) {
  Json json = {{"model", row.model},
               {"threads", row.threads},
               {"seed", row.seed},
               {"eddy", samples_or_reason(row.eddy, row.eddy_missing)},
               {"onnxruntime", samples_or_reason(row.rival, row.rival_missing)}};
  add_peaks(row.peaks, json);
  if (row.eddy && row.rival) {
    json["ratio"] = row.ratio();
    json["median_ratio"] = row.median_ratio();
  }
  return json;
}

constexpr const char* kLine = "{:<22}{:>7}  {:<38}{:<38}{:>6}{:>8}{:>16}";

std::string header_text(uint64_t seed) {
  return fmt::format(
             "inputs and built weights: random, of seed {}; ratios: Eddy's time by ONNX "
             "Runtime's\n",
             seed) +
         fmt::format(kLine, "model", "threads", "Eddy: best (median, 10 to 90 %)", "ONNX Runtime",
                     "best", "median", "peak MB");
}

std::string row_text(const Row& row) {
  if (!row.eddy) return fmt::format("{:<22}{:>7}  {}", row.model, row.threads, row.eddy_missing);
  const std::string eddy = samples_text(*row.eddy);
  // Those are of one thread.
  const std::string peaks = row.threads == 1 ? peaks_text(row.peaks) : "";
  if (!row.rival) return fmt::format(kLine, row.model, row.threads, eddy, "-", "-", "-", peaks);
  return fmt::format(kLine, row.model, row.threads, eddy, samples_text(*row.rival),
                     fmt::format("{:.2f}", row.ratio()), fmt::format("{:.2f}", row.median_ratio()),
                     peaks);
}

class NetsBench {
 public:
  NetsBench(const BenchNetsArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), suite_("nets", arguments.common, console, interrupts) {}

  Outcome run() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    std::vector<fs::path> paths;
    if (!arguments_.models.empty()) {
      EDDY_ASSIGN_OR_RETURN(paths, find_nets(arguments_.models));
    }
    for (const fs::path& path : paths) {
      if (!suite_.is_wanted(path.stem().string())) continue;
      Status status = add_stored({path.stem().string(), path.string()});
      if (!status.is_ok()) return Outcome::of_run(std::move(status));
    }
    for (const nets::Recipe& recipe : nets::all_nets()) {
      if (!suite_.is_wanted(recipe.name)) continue;
      Status status = add_built(recipe);
      if (!status.is_ok()) return Outcome::of_run(std::move(status));
    }
    Outcome outcome = suite_.finish();
    return has_measured_ || !first_failure_ ? outcome : *first_failure_;
  }

 private:
  // With weights of the seed where its own are all equal; what is wrong with a file stands in its
  // rows.
  Status add_stored(const NetFile& stored) {
    auto graph = import_onnx(stored.path, library_.ops());
    if (!graph.is_ok()) return add_rows(stored);
    auto seeded = seeded_weights(library_.ops(), std::move(*graph), arguments_.seed);
    if (!seeded.is_ok() || !*seeded) return add_rows(stored);
    const Interrupts::Patience patience(suite_.interrupts());
    EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
    const NetFile file{stored.name, folder->file("seeded.onnx")};
    const Status written = export_onnx(**seeded, file.path);
    seeded->reset();
    EDDY_RETURN_IF_ERROR(check_interrupts());
    return add_rows(file, written);
  }

  // The file goes when it is measured, so an interrupt is waited for until then.
  Status add_built(const nets::Recipe& recipe) {
    const Interrupts::Patience patience(suite_.interrupts());
    EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
    NetFile file{recipe.name, folder->file(recipe.name + std::string(".onnx"))};
    suite_.console().progress(fmt::format("building {}", recipe.name));
    const Status written = write(recipe, file);
    EDDY_RETURN_IF_ERROR(check_interrupts());
    return add_rows(file, written);
  }

  Status write(const nets::Recipe& recipe, NetFile& file) {
    EDDY_ASSIGN_OR_RETURN(nets::Net net,
                          recipe.build(library_.ops(), nets::Scale::kFull, arguments_.seed));
    EDDY_RETURN_IF_ERROR(check_interrupts());
    file.inputs = std::move(net.inputs);
    return export_onnx(net.graph, file.path);
  }

  Status check_interrupts() const {
    return suite_.interrupts().is_interrupted() ? cancelled("interrupted") : Status::ok();
  }

  // One for each number of threads. `ready`: what has gone wrong before.
  Status add_rows(const NetFile& file, const Status& ready = Status::ok()) {
    for (const int threads : thread_counts(arguments_.common.threads)) {
      EDDY_RETURN_IF_ERROR(add_row(file, threads, ready));
    }
    return Status::ok();
  }

  // Fails only when it is interrupted: whatever else goes wrong stands in the row.
  Status add_row(const NetFile& file, int threads, const Status& ready) {
    Row row{file.name, threads, arguments_.seed};
    row.rival_missing = suite_.rival_missing();
    suite_.console().progress(fmt::format("measuring {}, threads: {}", row.model, threads));
    auto run = ready.is_ok() ? load(file, threads) : ready;
    Status status = run.is_ok() ? measure(row, file.path, **run) : run.take_status();
    if (status.code() == StatusCode::kCancelled) return status;
    if (status.is_ok()) {
      has_measured_ = true;
    } else {
      row.eddy_missing = status.path().empty() ? status.message() : status.to_string();
      if (row.rival_missing.empty()) row.rival_missing = "not measured, as Eddy has no time";
      if (!first_failure_) {
        first_failure_ = run.is_ok() ? Outcome::of_run(std::move(status)) : Outcome(status);
      }
    }
    std::string text = row_text(row);
    // That there is no rival at all has been printed before the first row.
    if (row.eddy && !row.rival && suite_.has_rival()) text += "  " + row.rival_missing;
    suite_.add_row(suite_.is_empty() ? header_text(row.seed) + "\n" + text : text, row_json(row));
    return Status::ok();
  }

  Status measure(Row& row, const std::string& path, EddyRun& run) {
    const Interrupts::Attachment attachment(suite_.interrupts(), run.session());
    std::vector<Contender> contenders = {run.contender("Eddy")};
    EDDY_RETURN_IF_ERROR(contenders[0].run());
    const std::unique_ptr<OrtModel> rival =
        suite_.rival_or_null(path, run, row.threads, row.rival_missing);
    if (rival != nullptr) {
      EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, rival->outputs());
      suite_.compare(fmt::format("{}, threads: {}", row.model, row.threads), "ONNX Runtime",
                     run.outputs(), expected);
      contenders.push_back({"ONNX Runtime", [&rival] { return rival->run(); }});
    }
    EDDY_ASSIGN_OR_RETURN(auto samples, suite_.measure_with_threads(contenders));
    EDDY_CHECK(samples.size() == contenders.size()) << samples.size() << " sets of samples";
    row.eddy = std::move(samples[0]);
    if (rival != nullptr) row.rival = std::move(samples[1]);
    if (row.threads == 1) {
      EDDY_ASSIGN_OR_RETURN(row.peaks,
                            measure_peaks(path, run, rival != nullptr, arguments_.common.ort));
    }
    return Status::ok();
  }

  Result<std::unique_ptr<EddyRun>> load(const NetFile& file, int threads) {
    ModelArguments model_arguments;
    model_arguments.threads = threads;
    EDDY_ASSIGN_OR_RETURN(SessionOptions options, make_session_options(model_arguments));
    options.check = [this] { return check_interrupts(); };
    EDDY_ASSIGN_OR_RETURN(Model model, load_model(library_, file.path, options));
    EDDY_ASSIGN_OR_RETURN(std::vector<HostValue> feed, make_feed(file, *model.session));
    return EddyRun::make(std::move(model.session), std::move(feed));
  }

  Result<std::vector<HostValue>> make_feed(const NetFile& file, const Session& session) {
    Random random(arguments_.seed);
    std::vector<HostValue> feed;
    for (const ValueDescription& input : session.inputs()) {
      const auto own =
          std::ranges::find(file.inputs, input.name, [](const auto& named) { return named.first; });
      if (own != file.inputs.end()) {
        feed.push_back(own->second);
        continue;
      }
      if (!input.type.is_tensor() || !kNumberTypes.contains(input.type.tensor.element)) {
        return unsupported(fmt::format(
            "{}: input {} of type {} gets no random values; leave the model out with --filter",
            file.path, input.name, input.text));
      }
      EDDY_ASSIGN_OR_RETURN(feed.emplace_back(), random_value(input, random));
    }
    return feed;
  }

  const BenchNetsArguments& arguments_;
  BenchSuite suite_;
  const Library library_;
  bool has_measured_ = false;             // any model
  std::optional<Outcome> first_failure_;  // of Eddy's
};

}  // namespace

Outcome bench_nets(const BenchNetsArguments& arguments, Console& console, Interrupts& interrupts) {
  return NetsBench(arguments, console, interrupts).run();
}

}  // namespace eddy
