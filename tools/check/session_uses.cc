#include "tools/check/session_uses.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "graph/base/random.h"

namespace eddy::check {
namespace {

constexpr std::array<uint64_t, 3> kVariants = {0, 1, 0};
constexpr unsigned char kGuard = 0xa5;

std::string of_inputs(uint64_t variant) { return "inputs " + std::to_string(variant) + ": "; }

// Trip counts of the last time each loop ran. Reports come in the order of the graph's loops.
std::string trips_difference(const Graph& graph, const OracleResult& expected,
                             const std::vector<LoopReport>& reports) {
  std::map<NodeId, int64_t> last;
  for (const TripCount& count : expected.trips) last[count.node] = count.trips;
  auto report = reports.begin();
  for (uint32_t n = 0; n < graph.num_nodes() && report != reports.end(); ++n) {
    if (graph.node(NodeId(n)).kind != NodeKind::kWhile) continue;
    const auto should = last.find(NodeId(n));
    if (should != last.end() && should->second != report->iterations) {
      return "loop " + report->path + " made " + std::to_string(report->iterations) +
             " trips and should have made " + std::to_string(should->second);
    }
    ++report;
  }
  return {};
}

std::string run_once(Session& session, Subject& subject, uint64_t variant) {
  const auto& [given, status, should] = subject.expected(variant);
  const auto outputs = session.run(given);
  if (!outputs.is_ok()) return of_inputs(variant) + outputs.status().to_string();
  const std::string text = difference(should.outputs, *outputs);
  return text.empty() ? text : of_inputs(variant) + text;
}

// A run in flight and what became of it.
struct Flight {
  uint64_t variant = 0;
  RunHandle handle;
  std::shared_ptr<Result<NamedTensors>> outputs;
};

Flight start(Session& session, Subject& subject, uint64_t variant, const RunOptions& options = {},
             Stream* stream_or_null = nullptr) {
  auto outputs = std::make_shared<Result<NamedTensors>>(Status(internal_error("no callback")));
  const auto callback = [outputs](Result<NamedTensors> made) { *outputs = std::move(made); };
  const NamedTensors& inputs = subject.expected(variant).inputs;
  RunHandle handle = stream_or_null == nullptr
                         ? session.run_async(inputs, callback, options)
                         : session.run_on(*stream_or_null, inputs, callback, options);
  return {variant, std::move(handle), std::move(outputs)};
}

// Waits. `may_end`: the run may have been cancelled or too late.
std::string land(Flight& flight, Subject& subject, bool may_end = false) {
  EDDY_CHECK(flight.outputs != nullptr) << "a flight that never started";
  const Status status = flight.handle.wait();
  if (status.to_string() != flight.outputs->status().to_string()) {
    return "handle and callback differ: " + status.to_string() + ", " +
           flight.outputs->status().to_string();
  }
  if (!status.is_ok()) {
    const bool is_ended =
        status.code() == StatusCode::kCancelled || status.code() == StatusCode::kDeadlineExceeded;
    if (!may_end || !is_ended) return of_inputs(flight.variant) + status.to_string();
    ++subject.met.num_ended_early;
    return {};
  }
  const std::string text =
      difference(subject.expected(flight.variant).result.outputs, **flight.outputs);
  return text.empty() ? text : of_inputs(flight.variant) + text;
}

std::string use_in_turn(Session& session, Subject& subject, StepDigests* digests_or_null) {
  for (uint64_t variant : kVariants) {
    if (digests_or_null != nullptr) digests_or_null->clear();
    std::string text = run_once(session, subject, variant);
    if (!text.empty()) return text;
    if (digests_or_null == nullptr) continue;
    const OracleResult& should = subject.expected(variant).result;
    text = digests_or_null->difference(session.graph(), should);
    if (text.empty()) text = trips_difference(session.graph(), should, session.loop_reports());
    if (!text.empty()) return of_inputs(variant) + text;
  }
  return {};
}

std::string use_at_once(Session& session, Subject& subject, Random& random) {
  std::vector<Flight> flights;
  const uint64_t num_flights = 2 + random.below(3);
  for (uint64_t r = 0; r < num_flights; ++r) flights.push_back(start(session, subject, r % 2));
  std::string what;
  for (size_t r = 0; r < flights.size(); ++r) {
    const std::string text = land(flights[r], subject);
    if (!text.empty() && what.empty()) {
      what = "run " + std::to_string(r) + " of " + std::to_string(num_flights) + ", " + text;
    }
  }
  return what;
}

// Memory for outputs, one behind the other in one block, each aligned to its elements, with guards
// around them.
class OutputBlock {
 public:
  explicit OutputBlock(const NamedTensors& like) {
    size_t size_bytes = kGuardBytes;
    for (const auto& [name, tensor] : like) {
      offsets_.push_back(size_bytes);
      if (tensor.is_tensor()) size_bytes += tensor.view().size_bytes() + kGuardBytes;
    }
    block_.assign(size_bytes / sizeof(uint64_t) + 1, 0);
    std::memset(block_.data(), kGuard, block_.size() * sizeof(uint64_t));
    for (size_t i = 0; i < like.size(); ++i) {
      const Tensor& tensor = like[i].second;
      if (!tensor.is_tensor()) {
        views_.emplace_back();
        continue;
      }
      TensorView view = tensor.view();
      EDDY_CHECK(offsets_[i] % element_size_bytes(view.element) == 0)
          << like[i].first << " would lie at " << offsets_[i];
      view.data = bytes() + offsets_[i];
      views_.push_back(view);
      view_bytes_.push_back({offsets_[i], view.size_bytes()});
    }
  }
  const TensorView& view(size_t i) const {
    EDDY_CHECK(i < views_.size()) << "output " << i << " of " << views_.size();
    return views_[i];
  }
  // Whether nothing was written beside the outputs.
  bool is_intact() const {
    size_t at = 0;
    const auto is_guard = [&](size_t end) {
      return std::all_of(bytes() + at, bytes() + end, [](auto byte) { return byte == kGuard; });
    };
    for (const auto& [begin, size_bytes] : view_bytes_) {
      if (!is_guard(begin)) return false;
      at = begin + size_bytes;
    }
    return is_guard(block_.size() * sizeof(uint64_t));
  }

