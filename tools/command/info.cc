// eddy info: what this build is and what this machine gives it; with a model, what the file holds.
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "graph/io/import.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/isa/isa.h"
#include "runtime/api/library.h"
#include "runtime/cuda/cuda_report.h"
#include "runtime/mpi/launcher.h"
#include "runtime/mpi/mpi_library.h"
#include "tools/command/model_info.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

// The first line of a file; empty when it cannot be read.
std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The rest of the first line of `path` that starts with `key`, after its colon.
std::string field_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// The shared libraries this process runs with; their real file names carry the versions.
std::map<std::string, std::string> loaded_libraries() {
  std::map<std::string, std::string> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::unique_ptr<char, decltype(&std::free)> path(realpath(info->dlpi_name, nullptr),
                                                               &std::free);
        if (path == nullptr || info->dlpi_name[0] == '\0') return 0;
        const std::string file = path.get();
        const std::string name = file.substr(file.rfind('/') + 1);
        const size_t end = name.find(".so");
        if (end == std::string::npos) return 0;
        (*static_cast<std::map<std::string, std::string>*>(found))[name.substr(0, end)] = file;
        return 0;
      },
      &libraries);
  return libraries;
}

Json cuda_json() {
  const CudaReport report = report_cuda();
  Json json = {{"name", "cuda"},
               {"is_available", report.status.is_ok()},
               {"has_kernels", report.has_kernels},
               {"kernels", cuda_kernels_text(report)}};
  if (report.driver_version > 0) json["driver"] = cuda_version_text(report.driver_version);
  if (!report.status.is_ok()) json["reason"] = report.status.message();
  json["gpus"] = Json::array();
  for (const CudaDeviceFacts& gpu : report.devices) {
    json["gpus"].push_back({{"ordinal", gpu.ordinal},
                            {"model", gpu.name},
                            {"compute_capability", cuda_version_text(gpu.compute_capability * 100)},
                            {"multiprocessors", gpu.num_multiprocessors},
                            {"memory_bytes", gpu.memory_bytes},
                            {"allows", cuda_abilities(report, gpu)}});
  }
  return json;
}

Json devices_json() {
  cpu_set_t allowed;
  const int processors =
      sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return Json::array({{{"name", "cpu"},
                       {"is_available", true},
                       {"model", field_of("/proc/cpuinfo", "model name")},
                       {"processors", processors},
                       {"instruction_sets", cpu::instructions_text()}},
                      cuda_json(),
                      {{"name", "virtual"}, {"is_available", true}}});
}

Json number_or_text(const std::string& text) {
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty()) return nullptr;
  return *end == '\0' ? Json(number) : Json(text);
}

Json limits_json() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const auto pages = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  const std::string available = field_of("/proc/meminfo", "MemAvailable");
  return {{"max_map_count", number_or_text(first_line("/proc/sys/vm/max_map_count"))},
          {"memory_bytes", pages * page_bytes},
          {"available_memory_bytes", std::strtoll(available.c_str(), nullptr, 10) * 1024},
          {"cgroup_memory_bytes", number_or_text(first_line("/sys/fs/cgroup/memory.max"))},
          {"open_files", static_cast<int64_t>(files.rlim_cur)}};
}

// By domain: names, definitions (an operator has one for each opset that changed it) and how many
// of these have a CPU kernel.
Json operators_json(const Library& library) {
  struct Count {
    std::set<std::string> names;
    int definitions = 0;
    int with_kernel = 0;
  };
  std::map<std::string, Count> domains;
  for (const std::string_view domain : import_domains()) domains[std::string(domain)];
  for (const auto& def : library.ops().all()) {
    Count& count = domains[def->domain];
    count.names.insert(def->name);
    ++count.definitions;
    count.with_kernel += library.cpu_kernels().has(def->domain, def->name, def->since_version);
  }
  Json list = Json::array();
  for (const auto& [domain, count] : domains) {
    const auto of_import = import_operators(domain);
    list.push_back(
        {{"domain", domain.empty() ? "ai.onnx" : domain},
         {"import_operators", std::vector<std::string>(of_import.begin(), of_import.end())},
         {"operators", count.names.size()},
         {"definitions", count.definitions},
         {"with_cpu_kernel", count.with_kernel},
         {"names", count.names}});
  }
  return list;
}

// What ranks can be made of here; opens MPI's library, and starts nothing.
Json mpi_json() {
  Json json = {{"is_available", false}, {"library", nullptr}, {"launcher", nullptr}};
  const auto mpi = load_mpi();
  if (!mpi.is_ok()) {
    json["reason"] = mpi.status().message();
    return json;
  }
  json["library"] = mpi_library_name(**mpi);
  const auto launch = make_launch({});
  if (!launch.is_ok()) {
    json["reason"] = launch.status().message();
    return json;
  }
  json["is_available"] = true;
  json["launcher"] = launch->mpirun;
  return json;
}

