#include "tools/bench/loop_cases.h"

#include <map>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

constexpr double kBillion = 1e9;

template <typename T>
HostValue filled(const TensorType& type, T number) {
  EDDY_CHECK(type.element == element_type_of<T>()) << element_type_name(type.element);
  HostValue value = HostValue::tensor(type.element, type.is_ranked ? type.dims : Dims());
  const TensorView view = value.view();
  for (int64_t i = 0; i < view.count(); ++i) view.mutable_as<T>()[i] = number;
  return value;
}

HostValue random_floats(const Dims& dims, Random& random) {
  HostValue value = HostValue::tensor(ElementType::kFloat, dims);
  const TensorView view = value.view();
  for (int64_t i = 0; i < view.count(); ++i) {
    view.mutable_as<float>()[i] = random.uniform(-0.5f, 0.5f);
  }
  return value;
}

// Shapes that the voice model leaves open, and its start.
Result<HostValue> float_feed(const ValueDescription& input, const LoopCase& loop_case,
                             Random& random) {
  static const std::map<std::string, double> kConstants = {
      {"limit", 1e30}, {"one", 1}, {"kk", 0.999}, {"ilim", kBillion}};
  const auto constant = kConstants.find(input.name);
  const TensorType& type = input.type.tensor;
  if (constant != kConstants.end()) return filled(type, static_cast<float>(constant->second));
  if (input.name == "state") {
    return filled(TensorType(ElementType::kFloat, {2, 1, 128}), 0.0f);
  }
  if (input.name == "input") return random_floats({1, 576}, random);
  if (!type.is_ranked) {
    return invalid_argument(fmt::format("{}: no feed for input {} of type {}", loop_case.model,
                                        input.name, input.text));
  }
  // Scalars start at 0 in loops, at 1 where there is none. A scan is as long as it has steps.
  if (type.dims.count() == 1) return filled(type, loop_case.trip == 0 ? 1.0f : 0.0f);
  Dims dims;
  for (const int64_t dim : type.dims) {
    dims.push_back(dim < 0 ? static_cast<int64_t>(loop_case.units) : dim);
  }
  return random_floats(dims, random);
}

bool run_step(const KernelArgs& args) {
  args.outputs[0].mutable_as<float>()[0] = args.inputs[0].as<float>()[0] + 1.0f;
  return true;
}

Result<BoundKernel> bind_step(const KernelInit&) {
  BoundKernel kernel;
  kernel.run = run_step;
  return kernel;
}

}  // namespace

const std::vector<LoopCase>& loop_cases() {
  static const std::vector<LoopCase> kCases = {
      {"a_while_scalar", "a_while_scalar", 100000, 0, 1e5, "iteration", 30},
      {"a2_for_scalar", "a2_for_scalar", 100000, 0, 1e5, "iteration", 0},
      {"a3_while_scanout", "a3_while_scanout", 100000, 0, 1e5, "iteration", 0},
      {"a4_while_10ops", "a4_while_10ops", 100000, 0, 1e5, "iteration", 0},
      {"b_nested", "b_nested", 1000, 1000, 1e6, "inner iteration", 30},
      {"b_nested, inner start", "b_nested", 1000, 1, 1e3, "inner loop", 0},
      {"c_if_in_loop", "c_if_in_loop", 100000, 0, 1e5, "iteration", 60},
      {"c2_where_in_loop", "c2_where_in_loop", 100000, 0, 1e5, "iteration", 0},
      {"d_matmul16", "d_matmul16", 50, 0, 50, "iteration", 0},
      {"d_matmul64", "d_matmul64", 50, 0, 50, "iteration", 0},
      {"d_matmul128", "d_matmul128", 50, 0, 50, "iteration", 0},
      {"d_matmul256", "d_matmul256", 50, 0, 50, "iteration", 0},
      {"e_8loops_scalar", "e_8loops_scalar", 20000, 0, 1, "run", 0},
      {"e_8loops_64", "e_8loops_64", 1000, 0, 1, "run", 0},
      {"e_8loops_256", "e_8loops_256", 50, 0, 1, "run", 0},
      {"e0_8chains_mm256", "e0_8chains_mm256", 0, 0, 1, "run", 0},
      {"h_scan_rnn64", "h_scan_rnn64", 0, 0, 1e3, "step", 0},
      {"k_grow_concat", "k_grow_concat", 1000, 0, 1e3, "step", 700},
      {"m_identity", "m_identity", 0, 0, 1, "run", 300},
      {"n_chain1000", "n_chain1000", 0, 0, 1e3, "node", 15},
  };
  return kCases;
}

