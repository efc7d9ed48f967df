#include "tools/command/model.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/io/file_bytes.h"
#include "graph/io/import.h"
#include "graph/ir/symbols.h"
#include "graph/schedule/costs/cost_model.h"
#include "graph/schedule/costs/cost_table.h"
#include "runtime/api/plan_file.h"
#include "runtime/api/saved_plan.h"
#include "runtime/cuda/cuda_report.h"
#include "runtime/cuda/make_cuda_device.h"
#include "runtime/net/rank_session.h"
#include "runtime/net/world.h"
#include "runtime/virtual/virtual_device.h"
#include "tools/command/machine_memory.h"
#include "tools/command/number_check.h"
#include "tools/command/rank_options.h"

namespace eddy {
namespace {

// `option` is the whole text given, for the message.
Result<int64_t> parse_size(std::string_view digits, const std::string& option) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size() || size < 0) {
    return invalid_argument(
        fmt::format("{}: '{}' is no size; give a number from 0", option, digits));
  }
  return size;
}

Result<std::pair<std::string, int64_t>> parse_dim(const std::string& text) {
  EDDY_ASSIGN_OR_RETURN(auto assignment, split_assignment(text, "--dim", "NAME=N"));
  EDDY_ASSIGN_OR_RETURN(const int64_t size, parse_size(assignment.second, "--dim " + text));
  return std::make_pair(assignment.first, size);
}

// Nothing after the '=' is a scalar.
Result<std::pair<std::string, Dims>> parse_shape(const std::string& text) {
  EDDY_ASSIGN_OR_RETURN(auto assignment, split_assignment(text, "--shape", "NAME=2x3"));
  Dims dims;
  std::string_view rest = assignment.second;
  while (!rest.empty()) {
    if (dims.rank() == kMaxRank) {
      return invalid_argument(
          fmt::format("--shape {}: Eddy's tensors have at most {} dimensions", text, kMaxRank));
    }
    const size_t end = std::min(rest.find('x'), rest.size());
    EDDY_ASSIGN_OR_RETURN(const int64_t size, parse_size(rest.substr(0, end), "--shape " + text));
    dims.push_back(size);
    if (end + 1 == rest.size())
      return invalid_argument("--shape " + text + ": a size is missing after the last x");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::make_pair(std::move(assignment.first), dims);
}

constexpr uint64_t kMaxCostBytes = uint64_t{1} << 26;

Result<std::shared_ptr<const CostTable>> read_costs(const std::string& path) {
  auto file = read_file(path, kMaxCostBytes);
  if (!file.is_ok()) {
    return Status(file.status().code(),
                  file.status().message() + "; --costs takes a table that eddy measure wrote");
  }
  const std::span<const std::byte> bytes = (*file)->bytes();
  auto table = parse_cost_table({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!table.is_ok()) return std::move(table.take_status().prepend_message("--costs " + path));
  return std::shared_ptr<const CostTable>(std::make_shared<CostTable>(std::move(*table)));
}

}  // namespace

Status check_dims(const Graph& graph, const SessionOptions& options, const std::string& path) {
  if (options.dims.empty()) return Status::ok();
  const std::set<std::string> names = symbolic_dims(graph);
  for (const auto& [name, size] : options.dims) {
    if (names.contains(name)) continue;
    return invalid_argument(fmt::format(
        "--dim {}={}: {} has no symbolic dimension of that name; {}", name, size, path,
        names.empty() ? "it has none at all" : fmt::format("it has {}", fmt::join(names, ", "))));
  }
  return Status::ok();
}

void add_planning_options(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--assign", arguments.assign, "how nodes are put on streams")
      ->check(CLI::IsMember({"auto", "rank", "matching", "serial"}))
      ->capture_default_str();
  app.add_option("--streams", arguments.streams, "at most this many streams on a device")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--costs", arguments.costs,
                 "measured costs of nodes, a JSON file of eddy measure");
  app.add_option("--rank-by", arguments.rank_by,
                 "what ranks count: nodes that follow, or their costs")
      ->check(CLI::IsMember({"nodes", "costs"}))
      ->capture_default_str();
}

namespace {

std::string check_device(const std::string& device) {
  const bool is_known = device == "cpu" || device == "virtual" || cuda_ordinal(device);
  return is_known ? "" : device + " is not cpu, cuda, cuda:N (the N-th GPU, from 0) or virtual";
}

}  // namespace

