#include "graph/strategy/files/file_entries.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

Status read_tiles(const JsonFields& fields, FileOperator& raw) {
  const Json* tiles = fields.find_or_null("exe_by_tile");
  if (tiles == nullptr) return Status::ok();
  if (!tiles->is_object() || tiles->empty()) {
    return fields.fail("exe_by_tile must be an object of times by tile, {\"8x16\": 3}");
  }
  for (const auto& [tile, time] : tiles->items()) {
    if (!time.is_number() || !(time.get<double>() >= 0)) {
      return fields.fail("exe_by_tile \"" + tile + "\" must be a time >= 0");
    }
    Dims dims;
    for (size_t at = 0; at <= tile.size();) {
      const size_t end = std::min(tile.find('x', at), tile.size());
      const std::string digits = tile.substr(at, end - at);
      if (digits.empty() || digits.size() > 18 || dims.rank() == kMaxRank ||
          digits.find_first_not_of("0123456789") != std::string::npos) {
        return fields.fail("exe_by_tile \"" + tile + "\" is no tile; write sizes as 8x16");
      }
      dims.push_back(std::stoll(digits));
      at = end + 1;
    }
    raw.op.exe_by_tile[tile_name(dims)] = time.get<double>();
  }
  return Status::ok();
}

Status read_attributes(const JsonFields& fields, OperatorAttributes& attributes) {
  EDDY_ASSIGN_OR_RETURN(attributes.kernel, fields.integers("kernel", true));
  EDDY_ASSIGN_OR_RETURN(attributes.stride, fields.integers("stride", true));
  EDDY_ASSIGN_OR_RETURN(attributes.axes, fields.integers("axes", true));
  EDDY_ASSIGN_OR_RETURN(attributes.perm, fields.integers("perm"));
  if (attributes.axes.empty()) {
    EDDY_ASSIGN_OR_RETURN(attributes.axes, fields.integers("axis", true));
  }
  EDDY_ASSIGN_OR_RETURN(attributes.in_features, fields.integer_or("in_features", 0));
  EDDY_ASSIGN_OR_RETURN(attributes.in_channels, fields.integer_or("in_channels", 0));
  EDDY_ASSIGN_OR_RETURN(attributes.groups, fields.integer_or("groups", 1));
  if (attributes.in_features < 0 || attributes.in_channels < 0) {
    return fields.fail("in_features and in_channels must be above 0");
  }
  return Status::ok();
}

}  // namespace

Result<FileOperator> read_operator(const Json& entry) {
  FileOperator raw;
  raw.op.name = entry["name"];
  const JsonFields fields(entry, "operator '" + raw.op.name + "'");
  EDDY_ASSIGN_OR_RETURN(raw.op.type, fields.text("type"));
  if (fields.find_or_null("shape") == nullptr) return fields.fail("needs the list \"shape\"");
  EDDY_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, fields.integers("shape"));
  if (shape.empty() || shape.size() > static_cast<size_t>(kMaxRank)) {
    return fields.fail("the shape must have 1.." + std::to_string(kMaxRank) + " dimensions");
  }
  raw.op.shape = Dims(shape);
  EDDY_ASSIGN_OR_RETURN(const Json* inputs, fields.list("inputs", false));
  for (const Json& input : *inputs) {
    EDDY_ASSIGN_OR_RETURN(raw.inputs.emplace_back(), JsonFields::name_of(input, fields.where()));
  }
  EDDY_RETURN_IF_ERROR(read_tiles(fields, raw));
  EDDY_RETURN_IF_ERROR(read_attributes(fields, raw.attributes));
  EDDY_ASSIGN_OR_RETURN(raw.op.flops, fields.number_or("flops", -1));
  if (raw.op.flops < 0 && fields.find_or_null("flops") != nullptr) {
    return fields.fail("\"flops\" must be >= 0");
  }
  if (fields.find_or_null("weights_of") != nullptr) {
    EDDY_ASSIGN_OR_RETURN(raw.weights_of, fields.text("weights_of"));
  }
  return raw;
}

