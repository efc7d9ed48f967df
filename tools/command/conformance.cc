// eddy conformance: ONNX's backend tests. One line each, then the counts.
//
// A folder passes when all its data sets do. What Eddy does not support is no failure: an operator
// is found out before anything runs, the format of a picture in the run. Nor are other random
// numbers than the test drew.
//
// With --split each test is run by all ranks, each on a share of its samples, and rank 0 compares
// what they have made together. What can't be run so is unsupported. Ranks are at the same step of
// the same test: each ends with one status on all of them.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "graph/base/shortened.h"
#include "graph/io/model_summary.h"
#include "runtime/net/gather.h"
#include "runtime/net/world.h"
#include "tools/command/compare.h"
#include "tools/command/inputs.h"
#include "tools/command/model.h"
#include "tools/command/number_check.h"
#include "tools/command/rank_options.h"
#include "tools/command/share_machine.h"
#include "tools/command/split_batch.h"
#include "tools/command/subcommand.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

struct ConformanceArguments {
  std::vector<std::string> folders;
  ModelArguments shared;
  RankArguments ranks;
  std::string split;  // as of eddy run
  Tolerance tolerance;
  double timeout_s = 60;
};

enum class Verdict { kPassed, kFailed, kUnsupported };

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kUnsupported:
      return "unsupported";
  }
  return "?";
}

struct TestResult {
  Verdict verdict = Verdict::kPassed;
  std::string reason;
  bool is_difference = false;  // it ran, and gave other values
};

TestResult failed(std::string reason) { return {Verdict::kFailed, std::move(reason), false}; }

// Before the run: separates what Eddy does not support from what is wrong.
TestResult refused(const Status& status) {
  const Verdict verdict =
      status.code() == StatusCode::kUnsupported ? Verdict::kUnsupported : Verdict::kFailed;
  const std::string place = status.path().empty() ? "" : "at " + shown_path(status) + ": ";
  return {verdict, place + status.message(), false};
}

// After a run that gave nothing: values may be what Eddy does not support, a picture's format.
TestResult ended(const Status& status) {
  return status.code() == StatusCode::kUnsupported ? refused(status) : failed(status.to_string());
}

std::vector<std::string> data_sets_of(const fs::path& folder) {
  std::vector<std::string> data_sets;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with("test_data_set_") &&
        entry.is_directory(error)) {
      data_sets.push_back(entry.path().string());
    }
  }
  std::sort(data_sets.begin(), data_sets.end());
  return data_sets;
}

bool is_test(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "model.onnx", error) && !data_sets_of(folder).empty();
}

// Sorted, each once. Symbolic links to folders are not followed (they may form circles).
Result<std::vector<std::string>> find_tests(const std::vector<std::string>& roots) {
  std::vector<std::string> tests;
  for (const std::string& root : roots) {
    std::error_code error;
    if (!fs::is_directory(root, error)) {
      return not_found(
          fmt::format("{} is no folder; name one that holds ONNX backend tests", root));
    }
    if (is_test(root)) tests.push_back(root);
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto it = fs::recursive_directory_iterator(root, options, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code ignored;
      if (it->is_directory(ignored) && is_test(it->path())) tests.push_back(it->path().string());
    }
    if (error) {
      return invalid_argument(fmt::format("cannot read {}: {}", root, error.message()));
    }
  }
  std::sort(tests.begin(), tests.end());
  tests.erase(std::unique(tests.begin(), tests.end()), tests.end());
  if (tests.empty()) {
    return not_found(
        fmt::format("no test below {}: a test is a folder with model.onnx and "
                    "test_data_set_*",
                    roots[0]));
  }
  return tests;
}

// Why a data set cannot be given to its own model, if so: some of ONNX's are wrong.
std::optional<std::string> contradiction(const ModelValues& model,
                                         const std::vector<HostValue>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueDescription& input = model.inputs[i];
    if (values[i].kind != HostValue::Kind::kTensor || !input.type.is_tensor()) continue;
    const ValueType found = TensorType(values[i].element, values[i].dims);
    if (is_compatible(found, input.type)) continue;
    return fmt::format("the test contradicts itself: input {} is declared {}, its data is {}",
                       input.name, input.text, to_string(found));
  }
  return std::nullopt;
}

