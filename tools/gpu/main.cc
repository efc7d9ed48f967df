// gpu_report: what this machine's GPU does with Eddy: prints a table and writes JSON.
//
//   gpu_report --part
//   conformance|libraries|loops|control|hand|models|networks|speech|probe|drift|table
//              [--json FILE] [--device N] [--networks DIR] [--speech DIR]
//              [--loops N --kernels N] [--results DIR]
//
// Exit codes as the eddy command: 0; 1 when a row differs from what was expected; 2 usage; 4 when
// there is no GPU or it is lost; and 5 when the time was over before the last row.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "ops/cuda/image.h"
#include "runtime/cuda/cuda_accelerator.h"
#include "runtime/cuda/cuda_report.h"
#include "tools/gpu/drift_part.h"
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

struct Arguments {
  std::string part;
  std::string json_file;
  std::string networks;  // a folder
  std::string speech;    // likewise
  std::string results;   // likewise, of a table
  int ordinal = 0;
  int loops = 4;    // of a probe
  int kernels = 1;  // of a probe
};

constexpr const char* kParts =
    "conformance|libraries|loops|control|hand|models|networks|speech|probe|drift|table";

int usage(const std::string& problem) {
  std::fprintf(
      stderr,
      "gpu_report: %s; use gpu_report --part %s [--json FILE] [--device N], with "
      "--networks DIR for networks, --speech DIR for speech, --loops N --kernels N for probe "
      "and --results DIR for table\n",
      problem.c_str(), kParts);
  return 2;
}

bool is_known(const std::string& part) {
  const std::string all = "|" + std::string(kParts) + "|";
  return !part.empty() && all.find("|" + part + "|") != std::string::npos;
}

std::string parse_number(const std::string& name, const std::string& text, int& number) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0 || value > 1000) {
    return name + " takes a number from 0 to 1000, not '" + text + "'";
  }
  number = static_cast<int>(value);
  return "";
}

// Empty when the arguments are fine.
std::string parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    std::string* const text = name == "--part"       ? &arguments.part
                              : name == "--json"     ? &arguments.json_file
                              : name == "--networks" ? &arguments.networks
                              : name == "--speech"   ? &arguments.speech
                              : name == "--results"  ? &arguments.results
                                                     : nullptr;
    int* const number = name == "--device"    ? &arguments.ordinal
                        : name == "--loops"   ? &arguments.loops
                        : name == "--kernels" ? &arguments.kernels
                                              : nullptr;
    if (text == nullptr && number == nullptr) return "no option " + name;
    if (i + 1 == argc) return name + " needs a value";
    if (text != nullptr) *text = argv[i + 1];
    if (number == nullptr) continue;
    const std::string problem = parse_number(name, argv[i + 1], *number);
    if (!problem.empty()) return problem;
  }
  if (!is_known(arguments.part)) return "no part '" + arguments.part + "'";
  const bool needs_folder = arguments.part == "networks" && arguments.networks.empty();
  if (needs_folder) return "the part networks needs --networks DIR";
  if (arguments.part == "speech" && arguments.speech.empty()) {
    return "the part speech needs --speech DIR, where its models and recordings are";
  }
  const bool needs_results = arguments.part == "table" && arguments.results.empty();
  return needs_results ? "the part table needs --results DIR, where the other parts' files are"
                       : "";
}

void print_rows(const Json& report) {
  if (report["part"] == "table") {
    std::printf("%s", table_text(report).c_str());
    return;
  }
  for (const Json& row : report["rows"]) {
    std::string line;
    for (const auto& [key, value] : row.items()) {
      line += (line.empty() ? "" : "  ") + key + " " +
              (value.is_string() ? value.get<std::string>() : value.dump());
    }
    std::printf("%s\n", line.c_str());
  }
  if (report.contains("left_out")) {
    std::printf("left out: %s\n", report["left_out"].dump().c_str());
  }
  std::printf("%zu rows, %d failed\n", report["rows"].size(), report["failed"].get<int>());
}

