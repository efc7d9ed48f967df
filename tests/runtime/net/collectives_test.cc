// Claim: each operator that communicates gives on each rank, bit for bit, what run_collective gives
// for the inputs of all ranks: every type that it takes, sizes from nothing to above the slices',
// along every axis, over groups in any order, in whatever order the carrier completes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <numeric>

#include "graph/base/random.h"
#include "graph/ir/half.h"
#include "ops/reference/eddy/collective.h"
#include "tools/check/rank_runner.h"

namespace eddy {
namespace {

using check::is_same;
using check::RankRunner;

// One call, and what each rank puts in.
struct Example {
  std::string op;
  Attributes attributes;
  std::vector<int64_t> group;  // in the order of parts
  Dims dims = {};
  ElementType element = ElementType::kFloat;
  bool has_known_shape = true;

  std::string text() const {
    std::string text = op + " " + std::string(element_type_name(element)) + to_string(dims);
    for (const int64_t rank : group) text += " " + std::to_string(rank);
    return text;
  }
};

Tensor random_tensor(ElementType element, const Dims& dims, Random& random) {
  Tensor tensor = Tensor::zeros(element, dims);
  const TensorView view = tensor.view();
  for (int64_t i = 0; i < view.count(); ++i) {
    const auto number = static_cast<double>(static_cast<int64_t>(random.below(200)) - 100);
    switch (element) {
      case ElementType::kFloat:
        view.mutable_as<float>()[i] = random.uniform(-3.0f, 3.0f);
        break;
      case ElementType::kDouble:
        view.mutable_as<double>()[i] = random.uniform() - 0.5;
        break;
      case ElementType::kFloat16:
        view.mutable_as<Float16>()[i] = Float16(static_cast<float>(number));
        break;
      case ElementType::kBfloat16:
        view.mutable_as<Bfloat16>()[i] = Bfloat16(static_cast<float>(number));
        break;
      case ElementType::kBool:
        view.mutable_as<bool>()[i] = random.below(3) > 0;
        break;
      default:
        for (size_t b = 0; b < element_size_bytes(element); ++b) {
          view.mutable_as<uint8_t>()[static_cast<size_t>(i) * element_size_bytes(element) + b] =
              static_cast<uint8_t>(random.below(256));
        }
    }
  }
  return tensor;
}

class CollectivesTest : public ::testing::Test {
 protected:
  // Runs it on all ranks of its group; the others have an empty graph.
  void check(RankRunner& ranks, const Example& example, Random& random) {
    const auto is_in = [&](uint32_t rank) {
      return std::ranges::count(example.group, static_cast<int64_t>(rank)) > 0;
    };
    const std::string made = ranks.make(
        [&](const Library& library, uint32_t rank) {
          GraphBuilder b(library.ops());
          TensorType type(example.element, example.dims);
          for (int i = 0; !example.has_known_shape && i < type.dims.rank(); ++i) {
            type.dims[i] = kUnknownDim;
          }
          const Value x = b.input("x", ValueType(type));
          Attributes attributes = example.attributes;
          if (example.group.size() < ranks.num_ranks() || !std::ranges::is_sorted(example.group)) {
            attributes.set("group", example.group);
          }
          b.output("y", is_in(rank) ? b.op(example.op, {x}, attributes, {.domain = "eddy"}) : x);
          return b.finish();
        },
        [](SessionOptions& options, uint32_t) { options.ranks.is_one_graph = false; });
    ASSERT_EQ(made, "") << example.text();
    std::vector<Tensor> inputs;
    std::vector<TensorView> views;
    for (uint32_t r = 0; r < ranks.num_ranks(); ++r) {
      inputs.push_back(random_tensor(example.element, example.dims, random));
    }
    for (const int64_t rank : example.group) {
      views.push_back(inputs[static_cast<size_t>(rank)].view());
    }
    for (int turn = 0; turn < 2; ++turn) {
      auto results = ranks.run([&](uint32_t r) { return NamedTensors{{"x", inputs[r]}}; });
      for (uint32_t r = 0; r < ranks.num_ranks(); ++r) {
        ASSERT_TRUE(results[r].is_ok())
            << example.text() << ": " << results[r].status().to_string();
        if (is_in(r)) compare(example, views, r, (*results[r])[0].second);
      }
    }
    EXPECT_THAT(ranks.net().violations(), ::testing::IsEmpty()) << example.text();
    EXPECT_EQ(ranks.net().num_under_way(), 0u);
    ++num_checked_;
  }

