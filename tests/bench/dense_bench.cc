// What the dense kernels cost alone, one thread, warm caches: the sizes of a voice activity model
// and square products, with oneDNN's sgemm beside them.
//
//   bazel run //tests/bench:dense_bench
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "graph/base/random.h"
#include "ops/contract/registry.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/onednn/sgemm.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

class KeptScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    if (size_bytes > size_bytes_) {
      size_bytes_ = (size_bytes + 63) / 64 * 64;
      memory_.reset(std::aligned_alloc(64, size_bytes_));
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t size_bytes_ = 0;
};

const OpTable& table() {
  static const OpTable* const made = [] {
    auto* fresh = new OpTable();
    EDDY_CHECK(add_standard_schemas(*fresh).is_ok()) << "the standard schemas collide";
    return fresh;
  }();
  return *made;
}

// One node with random float inputs, bound with everything known.
class BoundNode {
 public:
  BoundNode(const char* op_name, const std::vector<Dims>& inputs, Attributes attributes,
            uint64_t constant_inputs, size_t num_outputs)
      : attributes_(std::move(attributes)), dims_(inputs), types_out_(num_outputs) {
    const OpDef* op = table().find_or_null("", op_name, 17);
    Random random(1);
    for (const Dims& dims : dims_) {
      types_.push_back(TensorType(ElementType::kFloat, dims));
      data_.emplace_back(static_cast<size_t>(*dims.count()) + 1);
      for (float& value : data_.back()) value = random.uniform(-0.1f, 0.1f);
    }
    infer(*op);
    add_views();
    std::vector<TensorView> constants(views_.size());
    for (size_t i = 0; i < views_.size(); ++i) {
      if ((constant_inputs >> i) & 1) constants[i] = views_[i];
    }
    KernelRegistry registry;
    add_cpu_kernels(registry);
    auto kernel = registry.bind({*op, attributes_, 17, op_name, types_, types_out_, constants});
    EDDY_CHECK(kernel.is_ok()) << kernel.status().to_string();
    kernel_ = std::move(*kernel);
  }

  void run() {
    Status error;
    KernelArgs args;
    args.inputs = views_.data();
    args.outputs = outputs_.data();
    args.state = kernel_.state.get();
    args.scratch = &scratch_;
    args.error = &error;
    args.num_inputs = static_cast<uint32_t>(views_.size());
    args.num_outputs = static_cast<uint32_t>(outputs_.size());
    EDDY_CHECK(kernel_.run(args)) << error.to_string();
    benchmark::ClobberMemory();
  }

 private:
  void infer(const OpDef& op) {
    std::vector<const ValueType*> inputs;
    for (const ValueType& type : types_) {
      const bool is_omitted = type.tensor.dims.rank() == 1 && type.tensor.dims[0] == 0;
      inputs.push_back(is_omitted ? nullptr : &type);
    }
    const std::vector<const TensorView*> values(inputs.size(), nullptr);
    InferContext context(attributes_, inputs, values, types_out_, 17);
    const Status status = infer_types(op, context);
    EDDY_CHECK(status.is_ok()) << status.to_string();
  }
  void add_views() {
    for (size_t i = 0; i < dims_.size(); ++i) {
      const bool is_omitted = dims_[i].rank() == 1 && dims_[i][0] == 0;
      views_.push_back({data_[i].data(), dims_[i].data(), dims_[i].rank(),
                        is_omitted ? ElementType::kUndefined : ElementType::kFloat});
    }
    for (const ValueType& type : types_out_) {
      results_.emplace_back(static_cast<size_t>(*type.tensor.dims.count()));
      outputs_.push_back({results_.back().data(), type.tensor.dims.data(), type.tensor.dims.rank(),
                          ElementType::kFloat});
    }
  }

  Attributes attributes_;
  std::vector<Dims> dims_;
  std::vector<ValueType> types_, types_out_;
  std::vector<std::vector<float>> data_, results_;
  std::vector<TensorView> views_, outputs_;
  BoundKernel kernel_;
  KeptScratch scratch_;
};

