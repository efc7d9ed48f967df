#include <algorithm>
#include <filesystem>

#include "graph/io/import.h"
#include "graph/io/tensor_file.h"
#include "tools/gpu/case_rows.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

Result<Tensor> read_tensor(const fs::path& file) {
  EDDY_ASSIGN_OR_RETURN(const HostValue value, read_value(file.string(), ValueType()));
  return Tensor::copy_of(value.view());
}

// Reads the file that export_networks.py has written to `folder`.
Result<GpuCase> read_network(const Library& library, const fs::path& folder) {
  GpuCase one;
  one.name = folder.filename().string();
  one.made_by = "PyTorch on the machine that exported it";
  const std::string file = (folder / "model.onnx").string();
  EDDY_ASSIGN_OR_RETURN(const Graph graph, import_onnx(file, library.ops()));
  if (graph.inputs().size() != 1 || graph.outputs().size() != 1) {
    return unsupported(file + " has not one input and one output");
  }
  EDDY_ASSIGN_OR_RETURN(const Tensor input, read_tensor(folder / "input.npy"));
  EDDY_ASSIGN_OR_RETURN(const Tensor output, read_tensor(folder / "output.npy"));
  one.inputs = {{graph.value(graph.inputs()[0]).name, input}};
  one.has_products = true;
  one.is_resident = true;
  one.expected = NamedTensors{{graph.output_names()[0], output}};
  one.build = [file](const OpTable& ops) { return import_onnx(file, ops); };
  return one;
}

}  // namespace

nlohmann::json report_networks(const SessionsUnderReport& what, const std::string& folder) {
  PartReport report("networks", what.pace);
  const Library library;
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) {
    report.end_with(
        not_found("no networks in " + folder + "; make some with export_networks.py " + folder));
  }
  std::vector<std::function<GpuCase()>> cases;
  for (const fs::path& each : folders) {
    Result<GpuCase> one = read_network(library, each);
    if (!one.is_ok()) {
      // The others are measured all the same.
      nlohmann::json row = {{"case", each.filename().string()}};
      set_status(one.status(), row);
      report.add(std::move(row));
      continue;
    }
    cases.push_back([made = std::move(*one)] { return made; });
  }
  const CaseWay ways[] = {
      {"one stream", Loops::kAuto, Assignment::kSerial},
      {"several streams", Loops::kAuto, Assignment::kRank},
      {.name = "one stream, tf32", .assignment = Assignment::kSerial, .allows_tf32 = true},
      {.name = "several streams, tf32", .assignment = Assignment::kRank, .allows_tf32 = true},
      {.name = "auto, tf32", .allows_tf32 = true, .folds_norms = true},
      {.name = "auto, tf32, channels first",
       .allows_tf32 = true,
       .folds_norms = true,
       .channels_first = true},
      {.name = "auto, tf32, measured",
       .allows_tf32 = true,
       .folds_norms = true,
       .measures_convolutions = true}};
  report_cases(report, library, cases, ways, what);
  return report.take();
}

}  // namespace eddy
