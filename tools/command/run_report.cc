#include "tools/command/run_report.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/io/tensor_file.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

// A name as a file's: letters, digits, '.', '_' and '-', not starting with a dot.
std::string file_stem(const std::string& name) {
  std::string stem = name.substr(0, 200);
  for (char& c : stem) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  if (stem.empty() || stem[0] == '.') stem.insert(stem.begin(), '_');
  return stem;
}

Json output_json(const Tensor& tensor, const std::string& file) {
  if (file.empty()) return value_json(tensor);
  if (!tensor.is_tensor()) return {{"file", file}};
  const std::span<const int64_t> shape = tensor.dims().span();
  return {{"dtype", element_type_name(tensor.element_type())},
          {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
          {"file", file}};
}

uint64_t arena_bytes(const Plan& plan) {
  uint64_t bytes = 0;
  for (const MemoryArena& arena : plan.memory.arenas) bytes += arena.size_bytes;
  return bytes;
}

Json report_json(const Model& model, const RunReport& report) {
  Json outputs = Json::object();
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    const auto& [name, tensor] = report.outputs[i];
    outputs[name] = output_json(tensor, report.files.empty() ? "" : report.files[i]);
  }
  Json loops = Json::array();
  for (const LoopReport& loop : model.session->loop_reports()) {
    loops.push_back({{"path", loop.path},
                     {"iterations", loop.iterations},
                     {"driven", loop.driven},
                     {"reason", loop.reason}});
  }
  Json document = {
      {"outputs", std::move(outputs)},
      {"times_ns",
       {{"load", model.load_ns}, {"plan", model.session->plan_ns()}, {"runs", report.runs_ns}}},
      {"loops", std::move(loops)},
      {"fingerprint", model.session->fingerprint()},
      {"memory",
       {{"peak_bytes", model.session->memory().peak_bytes},
        {"arena_bytes", arena_bytes(model.session->plan())},
        {"workspace_bytes", model.session->workspace_bytes()}}}};
  if (report.is_compared) document["matched"] = report.differences.empty();
  if (!report.differences.empty()) document["differences"] = report.differences;
  return document;
}

std::string times_text(const std::vector<int64_t>& runs_ns) {
  std::vector<int64_t> sorted = runs_ns;
  std::sort(sorted.begin(), sorted.end());
  const auto text = [](int64_t ns) { return duration_text(static_cast<double>(ns)); };
  if (sorted.size() == 1) return text(sorted[0]);
  return fmt::format("{} (best of {}; median {}, worst {})", text(sorted[0]), sorted.size(),
                     text(sorted[sorted.size() / 2]), text(sorted.back()));
}

std::string lines_text(const Model& model, const RunReport& report) {
  constexpr int64_t kMaxElements = 100;
  std::vector<std::string> lines;
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    const auto& [name, tensor] = report.outputs[i];
    const bool is_in_file = !report.files.empty() && !report.files[i].empty();
    lines.push_back(one_line(fmt::format("{}: {}{}", name, shape_text(tensor),
                                         is_in_file ? " in " + report.files[i] : "")));
    std::string data = is_in_file ? "" : data_text(tensor, kMaxElements);
    if (!data.empty()) data.pop_back();
    if (!data.empty()) lines.push_back(std::move(data));
  }
  for (const LoopReport& loop : model.session->loop_reports()) {
    lines.push_back(one_line(
        fmt::format("loop {}: {} iteration{}, driven by the {} ({})", loop.path, loop.iterations,
                    loop.iterations == 1 ? "" : "s", loop.driven, loop.reason)));
  }
  lines.push_back(fmt::format(
      "load {}, plan {}, run {}", duration_text(static_cast<double>(model.load_ns)),
      duration_text(static_cast<double>(model.session->plan_ns())), times_text(report.runs_ns)));
  if (report.is_compared && report.differences.empty()) lines.emplace_back("outputs match");
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

void compare_outputs(const DataSet& data_set, const Tolerance& tolerance, RunReport& report) {
  for (size_t i = 0; i < data_set.outputs.size() && i < report.outputs.size(); ++i) {
    if (!data_set.outputs[i]) continue;
    report.is_compared = true;
    const auto& [name, tensor] = report.outputs[i];
    if (auto text = find_difference(copy_value(tensor), *data_set.outputs[i], tolerance)) {
      report.differences.push_back(fmt::format("output {} {}", name, *text));
    }
  }
}

// .npy where NumPy has such values, else .pb.
Status write_outputs(const std::string& folder, RunReport& report) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return invalid_argument(
        fmt::format("--output-dir {}: cannot make this folder: {}", folder, error.message()));
  }
  std::set<std::string> stems;
  for (const auto& [name, tensor] : report.outputs) {
    std::string& file = report.files.emplace_back();
    if (tensor.kind() == ValueKind::kNone) continue;
    std::string stem = file_stem(name);
    while (!stems.insert(stem).second) stem += "_";
    const HostValue value = copy_value(tensor);
    const std::string path = (std::filesystem::path(folder) / stem).string();
    file = path + (format_npy(value).is_ok() ? ".npy" : ".pb");
    EDDY_RETURN_IF_ERROR(write_value(file, value));
  }
  return Status::ok();
}

std::string report_text(const Model& model, const RunReport& report, bool is_json) {
  if (!is_json) return lines_text(model, report);
  // Names from files may be no UTF-8.
  return report_json(model, report).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Outcome verdict_of(const RunReport& report) {
  if (report.differences.empty()) return Outcome::success();
  const size_t others = report.differences.size() - 1;
  return Outcome::differs(report.differences[0] +
                          (others == 0 ? "" : fmt::format(" (and {} more outputs)", others)));
}

Outcome show(const Model& model, const RunReport& report, Console& console) {
  const std::string text = report_text(model, report, console.is_json());
  if (console.is_json()) {
    console.print_text(text);
  } else {
    console.say(text);
  }
  return verdict_of(report);
}

}  // namespace eddy
