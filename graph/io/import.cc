#include "graph/io/import.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "graph/base/check.h"
#include "graph/io/check_operators.h"
#include "graph/io/import_training.h"
#include "graph/io/importer.h"
#include "graph/io/parse_model.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

// Few enough, and one version for each domain; exporters may list the same version twice.
Status check_imports(const std::vector<OnnxOpset>& opsets, const std::string& whose,
                     const ImportLimits& limits) {
  if (opsets.size() > limits.max_opsets) {
    return resource_exhausted(whose + " imports opsets of " + std::to_string(opsets.size()) +
                              " domains; at most " + std::to_string(limits.max_opsets) +
                              " are allowed");
  }
  const OpsetTable table(opsets);
  for (const OnnxOpset& opset : opsets) {
    const std::string_view domain = canonical_domain(opset.domain);
    if (opset.version == 0) {
      return unsupported(whose + " imports opset 0 of domain " + quoted(domain) +
                         ", and opsets count from 1; export it again");
    }
    if (table.version_or_zero(domain) == opset.version) continue;
    return invalid_argument(
        whose + " imports opsets " + std::to_string(table.version_or_zero(domain)) + " and " +
        std::to_string(opset.version) + " of domain " + quoted(domain) + "; a domain has one");
  }
  return Status::ok();
}

Status check_all_imports(const OnnxModel& model, const ImportLimits& limits) {
  EDDY_RETURN_IF_ERROR(check_imports(model.opsets, "the model", limits));
  for (const OnnxFunction& function : model.functions) {
    EDDY_RETURN_IF_ERROR(
        check_imports(function.opsets, "function " + quoted(function.name), limits));
  }
  return Status::ok();
}

Status check_opset(const OnnxModel& model, const ImportOptions& options) {
  if (model.opsets.empty()) {
    return invalid_argument(
        "the model has no opset_import, so nothing says what its operators mean; export it again");
  }
  const int64_t version = OpsetTable(model.opsets).version_or_zero("");
  if (version == 0 || (version >= options.min_opset && version <= options.max_opset)) {
    return Status::ok();
  }
  return unsupported("opset " + std::to_string(version) + " is not supported, only " +
                     std::to_string(options.min_opset) + " to " +
                     std::to_string(options.max_opset) + "; convert the model");
}

// One reading of one file: keeps what the importer borrows.
class Reading {
 public:
  Reading(std::string folder, const ImportOptions& options)
      : budget_(options.limits),
        external_(std::move(folder), options.limits, budget_),
        options_(options) {}

  // `edit` changes what was parsed, before anything is made of it.
  using Edit = std::function<Status(OnnxModel&)>;
  Status open(std::shared_ptr<FileBytes> bytes, const OpTable& ops, const Edit& edit = {}) {
    bytes_ = std::move(bytes);
    if (const std::optional<uint64_t> begin = options_.data_begin) {
      EDDY_CHECK(*begin <= bytes_->bytes().size()) << *begin << " is behind the model's bytes";
      external_.set_own(bytes_->bytes().subspan(*begin));
    }
    budget_.add_file(bytes_->bytes().size());
    EDDY_ASSIGN_OR_RETURN(model_, parse_model(bytes_->bytes(), options_.limits, budget_));
    EDDY_RETURN_IF_ERROR(check_all_imports(model_, options_.limits));
    EDDY_RETURN_IF_ERROR(check_opset(model_, options_));
    if (edit) EDDY_RETURN_IF_ERROR(edit(model_));
    EDDY_RETURN_IF_ERROR(functions_.add_all(model_.functions));
    return check_operators(model_, functions_, ops);
  }

  const OnnxModel& model() const { return model_; }

  template <typename Import>
  void import_with(GraphBuilder& builder, const Import& import) {
    EDDY_CHECK(bytes_ != nullptr) << "a file is imported once, after it was opened";
    Importer importer(model_, functions_, builder, external_, budget_, options_, [this] {
      bytes_->evict();
      external_.evict();
    });
    import(importer);
    // Also after an error: what was added already points into the files.
    builder.adopt(std::move(bytes_));
    for (auto& file : external_.release()) builder.adopt(std::move(file));
  }

 private:
  MemoryBudget budget_;
  ExternalData external_;
  const ImportOptions& options_;
  std::shared_ptr<FileBytes> bytes_;
  OnnxModel model_;
  FunctionTable functions_;
};

