#include "graph/strategy/scenarios/region_transfers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

const Operator& producer_of(const TransferSource& source) {
  return source.costs->operators.operators[source.op];
}

// The tiles of an operator, the reduction left out.
OperatorConfig tiles_of(const OperatorConfig& config) {
  EDDY_CHECK(config.reduce > 0 && config.devices.size() % static_cast<size_t>(config.reduce) == 0)
      << config.devices.size() << " parts, " << config.reduce << " a tile";
  OperatorConfig tiles{.degree = config.degree, .reduce = 1, .devices = {}};
  for (size_t part = 0; part < config.devices.size(); part += static_cast<size_t>(config.reduce)) {
    tiles.devices.push_back(config.devices[part]);
  }
  return tiles;
}

Status fail_too_many(const OuterRead& read) {
  return resource_exhausted(
      fmt::format("'{}': more than {} transfers cross the borders of loops and branches; give the "
                  "operators fewer parts",
                  read.op.name, kMaxRegionTransfers));
}

}  // namespace

Status RegionTransfers::send(const std::vector<TransferSource>& sources, const std::string& name,
                             const OuterRead& read, ScenarioRegion& region) {
  const auto is_expected = [&](const TransferSource& source) {
    return producer_of(source).shape == read.shape;
  };
  const bool has_expected = std::ranges::any_of(sources, is_expected);
  for (const TransferSource& source : sources) {
    if (has_expected && !is_expected(source)) continue;
    EDDY_RETURN_IF_ERROR(send_one(source, name, read, region));
  }
  return Status::ok();
}

Status RegionTransfers::send_one(const TransferSource& source, const std::string& name,
                                 const OuterRead& read, ScenarioRegion& region) {
  const Operator& producer = producer_of(source);
  const OperatorConfig& config = source.costs->strategy[source.op];
  EDDY_CHECK(read.op.inputs.size() == 1 && source.region != nullptr)
      << read.op.name << " reads one tensor";
  EDDY_CHECK(read.targets.size() <= 1 || read.targets.size() == read.config.devices.size())
      << read.targets.size() << " entries for " << read.config.devices.size() << " parts";
  const OperatorConfig tiles = tiles_of(config);
  Operator consumer = read.op;
  if (producer.shape != read.shape) consumer.inputs[0].dims = {};
  overlaps_.set(producer, tiles, consumer, read.config, 0);
  if (overlaps_.has_more_pairs_than(kMaxRegionTransfers)) return fail_too_many(read);
  const int64_t bytes_per_element = source.costs->operators.bytes_per_element;
  Status status;
  overlaps_.for_each([&](uint32_t part, uint32_t tile, int64_t elements) {
    if (!status.is_ok() || tiles.devices[tile] == read.config.devices[part]) return;
    uint32_t last = 0;
    const std::string of_tile = fmt::format("{}.{}{}", name, config.reduce > 1 ? "sum." : "", tile);
    status = send_tile(source, tile, of_tile, read, part, elements * bytes_per_element, last);
    if (status.is_ok() && source.region == &region && !read.targets.empty()) {
      region.entries[read.target(part)].deps.push_back(last);
    }
  });
  return status;
}

Status RegionTransfers::send_tile(const TransferSource& source, uint32_t tile,
                                  const std::string& name, const OuterRead& read, uint32_t part,
                                  int64_t size_bytes, uint32_t& last) {
  const OperatorConfig& config = source.costs->strategy[source.op];
  const uint32_t from = config.devices[tile * static_cast<size_t>(config.reduce)];
  const uint32_t to = read.config.devices[part];
  std::vector<uint32_t> deps;
  if (!source.deps.empty()) {
    EDDY_DCHECK(tile < source.deps.size()) << "tile " << tile << " of " << source.deps.size();
    deps.push_back(source.deps[tile]);
  }
  for (uint32_t at = from; at != to;) {
    const uint32_t number = topology_.next_link(at, to);
    if (number == UINT32_MAX) {
      return invalid_argument(
          fmt::format("no link leads from '{}' to '{}', which '{}' needs; add one to the topology",
                      topology_.node(from).name, topology_.node(to).name, read.op.name));
    }
    if (++num_transfers_ > kMaxRegionTransfers) return fail_too_many(read);
    const Link& link = topology_.link(number);
    ScenarioEntry hop;
    hop.name = fmt::format("{}->{}.{}", name, read.op.name, part);
    if (at != from || link.to != to) {
      hop.name +=
          fmt::format("@{}>{}", topology_.node(link.from).name, topology_.node(link.to).name);
    }
    hop.exe_time = link.time(size_bytes);
    hop.device = link.channel;
    hop.deps = std::move(deps);
    last = static_cast<uint32_t>(source.region->entries.size());
    deps = {last};
    source.region->entries.push_back(std::move(hop));
    at = link.to;
  }
  return Status::ok();
}

}  // namespace eddy
