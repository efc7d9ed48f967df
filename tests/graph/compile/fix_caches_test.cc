// Claim: a loop whose caches grow by a row a round gives the same bits with buffers of one length,
// on random decoders: no rounds, as many as the limit, stopped by their data before, of several
// caches along several axes, inside of a loop, with rows; then all shapes inside are known. A loop
// with a reader that is not understood comes back as it is.
//
// EDDY_CACHE_SEEDS=N tries N graphs.
#include "graph/compile/fix_caches.h"

#include <cstdlib>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "ops/reference/reference_kernels.h"
#include "tools/check/oracle.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Values = std::vector<Value>;

Graph finish(GraphBuilder& b) {
  Result<Graph> graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

// A layer of attention that goes on with what it made, of a few heads of a few floats.
class Decoder {
 public:
  Decoder(GraphBuilder& b, uint64_t seed) : b_(b), random_(seed) {
    heads_ = 1 + pick(3);
    width_ = 1 + pick(3);
    first_ = pick(3);
    limit_ = 1 + pick(6);
    is_turned_ = pick(2) == 0;
    has_tokens_ = pick(2) == 0;
    has_rows_ = pick(2) == 0;
  }

  void run() {
    x_ = b_.input("x", tensor_type(ElementType::kFloat, {1, all()}));
    most_ = b_.input("most", tensor_type(ElementType::kInt64, {}));
    bound_ = b_.input("bound", tensor_type(ElementType::kFloat, {}));
    if (pick(3) > 0) return give(decode(x_));
    const auto made = b_.while_loop(
        {.name = "outer", .initial = {x_}, .trip_limit = b_.scalar(int64_t{2})},
        [&](Value, ValueSpan v) {
          return WhileTest{b_.scalar(true), {v[0]}};
        },
        [&](Value, ValueSpan v) {
          const Values results = decode(v[0]);
          const Value sum = b_.op("ReduceSum", {results[2]}, {{"keepdims", int64_t{0}}});
          return Values{b_.op("Tanh", {b_.op("Add", {results[1], sum})})};
        });
    give({made[0]});
  }

 private:
  int64_t pick(uint64_t bound) { return static_cast<int64_t>(random_.below(bound)); }
  int64_t all() const { return heads_ * width_; }
  Value floats(const Dims& dims) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) value = random_.uniform(-1.5f, 1.5f);
    return b_.tensor<float>(dims, std::span<const float>(values));
  }
  Value reshape(Value x, const Dims& dims) { return b_.op("Reshape", {x, b_.vector(dims.span())}); }
  void give(const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) b_.output("y" + std::to_string(i), values[i]);
  }

  // Goes on?, x, keys, values, and tokens and rows where it has them.
  Values decode(Value x) {
    const Value weights = floats({all(), 3 * all()});
    const Value keys =
        is_turned_ ? floats({1, heads_, width_, first_}) : floats({1, heads_, first_, width_});
    WhileOptions options{
        .name = "decode",
        .initial = {b_.scalar(pick(8) > 0), x, keys, floats({1, heads_, first_, width_})},
        .num_scan_outputs = has_rows_ ? 1u : 0u};
    if (has_tokens_) options.initial.push_back(b_.tensor<int64_t>({1}, {-7}));
    const bool has_bound = pick(2) == 0;
    if (!has_bound || pick(2) == 0) {
      const Value limit = b_.scalar(limit_);
      options.trip_limit = pick(2) == 0 ? limit : b_.op("Min", {most_, limit});
    }
    return b_.while_loop(
        options,
        [&](Value iteration, ValueSpan v) {
          const Value goes_on = has_bound ? b_.op("Less", {iteration, b_.scalar(limit_)}) : v[0];
          return WhileTest{goes_on, {v.begin(), v.end()}};
        },
        [&](Value, ValueSpan v) { return round(v, weights); });
  }

  Values round(ValueSpan v, Value weights) {
    const Value sizes = b_.int64s({all(), all(), all()});
    const Value parts_of[] = {b_.op("MatMul", {v[1], weights}), sizes};
    const Values parts = b_.ops("Split", parts_of, {{"axis", -1}}, {.num_outputs = 3});
    if (parts.size() != 3) return {};
    const Value keys = b_.op(
        "Concat",
        {v[2], reshape(parts[1], {1, heads_, is_turned_ ? width_ : 1, is_turned_ ? 1 : width_})},
        {{"axis", is_turned_ ? int64_t{-1} : int64_t{2}}});
    const Value values =
        b_.op("Concat", {v[3], reshape(parts[2], {1, heads_, 1, width_})}, {{"axis", int64_t{2}}});
    const Value mixed = b_.op("MatMul", {shares(parts[0], keys), changed(values)});
    const Value next = b_.op("Tanh", {b_.op("Add", {reshape(mixed, {1, all()}), parts[0]})});
    const Value size = b_.op("ReduceMax", {next}, {{"keepdims", int64_t{0}}});
    Values results = {b_.op("Less", {size, bound_}), next, keys, values};
    if (has_tokens_) {
      const Value token =
          reshape(b_.cast(b_.op("Mul", {size, b_.scalar(99.0f)}), ElementType::kInt64), {1});
      results.push_back(b_.op("Concat", {v[4], token}, {{"axis", int64_t{0}}}));
    }
    if (has_rows_) results.push_back(next);
    return results;
  }

  // Of a query over all keys: [1, heads, 1, keys].
  Value shares(Value query, Value keys) {
    const Value scale = b_.scalar(0.5f);
    if (is_turned_) {
      const Value scores = b_.op("MatMul", {reshape(query, {1, heads_, 1, width_}), keys});
      return b_.op("Softmax", {b_.op("Mul", {scores, scale})}, {{"axis", int64_t{-1}}});
    }
    const Value scores = b_.op("MatMul", {keys, reshape(query, {1, heads_, width_, 1})});
    const Value softmax =
        b_.op("Softmax", {b_.op("Add", {scores, floats({heads_, 1, 1})})}, {{"axis", int64_t{2}}});
    return b_.op("Transpose", {softmax}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  }

  // Values no longer zero behind their length.
  Value changed(Value values) {
    switch (pick(3)) {
      case 0:
        return b_.op("Exp", {values});
      case 1:
        return b_.op("Softmax", {b_.op("Sub", {values, b_.op("Sigmoid", {values})})},
                     {{"axis", int64_t{-1}}});
      default:
        return values;
    }
  }

  GraphBuilder& b_;
  Random random_;
  int64_t heads_, width_, first_, limit_;
  bool is_turned_, has_tokens_, has_rows_;
  Value x_, most_, bound_;
};

