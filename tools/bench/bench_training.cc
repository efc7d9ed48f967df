#include "tools/bench/bench_training.h"

#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "graph/differentiate/differentiate.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"
#include "tools/bench/training_cases.h"

namespace eddy {
namespace {

constexpr const char* kLine = "{:<18}{:<10}{:>46}{:>10}{:>24}";

// Prints "forward both" in ns of one unit, the best of ten.
constexpr const char* kRival = R"(
import sys, time, torch
torch.set_num_threads(1)
F = torch.nn.functional
name = sys.argv[1]
def mean_square(y): return (y * y).mean()
def power():
    w = torch.tensor(0.99, requires_grad=True)
    def run():
        z = torch.tensor(1.0, requires_grad=True)
        while z > 0.99 ** 999.5: z = z * w
        return z
    return run, 1000, []
def tanh():
    w = (torch.rand(16, 16) - 0.5).requires_grad_()
    x = torch.rand(1, 16)
    def run():
        h = torch.zeros(1, 16)
        for _ in range(1000): h = torch.tanh(h @ w) + x
        return mean_square(h)
    return run, 1000, []
def network(net, x):
    return (lambda: mean_square(net(x))), 1, list(net.parameters())
nn = torch.nn
def mlp():
    return network(nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                 nn.Linear(512, 10)), torch.rand(64, 784))
def cnn():
    return network(nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Linear(3136, 256), nn.ReLU(),
                                 nn.Linear(256, 10)), torch.rand(32, 1, 28, 28))
def cells():
    cell = nn.LSTMCell(256, 256)
    x = torch.rand(64, 16, 256)
    def run():
        h = c = torch.zeros(16, 256)
        for i in range(64): h, c = cell(x[i], (h, c))
        return mean_square(h)
    return run, 1, list(cell.parameters())
cases = {'power': power, 'tanh': tanh, 'mlp': mlp, 'cnn': cnn, 'cells': cells}
run, units, parameters = cases[name]()
def forward():
    with torch.no_grad(): run()
def both():
    for p in parameters: p.grad = None
    run().backward()
    with torch.no_grad():
        for p in parameters: p -= 0.001 * p.grad
def best(f):
    f()
    times = []
    for _ in range(10):
        start = time.perf_counter_ns(); f(); times.append(time.perf_counter_ns() - start)
    return min(times) / units
print(best(forward), best(both))
)";

struct RivalTimes {
  double forward_ns = 0, both_ns = 0;
};

// None: python3 does not import torch, or it has no such case.
std::optional<RivalTimes> run_rival(const std::string& name) {
  const std::string command = "python3 -c \"$EDDY_BENCH_RIVAL\" " + name + " 2>/dev/null";
  setenv("EDDY_BENCH_RIVAL", kRival, 1);
  std::FILE* const pipe = popen(command.c_str(), "r");
  unsetenv("EDDY_BENCH_RIVAL");
  if (pipe == nullptr) return std::nullopt;
  RivalTimes times;
  const int found = std::fscanf(pipe, "%lf %lf", &times.forward_ns, &times.both_ns);
  const bool is_fine = pclose(pipe) == 0 && found == 2;
  return is_fine ? std::optional(times) : std::nullopt;
}

class TrainingBench {
 public:
  TrainingBench(const BenchOptions& options, Console& console, Interrupts& interrupts)
      : suite_("training", options, console, interrupts) {}

