#include "graph/proof/program_violation.h"

namespace eddy {

std::string ProgramViolation::to_string(
    const std::function<std::string(uint32_t)>& node_name,
    const std::function<std::string(uint32_t)>& value_name) const {
  const auto node = [&](uint32_t id, const char* otherwise) {
    return id == kNone ? std::string(otherwise) : node_name(id);
  };
  const std::string a = node(first, "the region's entry");
  const std::string b = node(second, "the region's exit");
  const std::string of = name == kNone ? "" : value_name(name);
  switch (kind) {
    case Kind::kUnordered:
      return a + " is not ordered before " + b + (of.empty() ? "" : "; both touch " + of);
    case Kind::kUnorderedBytes:
      return a + " is not ordered before " + b + "; both touch the bytes of " + of;
    case Kind::kSharedStream:
      return a + " is not ordered before " + b + "; both need one stream";
    case Kind::kSharedEvent:
      return node(first, "the region") + " and " + node(second, "the region") +
             " use one event at once";
    case Kind::kOverwritten:
      return node(first, "the graph's end") + " reads " + of + ", whose bytes " +
             node(second, "a node") + " may have written since";
    case Kind::kOverlap:
      return a + " writes bytes that it also reads or writes as " + of;
    case Kind::kBadBlock:
      return "the block of " + of + " lies outside its arena, off alignment or in its own way";
    case Kind::kEscapes:
      return node(first, "the caller") + " may keep " + of + ", which is in an arena";
    case Kind::kMalformed:
      return node(first, "a region") + ": " + text + (of.empty() ? "" : " (" + of + ")");
  }
  return "unknown violation";
}

ProgramViolation as_violation(ProgramDefect defect) {
  return {.kind = ProgramViolation::Kind::kMalformed,
          .region = defect.block,
          .first = defect.node,
          .text = std::move(defect.text)};
}

}  // namespace eddy
