#include "tools/gpu/arguments.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/gpu/drift_part.h"
#include "tools/gpu/driver_part.h"
#include "tools/gpu/report_file.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

struct Part {
  const char* name;
  const char* says;
};

constexpr Part kParts[] = {
    {"facts",
     "the kernels in this program, the GPU, the libraries found; 4 where no GPU runs them"},
    {"driver", "what the driver does where Eddy must know it; --kind QUESTION: one of them"},
    {"conformance", "operators against the reference, by type; the kernels that the image lacks"},
    {"hand", "loops as conditional graphs by the driver's calls alone: the rivals"},
    {"control", "small loops in every way of driving them, µs a round"},
    {"bits", "the same ways against each other, bit for bit"},
    {"loops", "host-driven loops of one kernel, 1 to 32 side by side"},
    {"models", "dynamic models at full size, ms a run"},
    {"libraries", "our own kernels beside cuBLASLt, cuDNN and CUB, µs a call"},
    {"waiting", "the processor's share of a run that waits, and of an idle session"},
    {"speech", "Silero and Moonshine beside the CPU; needs --speech DIR"},
    {"networks", "networks of export_networks.py; needs --networks DIR"},
    {"probe", "how many conditional loops at once: --loops N of --kernels N"},
    {"lost",
     "what is told of a GPU that is lost in a loop, of --kind device or host; costs the GPU"},
    {"drift", "ten million iterations of each kind of loop, memory; --kind NAME: of one"},
    {"table", "what parts have left in --results DIR, held against others; needs no GPU"},
};

bool is_known(const std::string& part) {
  return std::ranges::any_of(kParts, [&](const Part& each) { return part == each.name; });
}

bool is_kind_of(const std::string& part, const std::string& kind) {
  if (part == "lost") return kind == "device" || kind == "host";
  if (part == "driver") {
    return std::ranges::any_of(driver_questions(),
                               [&](const DriverQuestion& each) { return kind == each.name; });
  }
  return part == "drift" && is_drift_kind(kind);
}

std::string parse_number(const std::string& name, const std::string& text, int least, int& number) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < least || value > 1000) {
    return name + " takes a number from " + std::to_string(least) + " to 1000, not '" + text + "'";
  }
  number = static_cast<int>(value);
  return "";
}

std::string parse_all(int argc, char** argv, ReportArguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      arguments.wants_help = true;
      return "";
    }
    std::string* const text = name == "--part"       ? &arguments.part
                              : name == "--json"     ? &arguments.json_file
                              : name == "--networks" ? &arguments.networks
                              : name == "--speech"   ? &arguments.speech
                              : name == "--results"  ? &arguments.results
                              : name == "--kind"     ? &arguments.kind
                                                     : nullptr;
    int* const number = name == "--device"    ? &arguments.ordinal
                        : name == "--loops"   ? &arguments.loops
                        : name == "--kernels" ? &arguments.kernels
                                              : nullptr;
    if (text == nullptr && number == nullptr) return "no option " + name;
    if (i + 1 == argc) return name + " needs a value";
    if (text != nullptr) *text = argv[i + 1];
    if (number == nullptr) continue;
    const std::string problem =
        parse_number(name, argv[i + 1], name == "--device" ? 0 : 1, *number);
    if (!problem.empty()) return problem;
  }
  return "";
}

// Checks the folder of an option that a part may need.
std::string check_folder(const char* name, const std::string& folder, bool is_needed) {
  if (folder.empty()) return is_needed ? std::string("this part needs ") + name + " DIR" : "";
  std::error_code error;
  return fs::is_directory(folder, error) ? "" : std::string(name) + ": no folder " + folder;
}

}  // namespace

std::string parse_report_arguments(int argc, char** argv, ReportArguments& arguments) {
  std::string problem = parse_all(argc, argv, arguments);
  if (!problem.empty() || arguments.wants_help) return problem;
  const std::string& part = arguments.part;
  if (part.empty()) return "no --part is given";
  if (!is_known(part)) return "no part '" + part + "'";
  if (!arguments.kind.empty() && !is_kind_of(part, arguments.kind)) {
    return "no kind '" + arguments.kind + "' of the part " + part;
  }
  for (const auto& [name, folder, is_needed] :
       {std::tuple{"--networks", &arguments.networks, part == "networks"},
        std::tuple{"--speech", &arguments.speech, part == "speech"},
        std::tuple{"--results", &arguments.results, part == "table"}}) {
    if (problem = check_folder(name, *folder, is_needed); !problem.empty()) return problem;
  }
  return ReportFile::why_not(arguments.json_file);
}

std::string report_help() {
  std::string text =
      "gpu_report --part NAME [--json FILE] [--device N]: what this machine's GPU does with Eddy.\n"
      "Rows are printed, and kept in FILE, as they come; a part begins no row after seven "
      "minutes.\n\n";
  for (const Part& part : kParts) {
    text += "  " + std::string(part.name) + std::string(14 - std::string(part.name).size(), ' ') +
            part.says + "\n";
  }
  return text +
         "\nExit codes: 0; 1 a row differs from what was expected; 2 wrong usage; 3 the results\n"
         "could not be written; 4 no GPU, or it is lost; 5 out of time before the last row;\n"
         "6 not all was measured (rows short or missing, files of a table that are no good).\n";
}

}  // namespace eddy
