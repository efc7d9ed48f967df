// eddy bench loops: what an iteration costs, beside ONNX Runtime.
#include <unistd.h>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "graph/base/random.h"
#include "ops/cpu/onednn/sgemm.h"
#include "tools/command/bench_loops.h"
#include "tools/command/compare.h"
#include "tools/command/loop_cases.h"
#include "tools/command/model.h"
#include "tools/command/ort_rival.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

// The first folder at or above `start` that has the models.
std::string models_above(fs::path start) {
  std::error_code error;
  for (fs::path folder = std::move(start);; folder = folder.parent_path()) {
    const fs::path models = folder / "tests/bench/models";
    if (fs::is_directory(models, error)) return models.string();
    if (folder == folder.parent_path()) return "";
  }
}

// Of the checkout that the program or the working folder belongs to.
Result<std::string> find_models(const std::string& given) {
  std::error_code error;
  if (!given.empty()) {
    if (fs::is_directory(given, error)) return given;
    return not_found(fmt::format("--models {}: no such folder", given));
  }
  std::string found = models_above(fs::current_path(error));
  if (found.empty()) found = models_above(fs::read_symlink("/proc/self/exe", error).parent_path());
  if (found.empty()) {
    return not_found("no folder tests/bench/models here or above; name it with --models DIR");
  }
  return found;
}

// Where the demo keeps it.
std::string silero_path(const std::string& given) {
  if (!given.empty()) return given;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder =
      cache != nullptr ? cache : (home != nullptr ? std::string(home) : "/tmp") + "/.cache";
  return folder + "/eddy/models/silero_vad-1.9.0.onnx";
}

// One line of the table.
struct Row {
  std::string name;
  std::string unit;
  double target = 0;               // ns, or times the reference; 0: none
  std::string rival_missing = {};  // why there is none
  Samples eddy = {};
  std::optional<Samples> rival = {};
  std::optional<Samples> reference = {};  // what the target is a multiple of

  double limit_ns() const { return reference ? target * reference->best() : target; }
  bool is_met() const { return target == 0 || eddy.best() <= limit_ns(); }
};

Json row_json(const Row& row) {
  Json json = {{"case", row.name}, {"unit", row.unit}, {"eddy", samples_json(row.eddy)}};
  json["onnxruntime"] = row.rival ? samples_json(*row.rival) : Json{{"missing", row.rival_missing}};
  if (row.reference) {
    json["reference"] = samples_json(*row.reference);
    json["reference"]["name"] = row.reference->name;
    json["ratio"] = row.eddy.best() / row.reference->best();
  }
  if (row.target > 0) {
    json[row.reference ? "target_ratio" : "target_ns"] = row.target;
    json["is_met"] = row.is_met();
  }
  return json;
}

std::string samples_text(const Samples& samples) {
  return fmt::format("{} ({}, {} to {})", duration_text(samples.best()),
                     duration_text(samples.median()), duration_text(samples.low()),
                     duration_text(samples.high()));
}

std::string row_text(const Row& row) {
  std::string text =
      fmt::format("{}, per {}\n  Eddy          {}\n  ONNX Runtime  {}", row.name, row.unit,
                  samples_text(row.eddy), row.rival ? samples_text(*row.rival) : row.rival_missing);
  if (row.reference) {
    text += fmt::format("\n  {}  {}", row.reference->name, samples_text(*row.reference));
  }
  if (row.target > 0) {
    text += fmt::format("\n  at most {}: {}",
                        row.reference ? fmt::format("{:g} times that, is {:.3f}", row.target,
                                                    row.eddy.best() / row.reference->best())
                                      : duration_text(row.target),
                        row.is_met() ? "met" : "MISSED");
  }
  return text;
}

