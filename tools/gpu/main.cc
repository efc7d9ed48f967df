// gpu_report: what this machine's GPU does with Eddy: prints a table and writes JSON.
//
//   gpu_report --part NAME [--json FILE] [--device N]      gpu_report --help: the parts, the codes
#include <cstdio>

#include "ops/cuda/compiled/disk_choices.h"
#include "ops/cuda/images/image.h"
#include "runtime/cuda/cuda_report.h"
#include "runtime/cuda/make_cuda_device.h"
#include "tools/gpu/arguments.h"
#include "tools/gpu/drift_part.h"
#include "tools/gpu/driver_part.h"
#include "tools/gpu/probe_image.h"
#include "tools/gpu/report_file.h"
#include "tools/gpu/report_part.h"
#include "tools/gpu/rival_image.h"
#include "tools/gpu/speech_part.h"
#include "tools/gpu/table_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kSeed = 20;
constexpr int kNumIterations = 10'000;
constexpr int kNumRuns = 9;
enum ExitCode {
  kFine = 0,
  kDiffers = 1,
  kUsage = 2,
  kNoFile = 3,
  kNoGpu = 4,
  kNoTime = 5,
  kNotAll = 6
};

void print_row(const Json& row) {
  std::string line;
  for (const auto& [key, value] : row.items()) {
    line += (line.empty() ? "" : "  ") + key + " " +
            (value.is_string() ? value.get<std::string>() : value.dump());
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Prints the summary after the rows.
void print_end(const Json& report) {
  for (const char* const also : {"left_out", "not_run"}) {
    if (!report.contains(also) || report[also].empty()) continue;
    std::printf("%s: %s\n", also, report[also].dump().c_str());
  }
  if (report.contains("kernels")) {
    std::printf("%s of %s kernels have run\n", report["kernels_run"].dump().c_str(),
                report["kernels"].dump().c_str());
  }
  std::printf("%zu rows, %d failed, %d skipped, %d short\n", report["rows"].size(),
              report["failed"].get<int>(), report.value("skipped", 0), report.value("short", 0));
}

Json run_part(const ReportArguments& arguments, const GpuUnderReport& gpu) {
  SessionsUnderReport sessions;
  sessions.pace = gpu.pace;
  sessions.make_device = [ordinal = arguments.ordinal] {
    return make_cuda_device({.device = {.ordinal = ordinal}});
  };
  sessions.make_tf32_device = [ordinal = arguments.ordinal] {
    return make_cuda_device({.device = {.ordinal = ordinal}, .allows_tf32 = true});
  };
  sessions.make_measured_device = [ordinal = arguments.ordinal] {
    return make_cuda_device(
        {.device = {.ordinal = ordinal}, .allows_tf32 = true, .measures_convolutions = true});
  };
  sessions.make_channels_first_device = [ordinal = arguments.ordinal] {
    return make_cuda_device(
        {.device = {.ordinal = ordinal}, .allows_tf32 = true, .channels_last = false});
  };
  if (arguments.part == "conformance") return report_conformance(gpu, kSeed);
  if (arguments.part == "libraries") return report_libraries(gpu, false, kNumRuns);
  if (arguments.part == "loops") return report_loops(gpu, kNumIterations);
  if (arguments.part == "control") return report_control(sessions);
  if (arguments.part == "hand") return report_hand_written(gpu, rival_image(), false, kNumRuns);
  if (arguments.part == "bits") return report_bits(sessions);
  if (arguments.part == "waiting") return report_waiting(sessions);
  if (arguments.part == "drift") return report_drift(sessions, arguments.kind);
  if (arguments.part == "lost") {
    return report_lost(sessions, rival_image(), arguments.kind != "host");
  }
  if (arguments.part == "models") return report_models(sessions);
  if (arguments.part == "networks") return report_networks(sessions, arguments.networks);
  if (arguments.part == "speech") return report_speech(sessions, arguments.speech);
  return report_probe(sessions, arguments.loops, arguments.kernels);
}

// The libraries of this machine; null where there is none.
struct Libraries {
  std::unique_ptr<LtProducts> products;
  std::unique_ptr<DnnLibrary> dnn;
  std::unique_ptr<LongLines> long_lines;
  CudaLibraries all() const {
    return {.products = products.get(), .dnn = dnn.get(), .long_lines = long_lines.get()};
  }
};

Libraries open_libraries(CudaLauncher& launcher, bool allows_tf32,
                         KeptChoices* choices_or_null = nullptr) {
  Libraries found;
  if (auto api = load_cublas_lt(); api.is_ok()) {
    auto made =
        LtProducts::create(*api, launcher, {.allows_tf32 = allows_tf32, .most_of_few_rows = 0});
    if (made.is_ok()) found.products = std::move(*made);
  }
  if (auto api = load_cudnn(); api.is_ok()) {
    auto made = DnnLibrary::create(*api, launcher,
                                   {.allows_tf32 = allows_tf32,
                                    .least_pool_elements = 0,
                                    .least_norm_elements = 0,
                                    .choices_or_null = choices_or_null});
    if (made.is_ok()) found.dnn = std::move(*made);
  }
  if (auto api = load_cub(); api.is_ok()) {
    const LongLinesOptions every_size = {.min_length = 1, .more_a_line = 0, .min_top_k_work = 0};
    found.long_lines = std::make_unique<LongLines>(*api, launcher, every_size);
  }
  return found;
}

// What the program has, and what it has found; "kernels yes" and no GPU is what a bundle is made
// of.
Json report_facts(const CudaReport& found) {
  Json report = {{"part", "facts"}, {"rows", Json::array()}, {"failed", 0}};
  const std::string yes = found.has_kernels ? "yes: " : "no: ";
  report["rows"].push_back({{"kernels", yes + cuda_kernels_text(found)}});
  for (const CudaDeviceFacts& device : found.devices) {
    report["rows"].push_back({{"gpu", device.name}});
    for (const std::string& line : cuda_abilities(found, device)) {
      report["rows"].push_back({{"it has", line}});
    }
  }
  return report;
}

// Runs on the GPU; `on_row` receives each row, with the facts that belong to it.
Result<Json> run(const ReportArguments& arguments,
                 const std::function<void(const Json& report)>& on_row) {
  EDDY_ASSIGN_OR_RETURN(std::shared_ptr<const CudaApi> api, load_cuda_api());
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDevice> device,
                        CudaDevice::create(api, {.ordinal = arguments.ordinal}));
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaModule> module,
                        CudaModule::load(device->context(), cuda_images()));
  const CudaDeviceFacts& facts = device->context().facts();
  const auto made = make_cuda_device({.device = {.ordinal = arguments.ordinal}});
  const Json gpu = {
      {"model", facts.name},
      {"compute_capability", facts.compute_capability},
      {"driver", cuda_version_text(facts.driver_version)},
      {"early_launches", made.is_ok() ? early_launches_text(*made) : made.status().message()},
      {"libraries", report_cuda().libraries}};
  std::printf("%s\n", gpu["early_launches"].get<std::string>().c_str());
  for (const auto& line : gpu["libraries"]) {
    std::printf("library: %s\n", line.get<std::string>().c_str());
  }
  if (arguments.part == "facts") return Json{{"gpu", gpu}};
  const Libraries libraries = open_libraries(*module, false);
  const Libraries tf32_libraries = open_libraries(*module, true);
  DiskChoices choices(CodeCache::default_folder(), facts.name);
  const Libraries measured_libraries = open_libraries(*module, true, &choices);
  ReportPace pace;
  pace.on_row = [&](const Json& so_far) {
    print_row(so_far["rows"].back());
    Json with_gpu = so_far;
    with_gpu["gpu"] = gpu;
    on_row(with_gpu);
  };
  Json report = run_part(arguments, {*device, *module, [] {}, libraries.all(), tf32_libraries.all(),
                                     measured_libraries.all(), pace});
  report["gpu"] = gpu;
  return report;
}

