#include "runtime/api/saved_plan.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/io/export.h"
#include "graph/io/file_bytes.h"
#include "graph/io/import.h"
#include "graph/io/text.h"
#include "graph/program/fingerprint.h"
#include "ops/cpu/cpu_kernels.h"
#include "runtime/api/make_session_core.h"
#include "runtime/api/plan_file.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/session.h"
#include "runtime/api/session_core.h"
#include "runtime/api/shared_programs.h"
#include "runtime/api/version.h"
#include "runtime/device/no_thread.h"

namespace eddy {
namespace {

constexpr uint64_t kMostFileBytes = UINT64_MAX;
// Of constants that stand in the data: smaller ones are part of the graph's key.
constexpr size_t kMinPlacedBytes = 8192;

Status check_devices(const SessionOptions& options) {
  if (!options.make_devices.empty()) {
    return unsupported(
        "a saved plan is of the CPU's kernels; use the model itself on other devices");
  }
  if (options.ranks.world != nullptr) {
    return unsupported("a saved plan has no ranks; use the model itself with them");
  }
  return Status::ok();
}

// Stands for a graph with its names, but for the bytes of large constants, for which `made` stands.
std::string graph_key(const Fingerprint& made, const Graph& graph) {
  return named_fingerprint(simplified_fingerprint(made, graph), graph).text();
}

// By the address of their bytes: the first constant that has it.
std::unordered_map<const void*, uint32_t> constants_by_address(const Graph& graph) {
  std::unordered_map<const void*, uint32_t> constants;
  constants.reserve(graph.num_constants());
  for (uint32_t c = 0; c < graph.num_constants(); ++c) {
    constants.emplace(graph.constant(ConstantId(c)).data, c);
  }
  return constants;
}

PlanFile facts_of(const SessionOptions& options) {
  PlanFile plan;
  plan.eddy = kVersion;
  plan.compiler = __VERSION__;
  plan.kernels = describe_cpu_kernels();
  plan.simplify = options.simplify;
  plan.folds_norms = options.folds_norms;
  plan.blocks_channels = options.blocks_channels;
  plan.dims = options.dims;
  plan.input_dims = options.input_dims;
  return plan;
}

Status check_same(const char* what, const std::string& saved, const std::string& here) {
  if (saved == here) return Status::ok();
  return unsupported("the plan was saved for " + std::string(what) + " " + quoted(saved) +
                     ", and here it is " + quoted(here) + "; save it again here from its model");
}

Status check_here(const PlanFile& plan) {
  EDDY_RETURN_IF_ERROR(check_same("Eddy", plan.eddy, kVersion));
  EDDY_RETURN_IF_ERROR(check_same("compiler", plan.compiler, __VERSION__));
  return check_same("kernels", plan.kernels, describe_cpu_kernels());
}

Status other_option(const std::string& option) {
  return unsupported("the plan was saved with another " + option +
                     "; leave the option out, or save a plan with it");
}

// What is left at its default takes the plan's.
Status check_options(const PlanFile& plan, const SessionOptions& options) {
  const SessionOptions defaults;
  const auto is_other = [](bool asked, bool by_default, bool saved) {
    return asked != by_default && asked != saved;
  };
  if (is_other(options.simplify, defaults.simplify, plan.simplify)) return other_option("simplify");
  if (is_other(options.folds_norms, defaults.folds_norms, plan.folds_norms)) {
    return other_option("folding of normalizations");
  }
  if (is_other(options.blocks_channels, defaults.blocks_channels, plan.blocks_channels)) {
    return other_option("setting of exact results (channels in blocks)");
  }
  for (const auto& dim : options.dims) {
    if (std::ranges::find(plan.dims, dim) == plan.dims.end()) {
      return other_option("size of dimension " + quoted(dim.first));
    }
  }
  for (const auto& input : options.input_dims) {
    if (std::ranges::find(plan.input_dims, input) == plan.input_dims.end()) {
      return other_option("shape of input " + quoted(input.first));
    }
  }
  return Status::ok();
}

// Large constants get places in the data, aligned there and equal ones once.
std::optional<uint64_t> place_constant(const Constant& constant, PlanData& data) {
  const TensorView view = constant.view();
  const bool is_plain =
      constant.element != ElementType::kString && !kPackedTypes.contains(constant.element);
  if (!is_plain || view.size_bytes() < kMinPlacedBytes) return std::nullopt;
  return data.add({static_cast<const std::byte*>(view.data), view.size_bytes()});
}

// The graph of a plan, which stands in these bytes.
Result<Graph> read_graph(const Library& library, std::shared_ptr<FileBytes> file,
                         const OpenPlanFile& open, ImportOptions options = {}) {
  options.data_begin = static_cast<uint64_t>(open.data.data() - file->bytes().data());
  return import_onnx_blob(std::move(file), library.ops(), options);
}

// Packings that are made while a plan is saved.
struct NewPackings {
  std::vector<PlanFile::Packing> packings = {};
  std::vector<PackedMemory> memory = {};
};

PackingStore store_into(NewPackings& made, const Graph& graph) {
  return {.add = [&made, constants = constants_by_address(graph)](
                     const void* constant, std::string_view layout, PackedMemory memory,
                     size_t size_bytes) {
    const auto known = constants.find(constant);
    if (known == constants.end()) return;  // packed of something else: again by each session
    made.packings.push_back({.constant = known->second,
                             .layout = std::string(layout),
                             .offset_bytes = 0,
                             .size_bytes = size_bytes});
    made.memory.push_back(std::move(memory));
  }};
}

// `file` holds open.data.
PackingStore store_of(std::shared_ptr<const FileBytes> file, const OpenPlanFile& open,
                      const Graph& graph) {
  std::map<std::pair<uint32_t, std::string>, std::span<const std::byte>, std::less<>> packings;
  for (const PlanFile::Packing& each : open.plan.packings) {
    packings.emplace(std::pair(each.constant, each.layout),
                     open.data.subspan(each.offset_bytes, each.size_bytes));
  }
  return {.find_or_null = [file = std::move(file), packings = std::move(packings),
                           constants = constants_by_address(graph)](
                              const void* constant, std::string_view layout,
                              size_t size_bytes) -> PackedMemory {
    const auto known = constants.find(constant);
    if (known == constants.end()) return nullptr;
    const auto found = packings.find(std::pair(known->second, std::string(layout)));
    if (found == packings.end() || found->second.size() != size_bytes) return nullptr;
    return PackedMemory(file, found->second.data());
  }};
}

// Those that have mapped an older file of that name keep it.
Status replace_file(const std::string& path, const std::string& content) {
  // Others may save a plan there at once.
  static std::atomic<uint64_t> number{0};
  const std::string part =
      path + ".part" + std::to_string(getpid()) + "-" + std::to_string(++number);
  EDDY_RETURN_IF_ERROR(write_file(part, content));
  if (std::rename(part.c_str(), path.c_str()) == 0) return Status::ok();
  const int error = errno;
  std::remove(part.c_str());
  return invalid_argument("cannot write " + quoted_path(path) + ": " + std::strerror(error));
}

// What a reader makes of it.
Result<Graph> read_formatted(const Library& library, PlanFile& plan, std::string_view model,
                             const PlanData& data) {
  std::shared_ptr<FileBytes> file;
  {
    const std::string content = format_plan_file(plan, model, data);
    file = FileBytes::copy_of(std::as_bytes(std::span(content)));
  }
  if (file == nullptr) return resource_exhausted("no memory for the plan's bytes");
  EDDY_ASSIGN_OR_RETURN(const OpenPlanFile open, parse_plan_file(file->bytes()));
  return read_graph(library, std::move(file), open);
}

Status save(const Library& library, Graph graph, const SessionOptions& options,
            const std::string& path, std::string notes) {
  PlanFile plan = facts_of(options);
  plan.notes = std::move(notes);
  const Fingerprint given = graph_fingerprint(graph);
  plan.given = given.text();
  EDDY_ASSIGN_OR_RETURN(const Graph ready,
                        Session::graph_to_run(library, std::move(graph), options));
  plan.made = simplified_fingerprint(given, ready);
  PlanData data;
  EDDY_ASSIGN_OR_RETURN(const std::string model, format_onnx(ready, {.place = [&](ConstantId id) {
                                                               return place_constant(
                                                                   ready.constant(id), data);
                                                             }}));
  // Bound as the reader will: the numbers of its constants are those that the file's model gives.
  EDDY_ASSIGN_OR_RETURN(Graph read, read_formatted(library, plan, model, data));
  plan.graph = graph_key(plan.made, read);
  SessionOptions own = options;
  own.release_constants = false;
  own.shares_program = false;
  own.make_device = {};
  own.check = {};
  own.log = {};
  NewPackings made;
  const PreparedGraph prepared{.made = plan.made, .packings = store_into(made, read)};
  // Packings are no more than the core's while it lives.
  EDDY_ASSIGN_OR_RETURN(const std::unique_ptr<SessionCore> core,
                        make_session_core(library, std::move(read), given, own, &prepared));
  for (size_t i = 0; i < made.packings.size(); ++i) {
    PlanFile::Packing& packing = made.packings[i];
    packing.offset_bytes = data.add({made.memory[i].get(), packing.size_bytes});
  }
  plan.packings = std::move(made.packings);
  plan.proved = fingerprint(core->plan().program);
  return replace_file(path, format_plan_file(plan, model, data));
}

Result<std::unique_ptr<SessionCore>> load(const Library& library, std::shared_ptr<FileBytes> file,
                                          const SessionOptions& options) {
  EDDY_ASSIGN_OR_RETURN(const OpenPlanFile open, parse_plan_file(file->bytes()));
  EDDY_RETURN_IF_ERROR(check_here(open.plan));
  EDDY_RETURN_IF_ERROR(check_options(open.plan, options));
  ImportOptions import_options;
  import_options.warn = options.log;
  EDDY_ASSIGN_OR_RETURN(Graph graph, read_graph(library, file, open, std::move(import_options)));
  if (graph_key(open.plan.made, graph) != open.plan.graph) {
    return invalid_argument(
        "the saved plan is spoilt (its graph has another fingerprint); save it again from its "
        "model");
  }
  Fingerprint named;
  named.add(std::string_view("saved plan"));
  named.add(open.plan.graph);
  const PreparedGraph prepared{.made = open.plan.made,
                               .named = named,
                               .proved = open.plan.proved,
                               .packings = store_of(std::move(file), open, graph)};
  return make_session_core(library, std::move(graph), open.plan.made, options, &prepared);
}

Result<std::unique_ptr<SessionCore>> load_file(const Library& library, const std::string& path,
                                               const SessionOptions& options) {
  EDDY_RETURN_IF_ERROR(check_devices(options));
  EDDY_ASSIGN_OR_RETURN(std::shared_ptr<FileBytes> file, read_file(path, kMostFileBytes));
  return load(library, std::move(file), options);
}

}  // namespace

Status save_plan(const Library& library, Graph graph, const SessionOptions& options,
                 const std::string& path, std::string notes) {
  EDDY_RETURN_IF_ERROR(check_devices(options));
  try {
    return save(library, std::move(graph), options, path, std::move(notes));
  } catch (const std::system_error& error) {
    return no_thread(error);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to save the plan");
  }
}

Result<std::string> read_plan_notes(std::span<const std::byte> plan) {
  EDDY_ASSIGN_OR_RETURN(OpenPlanFile open, parse_plan_file(plan));
  return std::move(open.plan.notes);
}

Result<std::string> read_plan_notes(const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const std::shared_ptr<const FileBytes> file,
                        read_file(path, kMostFileBytes));
  return read_plan_notes(file->bytes());
}

