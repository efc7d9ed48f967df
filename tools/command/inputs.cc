#include "tools/command/inputs.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/base/check.h"
#include "graph/base/shortened.h"
#include "graph/io/tensor_file.h"
#include "tools/command/model.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const std::vector<ValueDescription>& descriptions) {
  std::vector<std::string> names;
  names.reserve(descriptions.size());
  for (const ValueDescription& description : descriptions) names.push_back(description.name);
  return names;
}

// The index of the input that an option names; none: it is another model's.
Result<std::optional<size_t>> find_input(const InputArguments& arguments, const ModelValues& model,
                                         const std::string& name, const char* option) {
  const std::vector<std::string> names = names_of(model.inputs);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return std::optional(i);
  }
  if (arguments.may_lack_inputs) return std::optional<size_t>();
  std::vector<std::string> shown;
  for (const std::string& each : names) shown.push_back(shortened(each));
  return invalid_argument(fmt::format(
      "{} {}: the model has no input of that name; {}", option, shortened(name),
      names.empty() ? "it takes none" : fmt::format("its inputs are {}", fmt::join(shown, ", "))));
}

// ONNX's own test data holds bfloat16 values as uint16 tensors of the same bits.
void restore_bfloat16(const ValueType& expected, HostValue& value) {
  if (expected.is_tensor() && expected.tensor.element == ElementType::kBfloat16 &&
      value.kind == HostValue::Kind::kTensor && value.element == ElementType::kUint16) {
    value.element = ElementType::kBfloat16;
  }
}

// input_0.pb, input_1.pb, ... or the same for outputs.
Status read_numbered(const fs::path& folder, const char* stem,
                     const std::vector<ValueDescription>& descriptions,
                     std::vector<std::optional<HostValue>>& values) {
  std::error_code error;
  values.resize(descriptions.size());
  for (size_t i = 0; i < descriptions.size(); ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(file, error)) continue;
    EDDY_ASSIGN_OR_RETURN(values[i], read_value(file.string(), descriptions[i].type));
    restore_bfloat16(descriptions[i].type, *values[i]);
  }
  const fs::path extra = folder / fmt::format("{}_{}.pb", stem, descriptions.size());
  if (fs::exists(extra, error)) {
    return invalid_argument(fmt::format("{} is one too many: the model has {} {}s", extra.string(),
                                        descriptions.size(), stem));
  }
  return Status::ok();
}

// Refuses a second value for the input that was given one already by the same option.
Status mark_given(std::vector<bool>& given, size_t i, const std::string& name, const char* option) {
  EDDY_CHECK(i < given.size()) << "input " << i << " of " << given.size();
  if (given[i]) {
    return invalid_argument(
        fmt::format("{} {}: this input is given twice; leave one out", option, name));
  }
  given[i] = true;
  return Status::ok();
}

Status give_files(const InputArguments& arguments, const ModelValues& model,
                  std::vector<std::optional<HostValue>>& values) {
  std::vector<bool> is_given(values.size());
  for (const std::string& text : arguments.files) {
    EDDY_ASSIGN_OR_RETURN(auto given, split_assignment(text, "--input", "NAME=FILE"));
    EDDY_ASSIGN_OR_RETURN(const auto found, find_input(arguments, model, given.first, "--input"));
    if (!found) continue;
    const size_t i = *found;
    EDDY_RETURN_IF_ERROR(mark_given(is_given, i, given.first, "--input"));
    EDDY_ASSIGN_OR_RETURN(values[i], read_value(given.second, model.inputs[i].type));
  }
  return Status::ok();
}

Status give_values(const InputArguments& arguments, const ModelValues& model,
                   std::vector<std::optional<HostValue>>& values) {
  std::vector<bool> is_given(values.size());
  for (const std::string& text : arguments.values) {
    EDDY_ASSIGN_OR_RETURN(auto given, split_assignment(text, "--set", "NAME=VALUE"));
    EDDY_ASSIGN_OR_RETURN(const auto found, find_input(arguments, model, given.first, "--set"));
    if (!found) continue;
    const size_t i = *found;
    EDDY_RETURN_IF_ERROR(mark_given(is_given, i, given.first, "--set"));
    if (values[i]) continue;
    EDDY_ASSIGN_OR_RETURN(values[i], filled_value(model.inputs[i], given.second));
  }
  return Status::ok();
}

