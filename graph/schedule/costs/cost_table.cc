#include "graph/schedule/costs/cost_table.h"

#include <cmath>

#include "graph/base/json_document.h"

namespace eddy {
namespace {

using Json = nlohmann::ordered_json;

std::string place_key(std::string_view op, std::string_view shapes, std::string_view device) {
  std::string key(op);
  key += '\n';
  key += shapes;
  key += '\n';
  key += device;
  return key;
}

bool is_time(double ns) { return std::isfinite(ns) && ns >= 0; }

Result<double> read_number(const Json& entry, const char* name, double fallback) {
  const auto found = entry.find(name);
  if (found == entry.end()) return fallback;
  if (!found->is_number()) return invalid_argument("\"" + std::string(name) + "\" is no number");
  return found->get<double>();
}

Result<std::string> read_text(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_string()) {
    return invalid_argument("needs the string \"" + std::string(name) + "\"");
  }
  return found->get<std::string>();
}

Result<MeasuredCost> read_cost(const Json& entry) {
  if (!entry.is_object()) return invalid_argument("must be an object");
  MeasuredCost cost;
  EDDY_ASSIGN_OR_RETURN(cost.op, read_text(entry, "op"));
  EDDY_ASSIGN_OR_RETURN(cost.shapes, read_text(entry, "shapes"));
  EDDY_ASSIGN_OR_RETURN(cost.device, read_text(entry, "device"));
  if (!entry.contains("ns")) return invalid_argument("needs the number \"ns\"");
  EDDY_ASSIGN_OR_RETURN(cost.ns, read_number(entry, "ns", 0));
  EDDY_ASSIGN_OR_RETURN(cost.low_ns, read_number(entry, "low_ns", cost.ns));
  EDDY_ASSIGN_OR_RETURN(cost.high_ns, read_number(entry, "high_ns", cost.ns));
  EDDY_ASSIGN_OR_RETURN(const double samples, read_number(entry, "samples", 1));
  if (!(samples >= 0 && samples <= UINT32_MAX)) {
    return invalid_argument("\"samples\" must be a count");
  }
  cost.samples = static_cast<uint32_t>(samples);
  EDDY_ASSIGN_OR_RETURN(const double threads, read_number(entry, "threads", 0));
  EDDY_ASSIGN_OR_RETURN(cost.all_ns, read_number(entry, "all_ns", 0));
  if (!(threads >= 0 && threads <= UINT32_MAX) || (threads > 0) != (cost.all_ns > 0)) {
    return invalid_argument("\"threads\" must be a count, and stand beside \"all_ns\"");
  }
  cost.threads = static_cast<uint32_t>(threads);
  return cost;
}

Status read_distribution(const std::string& path, const Json& values, CostTable& table) {
  const auto found = values.find("distribution");
  auto& list = table.distributions[path];
  double sum = 0;
  if (found != values.end() && found->is_array()) {
    for (const Json& pair : *found) {
      const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() &&
                           pair[1].is_number() && pair[1].get<double>() >= 0;
      if (!is_pair) break;
      list.emplace_back(pair[0].get<int64_t>(), pair[1].get<double>());
      sum += list.back().second;
    }
    if (list.size() == found->size() && std::abs(sum - 1) <= 1e-6) return Status::ok();
  }
  return invalid_argument("\"decisions\": the \"distribution\" of \"" + path +
                          "\" must be a list of [value, probability] that add up to 1");
}

Status read_decisions(const Json& document, CostTable& table) {
  const auto found = document.find("decisions");
  if (found == document.end()) return Status::ok();
  if (!found->is_object()) return invalid_argument("\"decisions\" must be an object");
  for (const auto& [path, values] : found->items()) {
    if (values.is_object()) {
      EDDY_RETURN_IF_ERROR(read_distribution(path, values, table));
      continue;
    }
    std::vector<int64_t>& list = table.decisions[path];
    for (const Json& value : values) {
      if (!value.is_number_integer()) break;
      list.push_back(value.get<int64_t>());
    }
    if (values.is_array() && list.size() == values.size() && !list.empty()) continue;
    return invalid_argument("\"decisions\": \"" + path + "\" must be a list of integers");
  }
  return Status::ok();
}

}  // namespace