  static void compare(const Example& example, const std::vector<TensorView>& views, uint32_t rank,
                      const Tensor& result) {
    Attributes attributes = example.attributes;
    attributes.set("group", example.group);
    const Collective c = *read_collective(example.op, attributes);
    const auto place_of = [&](int64_t of) {
      return static_cast<size_t>(std::ranges::find(example.group, of) - example.group.begin());
    };
    Tensor expected = Tensor::zeros(result.element_type(), result.dims());
    const Status status =
        run_collective(c, {views, place_of(rank), place_of(c.root)}, expected.view());
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    EXPECT_TRUE(is_same(result, expected)) << example.text() << " on rank " << rank;
  }

  int num_checked_ = 0;
};

constexpr ElementType kReduced[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
    ElementType::kInt8,  ElementType::kInt16,  ElementType::kInt32,   ElementType::kInt64,
    ElementType::kUint8, ElementType::kUint16, ElementType::kUint32,  ElementType::kUint64};

// Ranks of a world, at least two, in a random order.
std::vector<int64_t> random_group(uint32_t num_ranks, Random& random) {
  std::vector<int64_t> ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  for (size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
  ranks.resize(2 + random.below(num_ranks - 1));
  if (random.below(2) == 0) std::ranges::sort(ranks);
  return ranks;
}

Example random_example(uint32_t num_ranks, Random& random) {
  constexpr const char* kOps[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                  "AllToAll"};
  Example example;
  example.op = kOps[random.below(5)];
  example.group = random_group(num_ranks, random);
  example.has_known_shape = random.below(3) > 0;
  const auto n = static_cast<int64_t>(example.group.size());
  const int rank = 1 + static_cast<int>(random.below(3));
  const auto axis = static_cast<int64_t>(random.below(static_cast<uint64_t>(rank)));
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(random.below(5)));
  if (random.below(4) == 0) dims[0] = 3000 + static_cast<int64_t>(random.below(9));
  const bool is_cut = example.op == "ReduceScatter" || example.op == "AllToAll";
  if (is_cut) dims[static_cast<size_t>(axis)] *= n;
  example.dims = Dims(dims);
  const bool reduces = example.op == "AllReduce" || example.op == "ReduceScatter";
  if (is_cut || example.op == "AllGather") {
    example.attributes.set("axis", random.below(2) == 0 ? axis : axis - rank);
  }
  if (example.op == "Broadcast") {
    example.attributes.set("root", example.group[random.below(example.group.size())]);
  }
  example.element = kReduced[random.below(std::size(kReduced))];
  if (!reduces) {
    if (random.below(4) == 0) example.element = ElementType::kBool;
    return example;
  }
  constexpr const char* kReductions[] = {"sum", "prod", "min", "max"};
  std::string reduction = kReductions[random.below(4)];
  if (random.below(6) == 0) {
    example.element = ElementType::kBool;
    reduction = random.below(2) == 0 ? "and" : "or";
  } else if (random.below(6) == 0) {
    example.element = kReduced[random.below(4)];
    reduction = "average";
  }
  example.attributes.set("reduction", reduction);
  // The same bits in any order, but for rounding.
  const bool is_exact = reduction != "average" && (reduction != "sum" && reduction != "prod");
  if (is_exact && random.below(2) == 0) example.attributes.set("order", std::string("any"));
  return example;
}

TEST_F(CollectivesTest, EveryOperatorIsItsReference) {
  constexpr uint64_t kSeed = 20261128;
  std::cout << "seed " << kSeed << "\n";
  for (uint32_t num_ranks = 2; num_ranks <= 6; ++num_ranks) {
    Random random(kSeed + num_ranks);
    RankRunner ranks({.num_ranks = num_ranks, .seed = kSeed + num_ranks});
    for (int i = 0; i < 24; ++i) {
      ASSERT_NO_FATAL_FAILURE(check(ranks, random_example(num_ranks, random), random))
          << num_ranks << " ranks, example " << i;
    }
  }
  EXPECT_EQ(num_checked_, 120);
}

TEST_F(CollectivesTest, SumsAreEqualForEachTypeOnBothSidesOfTheSlices) {
  Random random(3);
  RankRunner ranks({.num_ranks = 3, .seed = 5});
  for (const ElementType element : kReduced) {
    for (const int64_t count : {1, 7, 8191, 8194, 20001}) {
      Example example{.op = "AllReduce", .attributes = {}, .group = {0, 1, 2}};
      example.dims = {count};
      example.element = element;
      ASSERT_NO_FATAL_FAILURE(check(ranks, example, random));
    }
  }
}

// Rows of a tensor in ragged shares, to boxes that overlap, are empty, or cut the other axis: one
// graph for all ranks, whose shapes differ.
TEST_F(CollectivesTest, AnExchangeIsItsReferenceWithBoxesOfAnySize) {
  constexpr uint64_t kSeed = 31;
  std::cout << "seed " << kSeed << "\n";
  int num_lone = 0;  // ranks that want what one alone has
  for (uint32_t n = 2; n <= 6; ++n) {
    Random random(kSeed + n);
    RankRunner ranks({.num_ranks = n, .seed = kSeed + n});
    for (int example = 0; example < 12; ++example) {
      const auto columns = static_cast<int64_t>(1 + random.below(5));
      std::vector<int64_t> from, to;
      int64_t rows = 0;
      for (uint32_t r = 0; r < n; ++r) {
        const auto share = static_cast<int64_t>(random.below(4));
        from.insert(from.end(), {rows, 0, share, columns});
        rows += share;
      }
      for (uint32_t r = 0; r < n; ++r) {
        const auto within = [&](int64_t size) {
          return static_cast<int64_t>(random.below(static_cast<uint64_t>(size) + 1));
        };
        const int64_t row = within(rows), column = within(columns);
        to.insert(to.end(), {row, column, within(rows - row), within(columns - column)});
      }
      std::vector<int64_t> group(n);
      std::iota(group.begin(), group.end(), 0);
      if (example % 2 == 1) std::rotate(group.begin(), group.begin() + 1, group.end());
      const Attributes attributes = {{"from", from}, {"to", to}, {"group", group}};
      const Collective c = *read_collective("Exchange", attributes);
      ASSERT_EQ(ranks.make([&](const Library& library, uint32_t) {
        GraphBuilder b(library.ops());
        const Value x = b.input("x", tensor_type(ElementType::kInt32, {b.symbol("n"), columns}));
        b.output("y", b.op("Exchange", {x}, attributes, {.domain = "eddy"}));
        return b.finish();
      }),
                "");
      std::vector<Tensor> inputs;  // by place
      std::vector<TensorView> views;
      for (uint32_t p = 0; p < n; ++p) {
        inputs.push_back(random_tensor(ElementType::kInt32, Dims(c.from[p].sizes), random));
      }
      for (const Tensor& input : inputs) views.push_back(input.view());
      const auto pieces = exchange_pieces(c.from, c.to);
      ASSERT_TRUE(pieces.is_ok());
      for (const ExchangePiece& piece : *pieces) {
        num_lone += piece.source != piece.target ? 1 : 0;
      }
      const auto place_of = [&](uint32_t rank) {
        return static_cast<size_t>(std::ranges::find(group, int64_t{rank}) - group.begin());
      };
      auto results = ranks.run([&](uint32_t r) {
        return NamedTensors{{"x", inputs[place_of(r)]}};
      });
      for (uint32_t r = 0; r < n; ++r) {
        ASSERT_TRUE(results[r].is_ok()) << results[r].status().to_string();
        Tensor expected = Tensor::zeros(ElementType::kInt32, Dims(c.to[place_of(r)].sizes));
        ASSERT_TRUE(run_collective(c, {views, place_of(r)}, expected.view()).is_ok());
        EXPECT_TRUE(is_same((*results[r])[0].second, expected)) << "rank " << r << " of " << n;
      }
      EXPECT_THAT(ranks.net().violations(), ::testing::IsEmpty());
    }
  }
  EXPECT_GT(num_lone, 100);
}

TEST_F(CollectivesTest, ABoxThatNobodyHasIsRefusedBeforeAnythingIsSent) {
  RankRunner ranks({.num_ranks = 2, .seed = 3});
  const std::vector<int64_t> from = {0, 2, 2, 2}, to = {0, 2, 2, 3};
  const std::string made = ranks.make([&](const Library& library, uint32_t) {
    GraphBuilder b(library.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
    b.output("y", b.op("Exchange", {x}, {{"from", from}, {"to", to}},
                       {.name = "halo", .domain = "eddy"}));
    return b.finish();
  });
  EXPECT_THAT(made, ::testing::HasSubstr("no rank has [4:5], which place 1 of the group wants"));
  EXPECT_THAT(made, ::testing::HasSubstr("halo"));
}

// Each rank sends to the next, and receives from the one before.
TEST_F(CollectivesTest, MessagesGoRound) {
  for (uint32_t n = 2; n <= 5; ++n) {
    RankRunner ranks({.num_ranks = n, .seed = n});
    const std::string made = ranks.make(
        [&](const Library& library, uint32_t rank) {
          GraphBuilder b(library.ops());
          const ValueType type = tensor_type(ElementType::kInt32, {3});
          const Value x = b.input("x", type);
          const int64_t next = (rank + 1) % n, before = (rank + n - 1) % n;
          const Value sent = b.op("Send", {x}, {{"root", next}}, {.domain = "eddy"});
          const Value y = b.op("Recv", {}, {{"root", before}, {"type", type}}, {.domain = "eddy"});
          const Value end = b.op("Barrier", {sent, y}, {}, {.domain = "eddy"});
          b.output("y", y);
          b.output("end", end);
          b.output("rank", b.op("Rank", {}, {}, {.domain = "eddy"}));
          return b.finish();
        },
        [](SessionOptions& options, uint32_t) { options.ranks.is_one_graph = false; });
    ASSERT_EQ(made, "");
    for (int turn = 0; turn < 3; ++turn) {
      auto results = ranks.run([&](uint32_t r) {
        const auto first = static_cast<int32_t>(10 * r);
        return NamedTensors{{"x", Tensor::of<int32_t>({3}, {first, first + 1, turn})}};
      });
      for (uint32_t r = 0; r < n; ++r) {
        ASSERT_TRUE(results[r].is_ok()) << results[r].status().to_string();
        const auto first = static_cast<int32_t>(10 * ((r + n - 1) % n));
        EXPECT_THAT((*results[r])[0].second.values<int32_t>(),
                    ::testing::ElementsAre(first, first + 1, turn));
        EXPECT_TRUE((*results[r])[1].second.values<bool>()[0]);
        EXPECT_EQ((*results[r])[2].second.values<int64_t>()[0], r);
      }
    }
    EXPECT_THAT(ranks.net().violations(), ::testing::IsEmpty());
  }
}

// Sizes that nobody knew before are compared as they meet.
TEST_F(CollectivesTest, UnlikeShapesAreAnErrorOnAllRanksAndMoveNothing) {
  RankRunner ranks({.num_ranks = 3, .seed = 11});
  const auto build = [](const Library& library, uint32_t) {
    GraphBuilder b(library.ops());
    // As many elements as data say, which no rank knows before.
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
    const Value some =
        b.op("Compress", {x, b.op("Cast", {x}, {{"to", static_cast<int64_t>(ElementType::kBool)}})},
             {{"axis", int64_t{0}}});
    b.output("y", b.op("AllReduce", {some}, {}, {.name = "sum", .domain = "eddy"}));
    return b.finish();
  };
  ASSERT_EQ(ranks.make(build), "");
  auto results = ranks.run([](uint32_t r) {
    return NamedTensors{{"x", Tensor::of<float>({4}, {1, 1, 1, r == 1 ? 0.0f : 1.0f})}};
  });
  for (auto& result : results) {
    ASSERT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().to_string(), results[0].status().to_string());
    EXPECT_THAT(
        result.status().to_string(),
        ::testing::HasSubstr("ranks put in unlike values: rank 0 float[4], rank 1 float[3]"));
  }
  results = ranks.run([](uint32_t) {
    return NamedTensors{{"x", Tensor::zeros(ElementType::kFloat, {5})}};
  });
  for (auto& result : results) EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_THAT(ranks.net().violations(), ::testing::IsEmpty());
}

TEST_F(CollectivesTest, WithoutAWorldTheGraphIsRefused) {
  Library library;
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  b.output("y", b.op("AllReduce", {x}, {}, {.domain = "eddy"}));
  const auto session = Session::create(library, *b.finish(), {});
  ASSERT_FALSE(session.is_ok());
  EXPECT_THAT(session.status().to_string(), ::testing::HasSubstr("run it with --ranks N"));
}

}  // namespace
}  // namespace eddy