  Outcome run() {
    if (Status status = add_standard_gradients(rules_); !status.is_ok()) return status;
    const std::pair<const char*, std::function<Result<TrainingCase>()>> cases[] = {
        {"power", [this] { return power_case(library_, 1000); }},
        {"tanh", [this] { return tanh_case(library_, 1000); }},
        {"nested", [this] { return nested_case(library_, 1000); }},
        {"mlp", [this] { return mlp_case(library_); }},
        {"cnn", [this] { return cnn_case(library_); }},
        {"cells", [this] { return cells_case(library_); }}};
    for (const auto& [name, make] : cases) {
      if (!suite_.is_wanted(name)) continue;
      suite_.console().progress(fmt::format("measuring {}", name));
      auto made = make();
      if (!made.is_ok()) return made.take_status();
      const Status status = made->is_network ? add_network(*made) : add_loop(*made);
      if (!status.is_ok()) return Outcome::of_run(status);
    }
    for (const int64_t nodes : {100'000, 1'000'000}) {
      if (!suite_.is_wanted("differentiate")) break;
      if (Status status = add_chain(nodes); !status.is_ok()) return Outcome::of_run(status);
    }
    return suite_.finish();
  }

 private:
  struct Way {
    std::string name;
    std::unique_ptr<Session> session;
    std::string kept;
  };

  Result<Way> forward_way(const TrainingCase& one) {
    EDDY_ASSIGN_OR_RETURN(auto session,
                          Session::create(library_, one.graph.copy(), {.num_threads = 1}));
    return Way{"forward", std::move(session), ""};
  }

  Result<Way> gradient_way(const TrainingCase& one, const char* policy) {
    DifferentiateOptions options{.loss = "loss"};
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
    return Way{policy, std::move(session), kept + " B"};
  }

  Status add_loop(const TrainingCase& one) {
    std::vector<Way> ways;
    EDDY_ASSIGN_OR_RETURN(Way forward, forward_way(one));
    ways.push_back(std::move(forward));
    for (const char* policy : {"all", "carried", "grow"}) {
      EDDY_ASSIGN_OR_RETURN(Way way, gradient_way(one, policy));
      ways.push_back(std::move(way));
    }
    std::vector<Contender> contenders;
    for (const Way& way : ways) {
      contenders.push_back({way.name, [&] { return way.session->run(one.inputs).status(); }});
    }
    EDDY_ASSIGN_OR_RETURN(const auto all, suite_.measure(contenders, one.units));
    const auto rival = run_rival(one.name);
    for (size_t i = 0; i < all.size(); ++i) add_row(one.name, all[i], ways[i].kept, rival, i == 0);
    return Status::ok();
  }

  Status add_network(const TrainingCase& one) {
    EDDY_ASSIGN_OR_RETURN(const Way forward, forward_way(one));
    auto trainer =
        Trainer::create(library_, one.graph.copy(), rules_, {.loss = "loss"}, {.num_threads = 1});
    EDDY_RETURN_IF_ERROR(trainer.status());
    EDDY_ASSIGN_OR_RETURN(
        const auto all,
        suite_.measure({{"forward", [&] { return forward.session->run(one.inputs).status(); }},
                        {"step", [&] { return (*trainer)->step(one.inputs, 1e-3f).status(); }}},
                       one.units));
    const auto rival = run_rival(one.name);
    add_row(one.name, all[0], "", rival, true);
    add_row(one.name, all[1], "", rival, false);
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
    add_row(fmt::format("differentiate {}", nodes), all[0], "", std::nullopt, true);
    return Status::ok();
  }

  void add_row(const std::string& name, const Samples& one, const std::string& kept,
               const std::optional<RivalTimes>& rival, bool is_forward) {
    Json json = {{"case", name}, {"way", one.name}, {"kept", kept}, {"ns", samples_json(one)}};
    std::string rival_text = "missing";
    if (rival.has_value()) {
      const double ns = is_forward ? rival->forward_ns : rival->both_ns;
      json["pytorch_best_ns"] = ns;
      rival_text = fmt::format("{:.1f} µs ({:.2f} ×)", ns / 1e3, one.best() / ns);
    }
    std::string text = fmt::format(kLine, name, one.name, samples_text(one), kept, rival_text);
    if (suite_.is_empty()) {
      text = fmt::format(kLine, "case", "way", "an iteration or run: best (median, 10 to 90 %)",
                         "kept", "PyTorch, best (ratio)") +
             "\n" + text;
    }
    suite_.add_row(text, std::move(json));
  }

  BenchSuite suite_;
  const Library library_;
  GradientTable rules_;
};

}  // namespace

Outcome bench_training(const BenchOptions& options, Console& console, Interrupts& interrupts) {
  return TrainingBench(options, console, interrupts).run();
}

}  // namespace eddy
