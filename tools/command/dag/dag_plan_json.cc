#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "graph/base/check.h"
#include "tools/command/dag/dag_plan.h"

namespace eddy {
namespace {

// Text of numbers and lists; a million nodes print in well under a second.
class Printer {
 public:
  void text(std::string_view text) { out_.append(text); }
  template <typename Number>
  void number(Number value) {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
    out_.append(buffer, end);
  }
  void pair(uint32_t first, uint32_t second) {
    text("[");
    number(first);
    text(",");
    number(second);
    text("]");
  }
  void string(const std::string& value) { text(nlohmann::json(value).dump()); }
  // "key":[print(item), ...]
  template <typename Items, typename Print>
  void list(std::string_view key, const Items& items, Print print) {
    text("\"");
    text(key);
    text("\":[");
    std::string_view separator;
    for (const auto& item : items) {
      text(separator);
      print(item);
      separator = ",";
    }
    text("]");
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void print_streams(Printer& out, const StreamAssignment& streams) {
  uint32_t node = 0;
  out.list("streams", streams.stream_of_node, [&](uint32_t stream) {
    const std::span<const NodeStream> more = streams.further_streams_of(node++);
    if (more.empty()) return out.number(stream);
    out.text("[");
    out.number(stream);
    for (const NodeStream& further : more) {
      out.text(",");
      out.number(further.stream);
    }
    out.text("]");
  });
}

void print_proof(Printer& out, const Proof& proof) {
  if (proof.is_safe()) return out.text("\"proof\":\"safe\"");
  out.text("\"proof\":{");
  out.list("unsafe", proof.violations, [&](const Violation& violation) {
    if (violation.kind == Violation::Kind::kUnordered) {
      out.pair(violation.first, violation.second);
    } else {
      out.string(violation.to_string());
    }
  });
  out.text("}");
}

}  // namespace

std::string to_json(const DagPlan& plan) {
  EDDY_CHECK(plan.unit_ranks.size() == plan.issue_order.size() &&
             plan.streams.stream_of_node.size() == plan.issue_order.size())
      << "a plan of " << plan.issue_order.size() << " nodes is not whole";
  Printer out;
  const auto number = [&](auto value) { out.number(value); };
  out.text("{");
  print_streams(out, plan.streams);
  out.text(",");
  out.list("issue_order", plan.issue_order, number);
  out.text(",");
  out.list("records", plan.syncs.records,
           [&](const SyncPlan::Record& record) { out.pair(record.event, record.node); });
  out.text(",");
  out.list("waits", plan.syncs.waits,
           [&](const SyncPlan::Wait& wait) { out.pair(wait.node, wait.event); });
  out.text(",");
  if (plan.cost_ranks.empty()) {
    out.list("ranks", plan.unit_ranks, number);
  } else {
    out.list("ranks", plan.cost_ranks, number);
  }
  out.text(",\"reduced_edges\":");
  out.number(plan.reduced_edges);
  out.text(",\"matching\":");
  out.number(plan.matching);
  out.text(",");
  print_proof(out, plan.proof);
  out.text(",");
  out.list("notices", plan.notices, [&](const std::string& notice) { out.string(notice); });
  out.text("}");
  return out.take();
}

}  // namespace eddy