Status CostTable::add(MeasuredCost cost) {
  if (!is_time(cost.ns) || !is_time(cost.low_ns) || !is_time(cost.high_ns) ||
      !is_time(cost.all_ns)) {
    return invalid_argument("the times of " + cost.op + " " + cost.shapes +
                            " must be finite numbers >= 0");
  }
  const auto [_, is_new] = places_.try_emplace(place_key(cost.op, cost.shapes, cost.device),
                                               static_cast<uint32_t>(costs_.size()));
  if (!is_new) {
    return invalid_argument("the cost of " + cost.op + " " + cost.shapes + " on " + cost.device +
                            " is given twice");
  }
  costs_.push_back(std::move(cost));
  return Status::ok();
}

const MeasuredCost* CostTable::find_or_null(std::string_view op, std::string_view shapes,
                                            std::string_view device) const {
  const auto found = places_.find(place_key(op, shapes, device));
  return found == places_.end() ? nullptr : &costs_[found->second];
}

std::string cost_op_name(const OpDef& op) {
  return op.domain.empty() ? op.name : op.domain + "." + op.name;
}

std::string cost_key(const Graph& graph, const Node& node) {
  std::string key;
  const auto append = [&](const ValueId id, bool is_first) {
    if (!is_first) key += ',';
    if (id.is_none()) {
      key += '-';
      return true;
    }
    const ValueType& type = graph.value(id).type;
    if (!type.is_tensor() || !type.tensor.is_static()) return false;
    key += to_string(type);
    return true;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!append(node.inputs[i], i == 0)) return "";
  }
  key += "->";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!append(node.outputs[i], i == 0)) return "";
  }
  return key;
}

Result<CostTable> parse_cost_table(std::string_view json) {
  EDDY_ASSIGN_OR_RETURN(const Json document, parse_json_document(json));
  const auto costs = document.is_object() ? document.find("costs") : document.end();
  if (costs == document.end() || !costs->is_array()) {
    return invalid_argument("a cost table needs the list \"costs\"; eddy measure writes one");
  }
  CostTable table;
  for (size_t i = 0; i < costs->size(); ++i) {
    auto cost = read_cost((*costs)[i]);
    Status status = cost.is_ok() ? table.add(std::move(cost).value()) : cost.take_status();
    if (!status.is_ok()) return status.prepend_message("cost " + std::to_string(i));
  }
  EDDY_ASSIGN_OR_RETURN(table.dispatch_ns, read_number(document, "dispatch_ns", 0));
  if (!is_time(table.dispatch_ns)) return invalid_argument("\"dispatch_ns\" must be a time >= 0");
  EDDY_RETURN_IF_ERROR(read_decisions(document, table));
  return table;
}

std::string to_json(const CostTable& table) {
  Json costs = Json::array();
  for (const MeasuredCost& cost : table.costs()) {
    costs.push_back({{"op", cost.op},
                     {"shapes", cost.shapes},
                     {"device", cost.device},
                     {"ns", cost.ns},
                     {"low_ns", cost.low_ns},
                     {"high_ns", cost.high_ns},
                     {"samples", cost.samples}});
    if (cost.threads == 0) continue;
    costs.back()["threads"] = cost.threads;
    costs.back()["all_ns"] = cost.all_ns;
  }
  Json document = {{"costs", std::move(costs)}, {"dispatch_ns", table.dispatch_ns}};
  if (!table.decisions.empty()) document["decisions"] = table.decisions;
  for (const auto& [path, likely] : table.distributions) {
    document["decisions"][path] = {{"distribution", likely}};
  }
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace eddy