const Dims kOmitted{0};  // an optional input left out

void matmul(benchmark::State& state, uint64_t constants) {
  const int64_t n = state.range(0);
  BoundNode node("MatMul", {{n, n}, {n, n}}, {}, constants, 1);
  for (auto _ : state) node.run();
}
void MatMul(benchmark::State& state) { matmul(state, 0); }
void MatMulConstant(benchmark::State& state) { matmul(state, 2); }
BENCHMARK(MatMul)->Arg(2)->Arg(16)->Arg(64)->Arg(128)->Arg(256);
BENCHMARK(MatMulConstant)->Arg(16)->Arg(64)->Arg(128)->Arg(256);

void Sgemm(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> a(static_cast<size_t>(n * n), 0.5f), b = a, c = a;
  for (auto _ : state) {
    onednn::sgemm({.m = n,
                   .n = n,
                   .k = n,
                   .a = a.data(),
                   .a_row = n,
                   .b = b.data(),
                   .b_row = n,
                   .c = c.data(),
                   .c_row = n});
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Sgemm)->Arg(16)->Arg(64)->Arg(128)->Arg(256);

// A row by a matrix, [k, n]: what a decoder does for each token.
void RowTimesMatrix(benchmark::State& state) {
  BoundNode node("MatMul", {{1, state.range(0)}, {state.range(0), state.range(1)}}, {}, 2, 1);
  for (auto _ : state) node.run();
}
BENCHMARK(RowTimesMatrix)->Args({256, 256})->Args({288, 288})->Args({288, 32768});

Attributes window(int64_t stride, int64_t pad) {
  return {{"strides", std::vector<int64_t>{stride}}, {"pads", std::vector<int64_t>{pad, pad}}};
}
void conv(benchmark::State& state, const Dims& x, const Dims& w, Attributes attributes) {
  BoundNode node("Conv", {x, w, {w[0]}}, std::move(attributes), 2, 1);
  for (auto _ : state) node.run();
}
BENCHMARK_CAPTURE(conv, vad_spectrum, {1, 1, 640}, {258, 1, 256}, window(128, 0));
BENCHMARK_CAPTURE(conv, vad_encoder_0, {1, 129, 4}, {128, 129, 3}, window(1, 1));
BENCHMARK_CAPTURE(conv, vad_encoder_1, {1, 128, 4}, {64, 128, 3}, window(2, 1));
BENCHMARK_CAPTURE(conv, vad_encoder_2, {1, 64, 2}, {64, 64, 3}, window(2, 1));
BENCHMARK_CAPTURE(conv, vad_encoder_3, {1, 64, 1}, {128, 64, 3}, window(1, 1));
BENCHMARK_CAPTURE(conv, vad_decoder, {1, 128, 1}, {1, 128, 1}, window(1, 0));

void lstm(benchmark::State& state, int64_t sequence, int64_t batch, int64_t size,
          uint64_t constants) {
  BoundNode node("LSTM",
                 {{sequence, batch, size},
                  {1, 4 * size, size},
                  {1, 4 * size, size},
                  {1, 8 * size},
                  kOmitted,
                  {1, batch, size},
                  {1, batch, size}},
                 {{"hidden_size", size}}, constants, 3);
  for (auto _ : state) node.run();
}
BENCHMARK_CAPTURE(lstm, vad_constant_weights, 1, 1, 128, 6);
BENCHMARK_CAPTURE(lstm, vad_computed_weights, 1, 1, 128, 0);
BENCHMARK_CAPTURE(lstm, steps_64_of_256, 64, 1, 256, 6);
BENCHMARK_CAPTURE(lstm, steps_64_of_256_batch_64, 64, 64, 256, 6);

}  // namespace
}  // namespace eddy

BENCHMARK_MAIN();