Result<std::vector<HostValue>> loop_feed(const std::vector<ValueDescription>& inputs,
                                         const LoopCase& loop_case) {
  Random random(1);
  std::vector<HostValue> feed;
  for (const ValueDescription& input : inputs) {
    const TensorType& type = input.type.tensor;
    switch (type.element) {
      case ElementType::kBool:
        feed.push_back(filled(type, true));
        break;
      case ElementType::kInt64: {
        const int64_t number = input.name == "sr"      ? 16000
                               : input.name == "trip"  ? loop_case.trip
                               : input.name == "trip2" ? loop_case.inner_trip
                                                       : static_cast<int64_t>(kBillion);
        feed.push_back(filled(type, number));
        break;
      }
      case ElementType::kFloat: {
        EDDY_ASSIGN_OR_RETURN(HostValue value, float_feed(input, loop_case, random));
        feed.push_back(std::move(value));
        break;
      }
      default:
        return unsupported(fmt::format("{}: no feed for input {} of type {}", loop_case.model,
                                       input.name, input.text));
    }
  }
  return feed;
}

Result<std::unique_ptr<EddyRun>> EddyRun::make(std::unique_ptr<Session> session,
                                               std::vector<HostValue> feed) {
  std::unique_ptr<EddyRun> run(new EddyRun);
  run->feed_ = std::move(feed);
  run->session_ = std::move(session);
  EDDY_ASSIGN_OR_RETURN(run->call_, run->session_->prepare());
  for (size_t i = 0; i < run->feed_.size(); ++i) {
    EDDY_RETURN_IF_ERROR(run->call_->bind_input(i, run->feed_[i].view()));
  }
  return run;
}

Contender EddyRun::contender(std::string name) {
  Call* const call = call_.get();
  return {std::move(name), [call] { return call->run(); }};
}

std::vector<HostValue> EddyRun::outputs() const {
  std::vector<HostValue> values;
  for (size_t i = 0; i < session_->outputs().size(); ++i) {
    values.push_back(HostValue::copy_of(call_->output(i)));
  }
  return values;
}

std::unique_ptr<Library> library_with_step() {
  auto library = std::make_unique<Library>();
  OpDef def;
  def.name = "Step";
  def.domain = "bench";
  def.inputs = {{"x", {ElementType::kFloat}, InputFlag::kNone}};
  def.infer = [](InferContext& context) {
    context.set_output(0, context.input(0));
    return Status::ok();
  };
  def.in_place_inputs = 1;
  const Status status = library->add_operator(std::move(def), bind_step);
  EDDY_CHECK(status.is_ok()) << status.to_string();
  return library;
}

Result<Graph> step_loop(const Library& library) {
  GraphBuilder b(library.ops(), "step_loop");
  b.set_opset("bench", 1);
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const Value always = b.scalar(true);
  WhileOptions options;
  options.name = "loop";
  options.initial = {x};
  options.trip_limit = n;
  const std::vector<Value> results = b.while_loop(
      options,
      [&](Value, std::span<const Value> carried) {
        return WhileTest{always, {carried[0]}};
      },
      [&](Value, std::span<const Value> forwarded) -> std::vector<Value> {
        OpOptions step;
        step.domain = "bench";
        return {b.op("Step", {forwarded[0]}, {}, step)};
      });
  b.output("y", results.empty() ? Value{} : results[0]);
  return b.finish();
}

}  // namespace eddy