class FixCachesTest : public ::testing::Test {
 protected:
  FixCachesTest() { add_reference_kernels(kernels_); }

  FixedCaches fix(Graph graph, int64_t most_bytes = 4 << 20) {
    Result<FixedCaches> fixed =
        fix_caches(std::move(graph), library_.ops(), {.device = "", .most_bytes = most_bytes});
    EXPECT_TRUE(fixed.is_ok()) << fixed.status().to_string();
    return std::move(*fixed);
  }

  Result<check::OracleResult> run(const Graph& graph, const NamedTensors& inputs) {
    return check::interpret(graph, library_, inputs, {.kernels_or_null = &kernels_});
  }

  static NamedTensors inputs(const Graph& graph, Random& random) {
    const int64_t size = graph.value(graph.inputs()[0]).type.tensor.dims[1];
    std::vector<float> x(static_cast<size_t>(size));
    for (float& value : x) value = random.uniform(-1.0f, 1.0f);
    NamedTensors made;
    made.emplace_back("x", Tensor::of<float>({1, size}, std::span(x)));
    made.emplace_back("most", Tensor::scalar(static_cast<int64_t>(random.below(9)) - 1));
    made.emplace_back("bound", Tensor::scalar(random.uniform(0.2f, 1.4f)));
    return made;
  }

  static void expect_known_shapes(const Graph& graph) {
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      const RegionId region = node.region;
      if (region == Graph::kRoot || node.kind != NodeKind::kExec) continue;
      const NodeId loop = graph.region(region).owner;
      if (graph.node(loop).name != "decode") continue;
      EXPECT_TRUE(is_static_node(graph, node)) << graph.path(NodeId(n));
    }
  }

  Library library_;
  KernelRegistry kernels_;
};

TEST_F(FixCachesTest, RandomDecodersGiveTheSameBits) {
  const char* const text = std::getenv("EDDY_CACHE_SEEDS");
  const uint64_t num_seeds = text == nullptr ? 120 : std::strtoull(text, nullptr, 10);
  std::cout << "seeds 0 to " << num_seeds - 1 << "\n";
  size_t trips[8] = {};
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto make = [&] {
      GraphBuilder b(library_.ops());
      Decoder(b, seed).run();
      return finish(b);
    };
    const Graph plain = make();
    const FixedCaches fixed = fix(make());
    ASSERT_EQ(fixed.loops.size(), 1u);
    expect_known_shapes(fixed.graph);
    Random random(seed);
    for (int repeat = 0; repeat < 4; ++repeat) {
      const NamedTensors given = inputs(plain, random);
      const auto expected = run(plain, given);
      const auto found = run(fixed.graph, given);
      ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
      ASSERT_TRUE(found.is_ok()) << found.status().to_string();
      EXPECT_EQ(check::difference(expected->outputs, found->outputs), "");
      ++trips[found->trips[0].trips];
      if (HasFailure()) return;
    }
  }
  for (const size_t count : std::span(trips).first(6)) EXPECT_GT(count, 0u);
}