// The operator by which a model draws random numbers, if it does: no two runtimes draw the same.
std::optional<std::string> drawing_operator(const std::string& model, const OpTable& ops) {
  constexpr std::string_view kDrawing[] = {"Bernoulli",     "Multinomial",
                                           "RandomNormal",  "RandomNormalLike",
                                           "RandomUniform", "RandomUniformLike"};
  const auto summary = summarize_model(model, ops);
  if (!summary.is_ok()) return std::nullopt;
  for (const OperatorSummary& op : summary->operators) {
    const bool is_drawing = std::ranges::find(kDrawing, op.name) != std::end(kDrawing);
    if (op.domain.empty() && is_drawing) return op.name;
  }
  return std::nullopt;
}

// Why a test of ONNX's own that differs is wrong itself, if it is.
std::optional<std::string> known_mistake(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  if (name == "test_adam_multiple") {
    return "the test contradicts itself: its data were made with an epsilon of 1e-2, its model "
           "leaves epsilon at 1e-6";
  }
  if (name.starts_with("test_qlinearmatmul_") && name.find("_int8_") != std::string::npos) {
    return "the test contradicts the standard: a result of -236 is expected as 20, wrapped, where "
           "QLinearMatMul saturates to -128";
  }
  if (name == "test_nonmaxsuppression_iou_threshold_boundary") {
    return "the test contradicts the standard: boxes that overlap by 1/7 are both expected, though "
           "that is above the threshold of 0.142857";
  }
  return std::nullopt;
}

class Conformance {
 public:
  // `world_or_null`: over whose ranks tests are split.
  Conformance(const ConformanceArguments& arguments, SessionOptions options, Interrupts& interrupts,
              World* world_or_null)
      : arguments_(arguments),
        options_(std::move(options)),
        interrupts_(interrupts),
        world_or_null_(world_or_null) {}

  TestResult run(const std::string& folder) {
    try {
      return run_folder(folder);
    } catch (const std::exception& error) {
      return failed(std::string("unexpected failure: ") + error.what());
    }
  }

  // Of all ranks: whether the user has had enough.
  bool is_interrupted() {
    if (world_or_null_ == nullptr) return interrupts_.is_interrupted();
    return !agree(interrupts_.is_interrupted() ? cancelled("interrupted") : Status::ok()).is_ok();
  }

 private:
  TestResult run_folder(const std::string& folder) {
    const std::string path = (fs::path(folder) / "model.onnx").string();
    std::optional<Model> model;
    if (world_or_null_ == nullptr) {
      auto loaded = load_model(library_, path, options_);
      if (!loaded.is_ok()) return refused(loaded.status());
      model = std::move(*loaded);
    }
    for (const std::string& data_set : data_sets_of(folder)) {
      TestResult result = world_or_null_ == nullptr ? run_data_set(*model->session, data_set)
                                                    : run_split(path, data_set);
      if (result.verdict == Verdict::kPassed) continue;
      if (const auto op = drawing_operator(path, library_.ops()); op && result.is_difference) {
        return {Verdict::kUnsupported,
                fmt::format("draws random numbers by {}, and others than these", *op), false};
      }
      if (const auto mistake = known_mistake(folder); mistake && result.is_difference) {
        return {Verdict::kUnsupported, *mistake, false};
      }
      result.reason = fs::path(data_set).filename().string() + ": " + result.reason;
      return result;
    }
    return {};
  }

  TestResult run_data_set(Session& session, const std::string& folder) {
    auto data_set = read_data_set(folder, session);
    if (!data_set.is_ok()) return refused(data_set.status());
    auto values = make_inputs({}, session, &*data_set);
    if (!values.is_ok()) return refused(values.status());

    if (auto reason = contradiction(session, *values))
      return {Verdict::kUnsupported, *reason, false};
    const Interrupts::Attachment attachment(interrupts_, session);
    auto outputs = session.run(name_inputs(session, *values), run_options());
    if (!outputs.is_ok()) return ended(outputs.status());
    return compare(*data_set, *outputs);
  }