 private:
  static constexpr size_t kGuardBytes = 8;
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(block_.data()); }
  const unsigned char* bytes() const {
    return reinterpret_cast<const unsigned char*>(block_.data());
  }
  std::vector<uint64_t> block_;
  std::vector<size_t> offsets_;
  std::vector<TensorView> views_;
  std::vector<std::pair<size_t, size_t>> view_bytes_;
};

Status bind_inputs(Call& call, const NamedTensors& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    EDDY_RETURN_IF_ERROR(call.bind_input(i, inputs[i].second));
  }
  return Status::ok();
}

// One run with these inputs and some outputs bound, to one place or to either of two. Outputs that
// are no tensors stay where they are.
std::string run_bound(Call& call, const NamedTensors& inputs, const NamedTensors& should,
                      const OutputBlock& block, const OutputBlock* spares_or_null,
                      const std::vector<bool>& is_bound) {
  EDDY_CHECK(is_bound.size() == should.size())
      << is_bound.size() << " of " << should.size() << " outputs were drawn";
  if (const Status status = bind_inputs(call, inputs); !status.is_ok()) {
    return "bound inputs: " + status.to_string();
  }
  for (size_t i = 0; i < should.size(); ++i) {
    if (!is_bound[i]) continue;
    const Status status = spares_or_null == nullptr
                              ? call.bind_output(i, block.view(i))
                              : call.bind_output(i, block.view(i), spares_or_null->view(i));
    if (!status.is_ok()) return "bound outputs: " + status.to_string();
  }
  const Status status = call.run();
  if (!status.is_ok()) return status.to_string();
  NamedTensors made = should;
  for (size_t i = 0; i < should.size(); ++i) {
    const bool is_there = is_bound[i] && spares_or_null == nullptr;
    made[i].second = !should[i].second.is_tensor()
                         ? call.value(i)
                         : Tensor::borrow(is_there ? block.view(i) : call.output(i));
  }
  std::string text = difference(should, made);
  const bool is_intact =
      block.is_intact() && (spares_or_null == nullptr || spares_or_null->is_intact());
  if (text.empty() && !is_intact) text = "bytes beside the bound outputs were written";
  return text;
}