// long: one option after the other
void add_model_options(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--device", arguments.device,
                 "where the model runs: cpu, cuda, cuda:N (of several GPUs, from 0) or virtual")
      ->check(check_device)
      ->capture_default_str();
  app.add_option("--seed", arguments.order_seed,
                 "the order in which the virtual device runs streams and strands")
      ->check(check_seed());
  app.add_option("--policy", arguments.policy, "how the virtual device chooses that order")
      ->check(CLI::IsMember({"uniform", "pct", "starve", "late", "early"}))
      ->capture_default_str();
  app.parse_complete_callback([&app, &arguments] {
    const bool is_ordered = app.count("--seed") > 0 || app.count("--policy") > 0;
    if (is_ordered && arguments.device != "virtual") {
      throw CLI::ValidationError("--seed, --policy",
                                 "they order the virtual device; add --device virtual");
    }
    if (arguments.tf32 && (!cuda_ordinal(arguments.device) || arguments.exact)) {
      throw CLI::ValidationError("--tf32", "it rounds products of --device cuda, without --exact");
    }
    if (arguments.measure_convolutions && (!cuda_ordinal(arguments.device) || arguments.exact)) {
      throw CLI::ValidationError("--measure-convolutions",
                                 "it chooses algorithms of --device cuda, without --exact");
    }
    if (arguments.channels_last && (!cuda_ordinal(arguments.device) || arguments.exact)) {
      throw CLI::ValidationError(*arguments.channels_last ? "--channels-last" : "--channels-first",
                                 "it lays out images of --device cuda, without --exact");
    }
    if (arguments.locate_faults && !cuda_ordinal(arguments.device)) {
      throw CLI::ValidationError(
          "--locate-faults", "it is for --device cuda; elsewhere errors name their node anyway");
    }
  });
  app.add_option(
         "--loops", arguments.loops,
         "who decides a loop's next iteration; auto on a GPU tries what there is in the first "
         "runs of a session, then keeps to the fastest")
      ->check(CLI::IsMember({"auto", "host", "device"}))
      ->capture_default_str();
  app.add_flag("--tf32", arguments.tf32,
               "--device cuda: let float32 products round their operands to TF32 (faster)");
  app.add_flag(
      "--measure-convolutions", arguments.measure_convolutions,
      "--device cuda: run each convolution of known shape by cuDNN's fastest algorithm, as "
      "it was measured when this kind of GPU first met the shape (other bits than without; "
      "kept in Eddy's cache folder)");
  CLI::Option* const last = app.add_flag_callback(
      "--channels-last", [&arguments] { arguments.channels_last = true; },
      "--device cuda: convolutions, and what stands between them, read images whose channels come "
      "last, as cuDNN's kernels for tensor cores do (other bits; the default with --tf32)");
  app.add_flag_callback(
         "--channels-first", [&arguments] { arguments.channels_last = false; },
         "--device cuda: such images have channels first (the default without --tf32)")
      ->excludes(last);
  app.add_flag(
      "--exact", arguments.exact,
      "the same bits however loops are driven; no normalization folded into a convolution, "
      "no convolution on channels in blocks or by Winograd's transforms, no matrix turned over "
      "before a loop");
  app.add_flag(
      "--locate-faults", arguments.locate_faults,
      "--device cuda: if the GPU is lost in a run, say which nodes it was at (slower: each "
      "node has two small kernels more, and no loop is one kernel)");
  app.add_option("--threads", arguments.threads, "CPU workers; 0: one for each processor")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--memory", arguments.memory_bytes,
                 "all tensors in bytes, or as 2GiB, in equal shares for ranks; what wants more is "
                 "refused (three quarters of the machine's)")
      ->transform(CLI::AsSizeValue(false))
      ->check(check_number("bytes, from 1 to 8EiB", 1, 0x1p63 - 1024));
  add_shape_options(app, arguments.dims, arguments.shapes);
}

void add_shape_options(CLI::App& app, std::vector<std::string>& dims,
                       std::vector<std::string>& shapes) {
  app.add_option("--dim", dims, "NAME=N: the size of a symbolic dimension")
      ->take_all()
      ->check(check_assignment("NAME=N"))
      ->allow_extra_args(false);
  app.add_option("--shape", shapes,
                 "NAME=2x3: the whole shape of an input; nothing after = is a scalar")
      ->take_all()
      ->check(check_assignment("NAME=2x3"))
      ->allow_extra_args(false);
}

namespace {

std::function<Result<std::shared_ptr<Device>>()> virtual_device(const ModelArguments& arguments,
                                                                size_t memory_limit_bytes) {
  VirtualDeviceOptions options;
  options.memory_limit_bytes = memory_limit_bytes;
  options.engine.order.seed = arguments.order_seed;
  options.engine.order.policy =
      find_schedule_policy(arguments.policy).value_or(SchedulePolicy::kUniform);
  if (arguments.threads > 0) options.num_workers = arguments.threads;
  return [options]() -> Result<std::shared_ptr<Device>> {
    return std::shared_ptr<Device>(std::make_shared<VirtualDevice>(options));
  };
}

}  // namespace