Result<Graph> import_whole(std::shared_ptr<FileBytes> bytes, std::string folder, const OpTable& ops,
                           const ImportOptions& options, const Reading::Edit& edit = {}) {
  Reading reading(std::move(folder), options);
  EDDY_RETURN_IF_ERROR(reading.open(std::move(bytes), ops, edit));
  const std::string_view name = reading.model().graph.name;
  GraphBuilder builder(ops, name.empty() ? "graph" : std::string(name));
  for (const OnnxOpset& opset : reading.model().opsets) {
    builder.set_opset(std::string(canonical_domain(opset.domain)),
                      static_cast<int>(std::min<int64_t>(opset.version, INT32_MAX)));
  }
  reading.import_with(builder, [](Importer& importer) { importer.import_root(); });
  return builder.finish();
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// ---- Training ----

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

Status check_training(const OnnxModel& model) {
  if (model.training.empty()) {
    return not_found("the model has no training_info; name a loss and an optimizer");
  }
  if (model.training.size() == 1) return Status::ok();
  return unsupported("the model has " + std::to_string(model.training.size()) +
                     " training_infos; one is supported");
}

// The algorithm behind the model's own nodes.
Status combine(OnnxModel& model) {
  EDDY_RETURN_IF_ERROR(check_training(model));
  OnnxGraph& algorithm = model.training[0].algorithm;
  append(model.graph.nodes, algorithm.nodes);
  append(model.graph.initializers, algorithm.initializers);
  append(model.graph.sparse_initializers, algorithm.sparse_initializers);
  append(model.graph.inputs, algorithm.inputs);
  append(model.graph.outputs, algorithm.outputs);
  return Status::ok();
}

// Initializers that are updated become inputs.
Status combine_with_inputs(OnnxModel& model) {
  EDDY_RETURN_IF_ERROR(combine(model));
  for (const OnnxEntry& binding : model.training[0].update_binding) {
    auto& initializers = model.graph.initializers;
    const auto at = std::ranges::find(initializers, binding.key, &OnnxTensor::name);
    if (at == initializers.end()) {
      return invalid_argument("update_binding names " + quoted(binding.key) +
                              " twice, or no initializer of that name is dense");
    }
    OnnxValueInfo input{binding.key, true, {}};
    input.type.is_tensor = true;
    input.type.element = at->data_type;
    input.type.has_shape = true;
    for (const int64_t size : at->dims) {
      input.type.dims.push_back({OnnxDim::Kind::kValue, size, {}});
    }
    std::erase_if(model.graph.inputs,
                  [&](const OnnxValueInfo& each) { return each.name == binding.key; });
    model.graph.inputs.push_back(std::move(input));
    initializers.erase(at);
  }
  return Status::ok();
}

Result<ImportedUpdate> read_update(const OnnxModel& model, const OnnxEntry& binding,
                                   const Graph& whole) {
  ImportedUpdate update;
  update.initializer = binding.key;
  update.output = binding.value;
  for (const OnnxEntry& first : model.training[0].initialization_binding) {
    if (first.key == binding.key) update.initial_output = first.value;
  }
  update.is_of_model = std::ranges::find(model.graph.initializers, binding.key,
                                         &OnnxTensor::name) != model.graph.initializers.end();
  const Constant* found = nullptr;
  for (uint32_t v = 0; v < whole.num_values(); ++v) {
    const ValueInfo& info = whole.value(ValueId(v));
    if (info.origin != ValueOrigin::kConstant || info.name != binding.key) continue;
    found = &whole.constant(info.constant);
  }
  if (found == nullptr) {
    return invalid_argument("update_binding names " + quoted(binding.key) +
                            ", which is no initializer");
  }
  const auto output = std::ranges::find(whole.output_names(), binding.value);
  if (output == whole.output_names().end()) {
    return invalid_argument("update_binding names " + quoted(binding.value) +
                            ", which is no output of the algorithm");
  }
  const auto place = static_cast<size_t>(output - whole.output_names().begin());
  const ValueType& type = whole.value(whole.outputs()[place]).type;
  if (!is_compatible(type, found->type())) {
    return invalid_argument(quoted(binding.value) + " is " + to_string(type) + ", but " +
                            quoted(binding.key) + ", which it is bound to, is " +
                            to_string(found->type()));
  }
  const size_t size = found->view().size_bytes();
  update.value = {found->element, found->dims, std::make_unique<std::byte[]>(size)};
  if (size > 0) std::memcpy(update.value.bytes.get(), found->data, size);
  return update;
}

Result<ImportedTraining> import_training_parts(const std::string& path, const OpTable& ops,
                                               const ImportOptions& options) {
  const auto import_edited = [&](const Reading::Edit& edit) -> Result<Graph> {
    EDDY_ASSIGN_OR_RETURN(auto bytes, read_file(path, options.limits.max_file_bytes));
    return import_whole(std::move(bytes), folder_of(path), ops, options, edit);
  };
  EDDY_ASSIGN_OR_RETURN(const Graph whole, import_edited(combine));
  EDDY_ASSIGN_OR_RETURN(Graph step, import_edited(combine_with_inputs));
  ImportedTraining training{std::move(step), {}, {}};
  EDDY_ASSIGN_OR_RETURN(const auto bytes, read_file(path, options.limits.max_file_bytes));
  EDDY_ASSIGN_OR_RETURN(OnnxModel model, parse_model(bytes->bytes(), options.limits));
  for (const OnnxEntry& binding : model.training[0].update_binding) {
    EDDY_ASSIGN_OR_RETURN(ImportedUpdate update, read_update(model, binding, whole));
    training.updates.push_back(std::move(update));
  }
  if (!model.training[0].has_initialization) return training;
  EDDY_ASSIGN_OR_RETURN(Graph initialization, import_edited([](OnnxModel& edited) {
                          edited.graph = std::move(edited.training[0].initialization);
                          return Status::ok();
                        }));
  for (const ImportedUpdate& update : training.updates) {
    if (update.initial_output.empty()) continue;
    if (std::ranges::count(initialization.output_names(), update.initial_output) > 0) continue;
    return invalid_argument("initialization_binding names " + quoted(update.initial_output) +
                            ", which is no output of the initialization");
  }
  training.initialization = std::move(initialization);
  return training;
}

}  // namespace

