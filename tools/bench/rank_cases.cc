#include "tools/bench/rank_cases.h"

#include <numeric>
#include <utility>

#include "graph/base/processor.h"
#include "graph/ir/builder.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

constexpr const char* kDomain = "eddy";
constexpr uint32_t kChannels = 4;  // of long_skeletons

Value communicate(GraphBuilder& b, RankTurn turn, Value x) {
  if (turn == RankTurn::kGather) return b.op("AllGather", {x}, {}, {.domain = kDomain});
  const bool is_any = turn == RankTurn::kSumInAnyOrder;
  return b.op("AllReduce", {x}, {{"order", std::string(is_any ? "any" : "rank")}},
              {.domain = kDomain});
}

// Each rank asks itself, and all have to want it.
Result<Graph> agreed_turns(const Library& library) {
  GraphBuilder b(library.ops(), "agreed");
  const Value turns = b.input("turns", tensor_type(ElementType::kInt64, {}));
  const auto last = b.while_loop(
      {.name = "turns", .initial = {b.scalar(int64_t{0})}},
      [&](Value i, ValueSpan) {
        const Value wants = b.op("Less", {i, turns});
        const Value go =
            b.op("AllReduce", {wants}, {{"reduction", std::string("and")}}, {.domain = kDomain});
        return WhileTest{go, {i}};
      },
      [](Value, ValueSpan i) { return std::vector<Value>{i[0]}; });
  b.output("last", last[0]);
  return b.finish();
}

bool run_work(const KernelArgs& args) {
  const double ms = *args.inputs[0].as<double>();
  work_for(ms);
  *args.outputs[0].mutable_as<double>() = ms;
  return true;
}

}  // namespace

Result<Graph> rank_turns(const Library& library, RankTurn turn, int64_t bytes) {
  if (turn == RankTurn::kAgree) return agreed_turns(library);
  GraphBuilder b(library.ops(), "turns");
  const Value turns = b.input("turns", tensor_type(ElementType::kInt64, {}));
  const Value x =
      b.input("x", tensor_type(ElementType::kFloat, {bytes / static_cast<int64_t>(sizeof(float))}));
  const auto last = b.while_loop(
      {.name = "turns", .initial = {x}, .trip_limit = turns},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) {
        const Value made = communicate(b, turn, forwarded[0]);
        return std::vector<Value>{turn == RankTurn::kGather ? forwarded[0] : made};
      });
  b.output("last", last[0]);
  return b.finish();
}

Result<Graph> loop_alone(const Library& library) {
  GraphBuilder b(library.ops(), "alone");
  const Value turns = b.input("turns", tensor_type(ElementType::kInt64, {}));
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const auto last = b.while_loop(
      {.name = "turns", .initial = {x}, .trip_limit = turns},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) {
        return std::vector<Value>{b.op("Mul", {forwarded[0], b.scalar(0.5F)})};
      });
  b.output("last", last[0]);
  return b.finish();
}

Result<Graph> late_sum(const Library& library) {
  GraphBuilder b(library.ops(), "late");
  const auto work = [&](const char* input, const char* name) {
    return b.op("Work", {b.input(input, tensor_type(ElementType::kDouble, {}))}, {},
                {.name = name, .domain = "bench"});
  };
  const Value before = work("before", "late");
  const Value beside = work("beside", "own");
  b.output("sum", b.op("AllReduce", {before}, {}, {.name = "sum", .domain = kDomain}));
  b.output("worked", beside);
  return b.finish();
}

Result<Graph> empty_model(const Library& library) {
  GraphBuilder b(library.ops(), "nothing");
  b.output("y", b.op("Identity", {b.input("x", tensor_type(ElementType::kFloat, {}))}));
  return b.finish();
}

Status add_work(Library& library) {
  OpDef work{.name = "Work",
             .domain = "bench",
             .inputs = {{.name = "ms", .types = {ElementType::kDouble}}},
             .infer = [](InferContext& context) {
               context.set_output(0, context.input(0));
               return Status::ok();
             }};
  return library.add_operator(std::move(work), [](const KernelInit&) {
    return Result<BoundKernel>(
        BoundKernel{.run = run_work, .run_value = nullptr, .state = nullptr});
  });
}

void work_for(double ms) {
  const auto end = now_ns() + static_cast<int64_t>(ms * 1e6);
  while (now_ns() < end) cpu_relax();
}

std::vector<RankSkeleton> long_skeletons(uint32_t num_ranks, uint32_t num_posts) {
  using Op = RankSkeleton::Op;
  RankSkeleton one;
  for (uint32_t c = 0; c < kChannels; ++c) {
    RankSkeleton::Channel& channel = one.channels.emplace_back();
    channel.number = c;
    channel.group.resize(num_ranks);
    std::iota(channel.group.begin(), channel.group.end(), 0U);
  }
  RankSkeleton::Region& root = one.regions.emplace_back();
  for (uint32_t p = 0; p < num_posts; ++p) {
    one.posts.push_back({.channel = p % kChannels,
                         .signature = {.kind = "AllReduce",
                                       .type = "float",
                                       .shape = "[1024]",
                                       .reduction = "sum",
                                       .tag = {}},
                         .path = "AllReduce_" + std::to_string(p)});
    RankSkeleton::Vertex post{Op::kPost, p};
    if (p > 0) post.after.push_back(2 * p - 1);
    root.vertices.push_back(std::move(post));
    root.vertices.push_back({Op::kDone, 2 * p, {2 * p}});
  }
  root.end.push_back(2 * num_posts - 1);
  return std::vector<RankSkeleton>(num_ranks, one);
}

}  // namespace eddy