std::string missing_text(const std::vector<ValueDescription>& inputs,
                         const std::vector<std::optional<HostValue>>& values,
                         const InputArguments& arguments, const DataSet* data_set_or_null) {
  std::vector<std::string> missing;
  std::string example;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]) continue;
    if (missing.empty()) example = shortened(inputs[i].name);
    missing.push_back(fmt::format("{} ({})", shortened(inputs[i].name), inputs[i].text));
  }
  const bool is_folder_empty = data_set_or_null != nullptr && !data_set_or_null->has_inputs();
  return fmt::format(
      "no value for input{} {}{}; give --input {}=FILE, --set {}=VALUE, --inputs DIR or "
      "--random-inputs SEED",
      missing.size() == 1 ? "" : "s", fmt::join(missing, ", "),
      is_folder_empty ? fmt::format(": folder {} has no input_0.pb, ...", arguments.folder) : "",
      example, example);
}

}  // namespace

std::vector<std::string> files_read(const std::string& model, const InputArguments& arguments) {
  std::vector<std::string> files = {model};
  for (const std::string& input : arguments.files)
    files.push_back(input.substr(input.find('=') + 1));
  std::error_code error;  // ignored: reading the folder reports it
  for (const auto& entry : fs::directory_iterator(arguments.folder, error)) {
    if (entry.path().extension() == ".pb") files.push_back(entry.path().string());
  }
  return files;
}

bool DataSet::has_inputs() const {
  return std::ranges::any_of(
      inputs, [](const std::optional<HostValue>& value) { return value.has_value(); });
}

Result<DataSet> read_data_set(const std::string& folder, const ModelValues& model) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return not_found(fmt::format("{} is no folder; name one that holds input_0.pb, ...", folder));
  }
  DataSet data_set;
  EDDY_RETURN_IF_ERROR(read_numbered(folder, "input", model.inputs, data_set.inputs));
  EDDY_RETURN_IF_ERROR(read_numbered(folder, "output", model.outputs, data_set.outputs));
  return data_set;
}

Result<std::optional<DataSet>> read_data_set(const InputArguments& arguments,
                                             const ModelValues& model) {
  if (arguments.folder.empty()) return std::optional<DataSet>();
  EDDY_ASSIGN_OR_RETURN(DataSet data_set, read_data_set(arguments.folder, model));
  return std::optional(std::move(data_set));
}

Result<std::vector<HostValue>> make_inputs(const InputArguments& arguments,
                                           const ModelValues& model,
                                           const DataSet* data_set_or_null) {
  const std::vector<ValueDescription>& inputs = model.inputs;
  EDDY_CHECK(data_set_or_null == nullptr || data_set_or_null->inputs.size() == inputs.size())
      << "the folder was read for another model";
  std::vector<std::optional<HostValue>> values(inputs.size());
  EDDY_RETURN_IF_ERROR(give_files(arguments, model, values));
  EDDY_RETURN_IF_ERROR(give_values(arguments, model, values));
  Random random(arguments.seed.value_or(0));
  bool is_complete = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!values[i] && data_set_or_null != nullptr) values[i] = data_set_or_null->inputs[i];
    if (!values[i] && arguments.seed) {
      EDDY_ASSIGN_OR_RETURN(values[i], random_value(inputs[i], random));
    }
    is_complete = is_complete && values[i].has_value();
  }
  if (!is_complete) {
    return invalid_argument(missing_text(inputs, values, arguments, data_set_or_null));
  }
  std::vector<HostValue> result;
  result.reserve(values.size());
  for (std::optional<HostValue>& value : values) result.push_back(std::move(*value));
  return result;
}

std::string open_inputs_text(const InputArguments& arguments, const ModelValues& model,
                             const DataSet* data_set_or_null) {
  std::string text;
  std::string example;
  std::vector<std::string> options;  // those that made values up
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ValueDescription& input = model.inputs[i];
    if (!input.type.is_tensor() || input.type.tensor.is_static()) continue;
    const auto names_it = [&](const std::string& given) {
      return given.starts_with(input.name + "=");
    };
    if (std::ranges::any_of(arguments.files, names_it)) continue;
    const bool is_set = std::ranges::any_of(arguments.values, names_it);
    if (!is_set && data_set_or_null != nullptr && data_set_or_null->inputs[i]) continue;
    const char* const option = is_set ? "--set" : "--random-inputs";
    if (std::ranges::find(options, option) == options.end()) options.emplace_back(option);
    if (text.empty()) example = input.name;
    text += (text.empty() ? "" : ", ") + fmt::format("{} ({})", input.name, input.text);
  }
  if (text.empty()) return "";
  return fmt::format(
      "{} counted the open dimensions of {} as 1; --dim, --shape {}=2x3 or --input {}=FILE gives "
      "others",
      fmt::join(options, " and "), text, example, example);
}

NamedTensors name_inputs(const ModelValues& model, const std::vector<HostValue>& values) {
  EDDY_CHECK(values.size() <= model.inputs.size()) << values.size() << " values";
  NamedTensors tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    tensors.emplace_back(model.inputs[i].name, borrow_value(values[i]));
  }
  return tensors;
}

}  // namespace eddy