// Chooses among the tensors (an optional's value may be a tensor, but that is unknown before the
// run). The choice holds for the whole use, since an output that was bound stays bound.
std::vector<bool> draw_bound(const Session& session, Random& random) {
  const bool are_all = random.below(2) == 0;
  std::vector<bool> is_bound;
  for (const ValueDescription& output : session.outputs()) {
    is_bound.push_back(output.type.is_tensor() && (are_all || random.below(2) == 0));
  }
  return is_bound;
}

std::string use_bound(Session& session, Subject& subject, Random& random) {
  auto call = session.prepare();
  if (!call.is_ok()) return call.status().to_string();
  const std::vector<bool> is_bound = draw_bound(session, random);
  const bool has_spares = random.below(2) == 0;
  for (uint64_t variant : kVariants) {
    const Subject::Expected& expected = subject.expected(variant);
    NamedTensors copies;  // a write would show
    for (const auto& [name, value] : expected.inputs) {
      copies.emplace_back(name, value.is_tensor() ? Tensor::copy_of(value.view()) : value);
    }
    const NamedTensors& should = expected.result.outputs;
    const OutputBlock block(should);
    const OutputBlock spares(should);
    std::string text =
        run_bound(**call, copies, should, block, has_spares ? &spares : nullptr, is_bound);
    if (text.empty()) text = difference(expected.inputs, copies);
    if (!text.empty()) return of_inputs(variant) + text;
  }
  return {};
}

std::string use_fed_back(Session& session, Subject& subject, const OracleResult& second,
                         Random& random) {
  const Subject::Expected& first = subject.expected(0);
  auto call = session.prepare();
  if (!call.is_ok()) return call.status().to_string();
  const std::vector<bool> is_bound = draw_bound(session, random);
  const OutputBlock block(first.result.outputs);
  const OutputBlock next_block(second.outputs);
  std::string text;
  for (int round = 0; round < 2 && text.empty(); ++round) {
    text = run_bound(**call, first.inputs, first.result.outputs, block, nullptr, is_bound);
    if (!text.empty()) break;
    // What the call hands out is valid until its next run; what was bound is ours.
    NamedTensors made = first.result.outputs;
    for (size_t i = 0; i < made.size(); ++i) {
      if (is_bound[i]) made[i].second = Tensor::borrow(block.view(i));
    }
    const NamedTensors inputs = fed_back(first.inputs, made);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_new = inputs[i].second.view().data != first.inputs[i].second.view().data;
      subject.met.num_fed_back += is_new ? 1 : 0;
    }
    text = run_bound(**call, inputs, second.outputs, next_block, nullptr, is_bound);
    if (!text.empty()) text = "fed back, " + text;
  }
  return text;
}