// One question to the driver, in a process that has not opened it yet.
Json ask_here(const ReportArguments& arguments, const DriverQuestion& question) {
  const auto answer = [&]() -> Result<Json> {
    EDDY_ASSIGN_OR_RETURN(std::shared_ptr<const CudaApi> api, load_cuda_api());
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDevice> device,
                          CudaDevice::create(api, {.ordinal = arguments.ordinal}));
    EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaModule> module,
                          CudaModule::load(device->context(), cuda_images()));
    return ask_driver(question, {*device, *module}, load_driver_extras(), probe_image());
  };
  Result<Json> row = answer();
  return row.is_ok() ? *row : Json{{"no_gpu", row.status().message()}};
}

int exit_code(const Json& report) {
  if (report.contains("error")) return report["part"] == "table" ? kNotAll : kNoGpu;
  if (report["failed"].get<int>() != 0) return kDiffers;
  if (report.contains("out_of_time")) return kNoTime;
  const bool is_all = report.value("short", 0) == 0 && report.value("missing", 0) == 0;
  return is_all ? kFine : kNotAll;
}

// Its end: printed, and kept, whatever becomes of either.
int end(const Json& report, const ReportFile& file) {
  if (report["part"] == "table") {
    std::printf("%s", table_text(report).c_str());
  } else {
    print_end(report);
  }
  for (const char* const why : {"error", "out_of_time"}) {
    if (!report.contains(why)) continue;
    std::fprintf(stderr, "gpu_report: %s%s\n", why[0] == 'o' ? "out of time " : "",
                 report[why].get<std::string>().c_str());
  }
  const Status written = file.write(report, true);
  if (written.is_ok()) return exit_code(report);
  std::fprintf(stderr, "gpu_report: %s\n", written.message().c_str());
  return kNoFile;
}

int main_of(int argc, char** argv) {
  ReportArguments arguments;
  const std::string problem = parse_report_arguments(argc, argv, arguments);
  if (!problem.empty()) {
    std::fprintf(stderr, "gpu_report: %s; gpu_report --help lists parts and options\n",
                 problem.c_str());
    return kUsage;
  }
  if (arguments.wants_help) {
    std::printf("%s", report_help().c_str());
    return kFine;
  }
  const ReportFile file(arguments.json_file);
  if (arguments.part == "table") return end(report_table(arguments.results), file);
  if (arguments.part == "driver") {
    ReportPace pace;
    pace.on_row = [&](const Json& so_far) {
      print_row(so_far["rows"].back());
      (void)file.write(so_far, false);
    };
    return end(
        report_driver(pace, arguments.kind,
                      [&](const DriverQuestion& asked) { return ask_here(arguments, asked); }),
        file);
  }
  Json facts = {{"part", arguments.part}, {"rows", Json::array()}, {"failed", 0}};
  if (arguments.part == "facts") {
    facts = report_facts(report_cuda());
    for (const Json& row : facts["rows"]) print_row(row);
  }
  Result<Json> result =
      run(arguments, [&](const Json& so_far) { (void)file.write(so_far, false); });
  if (!result.is_ok()) {
    facts["gpu"] = nullptr;
    facts["error"] = "no GPU to report on: " + result.status().message();
    return end(facts, file);
  }
  facts.update(*result);
  return end(facts, file);
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::main_of(argc, argv); }
