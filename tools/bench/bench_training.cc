#include "tools/bench/bench_training.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "graph/differentiate/differentiate.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"
#include "tools/bench/torch_rival.h"
#include "tools/bench/training_cases.h"

namespace eddy {
namespace {

constexpr const char* kLine = "{:<22}{:<10}{:>46}{:>14}{:>12}{:>34}";

// One row.
struct Row {
  std::string name, way;
  std::string kept = {};  // bytes of an iteration (and of a state), or the peak over its bound
  uint64_t peak_bytes = 0;
  bool is_forward = false;
};

class TrainingBench {
 public:
  TrainingBench(const BenchOptions& options, Console& console, Interrupts& interrupts)
      : suite_("training", options, console, interrupts) {}

  Outcome run() {
    if (Status status = add_standard_gradients(rules_); !status.is_ok()) return status;
    suite_.console().remark(rival_.is_there() ? "PyTorch " + rival_.version()
                                              : "no python3 imports torch (Debian: python3-torch)");
    for (Status (TrainingBench::*part)() :
         {&TrainingBench::add_loops, &TrainingBench::add_networks, &TrainingBench::add_chains}) {
      if (Status status = (this->*part)(); !status.is_ok()) return Outcome::of_run(status);
    }
    return suite_.finish();
  }

 private:
  struct Way {
    std::string name;
    std::unique_ptr<Session> session;
    std::string kept;
    NamedTensors inputs;
  };

