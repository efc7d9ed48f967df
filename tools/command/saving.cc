#include "tools/command/saving.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/command/counted.h"

namespace eddy {
namespace {

std::string bytes_text(const std::optional<int64_t>& bytes) {
  return bytes.has_value() ? std::to_string(*bytes) : "?";
}

Json bytes_json(const std::optional<int64_t>& bytes) {
  return bytes.has_value() ? Json(*bytes) : Json();
}

std::string describe(const LoopSaving& loop) {
  std::string text = fmt::format("{} saves {}: {} bytes an iteration", loop.path, loop.policy,
                                 bytes_text(loop.bytes_per_iteration));
  const bool has_segments = loop.policy != "all" && loop.policy != "carried";
  if (has_segments) text += " of one segment";
  if (loop.policy != "all") {
    text += fmt::format(", {} {}", bytes_text(loop.state_bytes),
                        has_segments ? "a segment" : "an iteration of its state");
  }
  return loop.why.empty() ? text : text + " (not less: " + loop.why + ")";
}

using Row = std::array<std::string, 6>;

void print_table(const std::vector<Row>& rows, Console& console) {
  Row::size_type width[5] = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < 5; ++i) width[i] = std::max(width[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < 5; ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    console.say(line + row[5]);
  }
}

}  // namespace

Result<SavePolicies> SavingArguments::policies() const {
  SavePolicies policies;
  for (const std::string& text : save) {
    Status status = add_save_policy(text, policies);
    if (!status.is_ok()) return status.prepend_message("--save");
  }
  return policies;
}

void add_saving_options(CLI::App& app, SavingArguments& arguments) {
  app.add_option(
         "--save", arguments.save,
         "what loops keep for their way back: all, carried (iterations are computed again), "
         "every:K or grow (segments are); PATH=POLICY for one loop; the bits stay the same")
      ->allow_extra_args(false);
  app.add_flag("--explain", arguments.explains,
               "print a table of what the way back reads: class, bytes of an iteration, why");
}

void print_saving(const GradientReport& report, bool explains, Console& console) {
  for (const LoopSaving& loop : report.loops) console.say(describe(loop));
  if (!explains || report.kept.empty()) return;
  std::vector<Row> rows = {{"region", "value", "type", "class", "bytes", "why"}};
  for (const KeptReport& item : report.kept) {
    const std::string how = item.how == std::string("value") ? "" : std::string(item.how) + " of ";
    rows.push_back({item.path, how + (item.value.empty() ? "-" : item.value), item.type,
                    to_string(item.kind), bytes_text(item.bytes), item.why});
  }
  print_table(rows, console);
}

Json saving_to_json(const GradientReport& report) {
  Json kept = Json::array();
  for (const KeptReport& item : report.kept) {
    kept.push_back({{"region", item.path},
                    {"value", item.value},
                    {"type", item.type},
                    {"how", item.how},
                    {"class", to_string(item.kind)},
                    {"bytes", bytes_json(item.bytes)},
                    {"why", item.why}});
  }
  Json loops = Json::array();
  for (const LoopSaving& loop : report.loops) {
    loops.push_back({{"loop", loop.path},
                     {"saves", loop.policy},
                     {"why", loop.why},
                     {"bytes_per_iteration", bytes_json(loop.bytes_per_iteration)},
                     {"state_bytes", bytes_json(loop.state_bytes)}});
  }
  return {{"kept", kept}, {"loops", loops}};
}

}  // namespace eddy