Status check_plan_is_of(const std::string& path, const Graph& graph) {
  EDDY_ASSIGN_OR_RETURN(const std::shared_ptr<const FileBytes> file,
                        read_file(path, kMostFileBytes));
  EDDY_ASSIGN_OR_RETURN(const OpenPlanFile open, parse_plan_file(file->bytes()));
  if (open.plan.given == graph_fingerprint(graph).text()) return Status::ok();
  return invalid_argument(quoted_path(path) +
                          " was saved of another model, or the model has changed since; save it "
                          "again");
}

Result<Graph> import_plan_graph(const Library& library, const std::string& path,
                                const ImportOptions& options) {
  EDDY_ASSIGN_OR_RETURN(std::shared_ptr<FileBytes> file, read_file(path, kMostFileBytes));
  EDDY_ASSIGN_OR_RETURN(const OpenPlanFile open, parse_plan_file(file->bytes()));
  return read_graph(library, std::move(file), open, options);
}

Result<std::unique_ptr<SessionCore>> load_plan_core(const Library& library, const std::string& path,
                                                    const SessionOptions& options) {
  Result<std::unique_ptr<SessionCore>> core = load_file(library, path, options);
  if (core.is_ok() || core.status().message().find(quoted_path(path)) != std::string::npos) {
    return core;
  }
  return std::move(core.take_status().prepend_message(quoted_path(path)));
}

Result<std::unique_ptr<SessionCore>> load_plan_core(const Library& library,
                                                    std::span<const std::byte> plan,
                                                    const SessionOptions& options) {
  EDDY_RETURN_IF_ERROR(check_devices(options));
  std::shared_ptr<FileBytes> file = FileBytes::copy_of(plan);
  if (file == nullptr) return resource_exhausted("no memory for the plan's bytes");
  return load(library, std::move(file), options);
}

}  // namespace eddy