Result<SessionOptions> make_session_options(const ModelArguments& arguments) {
  SessionOptions options;
  if (const std::optional<int> ordinal = cuda_ordinal(arguments.device)) {
    const std::string option = "--device " + arguments.device;
    Status status = check_gpu(report_cuda(), *ordinal);
    if (!status.is_ok()) return std::move(status.prepend_message(option));
    const CudaOptions wanted{.device = {.ordinal = *ordinal},
                             .allows_tf32 = arguments.tf32,
                             .measures_convolutions = arguments.measure_convolutions,
                             .channels_last = arguments.channels_last};
    options.make_devices = {[option, cuda = wanted] {
      Result<ExecutionDevice> made = make_cuda_device(cuda);
      if (made.is_ok()) return made;
      return Result<ExecutionDevice>(std::move(made.take_status().prepend_message(option)));
    }};
    options.locate_faults = arguments.locate_faults;
  }
  if (!arguments.costs.empty()) {
    EDDY_ASSIGN_OR_RETURN(options.costs, read_costs(arguments.costs));
  }
  options.folds_norms = options.blocks_channels = !arguments.exact;
  options.rank_by_costs = arguments.rank_by == "costs";
  options.num_threads = arguments.threads;
  // A run that needs more than three quarters of the machine's memory is refused; the kernel would
  // kill it.
  options.memory_limit_bytes =
      arguments.memory_bytes > 0 ? arguments.memory_bytes : machine_memory_bytes() / 4 * 3;
  if (arguments.device == "virtual") {
    options.make_device = virtual_device(arguments, options.memory_limit_bytes);
  }
  options.max_streams = arguments.streams;
  options.loops = arguments.loops == "host"     ? Loops::kHost
                  : arguments.loops == "device" ? Loops::kDevice
                                                : Loops::kAuto;
  options.assignment = arguments.assign == "rank"       ? Assignment::kRank
                       : arguments.assign == "matching" ? Assignment::kMatching
                       : arguments.assign == "serial"   ? Assignment::kSerial
                                                        : Assignment::kAuto;
  for (const std::string& text : arguments.dims) {
    EDDY_ASSIGN_OR_RETURN(auto dim, parse_dim(text));
    options.dims.push_back(std::move(dim));
  }
  for (const std::string& text : arguments.shapes) {
    EDDY_ASSIGN_OR_RETURN(auto shape, parse_shape(text));
    options.input_dims.push_back(std::move(shape));
  }
  return options;
}

namespace {

Result<Graph> import_model(const Library& library, const std::string& path,
                           const SessionOptions& options, std::vector<std::string>& warnings) {
  ImportOptions import_options;
  import_options.warn = [&](std::string_view line) {
    warnings.push_back(fmt::format("warning: {}: {}", path, line));
  };
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx(path, library.ops(), import_options));
  EDDY_RETURN_IF_ERROR(check_dims(graph, options, path));
  if (options.ranks.world) {
    EDDY_RETURN_IF_ERROR(
        check_rank_options(options.ranks, graph, options.ranks.world->num_ranks()));
  }
  return graph;
}

}  // namespace

Result<Graph> import_file(const Library& library, const std::string& path,
                          const ImportOptions& options) {
  return is_plan_file(path) ? import_plan_graph(library, path, options)
                            : import_onnx(path, library.ops(), options);
}

Result<Model> load_model(const Library& library, const std::string& path,
                         const SessionOptions& options) {
  const int64_t start_ns = now_ns();
  Model model;
  if (is_plan_file(path)) {
    SessionOptions own = options;
    own.folds_norms = false;  // the plan's; --exact asks for more
    EDDY_ASSIGN_OR_RETURN(model.session, Session::load(library, path, own));
    model.load_ns = now_ns() - start_ns;
    return model;
  }
  Result<Graph> graph = import_model(library, path, options, model.warnings);
  if (!graph.is_ok()) {
    // The other ranks wait for it.
    if (options.ranks.world) RankSession::create(options.ranks)->refuse(graph.status());
    return graph.take_status();
  }
  model.load_ns = now_ns() - start_ns;
  auto session = Session::create(library, std::move(*graph), options);
  if (!session.is_ok()) {
    Status status = session.take_status();
    // What is another rank's names it first, and that rank's file may be another.
    const bool is_own = options.ranks.is_one_graph || !status.message().starts_with("rank ");
    if (is_own) status.prepend_message(path);
    return status;
  }
  model.session = std::move(session).value();
  if (options.costs) {
    const Graph& planned = model.session->graph();
    const std::string text = cost_coverage(planned, *options.costs).text(planned);
    if (!text.empty()) model.warnings.push_back(fmt::format("--costs: {}: {}", path, text));
  }
  return model;
}

Result<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                             const char* option, const char* form) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid_argument(fmt::format("{} {}: expected {}", option, text, form));
  }
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace eddy