Result<ImportedTraining> import_training(const std::string& path, const OpTable& ops,
                                         const ImportOptions& options) {
  auto training = import_training_parts(path, ops, options);
  if (!training.is_ok())
    return std::move(training.take_status().prepend_message(quoted_path(path)));
  return training;
}

Result<Graph> import_onnx(const std::string& path, const OpTable& ops,
                          const ImportOptions& options) {
  // Errors of opening name the file themselves.
  EDDY_ASSIGN_OR_RETURN(auto bytes, read_file(path, options.limits.max_file_bytes));
  Result<Graph> graph = import_whole(std::move(bytes), folder_of(path), ops, options);
  if (!graph.is_ok()) return std::move(graph.take_status().prepend_message(quoted_path(path)));
  return graph;
}

Result<Graph> import_onnx_bytes(std::span<const std::byte> bytes, const OpTable& ops,
                                const ImportOptions& options) {
  auto copy = FileBytes::copy_of(bytes);
  if (copy == nullptr) return resource_exhausted("out of memory for the model's bytes");
  return import_onnx_blob(std::move(copy), ops, options);
}

Result<Graph> import_onnx_blob(std::shared_ptr<FileBytes> bytes, const OpTable& ops,
                               const ImportOptions& options) {
  return import_whole(std::move(bytes), options.external_folder, ops, options);
}

Result<std::vector<NamedValue>> import_onnx_into(GraphBuilder& builder, const std::string& path,
                                                 const OpTable& ops,
                                                 std::span<const NamedValue> inputs,
                                                 const ImportOptions& options) {
  EDDY_RETURN_IF_ERROR(builder.status());
  auto bytes = read_file(path, options.limits.max_file_bytes);
  if (!bytes.is_ok()) {
    builder.fail(bytes.take_status());  // names the file itself
    return builder.status();
  }
  Reading reading(folder_of(path), options);
  std::vector<NamedValue> outputs;
  Status status = reading.open(std::move(*bytes), ops);
  if (status.is_ok()) {
    reading.import_with(builder,
                        [&](Importer& importer) { outputs = importer.import_inline(inputs); });
  } else {
    builder.fail(std::move(status));
  }
  builder.prepend_failure(quoted_path(path));
  EDDY_RETURN_IF_ERROR(builder.status());
  return outputs;
}

}  // namespace eddy
