// Claim: gradients of 2,000 random programs with every form of control flow, and second ones of a
// tenth, are those of dual numbers, however they are driven and in whatever order things complete,
// and have the same bits whatever each of their loops keeps;
// and the campaign notices each defect that is planted in what the pass has made.
#include "tools/check/gradient_campaign.h"

#include <gtest/gtest.h>

#include "graph/compile/copy_graph.h"
#include "graph/ir/control_view.h"
#include "tools/check/dual_oracle.h"

namespace eddy::check {
namespace {

TEST(GradientCampaignTest, RandomProgramsHaveTheGradientsOfDualNumbers) {
  GradientCampaign campaign({});
  for (uint64_t seed = 0; seed < 2000 && campaign.meet(seed); ++seed) {
  }
  const GradientCampaignReport& report = campaign.report();
  for (const GradientMismatch& mismatch : report.mismatches) {
    ADD_FAILURE() << "seed " << mismatch.seed << ", " << mismatch.num_nodes
                  << " nodes: " << mismatch.what;
  }
  printf(
      "%llu programs (%llu flat), %llu derivatives, %llu second ones, %llu iterations, %llu loops "
      "without a trip\n",
      static_cast<unsigned long long>(report.num_programs),
      static_cast<unsigned long long>(report.num_flat),
      static_cast<unsigned long long>(report.num_derivatives),
      static_cast<unsigned long long>(report.num_second_derivatives),
      static_cast<unsigned long long>(report.num_iterations),
      static_cast<unsigned long long>(report.num_loops_without_trip));
  EXPECT_EQ(report.num_programs, 2000u);
  EXPECT_GT(report.num_derivatives, 6000u);
  EXPECT_GT(report.num_second_derivatives, 400u);
  EXPECT_GT(report.num_loops_without_trip, 500u);
  EXPECT_GT(report.num_loops_made_again, 1000u);
  EXPECT_GT(report.num_compared_by_bits, 4000u);
}

enum class Plant {
  kLostSum,        // of two adjoints of one value
  kLostPassedOn,   // of a value that passes through a branch
  kWrongPopOrder,  // of a tape
  kRowsForward,    // that should be read from the last one on
  kOneTripLess,    // of a loop on the way back
  kWrongResidual,  // what `before` has kept of its last time
  kOtherBranch,    // on the way back
  kWrongSlope,     // a rule's
};

// A gradient's graph with one kind of defect wherever it can be.
class Spoiler : public GraphCopier {
 public:
  Spoiler(const Graph& source, GraphBuilder& builder, Plant plant)
      : GraphCopier(source, builder), plant_(plant) {}

 protected:
  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    const bool is_sum = node.name.starts_with("grad/Add");
    if (is_sum && plant_ == Plant::kLostSum) return define(node.outputs[0], value(node.inputs[0]));
    if (is_sum && plant_ == Plant::kLostPassedOn && passes_on(node.region)) {
      return define(node.outputs[0], value(node.inputs[0]));
    }
    if (plant_ == Plant::kWrongPopOrder && node.name.starts_with("grad/SequenceAt")) {
      const Value inputs[] = {value(node.inputs[0]), builder_.scalar(int64_t{0})};
      return copy_exec(id, inputs, node.device);
    }
    if (plant_ == Plant::kRowsForward && node.name.starts_with("grad/Sub") &&
        is_iteration(source_, node.inputs[1])) {
      return define(node.outputs[0], value(node.inputs[1]));
    }
    if (plant_ == Plant::kWrongSlope && node.name.find("/grad/Cos") != std::string::npos) {
      return define(node.outputs[0], builder_.op("Sin", values(node.inputs)));
    }
    copy_exec(id);
  }

  void branch(NodeId id) override {
    Value selector = value(source_.node(id).inputs[0]);
    if (plant_ == Plant::kOtherBranch && is_reversed(id)) {
      selector = builder_.op("Add", {selector, builder_.scalar(int64_t{1})});
    }
    copy_branch(id, selector);
  }

  Value awaited_by_host(ValueId id) override {
    const Value limit = value(id);
    if (plant_ != Plant::kOneTripLess || id.is_none() || !is_limit_of_reversed(id)) return limit;
    return builder_.op("Sub", {limit, builder_.scalar(int64_t{1})});
  }