class LoopBench {
 public:
  LoopBench(const BenchLoopsArguments& arguments, Console& console, Interrupts& interrupts)
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
    auto models = find_models(arguments_.models);
    if (!models.is_ok()) return models.take_status();
    Status status = run_rows(*models);
    if (!status.is_ok()) return is_loaded_ ? Outcome::of_run(std::move(status)) : status;
    if (rows_.empty() && !left_out_.empty()) return Status(not_found(left_out_));
    if (rows_.empty()) {
      return Status(invalid_argument(
          fmt::format("no case has '{}' in its name; leave --filter out", arguments_.filter)));
    }
    if (!left_out_.empty()) console_.remark(left_out_);
    if (console_.is_json()) console_.print(report());
    if (!differences_.empty()) return Outcome::differs(differences_[0]);
    return Outcome::success();
  }

 private:
  bool is_wanted(const std::string& name) const {
    return name.find(arguments_.filter) != std::string::npos;
  }

  Status run_rows(const std::string& models) {
    for (const LoopCase& loop_case : loop_cases()) {
      if (!is_wanted(loop_case.name)) continue;
      const std::string path = (fs::path(models) / loop_case.model).string() + ".onnx";
      EDDY_RETURN_IF_ERROR(model_row(loop_case, path));
    }
    if (is_wanted("e_8loops_256, two threads")) {
      EDDY_RETURN_IF_ERROR(overlap_row((fs::path(models) / "e_8loops_256.onnx").string()));
    }
    EDDY_RETURN_IF_ERROR(silero_row());
    EDDY_RETURN_IF_ERROR(step_row("own operator in a loop", Loops::kAuto, 20));
    return step_row("own operator in a host-driven loop", Loops::kHost, 60);
  }

  SessionOptions one_thread() const {
    SessionOptions options;
    options.num_threads = 1;
    return options;
  }

  Result<std::unique_ptr<EddyRun>> load(const std::string& path, const LoopCase& loop_case,
                                        const SessionOptions& options) {
    is_loaded_ = false;
    EDDY_ASSIGN_OR_RETURN(Model model, load_model(library_, path, options));
    is_loaded_ = true;
    EDDY_ASSIGN_OR_RETURN(auto feed, loop_feed(model.session->inputs(), loop_case));
    return EddyRun::make(std::move(model.session), std::move(feed));
  }

  Result<std::unique_ptr<OrtModel>> load_rival(const std::string& path, EddyRun& run) {
    std::vector<std::pair<std::string, const HostValue*>> inputs;
    std::vector<std::string> outputs;
    for (size_t i = 0; i < run.feed().size(); ++i) {
      inputs.emplace_back(run.session().inputs()[i].name, &run.feed()[i]);
    }
    for (const ValueDescription& output : run.session().outputs()) outputs.push_back(output.name);
    return OrtModel::load(*ort_, path, 1, inputs, outputs);
  }

  // Both must have computed the same.
  Status compare(const std::string& name, const EddyRun& run, const OrtModel& rival) {
    EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, rival.outputs());
    const std::vector<HostValue> found = run.outputs();
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto text = find_difference(found[i], expected[i], {.rtol = 1e-3, .atol = 1e-4});
      if (!text) continue;
      differences_.push_back(
          fmt::format("{}: Eddy and ONNX Runtime differ: output {} {}", name, i, *text));
      console_.remark(differences_.back());
    }
    return Status::ok();
  }

  // Measures contender 0 as Eddy, then the rival if there is one, then the reference if there is
  // one; adds the row.
  Status add_row(Row row, Contender eddy, OrtModel* rival_or_null,
                 std::optional<Contender> reference, double units) {
    std::vector<Contender> contenders = {std::move(eddy)};
    if (rival_or_null != nullptr) {
      contenders.push_back({"ONNX Runtime", [rival_or_null] { return rival_or_null->run(); }});
    }
    if (reference) contenders.push_back(std::move(*reference));
    console_.progress("measuring " + row.name);
    MeasureOptions options;
    options.rounds = arguments_.rounds;
    options.budget_s = arguments_.budget_s;
    EDDY_ASSIGN_OR_RETURN(auto samples, measure_runs(contenders, units, options, [this] {
                            return interrupts_.is_interrupted();
                          }));
    row.eddy = samples[0];
    if (rival_or_null != nullptr) row.rival = samples[1];
    if (row.rival_missing.empty()) row.rival_missing = ort_missing_;
    if (reference) row.reference = samples.back();
    if (!console_.is_json()) console_.say(row_text(row));
    rows_.push_back(std::move(row));
    return Status::ok();
  }

  Status model_row(const LoopCase& loop_case, const std::string& path) {
    EDDY_ASSIGN_OR_RETURN(auto run, load(path, loop_case, one_thread()));
    const Interrupts::Attachment attachment(interrupts_, run->session());
    std::unique_ptr<OrtModel> rival;
    if (ort_ != nullptr) {
      EDDY_ASSIGN_OR_RETURN(rival, load_rival(path, *run));
    }
    Row row{loop_case.name, loop_case.unit, loop_case.target_ns};
    std::optional<Contender> reference;
    if (std::string_view(loop_case.name) == "d_matmul256") {
      reference = bare_product();
      row.target = 1.05;
    }
    EDDY_RETURN_IF_ERROR(add_row(std::move(row), run->contender("Eddy"), rival.get(),
                                 std::move(reference), loop_case.units));
    return rival == nullptr ? Status::ok() : compare(loop_case.name, *run, *rival);
  }

  // The loop's fifty products alone, by the same library.
  Contender bare_product() {
    constexpr int64_t kSize = 256;
    Random random(2);
    for (std::vector<float>& matrix : matrices_) {
      matrix.resize(kSize * kSize);
      for (float& x : matrix) x = random.uniform(-0.5f, 0.5f);
    }
    onednn::SgemmArgs args;
    args.m = args.n = args.k = args.a_row = args.b_row = args.c_row = kSize;
    args.a = matrices_[0].data();
    args.b = matrices_[1].data();
    args.c = matrices_[2].data();
    return {"bare product", [args] {
              for (int i = 0; i < 50; ++i) onednn::sgemm(args);
              return Status::ok();
            }};
  }

  // Eight independent loops: two threads beside one.
  Status overlap_row(const std::string& path) {
    const LoopCase loop_case = {"", "e_8loops_256", 50, 0, 1, "run", 0};
    SessionOptions two;
    two.num_threads = 2;
    SessionOptions serial = two;  // the same workers: only the plan differs
    serial.assignment = Assignment::kSerial;
    EDDY_ASSIGN_OR_RETURN(auto run, load(path, loop_case, two));
    EDDY_ASSIGN_OR_RETURN(auto reference, load(path, loop_case, serial));
    const Interrupts::Attachment attachment(interrupts_, run->session());
    Row row{"e_8loops_256, two threads", "run", 0.55, "does not overlap loops; see e_8loops_256"};
    return add_row(std::move(row), run->contender("Eddy"), nullptr,
                   reference->contender("one after another"), 1);
  }

  Status silero_row() {
    const LoopCase loop_case = {"Silero VAD", "silero_vad", 0, 0, 1, "chunk", 57'000};
    if (!is_wanted(loop_case.name)) return Status::ok();
    const std::string path = silero_path(arguments_.silero);
    if (arguments_.silero.empty() && access(path.c_str(), R_OK) != 0) {
      left_out_ = "Silero VAD is left out: " + path +
                  " is missing; run tools/demo once, or name the model with --silero";
      return Status::ok();
    }
    return model_row(loop_case, path);
  }

  Status step_row(const std::string& name, Loops loops, double target_ns) {
    if (!is_wanted(name)) return Status::ok();
    constexpr int64_t kTrips = 100'000;
    const std::unique_ptr<Library> library = library_with_step();
    EDDY_ASSIGN_OR_RETURN(Graph graph, step_loop(*library));
    SessionOptions options = one_thread();
    options.loops = loops;
    EDDY_ASSIGN_OR_RETURN(auto session, Session::create(*library, std::move(graph), options));
    std::vector<HostValue> feed;
    const int64_t trips = kTrips;
    const float zero = 0;
    feed.push_back(HostValue::copy_of(Tensor::scalar(trips).view()));
    feed.push_back(HostValue::copy_of(Tensor::scalar(zero).view()));
    EDDY_ASSIGN_OR_RETURN(auto run, EddyRun::make(std::move(session), std::move(feed)));
    const Interrupts::Attachment attachment(interrupts_, run->session());
    Row row{name, "iteration", target_ns, "cannot run it"};
    EDDY_RETURN_IF_ERROR(
        add_row(std::move(row), run->contender("Eddy"), nullptr, std::nullopt, kTrips));
    const float counted = run->outputs()[0].view().as<float>()[0];
    if (counted != static_cast<float>(kTrips)) {
      differences_.push_back(fmt::format("{}: counted {} instead of {}", name, counted, kTrips));
    }
    return Status::ok();
  }

  Json report() const {
    Json rows = Json::array();
    for (const Row& row : rows_) rows.push_back(row_json(row));
    return {{"benchmark", "loops"},
            {"machine", machine_name()},
            {"onnxruntime", ort_ == nullptr ? Json(nullptr) : Json(ort_->version())},
            {"rounds", arguments_.rounds},
            {"differences", differences_},
            {"rows", std::move(rows)}};
  }

  const BenchLoopsArguments& arguments_;
  Console& console_;
  Interrupts& interrupts_;
  const Library library_;
  std::unique_ptr<OrtLibrary> ort_;
  std::string ort_missing_;
  std::string left_out_;   // why there is no row of Silero VAD, when it was asked for
  bool is_loaded_ = true;  // false: the last model could not be read
  std::vector<float> matrices_[3];
  std::vector<Row> rows_;
  std::vector<std::string> differences_;
};

}  // namespace

Outcome bench_loops(const BenchLoopsArguments& arguments, Console& console,
                    Interrupts& interrupts) {
  return LoopBench(arguments, console, interrupts).run();
}

}  // namespace eddy
