// PageRank until it converges, on any number of ranks: each holds the rows of its own pages.
//
//   mpirun -n 4 pagerank [PAGES]
//
// Shows: a world on MPI, operators between ranks in a loop, and a loop that all ranks leave in the
// same iteration, since its test is a sum over all of them. After each step ranks gather all pages'
// weights, and add up how much these have changed. Where PAGES cannot be shared evenly, the last
// rank has pages without links or weight.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "examples/report.h"
#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/net/world.h"

namespace eddy {
namespace {

constexpr double kDamping = 0.85;
constexpr double kTolerance = 1e-10;

// Who links to whom, the same on every rank.
std::vector<std::vector<int64_t>> make_links(int64_t num_pages) {
  Random random(17);
  const auto n = static_cast<uint64_t>(num_pages);
  std::vector<std::vector<int64_t>> links(n);
  for (auto& targets : links) {
    const uint64_t count = 1 + random.below(8);
    for (uint64_t i = 0; i < count; ++i) {
      // Pages with small numbers are linked to more often.
      targets.push_back(static_cast<int64_t>(random.below(1 + random.below(n))));
    }
  }
  return links;
}

// Pages [first, first + count) of `width`, those from num_pages on without links.
struct Share {
  int64_t first = 0;
  int64_t count = 0;
  int64_t width = 0;
};

// rows[p][q]: which part of page q's weight goes to page first + p.
std::vector<double> make_rows(const std::vector<std::vector<int64_t>>& links, const Share& share) {
  std::vector<double> rows(static_cast<size_t>(share.count * share.width), 0);
  for (size_t q = 0; q < links.size(); ++q) {
    for (const int64_t target : links[q]) {
      const int64_t p = target - share.first;
      if (p < 0 || p >= share.count) continue;
      rows[static_cast<size_t>(p * share.width) + q] +=
          kDamping / static_cast<double>(links[q].size());
    }
  }
  return rows;
}

Value talk(GraphBuilder& b, const char* op, Value x, int64_t num_ranks, const char* name) {
  return b.op(op, {x}, {{"size", num_ranks}}, {.name = name, .domain = "eddy"});
}

Result<Graph> build(const Library& library, const Share& share, int64_t num_ranks) {
  GraphBuilder b(library.ops(), "pagerank");
  const auto column = tensor_type(ElementType::kDouble, {share.count, 1});
  const Value rows = b.input("rows", tensor_type(ElementType::kDouble, {share.count, share.width}));
  const Value base = b.input("base", column);
  const Value begin = b.input("begin", column);
  const auto made = b.while_loop(
      {.name = "step", .initial = {begin, b.scalar(1.0)}},
      [&](Value, ValueSpan x) {
        return WhileTest{b.op("Greater", {x[1], b.scalar(kTolerance)}), {x[0]}};
      },
      [&](Value, ValueSpan x) -> std::vector<Value> {
        const Value all = talk(b, "AllGather", x[0], num_ranks, "weights");
        const Value next = b.op("Add", {b.op("MatMul", {rows, all}), base});
        const Value own = b.op("ReduceSum", {b.op("Abs", {b.op("Sub", {next, x[0]})})},
                               {{"keepdims", int64_t{0}}});
        return {next, talk(b, "AllReduce", own, num_ranks, "change")};
      });
  b.output("weights", talk(b, "AllGather", made[0], num_ranks, "result"));
  return b.finish();
}

// The same in plain loops; how far `weights` are from it.
double distance_to_plain(const std::vector<std::vector<int64_t>>& links,
                         std::span<const double> weights) {
  const size_t n = links.size();
  const double base = (1 - kDamping) / static_cast<double>(n);
  std::vector<double> x(n, 1.0 / static_cast<double>(n));
  for (double change = 1; change > kTolerance;) {
    std::vector<double> next(n, base);
    for (size_t q = 0; q < n; ++q) {
      for (const int64_t target : links[q]) {
        next[static_cast<size_t>(target)] += kDamping * x[q] / static_cast<double>(links[q].size());
      }
    }
    change = 0;
    for (size_t p = 0; p < n; ++p) change += std::abs(next[p] - x[p]);
    x = std::move(next);
  }
  double most = 0;
  for (size_t p = 0; p < n; ++p) most = std::max(most, std::abs(x[p] - weights[p]));
  return most;
}

Status say_results(const std::vector<std::vector<int64_t>>& links, const Tensor& weights,
                   const Session& session, uint32_t num_ranks) {
  const std::span<const double> all = weights.values<double>();
  std::vector<size_t> pages(links.size());
  std::iota(pages.begin(), pages.end(), size_t{0});
  std::ranges::stable_sort(pages, [&](size_t a, size_t b) { return all[a] > all[b]; });
  std::printf("%zu pages on %u rank%s, %lld steps\n", links.size(), num_ranks,
              num_ranks == 1 ? "" : "s",
              static_cast<long long>(session.loop_reports().at(0).iterations));
  for (size_t i = 0; i < std::min<size_t>(3, pages.size()); ++i) {
    std::printf("page %zu: %.6f\n", pages[i], all[pages[i]]);
  }
  if (distance_to_plain(links, all) < 1e-8) return Status::ok();
  return run_failed("the weights differ from those of plain loops");
}

Status run(int64_t num_pages) {
  EDDY_ASSIGN_OR_RETURN(auto transport, open_mpi_transport({}));
  const std::shared_ptr<World> world = World::open(std::move(transport));
  const auto num_ranks = static_cast<int64_t>(world->num_ranks());
  const int64_t count = (num_pages + num_ranks - 1) / num_ranks;
  const Share share{count * world->rank(), count, count * num_ranks};
  const std::vector<std::vector<int64_t>> links = make_links(num_pages);

  const Library library;
  SessionOptions options;
  options.ranks.world = world;
  options.num_threads = 1;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library, share, num_ranks));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), options));

  const std::vector<double> rows = make_rows(links, share);
  const int64_t num_own = std::clamp<int64_t>(num_pages - share.first, 0, count);
  const auto column = [&](double value) {
    std::vector<double> values(static_cast<size_t>(count), 0);
    std::fill_n(values.begin(), num_own, value / static_cast<double>(num_pages));
    return values;
  };
  const auto tensor = [](const Dims& dims, const std::vector<double>& values) {
    return Tensor::of(dims, std::span<const double>(values));
  };
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs,
                        session->run({{"rows", tensor({count, share.width}, rows)},
                                      {"base", tensor({count, 1}, column(1 - kDamping))},
                                      {"begin", tensor({count, 1}, column(1))}}));
  if (world->rank() > 0) return Status::ok();
  return say_results(links, outputs[0].second, *session, world->num_ranks());
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  const long pages = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  if (pages < 1 || pages > 100'000) {
    return eddy::report(eddy::invalid_argument("PAGES is a number from 1 to 100000"));
  }
  return eddy::report(eddy::run(pages));
}
