#include "tools/bench/split_cases.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "examples/dynamic_models/parts.h"
#include "examples/dynamic_models/seq2seq.h"
#include "examples/nets/images.h"
#include "graph/ir/builder.h"
#include "tools/command/split_batch.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

constexpr uint64_t kSeed = 31;
constexpr int64_t kLate = 40, kEarly = 10;  // steps after which sentences are done

ValueType floats_of_samples(GraphBuilder& b, std::vector<int64_t> before,
                            const std::vector<int64_t>& behind) {
  Dims dims;
  for (const int64_t dim : before) dims.push_back(dim);
  dims.push_back(b.symbol("batch"));
  for (const int64_t dim : behind) dims.push_back(dim);
  return tensor_type(ElementType::kFloat, dims);
}

Tensor random_tensor(Random& random, std::vector<int64_t> dims) {
  return Tensor::copy_of(
      dynamic::to_value(dynamic::random_array(random, std::move(dims), 1)).view());
}

nets::Image bottleneck(nets::ImageParts& parts, const nets::Image& x, int64_t width,
                       int64_t stride) {
  nets::Image inner = parts.relu(parts.norm(parts.conv(x, width, 1)));
  inner = parts.relu(parts.norm(parts.conv(inner, width, 3, stride)));
  inner = parts.norm(parts.conv(inner, 4 * width, 1));
  const bool is_plain = stride == 1 && x.channels == 4 * width;
  const nets::Image around = is_plain ? x : parts.norm(parts.conv(x, 4 * width, 1, stride));
  return parts.relu(parts.add({inner, around}));
}

// The columns [begin, begin + count) of rows of so many.
std::vector<int64_t> columns_of(const HostValue& matrix, int64_t begin, int64_t count) {
  const TensorView view = matrix.view();
  const auto* const from = view.as<int64_t>();
  std::vector<int64_t> part;
  for (int64_t row = 0; row < view.dims[0]; ++row) {
    const int64_t* const first = from + row * view.dims[1] + begin;
    part.insert(part.end(), first, first + count);
  }
  return part;
}

}  // namespace

Result<SplitCase> split_resnet50(const Library& library) {
  Random random(kSeed);
  GraphBuilder b(library.ops(), "resnet50");
  nets::ImageParts parts(b, random);
  const int64_t size = 224;
  nets::Image x{b.input("image", floats_of_samples(b, {}, {3, size, size})), 3, size};
  x = parts.max_pool(parts.relu(parts.norm(parts.conv(x, 64, 7, 2))));
  int64_t width = 64;
  for (const int depth : {3, 4, 6, 3}) {
    for (int i = 0; i < depth; ++i) {
      x = bottleneck(parts, x, width, i == 0 && width > 64 ? 2 : 1);
    }
    width *= 2;
  }
  b.output("scores", parts.classify(x, 1000));
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return SplitCase{"resnet50",
                   std::move(graph),
                   {{"image", random_tensor(random, {kSplitSamples, 3, size, size})}}};
}

Result<SplitCase> split_lstm_loop(const Library& library) {
  const size_t layers = 10;
  const int64_t steps = 64, hidden = 256;
  Random random(kSeed);
  GraphBuilder b(library.ops(), "lstm");
  const Value x = b.input("x", floats_of_samples(b, {steps}, {hidden}));
  const Value state = b.input("state", floats_of_samples(b, {}, {hidden}));
  const float range = 1 / std::sqrt(static_cast<float>(hidden));
  dynamic::Values weights, biases;
  for (size_t layer = 0; layer < layers; ++layer) {
    weights.push_back(dynamic::weight(
        b, dynamic::random_array(random, {2 * hidden, 4 * hidden}, range), "weight"));
    biases.push_back(
        dynamic::weight(b, dynamic::random_array(random, {4 * hidden}, range), "bias"));
  }
  const dynamic::Values last =
      dynamic::for_loop(b, "steps", b.scalar(steps), dynamic::Values(2 * layers, state), 1,
                        [&](Value iteration, ValueSpan carried) {
                          dynamic::Values next;
                          Value h = dynamic::row(b, x, iteration);
                          for (size_t layer = 0; layer < layers; ++layer) {
                            const dynamic::LstmState made = dynamic::lstm_step(
                                b, h, {carried[2 * layer], carried[2 * layer + 1]}, weights[layer],
                                biases[layer], hidden);
                            next.insert(next.end(), {made.h, made.c});
                            h = made.h;
                          }
                          next.push_back(h);
                          return next;
                        });
  if (!last.empty()) b.output("h", last.back());
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return SplitCase{"lstm",
                   std::move(graph),
                   {{"x", random_tensor(random, {steps, kSplitSamples, hidden})},
                    {"state", random_tensor(random, {kSplitSamples, hidden})}}};
}

Result<SplitCase> split_sentences(const Library& library, uint32_t rank, uint32_t num_ranks) {
  dynamic::Seq2seqSize size;
  size.stop_at = rank == 0 ? kLate : kEarly;
  size.batch = kSplitSamples;
  const dynamic::Model all = dynamic::make_seq2seq(size);
  const SampleShare own = share_of(kSplitSamples, rank, num_ranks);
  size.batch = own.count;
  const dynamic::Model model = dynamic::make_seq2seq(size);
  EDDY_ASSIGN_OR_RETURN(Graph graph, model.build(library.ops()));
  SplitCase made{"seq2seq", std::move(graph), {}};
  for (const auto& [name, value] : model.inputs) {
    if (name != "source") {
      made.inputs.emplace_back(name, Tensor::copy_of(value.view()));
      continue;
    }
    const std::vector<int64_t> part = columns_of(all.inputs[0].second, own.begin, own.count);
    made.inputs.emplace_back(
        name, Tensor::of(Dims{size.length, own.count}, std::span<const int64_t>(part)));
  }
  return made;
}

}  // namespace eddy