Json info_json(const Library& library) {
  utsname system{};
  uname(&system);
  Json libraries = Json::object();
  for (const auto& [name, file] : loaded_libraries()) libraries[name] = file;
  return {{"version", kVersion},
          {"compiler", kCompiler},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"devices", devices_json()},
          {"mpi", mpi_json()},
          {"libraries", std::move(libraries)},
          {"cpu_kernels", describe_cpu_kernels()},
          {"limits", limits_json()},
          {"operators", operators_json(library)}};
}

std::string bytes_text(const Json& bytes) {
  if (!bytes.is_number()) return bytes.is_string() ? bytes.get<std::string>() : "unknown";
  return fmt::format("{:.1f} GiB", bytes.get<double>() / (1 << 30));
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "unknown" : value.dump();
}

void say_cuda(const Json& cuda, Console& console) {
  for (const Json& gpu : cuda["gpus"]) {
    console.say(
        fmt::format("device cuda {}: {}, compute capability {}, {} multiprocessors, {}, "
                    "driver for CUDA {}",
                    gpu["ordinal"].get<int>(), plain_text(gpu["model"]),
                    plain_text(gpu["compute_capability"]), gpu["multiprocessors"].get<int>(),
                    bytes_text(gpu["memory_bytes"]), plain_text(cuda["driver"])));
    for (const Json& line : gpu["allows"]) console.say("  " + plain_text(line));
  }
}

void say_info(const Json& info, Console& console) {
  console.say(fmt::format("eddy {}, compiled by {}, on {}", kVersion, plain_text(info["compiler"]),
                          plain_text(info["system"])));
  for (const Json& device : info["devices"]) {
    const std::string name = device["name"];
    if (device.contains("gpus") && device["is_available"].get<bool>()) {
      say_cuda(device, console);
      continue;
    }
    if (name == "virtual") {
      console.say("device virtual: here everywhere; runs streams in a seeded order (--seed)");
      continue;
    }
    console.say(device["is_available"].get<bool>()
                    ? fmt::format("device {}: {}, {} processors, {}", name,
                                  plain_text(device["model"]), plain_text(device["processors"]),
                                  plain_text(device["instruction_sets"]))
                    : fmt::format("device {}: {}", name, plain_text(device["reason"])));
    if (device.contains("kernels")) console.say("  " + plain_text(device["kernels"]));
  }
  const Json& mpi = info["mpi"];
  console.say(mpi["is_available"].get<bool>()
                  ? fmt::format("ranks: {}, started by {} (eddy run --ranks N)",
                                plain_text(mpi["library"]), plain_text(mpi["launcher"]))
                  : "ranks: " + plain_text(mpi["reason"]));
  for (const auto& [name, file] : info["libraries"].items()) {
    console.say(fmt::format("library {}: {}", name, plain_text(file)));
  }
  console.say("CPU kernels: " + plain_text(info["cpu_kernels"]));
  const Json& limits = info["limits"];
  console.say(fmt::format(
      "memory: {}, available {}, limit of the control group {}", bytes_text(limits["memory_bytes"]),
      bytes_text(limits["available_memory_bytes"]), bytes_text(limits["cgroup_memory_bytes"])));
  console.say(fmt::format("limits: max_map_count {}, open files {}",
                          plain_text(limits["max_map_count"]), plain_text(limits["open_files"])));
  for (const Json& domain : info["operators"]) {
    const auto others = domain["import_operators"].get<std::vector<std::string>>();
    console.say(fmt::format("operators of {}: {} in {} versions, {} of these with a CPU kernel{}{}",
                            plain_text(domain["domain"]), plain_text(domain["operators"]),
                            plain_text(domain["definitions"]),
                            plain_text(domain["with_cpu_kernel"]), others.empty() ? "" : "; and ",
                            fmt::join(others, ", ")));
  }
}

}  // namespace

Action add_info(CLI::App& app) {
  auto model = std::make_shared<std::string>();
  const CLI::Option* const option = app.add_option(
      "MODEL", *model, "an ONNX file, whose content is listed; none: this build and this machine");
  return [model, option](Console& console, Interrupts&) {
    const Library library;
    if (option->count() > 0) return print_model_info(*model, library, console);
    const Json info = info_json(library);
    if (console.is_json()) {
      console.print(info);
    } else {
      say_info(info, console);
    }
    return Outcome::success();
  };
}

}  // namespace eddy
