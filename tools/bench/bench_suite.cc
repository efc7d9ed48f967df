#include "tools/bench/bench_suite.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "runtime/cpu/worker_pool.h"
#include "tools/command/compare.h"

namespace eddy {
namespace {

constexpr Tolerance kTolerance = {.rtol = 1e-3, .atol = 1e-4};

// "AMD EPYC, 2 processors".
std::string machine_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::string model = "unknown processor";
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  return fmt::format("{}, {} processors", model, std::thread::hardware_concurrency());
}

}  // namespace

std::vector<int> thread_counts(const std::vector<int>& asked, const std::vector<int>& otherwise) {
  std::vector<int> counts;
  for (int count : asked.empty() ? otherwise : asked) {
    EDDY_CHECK(count >= 0) << count << " threads";
    if (count == 0) count = usable_processors();
    if (std::ranges::find(counts, count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

BenchSuite::BenchSuite(std::string name, const BenchOptions& options, Console& console,
                       Interrupts& interrupts)
    : name_(std::move(name)), options_(options), console_(console), interrupts_(interrupts) {}

Status BenchSuite::open_rival() {
  auto ort = OrtLibrary::open(options_.ort);
  if (ort.is_ok()) {
    ort_ = std::move(ort).value();
    return Status::ok();
  }
  if (!options_.ort.empty()) return ort.take_status();
  ort_missing_ = ort.status().message();
  console_.remark(ort_missing_);
  return Status::ok();
}

Result<std::unique_ptr<OrtModel>> BenchSuite::load_rival(const std::string& path, EddyRun& run,
                                                         int num_threads) const {
  EDDY_CHECK(ort_ != nullptr && run.feed().size() == run.session().inputs().size())
      << "a feed of " << run.feed().size() << " values for no rival";
  std::vector<std::pair<std::string, const HostValue*>> inputs;
  std::vector<std::string> outputs;
  for (size_t i = 0; i < run.feed().size(); ++i) {
    inputs.emplace_back(run.session().inputs()[i].name, &run.feed()[i]);
  }
  for (const ValueDescription& output : run.session().outputs()) outputs.push_back(output.name);
  return OrtModel::load(*ort_, path, num_threads, inputs, outputs);
}

std::unique_ptr<OrtModel> BenchSuite::rival_or_null(const std::string& path, EddyRun& run,
                                                    int num_threads, std::string& missing) const {
  missing = ort_missing_;
  if (!has_rival()) return nullptr;
  auto rival = load_rival(path, run, num_threads);
  Status status = rival.is_ok() ? (*rival)->run() : rival.take_status();
  if (status.is_ok()) return std::move(*rival);
  missing = status.message();
  return nullptr;
}

Result<std::vector<Samples>> BenchSuite::measure(const std::vector<Contender>& contenders,
                                                 double units, double min_sample_ns,
                                                 double pause_ns) {
  MeasureOptions options;
  options.rounds = options_.rounds;
  options.budget_s = options_.budget_s;
  options.min_sample_ns = min_sample_ns;
  options.pause_ns = pause_ns;
  return measure_runs(contenders, units, options, [this] { return interrupts_.is_interrupted(); });
}

void BenchSuite::compare(const std::string& name, const std::string& other,
                         const std::vector<HostValue>& found,
                         const std::vector<HostValue>& expected) {
  EDDY_CHECK(found.size() >= expected.size())
      << name << ": " << found.size() << " outputs, of " << other << " " << expected.size();
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto text = find_difference(found[i], expected[i], kTolerance);
    if (text) differs(fmt::format("{}: Eddy and {} differ: output {} {}", name, other, i, *text));
  }
}

void BenchSuite::differs(std::string text) {
  console_.remark(text);
  differences_.push_back(std::move(text));
}

void BenchSuite::add_row(const std::string& text, Json json) {
  if (!console_.is_json()) console_.say(text);
  rows_.push_back(std::move(json));
}

Outcome BenchSuite::finish() {
  if (rows_.empty()) {
    return Status(invalid_argument(
        fmt::format("no case has '{}' in its name; leave --filter out", options_.filter)));
  }
  if (console_.is_json()) {
    console_.print({{"benchmark", name_},
                    {"machine", machine_name()},
                    {"onnxruntime", ort_ == nullptr ? Json(nullptr) : Json(ort_->version())},
                    {"rounds", options_.rounds},
                    {"differences", differences_},
                    {"rows", std::move(rows_)}});
  }
  if (!differences_.empty()) return Outcome::differs(differences_[0]);
  return Outcome::success();
}

std::string samples_text(const Samples& samples) {
  return fmt::format("{} ({}, {} to {})", duration_text(samples.best()),
                     duration_text(samples.median()), duration_text(samples.low()),
                     duration_text(samples.high()));
}

}  // namespace eddy
