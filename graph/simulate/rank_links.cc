#include "graph/simulate/rank_links.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/base/json_document.h"
#include "graph/simulate/json_fields.h"

namespace eddy {
namespace {

using Points = std::vector<std::pair<double, double>>;

// Between two points by the line through them, beyond the last by the one through it and nothing.
double by_points(const Points& points, double bytes) {
  const auto above = std::ranges::find_if(points, [&](const auto& p) { return p.first >= bytes; });
  if (above == points.begin()) return above->second;
  const auto below = above - 1;
  if (above == points.end()) {
    return below->first > 0 ? below->second * bytes / below->first : below->second;
  }
  const double part = (bytes - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

Result<Points> read_points(const nlohmann::json& list, const std::string& where) {
  const auto wrong = [&] {
    return invalid_argument(where + ": expected [bytes, ns] pairs of numbers from 0, ascending");
  };
  Points points;
  if (!list.is_array() || list.empty()) return wrong();
  for (const nlohmann::json& pair : list) {
    const bool is_pair =
        pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
    if (!is_pair) return wrong();
    const double bytes = pair[0].get<double>(), ns = pair[1].get<double>();
    const bool is_right = std::isfinite(bytes) && std::isfinite(ns) && bytes >= 0 && ns >= 0;
    if (!is_right || (!points.empty() && bytes <= points.back().first)) return wrong();
    points.emplace_back(bytes, ns);
  }
  return points;
}

}  // namespace

double RankLinks::operation_ns(const std::string& kind, double num_ranks, double bytes) const {
  if (num_ranks <= 1) return 0;
  const auto known = measured.find(kind);
  if (known != measured.end()) return by_points(known->second, bytes);
  const double n = num_ranks, l = std::ceil(std::log2(n));
  const double ns = bytes / bytes_per_ns, part = (n - 1) / n * ns;
  if (kind == "Barrier") return l * latency_ns;
  if (kind == "Broadcast") return l * (latency_ns + ns);
  if (kind == "AllGather") return l * latency_ns + (n - 1) * ns;
  if (kind == "ReduceScatter") return l * latency_ns + part;
  if (kind == "AllToAll" || kind == "Exchange") return (n - 1) * latency_ns + part;
  if (kind == "Send" || kind == "Recv") return latency_ns + ns;
  return 2 * (l * latency_ns + part);
}

Result<RankLinks> parse_rank_links(std::string_view json) {
  EDDY_ASSIGN_OR_RETURN(const nlohmann::json document, parse_json_document(json));
  const JsonFields fields(document, "links");
  EDDY_RETURN_IF_ERROR(fields.check_object());
  RankLinks links;
  EDDY_ASSIGN_OR_RETURN(links.latency_ns, fields.number_or("latency_ns", links.latency_ns));
  EDDY_ASSIGN_OR_RETURN(links.bytes_per_ns, fields.number_or("bytes_per_ns", links.bytes_per_ns));
  if (!std::isfinite(links.latency_ns) || links.latency_ns < 0) {
    return fields.fail("\"latency_ns\" is no number from 0");
  }
  if (!std::isfinite(links.bytes_per_ns) || links.bytes_per_ns <= 0) {
    return fields.fail("\"bytes_per_ns\" is no number above 0");
  }
  const nlohmann::json* const operations = fields.find_or_null("operations");
  if (operations == nullptr) return links;
  if (!operations->is_object()) return fields.fail("\"operations\" is no object");
  for (const auto& [kind, list] : operations->items()) {
    EDDY_ASSIGN_OR_RETURN(links.measured[kind],
                          read_points(list, fmt::format("links: operation '{}'", kind)));
  }
  return links;
}

}  // namespace eddy