  Status add_loops() {
    struct Loops {
      const char* name;
      std::function<Result<TrainingCase>()> make;
      std::vector<const char*> policies = {"all", "carried", "grow"};
    };
    const std::vector<Loops> all = {
        {"power", [this] { return power_case(library_, 1000); }},
        {"tanh", [this] { return tanh_case(library_, 1000); }},
        {"trips 100000", [this] { return tanh_case(library_, 100'000); }, {"all", "grow"}},
        {"trips 1000000", [this] { return tanh_case(library_, 1'000'000); }, {"grow"}},
        {"nested", [this] { return nested_case(library_, 1000); }},
        {"scan 1000", [this] { return scan_case(library_, 1000); }, {"all"}},
        {"scan 10000", [this] { return scan_case(library_, 10'000); }, {"all"}}};
    for (const Loops& each : all) {
      if (!suite_.is_wanted(each.name)) continue;
      suite_.console().progress(fmt::format("measuring {}", each.name));
      EDDY_ASSIGN_OR_RETURN(TrainingCase made, each.make());
      made.name = each.name;
      EDDY_RETURN_IF_ERROR(add_loop(made, each.policies));
    }
    return Status::ok();
  }

  Status add_networks() {
    std::vector<std::pair<std::string, std::function<Result<TrainingCase>()>>> all = {
        {"mlp", [this] { return mlp_case(library_); }},
        {"mlp adam", [this] { return mlp_case(library_); }},
        {"cnn", [this] { return cnn_case(library_); }},
        {"lstm", [this] { return lstm_case(library_); }},
        {"cells", [this] { return cells_case(library_); }}};
    for (const char* model : {"adaptive_time", "seq2seq", "tree", "nas_rnn"}) {
      for (const char* batch : {" b1", " b64"}) {
        const std::string name = std::string(model) + batch;
        all.emplace_back(name, [this, name] { return dynamic_case(library_, name); });
      }
    }
    for (const auto& [name, make] : all) {
      if (!suite_.is_wanted(name)) continue;
      suite_.console().progress(fmt::format("measuring {}", name));
      EDDY_ASSIGN_OR_RETURN(TrainingCase made, make());
      made.name = name;
      EDDY_RETURN_IF_ERROR(add_network(made));
    }
    return Status::ok();
  }

  Status add_chains() {
    for (const int64_t nodes : {100'000, 1'000'000}) {
      if (suite_.is_wanted("differentiate")) EDDY_RETURN_IF_ERROR(add_chain(nodes));
    }
    return Status::ok();
  }

  Result<Way> forward_way(const TrainingCase& one) {
    EDDY_ASSIGN_OR_RETURN(auto session,
                          Session::create(library_, one.graph.copy(), {.num_threads = 1}));
    return Way{"forward", std::move(session), "", one.inputs};
  }

  // Both passes without an update; in loops, by a policy.
  Result<Way> gradient_way(const TrainingCase& one, const char* policy) {
    DifferentiateOptions options{.loss = one.loss, .wrt = one.wrt};
    NamedTensors inputs = one.inputs;
    if (one.is_network) {
      options.initializers_become_inputs = true;
      EDDY_ASSIGN_OR_RETURN(options.wrt, initializers_behind(one.graph, rules_, options));
      for (uint32_t v = 0; v < one.graph.num_values(); ++v) {
        const ValueInfo& info = one.graph.value(ValueId(v));
        if (std::ranges::find(options.wrt, info.name) == options.wrt.end()) continue;
        inputs.emplace_back(info.name, Tensor::copy_of(one.graph.constant(info.constant).view()));
      }
    }
    EDDY_ASSIGN_OR_RETURN(options.save.others, parse_save_policy(policy));
    EDDY_ASSIGN_OR_RETURN(GradientGraph made,
                          differentiate(one.graph.copy(), library_.ops(), rules_, options));
    std::string kept;
    for (const LoopSaving& loop : made.report.loops) {
      const auto text = [](const std::optional<int64_t>& bytes) {
        return bytes.has_value() ? std::to_string(*bytes) : "?";
      };
      kept += (kept.empty() ? "" : ", ") + text(loop.bytes_per_iteration);
      if (loop.policy != "all") kept += "+" + text(loop.state_bytes);
    }
    EDDY_ASSIGN_OR_RETURN(auto session,
                          Session::create(library_, std::move(made.graph), {.num_threads = 1}));
    return Way{policy, std::move(session), kept + " B", std::move(inputs)};
  }

  Status add_loop(const TrainingCase& one, const std::vector<const char*>& policies) {
    std::vector<Way> ways;
    EDDY_ASSIGN_OR_RETURN(Way forward, forward_way(one));
    ways.push_back(std::move(forward));
    for (const char* policy : policies) {
      EDDY_ASSIGN_OR_RETURN(Way way, gradient_way(one, policy));
      ways.push_back(std::move(way));
    }
    std::vector<Contender> contenders;
    for (const Way& way : ways) {
      contenders.push_back({way.name, [&] { return way.session->run(way.inputs).status(); }});
    }
    EDDY_ASSIGN_OR_RETURN(const auto all, suite_.measure(contenders, one.units));
    const auto rival = rival_.run(one.name);
    for (size_t i = 0; i < all.size(); ++i) {
      add_row({one.name, ways[i].name, ways[i].kept, ways[i].session->memory().peak_bytes, i == 0},
              all[i], rival);
    }
    return Status::ok();
  }

  // "1.04 × bound": the arenas of the step's plan over the least that any layout takes.
  Result<std::string> planned_peak(const TrainingCase& one, const TrainingOptions& options) {
    EDDY_ASSIGN_OR_RETURN(TrainingStep step,
                          make_training_step(one.graph.copy(), library_.ops(), rules_, options));
    EDDY_ASSIGN_OR_RETURN(auto session,
                          Session::create(library_, std::move(step.graph), {.num_threads = 1}));
    double size = 0, bound = 0;
    for (const MemoryArena& arena : session->plan().memory.arenas) {
      size += static_cast<double>(arena.size_bytes);
      bound += static_cast<double>(arena.lower_bound_bytes);
    }
    return bound == 0 ? "" : fmt::format("{:.2f} x bound", size / bound);
  }

  Status add_network(TrainingCase& one) {
    TrainingOptions options{.loss = one.loss, .wrt = one.wrt};
    const bool is_adam = one.name.find("adam") != std::string::npos;
    if (is_adam) options.optimizer = Optimizer::kAdam;
    EDDY_ASSIGN_OR_RETURN(const Way forward, forward_way(one));
    EDDY_RETURN_IF_ERROR(count_units(*forward.session, one));
    auto trainer = Trainer::create(library_, one.graph.copy(), rules_, options, {.num_threads = 1});
    EDDY_RETURN_IF_ERROR(trainer.status());
    auto two = Trainer::create(library_, one.graph.copy(), rules_, options, {.num_threads = 2});
    EDDY_RETURN_IF_ERROR(two.status());
    EDDY_ASSIGN_OR_RETURN(const Way gradient, gradient_way(one, "all"));
    // A rate of 0: whatever is drawn, the numbers of trips stay what they are.
    std::vector<Contender> contenders = {
        {"forward", [&] { return forward.session->run(one.inputs).status(); }},
        {"step", [&] { return (*trainer)->step(one.inputs, 0).status(); }},
        {"gradient", [&] { return gradient.session->run(gradient.inputs).status(); }}};
    if (one.name == "cnn") {
      contenders.push_back({"2 threads", [&] { return (*two)->step(one.inputs, 0).status(); }});
    }
    EDDY_ASSIGN_OR_RETURN(const auto all, suite_.measure(contenders, one.units));
    EDDY_ASSIGN_OR_RETURN(const std::string peak, planned_peak(one, options));
    const auto rival = rival_.run(one.name);
    for (size_t i = 0; i < all.size(); ++i) {
      add_row({one.name, all[i].name, i == 1 ? peak : "", 0, i == 0}, all[i],
              i < 2 ? rival : std::nullopt);
    }
    return Status::ok();
  }

  static Status count_units(Session& session, TrainingCase& one) {
    if (one.counted.empty()) return Status::ok();
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session.run(one.inputs));
    for (const auto& [name, tensor] : outputs) {
      if (name == one.counted) one.units = static_cast<double>(tensor.values<int64_t>()[0]);
    }
    return Status::ok();
  }

  Status add_chain(int64_t nodes) {
    EDDY_ASSIGN_OR_RETURN(const Graph graph, long_chain(library_, nodes));
    EDDY_ASSIGN_OR_RETURN(const auto all,
                          suite_.measure({{"pass",
                                           [&] {
                                             return differentiate(graph.copy(), library_.ops(),
                                                                  rules_, {.loss = "loss"})
                                                 .status();
                                           }}},
                                         static_cast<double>(nodes)));
    add_row({fmt::format("differentiate {}", nodes), "pass"}, all[0], std::nullopt);
    return Status::ok();
  }

  void add_row(const Row& row, const Samples& one, const std::optional<TorchTimes>& rival) {
    Json json = {
        {"case", row.name}, {"way", row.way}, {"kept", row.kept}, {"ns", samples_json(one)}};
    if (row.peak_bytes > 0) json["peak_bytes"] = row.peak_bytes;
    std::string rival_text = "-";
    if (rival.has_value()) {
      const double best = row.is_forward ? rival->forward_best_ns : rival->both_best_ns;
      const double median = row.is_forward ? rival->forward_median_ns : rival->both_median_ns;
      json["pytorch"] = {{"best_ns", best}, {"median_ns", median}};
      rival_text = fmt::format("{} ({}) {:.2f} x", duration_text(best), duration_text(median),
                               one.best() / best);
    }
    const std::string peak =
        row.peak_bytes == 0 ? ""
                            : fmt::format("{:.1f} kB", static_cast<double>(row.peak_bytes) / 1e3);
    std::string text =
        fmt::format(kLine, row.name, row.way, samples_text(one), row.kept, peak, rival_text);
    if (suite_.is_empty()) {
      text = fmt::format(kLine, "case", "way", "an iteration or run: best (median, 10 to 90 %)",
                         "kept", "peak", "PyTorch: best (median) ratio") +
             "\n" + text;
    }
    suite_.add_row(text, std::move(json));
  }

  BenchSuite suite_;
  const Library library_;
  const TorchRival rival_;
  GradientTable rules_;
};

}  // namespace

Outcome bench_training(const BenchOptions& options, Console& console, Interrupts& interrupts) {
  return TrainingBench(options, console, interrupts).run();
}

}  // namespace eddy
