#include "examples/voice_activity/detector.h"

#include <algorithm>

#include "graph/io/import.h"
#include "graph/ir/builder.h"

namespace eddy::voice {
namespace {

constexpr int64_t kContextSamples = 64;

Value find(GraphBuilder& b, const std::string& path, std::span<const NamedValue> outputs,
           const std::string& name) {
  const auto found = std::ranges::find(outputs, name, &NamedValue::name);
  if (found != outputs.end()) return found->value;
  b.fail(invalid_argument(path + ": the model has no output '" + name + "': it is no Silero VAD"));
  return {};
}

}  // namespace

Result<Graph> build_detector(const OpTable& ops, const std::string& model_path) {
  GraphBuilder b(ops, "voice_activity");
  const Value chunks =
      b.input("chunks", tensor_type(ElementType::kFloat, {b.symbol("chunks"), kChunkSamples}));
  const Value state = b.input("state", tensor_type(ElementType::kFloat, {2, 1, 128}));
  const Value context = b.input("context", tensor_type(ElementType::kFloat, {1, kContextSamples}));
  const Value num_chunks = b.op("Gather", {b.op("Shape", {chunks}), b.scalar<int64_t>(0)});
  const auto results = b.while_loop(
      {.name = "chunks", .initial = {state, context}, .num_scan_outputs = 1},
      [&](Value iteration, ValueSpan carried) {
        return WhileTest{b.op("Less", {iteration, num_chunks}), {carried[0], carried[1]}};
      },
      [&](Value iteration, ValueSpan forwarded) -> std::vector<Value> {
        const Value chunk = b.op("Unsqueeze", {b.op("Gather", {chunks, iteration}), b.int64s({0})});
        const Value input = b.op("Concat", {forwarded[1], chunk}, {{"axis", 1}});
        auto model = import_onnx_into(
            b, model_path, ops,
            std::vector<NamedValue>{
                {"input", input}, {"state", forwarded[0]}, {"sr", b.scalar<int64_t>(kSampleRate)}});
        if (!model.is_ok()) return {};  // the builder keeps why
        const Value end = b.op("Slice", {chunk, b.int64s({kChunkSamples - kContextSamples}),
                                         b.int64s({kChunkSamples}), b.int64s({1})});
        return {find(b, model_path, *model, "stateN"), end, find(b, model_path, *model, "output")};
      });
  b.output("probabilities", results[2]);
  b.output("last_state", results[0]);
  b.output("last_context", results[1]);
  return b.finish();
}

Result<std::unique_ptr<Detector>> Detector::create(const std::string& model_path,
                                                   const SessionOptions& options) {
  auto detector = std::make_unique<Detector>();
  EDDY_ASSIGN_OR_RETURN(Graph graph, build_detector(detector->library_.ops(), model_path));
  EDDY_ASSIGN_OR_RETURN(detector->session_,
                        Session::create(detector->library_, std::move(graph), options));
  return detector;
}

Result<std::vector<float>> Detector::detect(std::span<const float> samples,
                                            DetectorMemory& memory) {
  const int64_t num_chunks =
      (static_cast<int64_t>(samples.size()) + kChunkSamples - 1) / kChunkSamples;
  std::vector<float> padded(samples.begin(), samples.end());
  padded.resize(static_cast<size_t>(num_chunks * kChunkSamples));
  const Tensor chunks = Tensor::of<float>({num_chunks, kChunkSamples}, padded);
  EDDY_ASSIGN_OR_RETURN(
      const NamedTensors outputs,
      session_->run({{"chunks", chunks}, {"state", memory.state}, {"context", memory.context}}));
  memory = {outputs[1].second, outputs[2].second};
  const std::span<const float> probabilities = outputs[0].second.values<float>();
  return std::vector<float>(probabilities.begin(), probabilities.end());
}

Result<std::vector<float>> Detector::detect(std::span<const float> samples) {
  DetectorMemory nothing;
  return detect(samples, nothing);
}

LoopReport Detector::loop_report() const {
  for (const LoopReport& loop : session_->loop_reports()) {
    if (loop.path == "chunks") return loop;
  }
  return {};
}

}  // namespace eddy::voice