  struct SplitTest {
    SplitModel model;
    DataSet data_set;
    std::vector<HostValue> values;  // of all samples
  };

  Result<SplitTest> prepare_split(const std::string& path, const std::string& folder) {
    SplitTest test;
    EDDY_ASSIGN_OR_RETURN(test.model, split_model(library_, path, options_, arguments_.split));
    const ModelValues whole(test.model.inputs, test.model.outputs);
    EDDY_ASSIGN_OR_RETURN(test.data_set, read_data_set(folder, whole));
    EDDY_ASSIGN_OR_RETURN(test.values, make_inputs({}, whole, &test.data_set));
    if (auto reason = contradiction(whole, test.values)) return unsupported(*reason);
    EDDY_RETURN_IF_ERROR(test.model.take_share(library_, name_inputs(whole, test.values),
                                               world_or_null_->rank(), world_or_null_->num_ranks(),
                                               options_));
    return test;
  }

  // Whatever is thrown on one rank, the others come to the next step, too.
  template <typename Step>
  static std::invoke_result_t<Step> guarded(const Step& step) {
    try {
      return step();
    } catch (const std::exception& error) {
      return internal_error(std::string("unexpected failure: ") + error.what());
    }
  }

  // Rank 0's is the result.
  TestResult run_split(const std::string& path, const std::string& folder) {
    auto test = guarded([&] { return prepare_split(path, folder); });
    const Status own = test.is_ok() ? Status::ok() : test.status();
    const Status ready = agree(own);
    if (!ready.is_ok()) return refused(own.is_ok() ? ready : own);
    SplitModel& model = test->model;
    std::optional<Interrupts::Attachment> attachment;
    if (model.session != nullptr) attachment.emplace(interrupts_, *model.session);
    auto outputs = model.run(*world_or_null_, run_options());
    if (!outputs.is_ok()) return ended(outputs.status());
    auto compared = guarded([&]() -> Result<TestResult> {
      return world_or_null_->rank() == 0 ? compare(test->data_set, *outputs) : TestResult();
    });
    TestResult result = compared.is_ok() ? *compared : failed(compared.status().message());
    const bool has_passed = result.verdict == Verdict::kPassed;
    const Status verdict = agree(has_passed ? Status::ok() : run_failed("its outputs differ"));
    return has_passed && !verdict.is_ok() ? failed(verdict.message()) : result;
  }

  // That of the lowest rank which has failed.
  Status agree(const Status& own) { return gather_at_first(*world_or_null_, own, "").status(); }

  RunOptions run_options() const {
    RunOptions options;
    options.timeout = std::chrono::nanoseconds(static_cast<int64_t>(arguments_.timeout_s * 1e9));
    return options;
  }

  TestResult compare(const DataSet& data_set, const NamedTensors& outputs) const {
    bool is_compared = false;
    for (size_t i = 0; i < data_set.outputs.size(); ++i) {
      if (!data_set.outputs[i]) continue;
      is_compared = true;
      const auto& [name, tensor] = outputs[i];
      if (auto text =
              find_difference(copy_value(tensor), *data_set.outputs[i], arguments_.tolerance)) {
        return {Verdict::kFailed, fmt::format("output {} {}", name, *text), true};
      }
    }
    if (!is_compared && !data_set.outputs.empty()) return failed("no output_*.pb to compare with");
    return {};
  }

  const ConformanceArguments& arguments_;
  const SessionOptions options_;
  Interrupts& interrupts_;
  World* const world_or_null_;
  const Library library_;
};

