// gpu_report: what this machine's GPU does with Eddy: prints a table and writes JSON.
//
//   gpu_report --part conformance|loops [--json FILE] [--device N]
//
// Exit codes as the eddy command: 0; 1 when a row differs from what was expected; 2 usage; 4 when
// there is no GPU or it is lost.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "ops/cuda/image.h"
#include "runtime/cuda/cuda_report.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kSeed = 20;
constexpr int kNumIterations = 10'000;

struct Arguments {
  std::string part;
  std::string json_file;
  int ordinal = 0;
};

int usage(const std::string& problem) {
  std::fprintf(stderr,
               "gpu_report: %s; use gpu_report --part conformance|loops [--json FILE] "
               "[--device N]\n",
               problem.c_str());
  return 2;
}

// Empty when the arguments are fine.
std::string parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name != "--part" && name != "--json" && name != "--device") return "no option " + name;
    if (i + 1 == argc) return name + " needs a value";
    const std::string value = argv[i + 1];
    if (name == "--part") arguments.part = value;
    if (name == "--json") arguments.json_file = value;
    if (name == "--device") {
      char* end = nullptr;
      const long ordinal = std::strtol(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0' || ordinal < 0 || ordinal > 1000) {
        return "--device takes a number from 0, not '" + value + "'";
      }
      arguments.ordinal = static_cast<int>(ordinal);
    }
  }
  const bool is_known = arguments.part == "conformance" || arguments.part == "loops";
  return is_known ? "" : "--part is conformance or loops, not '" + arguments.part + "'";
}

void print_rows(const Json& report) {
  for (const Json& row : report["rows"]) {
    std::string line;
    for (const auto& [key, value] : row.items()) {
      line += (line.empty() ? "" : "  ") + key + " " +
              (value.is_string() ? value.get<std::string>() : value.dump());
    }
    std::printf("%s\n", line.c_str());
  }
  std::printf("%zu rows, %d failed\n", report["rows"].size(), report["failed"].get<int>());
}

Result<Json> run(const Arguments& arguments) {
  EDDY_ASSIGN_OR_RETURN(std::shared_ptr<const CudaApi> api, load_cuda_api());
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaDevice> device,
                        CudaDevice::create(api, {.ordinal = arguments.ordinal}));
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<CudaModule> module,
                        CudaModule::load(device->context(), cuda_images()));
  const GpuUnderReport gpu{*device, *module};
  Json report = arguments.part == "conformance" ? report_conformance(gpu, kSeed)
                                                : report_loops(gpu, kNumIterations);
  const CudaDeviceFacts& facts = device->context().facts();
  report["gpu"] = {{"model", facts.name},
                   {"compute_capability", facts.compute_capability},
                   {"driver", cuda_version_text(facts.driver_version)}};
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
  if (!report.contains("error")) return report["failed"].get<int>() == 0 ? 0 : 1;
  std::fprintf(stderr, "gpu_report: %s\n", report["error"].get<std::string>().c_str());
  return 4;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::main_of(argc, argv); }