namespace {

Status read_distribution(const JsonFields& fields, Decision& decision) {
  EDDY_ASSIGN_OR_RETURN(const Json* likely, fields.list("distribution", false));
  for (const Json& pair : *likely) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
        !pair[1].is_number()) {
      return fields.fail("\"distribution\" must be a list of pairs [value, probability]");
    }
    if (pair[0].is_number_unsigned() && pair[0].get<uint64_t>() > INT64_MAX) {
      return fields.fail("\"distribution\": " + pair[0].dump() + " is above 2^63 - 1");
    }
    decision.distribution.push_back({pair[0].get<int64_t>(), pair[1].get<double>()});
  }
  EDDY_ASSIGN_OR_RETURN(const Json* probabilities, fields.list("probabilities", false));
  for (const Json& probability : *probabilities) {
    if (!probability.is_number()) return fields.fail("\"probabilities\" must be numbers");
    decision.distribution.push_back(
        {static_cast<int64_t>(decision.distribution.size()), probability.get<double>()});
  }
  return Status::ok();
}

// One that computes.
Result<uint32_t> read_device(const Json& entry, const JsonFields& fields,
                             const Topology& topology) {
  EDDY_ASSIGN_OR_RETURN(const std::string name, JsonFields::name_of(entry, fields.where()));
  const uint32_t device = topology.find(name);
  if (device == UINT32_MAX) return fields.fail("the topology has no device '" + name + "'");
  if (!topology.node(device).is_switch) return device;
  return fields.fail("'" + name + "' is a switch; name a device that computes");
}

// What deciding costs, and where.
Status read_decision_costs(const JsonFields& fields, const Topology& topology, Decision& decision) {
  decision.device = kAnyDevice;
  const Json* costs = fields.find_or_null("decision");
  if (costs == nullptr) return Status::ok();
  const JsonFields cost(*costs, fields.where() + ": decision");
  EDDY_RETURN_IF_ERROR(cost.check_object());
  EDDY_ASSIGN_OR_RETURN(decision.time, cost.number_or("time", 0));
  if (decision.time < 0) return cost.fail("\"time\" must be >= 0");
  if (const Json* const device = cost.find_or_null("device")) {
    EDDY_ASSIGN_OR_RETURN(decision.device, read_device(*device, cost, topology));
  }
  return Status::ok();
}

}  // namespace

Result<Decision> read_decision(const JsonFields& fields, bool is_loop, const Topology& topology) {
  Decision decision;
  const char* const own = is_loop ? "trips" : "probabilities";
  const char* const others = is_loop ? "probabilities" : "trips";
  int given = 0;
  for (const char* key : {own, "distribution", "trace"}) {
    const Json* const value = fields.find_or_null(key);
    given += value != nullptr;
    if (value != nullptr && value->is_array() && value->empty()) {
      return fields.fail(fmt::format("\"{}\" is empty; say what happens at least once", key));
    }
  }
  if (given != 1 || fields.find_or_null(others) != nullptr) {
    return fields.fail(std::string("a ") + (is_loop ? "while" : "case") + " needs one of \"" + own +
                       "\", \"distribution\" and \"trace\", and nothing else that decides");
  }
  EDDY_RETURN_IF_ERROR(read_distribution(fields, decision));
  EDDY_ASSIGN_OR_RETURN(decision.trace, fields.integers("trace"));
  if (fields.find_or_null("trips") != nullptr) {
    EDDY_ASSIGN_OR_RETURN(const int64_t trips, fields.integer_or("trips", 0));
    decision.distribution.push_back({trips, 1});
  }
  EDDY_RETURN_IF_ERROR(read_decision_costs(fields, topology, decision));
  return decision;
}

Result<OperatorConfig> read_config(const JsonFields& fields, const Topology& topology) {
  OperatorConfig config;
  if (fields.find_or_null("degree") == nullptr) return fields.fail("needs the list \"degree\"");
  EDDY_ASSIGN_OR_RETURN(const std::vector<int64_t> degree, fields.integers("degree"));
  if (degree.size() > static_cast<size_t>(kMaxRank)) return fields.fail("the degree is too long");
  config.degree = Dims(degree);
  EDDY_ASSIGN_OR_RETURN(config.reduce, fields.integer_or("reduce", 1));
  EDDY_ASSIGN_OR_RETURN(const Json* devices, fields.list("devices", true));
  for (const Json& entry : *devices) {
    EDDY_ASSIGN_OR_RETURN(config.devices.emplace_back(), read_device(entry, fields, topology));
  }
  return config;
}

}  // namespace eddy
