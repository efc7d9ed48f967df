// eddy simulate --search: looks for a better strategy of an operator graph.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "graph/io/file_bytes.h"
#include "graph/strategy/search/search.h"
#include "tools/command/simulate.h"

namespace eddy {
namespace {

// "30", "2.5s": seconds; "5000steps": steps.
Status parse_budget(const std::string& text, SearchOptions& options) {
  const Status bad = invalid_argument(fmt::format(
      "--budget {}: give seconds above 0, as 30, or a number of steps, as 5000steps", text));
  if (text.ends_with("steps")) {
    const char* const last = text.data() + text.size() - 5;
    const auto [end, error] = std::from_chars(text.data(), last, options.max_steps);
    return error == std::errc() && end == last && options.max_steps > 0 ? Status::ok() : bad;
  }
  char* end = nullptr;
  options.max_seconds = std::strtod(text.c_str(), &end);
  const std::string_view rest = end;
  const bool is_number = end != text.c_str() && (rest.empty() || rest == "s");
  if (!is_number || !(options.max_seconds > 0) || options.max_seconds > 1e9) return bad;
  return Status::ok();
}

Json chains_json(const SearchResult& result) {
  Json chains = Json::array();
  for (const SearchChain& chain : result.chains) {
    chains.push_back({{"name", chain.name},
                      {"initial", chain.initial},
                      {"best", chain.best},
                      {"steps", chain.steps},
                      {"accepted", chain.accepted}});
  }
  return chains;
}

std::string progress_text(const SearchProgress& progress) {
  return fmt::format("from {}: {} steps, now {:.6g}, best {:.6g}", progress.chain, progress.steps,
                     progress.current, progress.best);
}

Json left_out_json(const SearchResult& result) {
  Json left_out = Json::array();
  for (const LeftOut& one : result.left_out) {
    left_out.push_back({{"name", one.name}, {"reason", one.reason}});
  }
  return left_out;
}

// What of the command line and the file a search has no use for, if anything.
Status check_search(const SimulateArguments& arguments, const OperatorFile& file) {
  if (arguments.full) {
    return invalid_argument("--full is for edits of a file; --search makes its own");
  }
  if (!file.edits.empty()) {
    return invalid_argument(
        "--search looks for a strategy of its own and applies no edits; take "
        "\"edits\" out of " +
        input_name(arguments));
  }
  return Status::ok();
}

void say_result(const SearchResult& result, const std::string& strategy, uint64_t seed,
                bool is_written, Console& console) {
  for (const LeftOut& one : result.left_out) {
    console.say(fmt::format("{} is left out: {}", one.name, one.reason));
  }
  for (const SearchChain& chain : result.chains) {
    console.say(fmt::format("from {}: makespan {:.6g}, best {:.6g} after {} steps, {} accepted",
                            chain.name, chain.initial, chain.best, chain.steps, chain.accepted));
  }
  console.say(fmt::format("best: makespan {:.6g}, from {}; {} steps in {:.2f} s, seed {}",
                          result.makespan, result.found_from, result.steps, result.seconds, seed));
  if (!is_written) console.say(strategy);
}

}  // namespace

Outcome search_operators(const SimulateArguments& arguments, const OperatorFile& file,
                         Console& console, Interrupts& interrupts) {
  SearchOptions options;
  options.seed = arguments.seed;
  Status status = parse_budget(arguments.budget, options);
  if (status.is_ok()) status = check_search(arguments, file);
  if (!status.is_ok()) return Outcome::usage(status.message());
  const std::vector<std::string> estimated = say_estimates(file, console);
  if (file.has_strategy) options.initial.emplace_back("the given strategy", file.strategy);
  options.on_progress = [&console](const SearchProgress& progress) {
    console.progress(progress_text(progress));
  };
  const Interrupts::Patience patience(interrupts);
  options.should_stop = [&interrupts] { return interrupts.is_interrupted(); };
  auto result = search_strategy(file.graph, file.topology, options);
  if (!result.is_ok()) {
    return std::move(result.take_status().prepend_message(input_name(arguments)));
  }
  const std::string strategy = strategy_json(file.graph, file.topology, result->best);
  if (!arguments.output.empty()) status = write_file(arguments.output, strategy + "\n");
  const bool is_written = !arguments.output.empty() && status.is_ok();
  if (console.is_json()) {
    Json report = {{"makespan", result->makespan},   {"found_from", result->found_from},
                   {"seed", options.seed},           {"steps", result->steps},
                   {"chains", chains_json(*result)}, {"strategy", Json::parse(strategy)}};
    if (!result->left_out.empty()) report["left_out"] = left_out_json(*result);
    if (!estimated.empty()) report["estimated"] = estimated;
    console.print(report);
  } else {
    say_result(*result, strategy, options.seed, is_written, console);
  }
  // The result is printed even if writing its files fails.
  if (status.is_ok()) status = write_pictures(arguments, file, result->best);
  if (!status.is_ok()) return status;
  if (interrupts.is_interrupted()) return cancelled("interrupted; this is the best so far");
  return Outcome::success();
}

}  // namespace eddy