TEST_F(FixCachesTest, ALoopStaysWhereAReaderIsNotUnderstood) {
  struct Given {
    GraphBuilder& b;
    Value cache, row, grown;
    Values next;  // of the cache, and of a float beside it
  };
  // The one who changes something gets the cache, its row and the longer cache.
  const auto loops_of = [&](const std::function<void(Given&)>& change, int64_t rounds = 4,
                            int64_t most_bytes = 4096, bool has_limit = true) {
    GraphBuilder b(library_.ops());
    const Value first = b.input("first", tensor_type(ElementType::kFloat, {2, 3}));
    const Value sum = b.scalar(0.0f);
    WhileOptions options{.name = "loop", .initial = {first, sum}};
    if (has_limit) options.trip_limit = b.scalar(rounds);
    const auto results = b.while_loop(
        options,
        [&](Value, ValueSpan v) {
          return WhileTest{b.op("Less", {v[1], b.scalar(9.0f)}), {v[0], v[1]}};
        },
        [&](Value, ValueSpan v) {
          const Value row = b.op("Expand", {b.op("Add", {v[1], b.scalar(1.0f)}), b.int64s({1, 3})});
          const Value grown = b.op("Concat", {v[0], row}, {{"axis", int64_t{0}}});
          Given given{b, v[0], row, grown, {grown, b.op("Add", {v[1], b.scalar(1.0f)})}};
          change(given);
          return given.next;
        });
    b.output("y", results[0]);
    return fix(finish(b), most_bytes).loops;
  };
  const auto total = [](GraphBuilder& b, Value x) {
    return b.op("ReduceSum", {x}, {{"keepdims", int64_t{0}}});
  };
  EXPECT_THAT(loops_of([](Given&) {}), ElementsAre("loop"));
  EXPECT_THAT(loops_of([](Given&) {}, 4, 6 * 3 * 4), ElementsAre("loop"));
  EXPECT_THAT(loops_of([](Given&) {}, 4, 6 * 3 * 4 - 1), IsEmpty()) << "too large";
  EXPECT_THAT(loops_of([](Given&) {}, INT64_MAX, INT64_MAX), IsEmpty()) << "too large";
  EXPECT_THAT(loops_of([](Given&) {}, 4, 4096, false), IsEmpty()) << "no limit";
  EXPECT_THAT(loops_of([](Given&) {}, 0), IsEmpty()) << "no round";
  EXPECT_THAT(loops_of([&](Given& g) { g.next[1] = total(g.b, g.grown); }), IsEmpty());
  EXPECT_THAT(loops_of([&](Given& g) { g.next[1] = total(g.b, g.cache); }), IsEmpty());
  EXPECT_THAT(loops_of([&](Given& g) { g.next[0] = g.b.op("Tanh", {g.grown}); }), IsEmpty());
  EXPECT_THAT(loops_of([&](Given& g) {
                g.next[0] = g.b.op("Concat", {g.row, g.cache}, {{"axis", int64_t{0}}});
              }),
              IsEmpty());
  EXPECT_THAT(loops_of([&](Given& g) {
                g.next[0] = g.b.op("Concat", {g.cache, g.row, g.row}, {{"axis", int64_t{0}}});
              }),
              IsEmpty());
  // Whether a nested region reads it, or its length.
  EXPECT_THAT(loops_of([&](Given& g) {
                const Value is_small = g.b.op("Less", {g.next[1], g.b.scalar(2.0f)});
                g.next[1] = g.b.if_else(
                    is_small, [&] { return Values{total(g.b, g.grown)}; },
                    [&] { return Values{g.next[1]}; })[0];
              }),
              IsEmpty());
  EXPECT_THAT(loops_of([&](Given& g) {
                const Value size = g.b.op("Size", {g.grown});
                g.next[1] = g.b.op("Add", {g.next[1], g.b.cast(size, ElementType::kFloat)});
              }),
              IsEmpty());
}

}  // namespace
}  // namespace eddy