Json run_part(const Arguments& arguments, const GpuUnderReport& gpu) {
  SessionsUnderReport sessions;
  sessions.make_accelerator = [ordinal = arguments.ordinal] {
    return make_cuda_accelerator({.device = {.ordinal = ordinal}});
  };
  sessions.make_tf32_accelerator = [ordinal = arguments.ordinal] {
    return make_cuda_accelerator({.device = {.ordinal = ordinal}, .allows_tf32 = true});
  };
  if (arguments.part == "conformance") return report_conformance(gpu, kSeed);
  if (arguments.part == "libraries") return report_libraries(gpu, false, kNumRuns);
  if (arguments.part == "loops") return report_loops(gpu, kNumIterations);
  if (arguments.part == "control") return report_control(sessions);
  if (arguments.part == "hand") return report_hand_written(gpu, rival_image(), false, kNumRuns);
  if (arguments.part == "drift") return report_drift(sessions);
  if (arguments.part == "models") return report_models(sessions);
  if (arguments.part == "networks") return report_networks(sessions, arguments.networks);
  if (arguments.part == "speech") return report_speech(sessions, arguments.speech);
  return report_probe(sessions, arguments.loops, arguments.kernels);
}

// Those that this machine has; null where there is none.
struct Libraries {
  std::unique_ptr<LtProducts> products;
  std::unique_ptr<DnnLibrary> dnn;
  std::unique_ptr<LongLines> long_lines;
  CudaLibraries all() const {
    return {.products = products.get(), .dnn = dnn.get(), .long_lines = long_lines.get()};
  }
};

Libraries open_libraries(CudaLauncher& launcher, bool allows_tf32) {
  Libraries found;
  if (auto api = load_cublas_lt(); api.is_ok()) {
    auto made = LtProducts::create(*api, launcher, {.allows_tf32 = allows_tf32});
    if (made.is_ok()) found.products = std::move(*made);
  }
  if (auto api = load_cudnn(); api.is_ok()) {
    auto made =
        DnnLibrary::create(*api, launcher, {.allows_tf32 = allows_tf32, .least_elements = 0});
    if (made.is_ok()) found.dnn = std::move(*made);
  }
  if (auto api = load_cub(); api.is_ok()) {
    const LongLinesOptions every_size = {.min_length = 1, .min_top_k_work = 0};
    found.long_lines = std::make_unique<LongLines>(*api, launcher, every_size);
  }
  return found;
}

Result<Json> run(const Arguments& arguments) {
  if (arguments.part == "table") return report_table(arguments.results);  // needs no GPU
  EDDY_ASSIGN_OR_RETURN(std::shared_ptr<const CudaApi> api, load_cuda_api());
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDevice> device,
                        CudaDevice::create(api, {.ordinal = arguments.ordinal}));
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaModule> module,
                        CudaModule::load(device->context(), cuda_images()));
  const Libraries libraries = open_libraries(*module, false);
  const Libraries tf32_libraries = open_libraries(*module, true);
  Json report =
      run_part(arguments, {*device, *module, [] {}, libraries.all(), tf32_libraries.all()});
  const CudaDeviceFacts& facts = device->context().facts();
  report["gpu"] = {{"model", facts.name},
                   {"compute_capability", facts.compute_capability},
                   {"driver", cuda_version_text(facts.driver_version)},
                   {"libraries", report_cuda().libraries}};
  return report;
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  const std::string problem = parse(argc, argv, arguments);
  if (!problem.empty()) return usage(problem);
  Result<Json> result = run(arguments);
  Json report =
      result.is_ok()
          ? *result
          : Json{{"part", arguments.part}, {"gpu", nullptr}, {"error", result.status().message()}};
  if (!arguments.json_file.empty()) {
    std::ofstream file(arguments.json_file);
    if (!(file << report.dump(1) << "\n")) return usage("cannot write " + arguments.json_file);
  }
  if (!result.is_ok()) {
    std::fprintf(stderr, "gpu_report: no GPU to report on: %s\n",
                 result.status().message().c_str());
    return 4;
  }
  print_rows(report);
  if (report.contains("out_of_time")) {
    std::fprintf(stderr, "gpu_report: out of time %s\n",
                 report["out_of_time"].get<std::string>().c_str());
  }
  if (!report.contains("error")) {
    if (report["failed"].get<int>() != 0) return 1;
    return report.contains("out_of_time") ? 5 : 0;
  }
  std::fprintf(stderr, "gpu_report: %s\n", report["error"].get<std::string>().c_str());
  return 4;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::main_of(argc, argv); }
