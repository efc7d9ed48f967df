#include "graph/io/import.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "graph/io/check_operators.h"
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

  Status open(std::unique_ptr<FileBytes> bytes, const OpTable& ops) {
    bytes_ = std::move(bytes);
    budget_.add_file(bytes_->bytes().size());
    EDDY_ASSIGN_OR_RETURN(model_, parse_model(bytes_->bytes(), options_.limits, budget_));
    EDDY_RETURN_IF_ERROR(check_all_imports(model_, options_.limits));
    EDDY_RETURN_IF_ERROR(check_opset(model_, options_));
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
  std::unique_ptr<FileBytes> bytes_;
  OnnxModel model_;
  FunctionTable functions_;
};

Result<Graph> import_whole(std::unique_ptr<FileBytes> bytes, std::string folder, const OpTable& ops,
                           const ImportOptions& options) {
  Reading reading(std::move(folder), options);
  EDDY_RETURN_IF_ERROR(reading.open(std::move(bytes), ops));
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

}  // namespace

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
  return import_whole(std::move(copy), options.external_folder, ops, options);
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
