#include "tools/command/model_info.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"
#include "graph/io/model_summary.h"
#include "tools/command/counted.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

// Whether Eddy takes the model.
struct Verdict {
  Status status;
  std::vector<std::string> warnings = {};
};

Verdict import_verdict(const std::string& path, const Library& library) {
  Verdict verdict;
  ImportOptions options;
  options.warn = [&verdict](std::string_view line) { verdict.warnings.emplace_back(line); };
  verdict.status = import_file(library, path, options).status();
  return verdict;
}

std::string_view domain_name(const std::string& domain) {
  return domain.empty() ? std::string_view("ai.onnx") : std::string_view(domain);
}

// Why Eddy does not run the operator; empty where it does.
std::string missing_text(const OperatorSummary& op, const Library& library) {
  using Meaning = OperatorSummary::Meaning;
  switch (op.meaning) {
    case Meaning::kImporter:
    case Meaning::kFunction:
      return "";
    case Meaning::kUnknown:
      return "no such operator; a custom one can be added";
    case Meaning::kKnownLater:
      return "known in newer opsets only; convert the model";
    case Meaning::kOperator:
      break;
  }
  const OpDef* const def = library.ops().find_or_null(op.domain, op.name, op.version);
  EDDY_CHECK(def != nullptr) << op.name << " of opset " << op.version << " has no definition";
  // Functions become other operators.
  const bool runs = def->expand != nullptr ||
                    library.cpu_kernels().has(def->domain, def->name, def->since_version);
  return runs ? "" : "no CPU kernel; a custom one can be added";
}

Json value_json(const ValueSummary& value) {
  Json shape = nullptr;
  if (value.has_shape) {
    shape = Json::array();
    for (const DimSummary& dim : value.dims) {
      shape.push_back(!dim.name.empty() ? Json(dim.name)
                      : dim.size >= 0   ? Json(dim.size)
                                        : Json(nullptr));
    }
  }
  return {{"name", value.name}, {"type", value.type}, {"shape", std::move(shape)}};
}

Json values_json(const std::vector<ValueSummary>& values) {
  Json list = Json::array();
  for (const ValueSummary& value : values) list.push_back(value_json(value));
  return list;
}

Json operator_json(const OperatorSummary& op, const Library& library) {
  Json json = {{"domain", domain_name(op.domain)},
               {"name", op.name},
               {"opset", op.version},
               {"nodes", op.num_nodes}};
  if (op.meaning == OperatorSummary::Meaning::kFunction) json["is_function"] = true;
  const std::string missing = missing_text(op, library);
  json["is_supported"] = missing.empty();
  if (!missing.empty()) json["reason"] = missing;
  return json;
}

Json tensors_json(const TensorsSummary& tensors) {
  return {{"tensors", tensors.num_tensors},
          {"elements", tensors.num_elements},
          {"bytes", tensors.num_bytes},
          {"external", tensors.num_external},
          {"refused", tensors.num_refused}};
}

// Each sum is at most INT64_MAX.
uint64_t total(int64_t a, int64_t b) {
  EDDY_DCHECK(a >= 0 && b >= 0) << a << " + " << b;
  return static_cast<uint64_t>(a) + static_cast<uint64_t>(b);
}

Json parameters_json(const ModelSummary& model) {
  return {{"elements", total(model.initializers.num_elements, model.constants.num_elements)},
          {"bytes", total(model.initializers.num_bytes, model.constants.num_bytes)},
          {"initializers", tensors_json(model.initializers)},
          {"constants", tensors_json(model.constants)}};
}

Json control_json(const ControlSummary& control) {
  Json json = {{"name", control.name},
               {"operator", control.op},
               {"kind", control.is_loop ? "loop" : "branch"},
               {"depth", control.depth},
               {"nodes", control.num_nodes}};
  if (!control.function.empty()) json["function"] = control.function;
  return json;
}

