// eddy bench loops: what an iteration costs, beside ONNX Runtime.
#include <unistd.h>
#include <filesystem>

#include <fmt/format.h>

#include "graph/base/random.h"
#include "ops/cpu/onednn/sgemm.h"
#include "tools/bench/bench_loops.h"
#include "tools/command/cache_folder.h"
#include "tools/command/model.h"

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

// The models of the checkout that the program or the working folder belongs to.
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
  return given.empty() ? cache_folder() + "/models/silero_vad-1.9.0.onnx" : given;
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
      : arguments_(arguments), suite_("loops", arguments.common, console, interrupts) {}

  Outcome run() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    auto models = find_models(arguments_.models);
    if (!models.is_ok()) return models.take_status();
    Status status = run_rows(*models);
    if (!status.is_ok()) return is_loaded_ ? Outcome::of_run(std::move(status)) : status;
    if (suite_.is_empty() && !left_out_.empty()) return Status(not_found(left_out_));
    if (!left_out_.empty()) suite_.console().remark(left_out_);
    return suite_.finish();
  }

 private:
  Status run_rows(const std::string& models) {
    for (const LoopCase& loop_case : loop_cases()) {
      if (!suite_.is_wanted(loop_case.name)) continue;
      const std::string path = (fs::path(models) / loop_case.model).string() + ".onnx";
      EDDY_RETURN_IF_ERROR(model_row(loop_case, path));
    }
    if (suite_.is_wanted("e_8loops_256, two threads")) {
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

  // Measures contender 0 as Eddy, then the rival if there is one, then the reference if there is
  // one; adds the row.
  Status add_row(Row row, Contender eddy, OrtModel* rival_or_null,
                 std::optional<Contender> reference, double units) {
    std::vector<Contender> contenders = {std::move(eddy)};
    if (rival_or_null != nullptr) {
      contenders.push_back({"ONNX Runtime", [rival_or_null] { return rival_or_null->run(); }});
    }
    if (reference) contenders.push_back(std::move(*reference));
    suite_.console().progress("measuring " + row.name);
    EDDY_ASSIGN_OR_RETURN(auto samples, suite_.measure(contenders, units));
    row.eddy = samples[0];
    if (rival_or_null != nullptr) row.rival = samples[1];
    if (row.rival_missing.empty()) row.rival_missing = suite_.rival_missing();
    if (reference) row.reference = samples.back();
    suite_.add_row(row_text(row), row_json(row));
    return Status::ok();
  }

  Status model_row(const LoopCase& loop_case, const std::string& path) {
    EDDY_ASSIGN_OR_RETURN(auto run, load(path, loop_case, one_thread()));
    const Interrupts::Attachment attachment(suite_.interrupts(), run->session());
    std::unique_ptr<OrtModel> rival;
    if (suite_.has_rival()) {
      EDDY_ASSIGN_OR_RETURN(rival, suite_.load_rival(path, *run));
    }
    Row row{loop_case.name, loop_case.unit, loop_case.target_ns};
    std::optional<Contender> reference;
    if (std::string_view(loop_case.name) == "d_matmul256") {
      reference = bare_product();
      row.target = 1.05;
    }
    EDDY_RETURN_IF_ERROR(add_row(std::move(row), run->contender("Eddy"), rival.get(),
                                 std::move(reference), loop_case.units));
    if (rival == nullptr) return Status::ok();
    EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, rival->outputs());
    suite_.compare(loop_case.name, "ONNX Runtime", run->outputs(), expected);
    return Status::ok();
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
    const Interrupts::Attachment attachment(suite_.interrupts(), run->session());
    Row row{"e_8loops_256, two threads", "run", 0.55, "does not overlap loops; see e_8loops_256"};
    return add_row(std::move(row), run->contender("Eddy"), nullptr,
                   reference->contender("one after another"), 1);
  }

  Status silero_row() {
    const LoopCase loop_case = {"Silero VAD", "silero_vad", 0, 0, 1, "chunk", 57'000};
    if (!suite_.is_wanted(loop_case.name)) return Status::ok();
    const std::string path = silero_path(arguments_.silero);
    if (arguments_.silero.empty() && access(path.c_str(), R_OK) != 0) {
      left_out_ = "Silero VAD is left out: " + path +
                  " is missing; run tools/demo once, or name the model with --silero";
      return Status::ok();
    }
    return model_row(loop_case, path);
  }

  Status step_row(const std::string& name, Loops loops, double target_ns) {
    if (!suite_.is_wanted(name)) return Status::ok();
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
    const Interrupts::Attachment attachment(suite_.interrupts(), run->session());
    Row row{name, "iteration", target_ns, "cannot run it"};
    EDDY_RETURN_IF_ERROR(
        add_row(std::move(row), run->contender("Eddy"), nullptr, std::nullopt, kTrips));
    const float counted = run->outputs()[0].view().as<float>()[0];
    if (counted != static_cast<float>(kTrips)) {
      suite_.differs(fmt::format("{}: counted {} instead of {}", name, counted, kTrips));
    }
    return Status::ok();
  }

  const BenchLoopsArguments& arguments_;
  BenchSuite suite_;
  const Library library_;
  std::string left_out_;   // why there is no row of Silero VAD, when it was asked for
  bool is_loaded_ = true;  // false: the last model could not be read
  std::vector<float> matrices_[3];
};

}  // namespace

Outcome bench_loops(const BenchLoopsArguments& arguments, Console& console,
                    Interrupts& interrupts) {
  return LoopBench(arguments, console, interrupts).run();
}

}  // namespace eddy
