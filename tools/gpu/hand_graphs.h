// HandGraph: a graph put together by hand from kernels of the accelerator, by its recorder, without
// a session: what a probe launches several of at once.
//
//   HandGraph graph(*accelerator, progress);
//   x = graph.number(0.0f)          memory of the device that holds it
//   graph.begin(); graph.play("Add", {x, one}, x); …; graph.finish()
//   graph.start(); graph.wait()     one launch, until its end has been seen
//   graph.read(x)
//
// Errors: the first one stays; every later call does nothing, and finish(), start() and read()
// tell it. Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/ir/op.h"
#include "runtime/execute/accelerator.h"

namespace eddy {

class HandGraph {
 public:
  HandGraph(const Accelerator& accelerator, const OpTable& ops, std::function<void()> progress);
  ~HandGraph();

  // One number in the device's memory, until the graph goes.
  TensorView number(float value) { return memory(ElementType::kFloat, &value, sizeof(value)); }
  TensorView number(int64_t value) { return memory(ElementType::kInt64, &value, sizeof(value)); }
  TensorView truth() {
    const bool value = false;
    return memory(ElementType::kBool, &value, sizeof(value));
  }
  // The words of a new loop, which only its tests end.
  LoopWords loop_words();
  // Not 0 once a loop has been stopped.
  const uint32_t* stop_word() const { return static_cast<const uint32_t*>(words_.data()); }

  void begin();
  // An operator on one-element tensors, in lane 0.
  void play(const char* op, std::vector<TensorView> inputs, TensorView output);
  void copy(const TensorView& to, const TensorView& from);
  // while (body makes *`test`): `body` is called once, `decide` twice.
  void repeat(const LoopWords& words, const TensorView& test, const std::function<void()>& decide,
              const std::function<void()>& body);
  Status finish();

  // The launch, and hearing that it has ended.
  Status start();
  Status wait();
  Result<float> read(const TensorView& number);
  Recorder& recorder() { return *recorder_; }

 private:
  Status set_up();
  TensorView memory(ElementType element, const void* bytes, size_t size_bytes);
  Result<const BoundKernel*> kernel(const char* op, const std::vector<TensorView>& inputs,
                                    const TensorView& output);
  void keep(Status status);
  static bool launch(void* self);

  const Accelerator& accelerator_;
  const OpTable& ops_;
  const std::function<void()> progress_;
  Status error_;
  BufferRef words_;
  size_t num_words_ = 2;  // the stop word, a failure's
  std::deque<BufferRef> memory_;
  std::deque<BoundKernel> kernels_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace eddy