// Depth first, as they stand in the file.
Json all_control_json(const ModelSummary& model) {
  int64_t num_loops = 0, num_branches = 0;
  int depth = 0;
  Json list = Json::array();
  for (const ControlSummary& control : model.control) {
    ++(control.is_loop ? num_loops : num_branches);
    depth = std::max(depth, control.depth);
    list.push_back(control_json(control));
  }
  return {{"loops", num_loops},
          {"branches", num_branches},
          {"depth", depth},
          {"list", std::move(list)}};
}

Json training_json(const TrainingSummary& training) {
  Json updates = Json::array();
  for (const auto& [initializer, output] : training.updates) {
    updates.push_back({{"initializer", initializer}, {"output", output}});
  }
  return {{"nodes", training.num_nodes},
          {"initialization_nodes", training.num_initialization_nodes},
          {"updates", std::move(updates)}};
}

Json model_json(const std::string& path, const ModelSummary& model, const Verdict& verdict,
                const Library& library) {
  Json opsets = Json::array();
  for (const auto& [domain, version] : model.opsets) {
    opsets.push_back({{"domain", domain_name(domain)}, {"version", version}});
  }
  Json operators = Json::array();
  for (const OperatorSummary& op : model.operators) {
    operators.push_back(operator_json(op, library));
  }
  Json training = Json::array();
  for (const TrainingSummary& each : model.training) training.push_back(training_json(each));
  Json import = {{"is_ok", verdict.status.is_ok()}};
  if (!verdict.status.is_ok()) import["reason"] = verdict.status.message();
  import["warnings"] = verdict.warnings;
  return {{"path", path},
          {"file_bytes", model.file_bytes},
          {"ir_version", model.ir_version},
          {"opsets", std::move(opsets)},
          {"inputs", values_json(model.inputs)},
          {"inputs_with_default", model.num_default_inputs},
          {"outputs", values_json(model.outputs)},
          {"nodes", model.num_nodes},
          {"functions", model.num_functions},
          {"operators", std::move(operators)},
          {"parameters", parameters_json(model)},
          {"control_flow", all_control_json(model)},
          {"training", std::move(training)},
          {"import", std::move(import)}};
}

