#include "tools/bench/bench_operators.h"

#include <fmt/format.h>

#include "graph/io/export.h"
#include "tools/bench/operator_cases.h"
#include "tools/bench/scratch_folder.h"

namespace eddy {
namespace {

constexpr const char* kLine = "{:<18}{:>7}  {:<38}{:<38}{:>6}  {}";

class OperatorsBench {
 public:
  OperatorsBench(const BenchOperatorsArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments), suite_("operators", arguments.common, console, interrupts) {}

  Outcome run() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    for (const OperatorCase& each : operator_cases()) {
      if (!suite_.is_wanted(each.op)) continue;
      for (const int threads : thread_counts(arguments_.common.threads)) {
        const Status status = add_row(each, threads);
        if (!status.is_ok()) return Outcome::of_run(status);
      }
    }
    return suite_.finish();
  }

 private:
  Status add_row(const OperatorCase& each, int threads) {
    suite_.console().progress(fmt::format("measuring {}, {}", each.op, each.size));
    EDDY_ASSIGN_OR_RETURN(OperatorCase::Made made, each.make(library_.ops(), arguments_.seed));
    EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
    const std::string path = folder->file(each.op + ".onnx");
    EDDY_RETURN_IF_ERROR(export_onnx(made.graph, path));
    SessionOptions options;
    options.num_threads = threads;
    EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library_, std::move(made.graph), options));
    EDDY_ASSIGN_OR_RETURN(auto run, EddyRun::make(std::move(session), std::move(made.feed)));
    const Interrupts::Attachment attachment(suite_.interrupts(), run->session());
    std::string missing;
    const std::unique_ptr<OrtModel> rival = suite_.rival_or_null(path, *run, threads, missing);
    std::vector<Contender> contenders = {run->contender("Eddy")};
    if (rival != nullptr) {
      contenders.push_back({"ONNX Runtime", [&rival] { return rival->run(); }});
    }
    EDDY_ASSIGN_OR_RETURN(const auto samples, threads == 1
                                                  ? suite_.measure(contenders, 1)
                                                  : suite_.measure_with_threads(contenders));
    if (rival != nullptr) {
      EDDY_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, rival->outputs());
      suite_.compare(fmt::format("{}, {}", each.op, each.size), "ONNX Runtime", run->outputs(),
                     expected);
    }
    add_row(each, threads, samples, missing);
    return Status::ok();
  }

  void add_row(const OperatorCase& each, int threads, const std::vector<Samples>& samples,
               const std::string& missing) {
    Json json = {{"op", each.op},
                 {"size", each.size},
                 {"threads", threads},
                 {"seed", arguments_.seed},
                 {"eddy", samples_json(samples[0])}};
    std::string rival = "-", ratio, size = each.size;
    if (samples.size() > 1) {
      // Of the best times: other load on the machine disturbs them least.
      const double times = samples[0].best() / samples[1].best();
      rival = samples_text(samples[1]);
      ratio = fmt::format("{:.2f}", times);
      json["onnxruntime"] = samples_json(samples[1]);
      json["ratio"] = times;
    } else {
      json["onnxruntime"] = {{"missing", missing}};
      if (suite_.has_rival()) size += "; " + missing;
    }
    std::string text =
        fmt::format(kLine, each.op, threads, samples_text(samples[0]), rival, ratio, size);
    if (suite_.is_empty()) {
      text = fmt::format("inputs from seed {}\n", arguments_.seed) +
             fmt::format(kLine, "operator", "threads", "Eddy: best (median, 10 to 90 %)",
                         "ONNX Runtime", "ratio", "size") +
             "\n" + text;
    }
    suite_.add_row(text, std::move(json));
  }

  const BenchOperatorsArguments& arguments_;
  BenchSuite suite_;
  const Library library_;
};

}  // namespace

Outcome bench_operators(const BenchOperatorsArguments& arguments, Console& console,
                        Interrupts& interrupts) {
  return OperatorsBench(arguments, console, interrupts).run();
}

}  // namespace eddy