std::string use_ended_early(Session& session, Subject& subject, Random& random) {
  RunOptions options;
  const uint64_t how = random.below(3);
  if (how == 0) options.timeout = std::chrono::nanoseconds(random.below(40'000));
  Flight ended = start(session, subject, 0, options);
  Flight neighbour = start(session, subject, 1);
  for (uint64_t spins = random.below(2000); spins > 0; --spins) cpu_relax();
  if (how == 1) ended.handle.cancel();
  if (how == 2) session.cancel_all();
  const std::string first = land(ended, subject, /*may_end=*/true);
  const std::string second = land(neighbour, subject, /*may_end=*/how == 2);
  if (!first.empty() || !second.empty()) return first.empty() ? second : first;
  return run_once(session, subject, random.below(2));
}

std::string use_fixed_shapes(Session& session, Subject& subject) {
  const auto fixed = shapes_of(subject.recipe(), subject.expected(0).inputs);
  for (uint64_t variant : kVariants) {
    const Subject::Expected& expected = subject.expected(variant);
    const auto shapes = shapes_of(subject.recipe(), expected.inputs);
    if (shapes == fixed) {
      if (std::string text = run_once(session, subject, variant); !text.empty()) return text;
      continue;
    }
    const Status status = session.run(expected.inputs).status();
    if (status.code() != StatusCode::kInvalidArgument) {
      return of_inputs(variant) + "other shapes than the fixed ones give: " + status.to_string();
    }
  }
  return {};
}

std::string use_on_stream(Session& session, Subject& subject) {
  auto stream = session.create_stream();
  if (!stream.is_ok()) return stream.status().to_string();
  std::vector<Flight> flights;
  for (uint64_t variant : {1, 0}) {
    flights.push_back(start(session, subject, variant, {}, stream->get()));
  }
  flights.push_back(start(session, subject, 1));
  std::string what;
  for (Flight& flight : flights) {
    const std::string text = land(flight, subject);
    if (what.empty()) what = text;
  }
  while (!(*stream)->is_idle()) std::this_thread::yield();
  return what;
}

}  // namespace

const char* session_use_name(SessionUse use) {
  switch (use) {
    case SessionUse::kInTurn:
      return "in turn";
    case SessionUse::kAtOnce:
      return "at once";
    case SessionUse::kBound:
      return "bound";
    case SessionUse::kFedBack:
      return "fed back";
    case SessionUse::kEndedEarly:
      return "ended early";
    case SessionUse::kRoundTrip:
      return "round trip";
    case SessionUse::kFixedShapes:
      return "fixed shapes";
    case SessionUse::kOnStream:
      return "on a stream";
  }
  return "?";
}

bool are_all_tensors(const NamedTensors& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const auto& named) { return named.second.is_tensor(); });
}

NamedTensors fed_back(NamedTensors inputs, const NamedTensors& outputs) {
  std::vector<bool> is_used(outputs.size(), false);
  for (auto& [name, value] : inputs) {
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Tensor& output = outputs[o].second;
      const bool fits = !is_used[o] && output.is_tensor() &&
                        output.element_type() == value.element_type() &&
                        output.dims().rank() == value.dims().rank();
      if (!fits) continue;
      is_used[o] = true;
      value = output;
      break;
    }
  }
  return inputs;
}

std::vector<std::pair<std::string, Dims>> shapes_of(const Recipe& recipe,
                                                    const NamedTensors& inputs) {
  EDDY_CHECK(inputs.size() <= recipe.root.parameters.size()) << inputs.size() << " inputs";
  std::vector<std::pair<std::string, Dims>> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Kind kind = recipe.kinds[recipe.root.parameters[i]];
    if (kind == Kind::kList || kind == Kind::kMaybe) continue;
    shapes.emplace_back(inputs[i].first, inputs[i].second.dims());
  }
  return shapes;
}

std::string use_session(Session& session, Subject& subject, const SessionUsage& usage) {
  Random random(usage.seed);
  switch (usage.use) {
    case SessionUse::kInTurn:
    case SessionUse::kRoundTrip:
      return use_in_turn(session, subject, usage.digests_or_null);
    case SessionUse::kAtOnce:
      return use_at_once(session, subject, random);
    case SessionUse::kBound:
      return use_bound(session, subject, random);
    case SessionUse::kFedBack:
      return use_fed_back(session, subject, usage.second, random);
    case SessionUse::kEndedEarly:
      return use_ended_early(session, subject, random);
    case SessionUse::kFixedShapes:
      return use_fixed_shapes(session, subject);
    case SessionUse::kOnStream:
      return use_on_stream(session, subject);
  }
  return "there is no such use";
}

}  // namespace eddy::check