std::string bytes_text(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", number / 1e3);
  if (bytes < 1'000'000'000) return fmt::format("{:.1f} MB", number / 1e6);
  return fmt::format("{:.2f} GB", number / 1e9);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "?" : value.dump();
}

// "float[1,batch,?]", "sequence(float)[...]": an unknown size, an unknown shape.
std::string type_text(const Json& value) {
  if (value["shape"].is_null()) return text_of(value["type"]) + "[...]";
  std::vector<std::string> dims;
  for (const Json& dim : value["shape"]) dims.push_back(text_of(dim));
  return fmt::format("{}[{}]", text_of(value["type"]), fmt::join(dims, ","));
}

void say_values(const char* heading, const Json& values, Console& console) {
  console.say(heading);
  for (const Json& value : values) {
    console.say(fmt::format("  {}: {}", text_of(value["name"]), type_text(value)));
  }
}

// Most nodes first.
void say_operators(const Json& info, Console& console) {
  std::vector<Json> operators(info["operators"].begin(), info["operators"].end());
  std::ranges::stable_sort(operators, [](const Json& a, const Json& b) {
    return a["nodes"].get<int64_t>() > b["nodes"].get<int64_t>();
  });
  console.say(fmt::format("{} of {}, {} defined in the file",
                          counted(info["nodes"].get<uint64_t>(), "node"),
                          counted(operators.size(), "operator"),
                          counted(info["functions"].get<uint64_t>(), "function")));
  for (const Json& op : operators) {
    const std::string domain = op["domain"] == "ai.onnx" ? "" : text_of(op["domain"]) + ".";
    const std::string missing = op["is_supported"].get<bool>()
                                    ? ""
                                    : fmt::format("  NOT SUPPORTED (opset {}): {}",
                                                  text_of(op["opset"]), text_of(op["reason"]));
    console.say(fmt::format("  {:>6}  {}{}{}{}", op["nodes"].get<int64_t>(), domain,
                            text_of(op["name"]), op.contains("is_function") ? " (function)" : "",
                            missing));
  }
}

void say_tensors(const Json& tensors, const char* noun, Console& console) {
  std::string text =
      fmt::format("{}: {} elements, {}", counted(tensors["tensors"].get<uint64_t>(), noun),
                  tensors["elements"].get<int64_t>(), bytes_text(tensors["bytes"].get<uint64_t>()));
  if (tensors["external"] > 0)
    text += fmt::format(", {} in other files", tensors["external"].dump());
  if (tensors["refused"] > 0) {
    text += fmt::format(", {} of types or shapes that Eddy refuses not counted",
                        tensors["refused"].dump());
  }
  console.say("  " + text);
}

void say_control(const Json& control, Console& console) {
  const auto count = [&](const char* key) { return control[key].get<uint64_t>(); };
  if (count("depth") == 0) return console.say("no loops, no branches");
  const uint64_t branches = count("branches");
  console.say(fmt::format("{}, {} branch{}, nested {} deep", counted(count("loops"), "loop"),
                          branches, branches == 1 ? "" : "es", count("depth")));
  for (const Json& one : control["list"]) {
    const std::string of_function =
        one.contains("function") ? fmt::format(" in function {}", text_of(one["function"])) : "";
    console.say(fmt::format("{:{}}{} {}: {}{}", "", 2 * one["depth"].get<int>(),
                            text_of(one["operator"]), text_of(one["name"]),
                            counted(one["nodes"].get<uint64_t>(), "node"), of_function));
  }
}

void say_model(const Json& info, Console& console) {
  std::string opsets;
  for (const Json& opset : info["opsets"]) {
    opsets += fmt::format(", opset {} of {}", text_of(opset["version"]), text_of(opset["domain"]));
  }
  console.say(fmt::format("{}: {}, IR version {}{}", text_of(info["path"]),
                          bytes_text(info["file_bytes"].get<uint64_t>()),
                          text_of(info["ir_version"]), opsets));
  const int64_t defaults = info["inputs_with_default"].get<int64_t>();
  say_values(
      defaults == 0 ? "inputs" : fmt::format("inputs, besides {} with a default", defaults).c_str(),
      info["inputs"], console);
  say_values("outputs", info["outputs"], console);
  say_operators(info, console);
  const Json& parameters = info["parameters"];
  console.say(fmt::format("{} parameters, {}", parameters["elements"].get<uint64_t>(),
                          bytes_text(parameters["bytes"].get<uint64_t>())));
  say_tensors(parameters["initializers"], "initializer", console);
  say_tensors(parameters["constants"], "constant", console);
  say_control(info["control_flow"], console);
  for (const Json& training : info["training"]) {
    console.say(fmt::format("training_info: {}, {} to initialize, updates {}",
                            counted(training["nodes"].get<uint64_t>(), "node"),
                            training["initialization_nodes"].dump(),
                            counted(training["updates"].size(), "initializer")));
  }
  const Json& import = info["import"];
  for (const Json& warning : import["warnings"]) console.say("warning: " + text_of(warning));
  console.say(import["is_ok"].get<bool>() ? "Eddy imports the model"
                                          : "Eddy refuses the model: " + text_of(import["reason"]));
}

}  // namespace

Outcome print_model_info(const std::string& path, const Library& library, Console& console) {
  EDDY_ASSIGN_OR_RETURN(const ModelSummary summary, summarize_model(path, library.ops()));
  const Json info = model_json(path, summary, import_verdict(path, library), library);
  if (console.is_json()) {
    console.print(info);
  } else {
    say_model(info, console);
  }
  return Outcome::success();
}

}  // namespace eddy
