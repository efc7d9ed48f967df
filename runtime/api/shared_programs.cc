#include "runtime/api/shared_programs.h"

#include <algorithm>
#include <cstdint>

namespace eddy {
namespace {

void add_names(const Graph& graph, Fingerprint& key) {
  key.add(graph.name());
  for (uint32_t r = 0; r < graph.num_regions(); ++r) key.add(graph.region(RegionId(r)).name);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) key.add(graph.node(NodeId(n)).name);
  for (uint32_t v = 0; v < graph.num_values(); ++v) key.add(graph.value(ValueId(v)).name);
  for (const std::string& name : graph.output_names()) key.add(name);
}

void add_options(const SessionOptions& options, Fingerprint& key) {
  const auto put = [&key](auto number) { key.add(static_cast<uint64_t>(number)); };
  put(options.loops);
  put(options.assignment);
  put(options.max_streams);
  put(reinterpret_cast<uintptr_t>(options.costs.get()));
  put(options.rank_by_costs);
  put(reinterpret_cast<uintptr_t>(options.plan_for.get()));
  put(options.release_constants);
  put(options.simplify);
  put(options.folds_norms);
  put(options.blocks_channels);
  put(options.dims.size());
  for (const auto& [name, size] : options.dims) {
    key.add(name);
    put(size);
  }
  put(options.input_dims.size());
  for (const auto& [name, dims] : options.input_dims) {
    key.add(name);
    put(dims.rank());
    for (const int64_t dim : dims) put(dim);
  }
}

}  // namespace

Fingerprint named_fingerprint(const Fingerprint& given, const Graph& graph) {
  Fingerprint named = given;
  add_names(graph, named);
  return named;
}

std::string program_key(const Fingerprint& named, const SessionOptions& options, int num_workers) {
  Fingerprint key = named;
  add_options(options, key);
  key.add(static_cast<uint64_t>(num_workers));
  return key.text();
}

std::shared_ptr<const CompiledProgram> SharedPrograms::find_or_null(const std::string& key) {
  if (fork_guard_.is_in_child()) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<const CompiledProgram> SharedPrograms::offer(
    const std::string& key, std::shared_ptr<const CompiledProgram> program) {
  if (fork_guard_.is_in_child()) return program;
  const std::lock_guard lock(mutex_);
  std::erase_if(programs_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<const CompiledProgram>& known = programs_[key];
  if (std::shared_ptr<const CompiledProgram> earlier = known.lock()) return earlier;
  known = program;
  return program;
}

size_t SharedPrograms::size() {
  if (fork_guard_.is_in_child()) return 0;
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(programs_, [](const auto& each) { return !each.second.expired(); }));
}

}  // namespace eddy
