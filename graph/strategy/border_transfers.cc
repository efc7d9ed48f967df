#include "graph/strategy/border_transfers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace eddy {
namespace {

const Operator& producer_of(const BorderSource& source) {
  return source.list->graph.operators[source.op];
}

// The tiles of an operator, the reduction left out.
OperatorConfig tiles_of(const OperatorConfig& config) {
  OperatorConfig tiles{.degree = config.degree, .reduce = 1, .devices = {}};
  for (size_t part = 0; part < config.devices.size(); part += static_cast<size_t>(config.reduce)) {
    tiles.devices.push_back(config.devices[part]);
  }
  return tiles;
}

Status fail_too_many(const BorderReader& reader) {
  return resource_exhausted(
      fmt::format("'{}': more than {} transfers cross the borders of loops and branches; give the "
                  "operators fewer parts",
                  reader.reading->op.name, kMaxBorderTransfers));
}

}  // namespace

Status BorderTransfers::send(const std::vector<BorderSource>& sources, const BorderReader& reader,
                             ScenarioRegion& region) {
  const auto is_expected = [&](const BorderSource& source) {
    return producer_of(source).shape == reader.reading->shape;
  };
  const bool has_expected = std::ranges::any_of(sources, is_expected);
  for (const BorderSource& source : sources) {
    if (has_expected && !is_expected(source)) continue;
    EDDY_RETURN_IF_ERROR(send_one(source, reader, region));
  }
  return Status::ok();
}

Status BorderTransfers::send_one(const BorderSource& source, const BorderReader& reader,
                                 ScenarioRegion& region) {
  const Operator& producer = producer_of(source);
  const OperatorConfig tiles = tiles_of(source.list->strategy[source.op]);
  Operator consumer = reader.reading->op;
  if (producer.shape != reader.reading->shape) consumer.inputs[0].dims = {};
  overlaps_.set(producer, tiles, consumer, reader.reading->config, 0);
  if (overlaps_.has_more_pairs_than(kMaxBorderTransfers)) return fail_too_many(reader);
  Status status;
  overlaps_.for_each([&](uint32_t part, uint32_t tile, int64_t elements) {
    if (!status.is_ok() || tiles.devices[tile] == reader.reading->config.devices[part]) return;
    status = send_tile(source, tile, reader, part, elements * source.list->graph.bytes_per_element,
                       region);
  });
  return status;
}

Status BorderTransfers::send_tile(const BorderSource& source, uint32_t tile,
                                  const BorderReader& reader, uint32_t part, int64_t size_bytes,
                                  ScenarioRegion& region) {
  const OperatorConfig& config = source.list->strategy[source.op];
  const uint32_t from = config.devices[tile * static_cast<size_t>(config.reduce)];
  const uint32_t to = reader.reading->config.devices[part];
  const std::string name =
      fmt::format("{}.{}{}->{}.{}", reader.from, config.reduce > 1 ? "sum." : "", tile,
                  reader.reading->op.name, part);
  std::vector<uint32_t> deps;
  if (!source.deps.empty()) deps.push_back(source.deps[tile]);
  for (uint32_t at = from; at != to;) {
    const uint32_t number = topology_.next_link(at, to);
    if (number == UINT32_MAX) {
      return invalid_argument(
          fmt::format("no link leads from '{}' to '{}', which '{}' needs; add one to the topology",
                      topology_.node(from).name, topology_.node(to).name, reader.reading->op.name));
    }
    if (++num_transfers_ > kMaxBorderTransfers) {
      return fail_too_many(reader);
    }
    const Link& link = topology_.link(number);
    const bool has_hops = at != from || link.to != to;
    ScenarioEntry hop;
    hop.name = has_hops ? fmt::format("{}@{}>{}", name, topology_.node(link.from).name,
                                      topology_.node(link.to).name)
                        : name;
    hop.exe_time = link.time(size_bytes);
    hop.device = link.channel;
    hop.deps = std::move(deps);
    deps = {static_cast<uint32_t>(source.region->entries.size())};
    source.region->entries.push_back(std::move(hop));
    at = link.to;
  }
  if (source.region == &region && !reader.targets.empty()) {
    region.entries[reader.target(part)].deps.push_back(deps[0]);
  }
  return Status::ok();
}

}  // namespace eddy