  // The initial residuals are results of loops of the way forward.
  Value handed_on(ValueId from, ValueId to) override {
    const Value given = value(from);
    const ValueInfo& info = source_.value(from);
    if (plant_ != Plant::kWrongResidual || !is_carried(source_, to)) return given;
    const NodeId loop = source_.region(source_.value(to).region).owner;
    const bool is_kept = is_reversed(loop) && info.origin == ValueOrigin::kNodeOutput &&
                         source_.node(info.producer).kind == NodeKind::kWhile &&
                         !is_reversed(info.producer) && info.type.is_tensor() &&
                         info.type.tensor.element == ElementType::kDouble;
    return is_kept ? builder_.op("Mul", {given, builder_.scalar(0.5)}) : given;
  }

 private:
  bool is_reversed(NodeId id) const {
    return source_.node(id).name.find("/grad") != std::string::npos;
  }
  bool passes_on(RegionId region) const {
    const NodeId owner = source_.region(region).owner;
    if (owner.is_none() || source_.node(owner).kind != NodeKind::kCaseOf) return false;
    const Node& choice = source_.node(owner);
    return is_reversed(owner) && choice.regions.back() == region &&
           choice.default_region + 1 == std::ssize(choice.regions);
  }
  bool is_limit_of_reversed(ValueId id) const {
    for (uint32_t n = 0; n < source_.num_nodes(); ++n) {
      const Node& node = source_.node(NodeId(n));
      if (node.kind == NodeKind::kWhile && node.name.ends_with("/grad") && node.inputs[0] == id) {
        return true;
      }
    }
    return false;
  }

  const Plant plant_;
};

TEST(GradientCampaignTest, EachPlantedDefectIsNoticed) {
  const std::pair<Plant, const char*> plants[] = {{Plant::kLostSum, "lost sum"},
                                                  {Plant::kLostPassedOn, "lost pass-through"},
                                                  {Plant::kWrongPopOrder, "wrong pop order"},
                                                  {Plant::kRowsForward, "rows read forward"},
                                                  {Plant::kOneTripLess, "one trip less"},
                                                  {Plant::kWrongResidual, "wrong last residual"},
                                                  {Plant::kOtherBranch, "another branch"},
                                                  {Plant::kWrongSlope, "wrong slope"}};
  const Library library;
  for (const auto& [plant, name] : plants) {
    GradientCampaignOptions options;
    options.max_mismatches = 1;
    options.twice_every = 0;
    options.plant = [&library, plant = plant](Graph gradient) -> Result<Graph> {
      GraphBuilder builder(library.ops(), gradient.name());
      Spoiler(gradient, builder, plant).run();
      EDDY_RETURN_IF_ERROR(builder.status());
      builder.adopt_blobs_of(std::move(gradient));
      return builder.finish();
    };
    GradientCampaign campaign(std::move(options));
    uint64_t seed = 0;
    while (seed < 300 && campaign.meet(seed)) ++seed;
    ASSERT_FALSE(campaign.report().mismatches.empty()) << name << " goes unnoticed";
    const std::string& what = campaign.report().mismatches[0].what;
    printf("%s: seed %llu, %s\n", name, static_cast<unsigned long long>(seed), what.c_str());
    EXPECT_EQ(what.find("planted"), std::string::npos) << what;
  }
}

// x y at (2, 3), and a loop of it.
TEST(DualOracleTest, GivesFirstAndSecondDerivatives) {
  const Library library;
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {}));
  const Value y = b.input("y", tensor_type(ElementType::kDouble, {}));
  const auto made = b.while_loop(
      {.name = "power", .initial = {y}},
      [&](Value i, ValueSpan v) {
        return WhileTest{b.op("Less", {i, b.scalar(int64_t{3})}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        return std::vector<Value>{b.op("Mul", {v[0], x})};
      });
  b.output("loss", made[0]);  // x^3 y
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto run = interpret_dual(*graph, {{"x", {{.x = 2, .a = 1}}}, {"y", {{.x = 3, .b = 1}}}});
  ASSERT_TRUE(run.is_ok()) << run.status().to_string();
  EXPECT_EQ(run->loss.x, 24);
  EXPECT_EQ(run->loss.a, 36);   // 3 x^2 y
  EXPECT_EQ(run->loss.b, 8);    // x^3
  EXPECT_EQ(run->loss.ab, 12);  // 3 x^2
  EXPECT_EQ(run->trips.at("power"), 3);
  const auto endless =
      interpret_dual(*graph, {{"x", {{.x = 2}}}, {"y", {{.x = 3}}}}, /*max_iterations=*/2);
  EXPECT_EQ(endless.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace eddy::check