Outcome run_tests(const ConformanceArguments& arguments, const SessionOptions& options,
                  Console& console, Interrupts& interrupts, World* world_or_null) {
  auto tests = find_tests(arguments.folders);
  if (!tests.is_ok()) return tests.take_status();

  Conformance conformance(arguments, options, interrupts, world_or_null);
  size_t counts[3] = {};
  Json list = Json::array();
  for (size_t i = 0; i < tests->size(); ++i) {
    const std::string& path = (*tests)[i];
    console.progress(fmt::format("{} of {}: {}", i + 1, tests->size(), path));
    TestResult result = conformance.run(path);
    if (world_or_null != nullptr && !world_or_null->health().is_ok()) {
      return Outcome::of_run(world_or_null->health());
    }
    if (conformance.is_interrupted()) {
      return Outcome::of_run(
          cancelled(fmt::format("interrupted at test {} of {}, {}", i + 1, tests->size(), path)));
    }
    ++counts[static_cast<int>(result.verdict)];
    result.reason = one_line(std::move(result.reason));
    Json entry = {{"path", path}, {"status", verdict_name(result.verdict)}};
    if (!result.reason.empty()) entry["reason"] = result.reason;
    list.push_back(std::move(entry));
    if (!console.is_json()) {
      console.say(fmt::format("{} {}{}{}", verdict_name(result.verdict), path,
                              result.reason.empty() ? "" : ": ", result.reason));
    }
  }
  if (console.is_json()) {
    console.print(
        {{"summary", {{"passed", counts[0]}, {"failed", counts[1]}, {"unsupported", counts[2]}}},
         {"tests", std::move(list)}});
  } else {
    console.say(
        fmt::format("{} passed, {} failed, {} unsupported", counts[0], counts[1], counts[2]));
  }
  const bool is_judge = world_or_null == nullptr || world_or_null->rank() == 0;
  if (counts[1] == 0 || !is_judge) return Outcome::success();
  return Outcome::differs(fmt::format("{} of {} tests failed", counts[1], tests->size()));
}

Outcome run_conformance(const ConformanceArguments& arguments, Console& console,
                        Interrupts& interrupts) {
  const bool has_ranks = wants_ranks(arguments.ranks);
  if (has_ranks == arguments.split.empty()) {
    return Outcome::usage(has_ranks
                              ? "--ranks is for tests whose samples ranks share; add --split batch"
                              : "--split is for several ranks; give --ranks N");
  }
  auto made = make_session_options(arguments.shared);
  if (!made.is_ok()) return made.take_status();
  SessionOptions options = std::move(*made);
  if (!has_ranks) return run_tests(arguments, options, console, interrupts, nullptr);
  if (arguments.shared.device != "cpu") {
    return Outcome::usage("--device " + arguments.shared.device +
                          " is for one rank; leave it out with --ranks");
  }
  if (const auto launched = find_launched_rank()) interrupts.be_patient(launched->rank);
  return run_as_ranks(arguments.ranks, console, interrupts,
                      [&](const auto& world, const LaunchedRank& launched, RankReport& report) {
                        share_machine(options, launched);
                        report.reach(JobBoard::Stage::kRunning);
                        const Outcome outcome =
                            run_tests(arguments, options, console, interrupts, world.get());
                        // All ranks have seen the same tests.
                        return say_shared(outcome, *world, console, report);
                      });
}

}  // namespace

Action add_conformance(CLI::App& app) {
  auto arguments = std::make_shared<ConformanceArguments>();
  app.add_option("DIR", arguments->folders, "folders to search for tests")->required();
  add_model_options(app, arguments->shared);
  add_planning_options(app, arguments->shared);
  app.add_option("--split", arguments->split,
                 "the dimension along which ranks share the samples of a test; batch: the first "
                 "one, too")
      ->check(check_filled("a dimension's name"));
  app.add_option("--ranks", arguments->ranks.num_ranks, "how many processes share each test")
      ->check(CLI::Range(1u, 4096u));
  add_launch_options(app, arguments->ranks);
  app.add_option("--timeout", arguments->timeout_s, "seconds for one data set")
      ->check(check_seconds())
      ->capture_default_str();
  app.add_option("--rtol", arguments->tolerance.rtol, "relative tolerance")
      ->check(check_tolerance())
      ->capture_default_str();
  app.add_option("--atol", arguments->tolerance.atol, "absolute tolerance")
      ->check(check_tolerance())
      ->capture_default_str();
  return [arguments](Console& console, Interrupts& interrupts) {
    return run_conformance(*arguments, console, interrupts);
  };
}

}  // namespace eddy
