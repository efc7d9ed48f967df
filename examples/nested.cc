// Nested: counts primes with a loop (over divisors) in a branch (odd or even) in a loop (over
// candidates).
//
// Shows: control flow nests like any other code; inner regions use values of outer ones; stacked
// rows collect one value of each iteration.
#include <cstdio>

#include "examples/report.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using Values = std::vector<Value>;

// Whether the odd number n >= 3 has no divisor d = 3, 5, 7, ... with d * d <= n.
Value is_odd_prime(GraphBuilder& b, Value n) {
  const auto remainder = [&](Value d) { return b.op("Mod", {n, d}); };
  const auto divisor = b.while_loop(
      {.name = "divide", .initial = {b.scalar<int64_t>(3)}},
      [&](Value, ValueSpan d) {
        const Value is_small = b.op("LessOrEqual", {b.op("Mul", {d[0], d[0]}), n});
        const Value divides = b.op("Equal", {remainder(d[0]), b.scalar<int64_t>(0)});
        return WhileTest{b.op("And", {is_small, b.op("Not", {divides})}), {d[0]}};
      },
      [&](Value, ValueSpan d) {
        return Values{b.op("Add", {d[0], b.scalar<int64_t>(2)})};
      });
  return b.op("Greater", {b.op("Mul", {divisor[0], divisor[0]}), n});
}

Result<Graph> build(const Library& library) {
  GraphBuilder b(library.ops());
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value two = b.scalar<int64_t>(2);
  const auto results = b.while_loop(
      {.name = "candidates", .initial = {two, b.scalar<int64_t>(0)}, .num_scan_outputs = 1},
      [&](Value, ValueSpan carried) {  // the candidate, and how many were prime
        return WhileTest{b.op("Less", {carried[0], limit}), {carried[0], carried[1]}};
      },
      [&](Value, ValueSpan forwarded) {
        const Value n = forwarded[0];
        const Value is_odd = b.op("Equal", {b.op("Mod", {n, two}), b.scalar<int64_t>(1)});
        const auto is_prime = b.if_else(
            is_odd, [&] { return Values{is_odd_prime(b, n)}; },
            [&] {
              return Values{b.op("Equal", {n, two})};
            },
            "parity");
        const Value one_or_zero = b.cast(is_prime[0], ElementType::kInt64);
        return Values{b.op("Add", {n, b.scalar<int64_t>(1)}),
                      b.op("Add", {forwarded[1], one_or_zero}), is_prime[0]};
      });
  b.output("count", results[1]);
  b.output("is_prime", results[2]);  // one row for each candidate: bool[candidates]
  return b.finish();
}

Status run() {
  Library library;
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(library));
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), {}));
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs,
                        session->run({{"limit", Tensor::scalar<int64_t>(50)}}));
  std::printf("%lld primes below 50:",
              static_cast<long long>(outputs[0].second.values<int64_t>()[0]));
  const std::span<const bool> is_prime = outputs[1].second.values<bool>();
  for (size_t i = 0; i < is_prime.size(); ++i) {
    if (is_prime[i]) std::printf(" %zu", i + 2);
  }
  std::printf("\n");
  return Status::ok();
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
