// Claim: the library with GPUs has the interface of the one without: with option `device` graphs
// run on a GPU with the CPU's results, loops and callers' own kernels in them, on values that lie
// in its memory; what there is no GPU for is refused in one line. On the fake driver, as
// libcuda.so.1.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "runtime/api/c/eddy_dlpack.h"
#include "runtime/cuda/cuda_api.h"
#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Whoever opens libcuda.so.1 from now on has this one.
void* const driver = dlopen("tests/runtime/cuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

// An entry of the driver, whose handles are pointers.
template <typename... Args>
int call(const char* name, Args... args) {
  auto* const entry = reinterpret_cast<int (*)(Args...)>(dlsym(driver, name));
  return entry == nullptr ? -1 : entry(args...);
}

// A caller's memory on the GPU.
class GpuMemory {
 public:
  explicit GpuMemory(const std::vector<float>& values) : count_(values.size()) {
    auto api = load_cuda_api();
    EXPECT_TRUE(api.is_ok()) << api.status().to_string();
    api_ = *api;
    CuContext context = nullptr;
    expect_done(api_->primary_context_retain(&context, 0));
    expect_done(api_->context_push(context));
    const CuMemoryPoolProps props;
    CuMemoryPool pool = nullptr;
    expect_done(api_->pool_create(&pool, &props));
    expect_done(api_->stream_create(&stream_, 1, 0));
    void* staged = nullptr;
    expect_done(api_->host_allocate(&staged, size_bytes(), 2));
    here_ = static_cast<float*>(staged);
    expect_done(api_->memory_allocate(&memory_, size_bytes(), pool, stream_));
    std::copy(values.begin(), values.end(), here_);
    copy(memory_, reinterpret_cast<CuDevicePointer>(here_));
    expect_done(api_->context_pop(&context_));
  }
  float* data() const { return reinterpret_cast<float*>(memory_); }
  std::vector<float> values() {
    expect_done(api_->context_push(context_));
    copy(reinterpret_cast<CuDevicePointer>(here_), memory_);
    expect_done(api_->context_pop(&context_));
    return {here_, here_ + count_};
  }

 private:
  static void expect_done(CuResult result) { EXPECT_EQ(static_cast<int>(result), 0); }
  size_t size_bytes() const { return count_ * sizeof(float); }
  void copy(CuDevicePointer to, CuDevicePointer from) {
    expect_done(api_->copy(to, from, size_bytes(), stream_));
    expect_done(api_->stream_synchronize(stream_));
  }

  // To the end of the process.
  const size_t count_;
  std::shared_ptr<const CudaApi> api_;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuDevicePointer memory_ = {};
  float* here_ = nullptr;
};

struct Kernel {
  std::atomic<int> enqueued{0}, run{0};
};

class CGpu : public CApi {
 protected:
  void SetUp() override {
    ASSERT_NE(driver, nullptr) << dlerror();
    // Operators are added to `library` later.
    Owned<eddy_library> other;
    ASSERT_EQ(api().library_create(context.get(), other.out(), nullptr), EDDY_OK);
    Owned<eddy_graph> graph;
    ASSERT_EQ(api().graph_create(other.get(), "test", graph.out(), nullptr), EDDY_OK);
    output(graph.get(), "y", op(graph.get(), "Abs", {input(graph.get(), "x", {})}));
    Owned<eddy_session> session;
    const std::string why = said(
        [&](auto e) { return api().session_create(graph.get(), &kCuda, 1, session.out(), e); });
    if (why.find("no CUDA kernels") != std::string::npos) GTEST_SKIP() << why;
    ASSERT_EQ(why, "ok");
  }

  // Copies its input, on a GPU by the driver.
  eddy_operator copying(Kernel* kernel) {
    eddy_operator op = operator_of("Copy", kernel);
    op.enqueue = [](void* user, const eddy_call* of, void* stream) -> eddy_code {
      ++static_cast<Kernel*>(user)->enqueued;
      const size_t bytes = sizeof(float) * (of->inputs[0].rank == 0 ? 1 : of->inputs[0].dims[0]);
      const int result =
          call("cuMemcpyAsync", of->outputs[0].data, of->inputs[0].data, bytes, stream);
      if (result == 0) return EDDY_OK;
      of->fail(of->impl, "the driver takes no copy");
      return EDDY_RUN_FAILED;
    };
    op.run = [](void* user, const eddy_call* of) -> eddy_code {
      ++static_cast<Kernel*>(user)->run;
      const size_t count = of->inputs[0].rank == 0 ? 1 : of->inputs[0].dims[0];
      std::memcpy(of->outputs[0].data, of->inputs[0].data, count * sizeof(float));
      return EDDY_OK;
    };
    return op;
  }

  static std::string text_of(eddy_value text) {
    eddy_tensor bytes = {};
    EXPECT_EQ(api().value_tensor(text, &bytes, nullptr), EDDY_OK);
    return {static_cast<const char*>(bytes.data), static_cast<size_t>(bytes.dims[0])};
  }

  static std::vector<float> y_of(eddy_session session, const std::vector<float>& inputs) {
    Owned<eddy_run> run = run_of(session);
    for (size_t i = 0; i < inputs.size(); ++i) bind(run.get(), i, &inputs[i]);
    EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    return output_of(run.get(), 0);
  }

  static constexpr eddy_option kCuda = {"device", "cuda"};
};

TEST_F(CGpu, RunsAGraphAndALoopWithTheCpusResults) {
  Owned<eddy_graph> graph = doubling();
  Owned<eddy_session> there = session_of(graph.get(), {kCuda});
  Owned<eddy_session> here = session_of(graph.get());
  for (const float limit : {1.0f, 1000.0f}) {
    EXPECT_EQ(y_of(there.get(), {3, limit}), y_of(here.get(), {3, limit}));
  }
  Owned<eddy_value> text;
  ASSERT_EQ(api().session_plan_text(there.get(), text.out(), nullptr), EDDY_OK);
  EXPECT_THAT(text_of(text.get()), HasSubstr("cuda"));
}

TEST_F(CGpu, KernelsOfTheCallerRunOnItsStreamsAndElseOnTheCpu) {
  Kernel with, without;
  add(copying(&with));
  eddy_operator plain = copying(&without);
  plain.name = "PlainCopy";
  plain.enqueue = nullptr;
  add(plain);
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {});
  const eddy_value_id twice = op(g, "Add", {x, x});
  output(g, "y", own_op(g, "PlainCopy", op(g, "Neg", {own_op(g, "Copy", twice)})));
  Owned<eddy_session> session = session_of(g, {kCuda});
  EXPECT_THAT(y_of(session.get(), {3}), ElementsAre(-6));
  EXPECT_GE(with.enqueued, 1);
  EXPECT_EQ(with.run, 0);
  EXPECT_EQ(without.run, 1);
  Owned<eddy_session> here = session_of(g);
  EXPECT_THAT(y_of(here.get(), {4}), ElementsAre(-8));
  EXPECT_EQ(with.run, 1);
}

TEST_F(CGpu, KernelsOfTheCallerWorkInLoopsHoweverTheyAreDriven) {
  for (const char* loops : {"host", "device", "auto"}) {
    Kernel kernel;
    api().release(std::exchange(*library.out(), nullptr));
    ASSERT_EQ(api().library_create(context.get(), library.out(), nullptr), EDDY_OK);
    add(copying(&kernel));
    Owned<eddy_graph> graph = new_graph();
    eddy_graph g = graph.get();
    const eddy_value_id limit = input(g, "limit", {});
    const eddy_value_id x = input(g, "x", {});
    eddy_while loop = {};
    loop.struct_size = sizeof(loop);
    loop.initial = &x;
    loop.num_carried = 1;
    eddy_value_id before[2] = {}, after[2] = {}, y = 0;
    ASSERT_EQ(api().graph_begin_while(g, &loop, before, nullptr), EDDY_OK);
    const eddy_value_id goes_on = op(g, "Less", {own_op(g, "Copy", before[1]), limit});
    ASSERT_EQ(api().graph_begin_after(g, goes_on, &before[1], 1, after, nullptr), EDDY_OK);
    const eddy_value_id next = op(g, "Add", {after[1], after[1]});
    ASSERT_EQ(api().graph_end_while(g, &next, 1, &y, 1, nullptr), EDDY_OK);
    output(g, "y", y);
    Owned<eddy_session> session = session_of(g, {kCuda, {"loops", loops}});
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(y_of(session.get(), {1000, 3}), ElementsAre(1536)) << loops;
    }
    EXPECT_GE(kernel.enqueued, 1) << loops;
    EXPECT_EQ(kernel.run, 0) << loops;
  }
}

TEST_F(CGpu, WhatAKernelOfTheCallerSaysNamesItsNode) {
  Kernel kernel;
  eddy_operator op = copying(&kernel);
  op.enqueue = [](void*, const eddy_call* of, void*) -> eddy_code {
    of->fail(of->impl, "there is no such thing");
    return EDDY_RUN_FAILED;
  };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Copy", input(graph.get(), "x", {}), {}, "mine"));
  Owned<eddy_session> session = session_of(graph.get(), {kCuda});
  Owned<eddy_run> run = run_of(session.get());
  const float x = 1;
  bind(run.get(), 0, &x);
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("mine"), HasSubstr("there is no such thing")));
}

TEST_F(CGpu, OneForGpusAloneIsRefusedOnTheCpu) {
  Kernel kernel;
  eddy_operator op = copying(&kernel);
  op.run = nullptr;
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Copy", input(graph.get(), "x", {})));
  Owned<eddy_session> session = session_of(graph.get(), {kCuda});
  EXPECT_THAT(y_of(session.get(), {5}), ElementsAre(5));
  Owned<eddy_session> none;
  EXPECT_THAT(
      said([&](auto e) { return api().session_create(graph.get(), nullptr, 0, none.out(), e); }),
      AllOf(HasSubstr("unsupported"), HasSubstr("Copy")));
}

TEST_F(CGpu, ValuesInItsMemoryComeAndGoByDlpackAndOutputsAreMadeThere) {
  GpuMemory x({0, 1, 2, 3}), y({-1, -1, -1, -1});
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", op(graph.get(), "Neg", {input(graph.get(), "x", {4})}));
  Owned<eddy_session> session = session_of(graph.get(), {kCuda});
  Owned<eddy_run> run = run_of(session.get());

  int64_t shape[] = {4};
  static bool is_deleted;
  is_deleted = false;
  DLManagedTensor given = {};
  given.dl_tensor.data = x.data();
  given.dl_tensor.device = {2, 0};
  given.dl_tensor.ndim = 1;
  given.dl_tensor.dtype = {2, 32, 1};
  given.dl_tensor.shape = shape;
  given.deleter = [](DLManagedTensor*) { is_deleted = true; };
  Owned<eddy_value> value;
  ASSERT_EQ(said([&](auto e) { return api().value_from_dlpack(&given, value.out(), e); }), "ok");

  int32_t type = 0, id = -1;
  ASSERT_EQ(api().value_device(value.get(), &type, &id, nullptr), EDDY_OK);
  EXPECT_EQ(type, 2);
  EXPECT_EQ(id, 0);
  eddy_tensor seen = {};
  ASSERT_EQ(api().value_tensor(value.get(), &seen, nullptr), EDDY_OK);
  EXPECT_EQ(seen.data, nullptr);
  EXPECT_EQ(seen.dims[0], 4);
  DLManagedTensor* shown = nullptr;
  ASSERT_EQ(said([&](auto e) { return api().value_to_dlpack(value.get(), &shown, e); }), "ok");
  EXPECT_EQ(shown->dl_tensor.data, x.data());
  EXPECT_EQ(shown->dl_tensor.device.device_type, 2);
  shown->deleter(shown);

  ASSERT_EQ(said([&](auto e) { return api().run_bind_input(run.get(), 0, value.get(), e); }), "ok");
  const std::vector<int64_t> dims = {4};
  const eddy_tensor to = tensor(y.data(), dims);
  ASSERT_EQ(said([&](auto e) { return api().run_bind_output_device(run.get(), 0, &to, e); }), "ok");
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_THAT(y.values(), ElementsAre(0, -1, -2, -3));
  eddy_tensor made = {};
  ASSERT_EQ(api().run_output_memory(run.get(), 0, &made, nullptr), EDDY_OK);
  EXPECT_EQ(made.data, y.data());
  Owned<eddy_value> none;
  EXPECT_THAT(said([&](auto e) { return api().run_output(run.get(), 0, none.out(), e); }),
              HasSubstr("is in the GPU's memory that is bound for it"));

  DLManagedTensor other = given;
  other.dl_tensor.device = {2, 1};
  other.deleter = nullptr;
  Owned<eddy_value> elsewhere;
  ASSERT_EQ(api().value_from_dlpack(&other, elsewhere.out(), nullptr), EDDY_OK);
  EXPECT_THAT(said([&](auto e) { return api().run_bind_input(run.get(), 0, elsewhere.get(), e); }),
              HasSubstr("in the memory of GPU 1, but the session is on GPU 0"));
  other.dl_tensor.device = {2, -1};
  EXPECT_THAT(said([&](auto e) { return api().value_from_dlpack(&other, none.out(), e); }),
              HasSubstr("a DLPack tensor on GPU -1"));

  value.reset();
  EXPECT_FALSE(is_deleted);  // the run keeps it
  run.reset();
  EXPECT_TRUE(is_deleted);
}

// Where the output is made by a node, and where it is an input's or a constant's copy.
TEST_F(CGpu, APlaceThatIsNotTheGpusIsRefused) {
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {});
  output(graph.get(), "made", op(graph.get(), "Abs", {x}));
  output(graph.get(), "input", x);
  output(graph.get(), "constant", scalar(graph.get(), 5));
  const Owned<eddy_session> session = session_of(graph.get(), {kCuda});
  const float number = -1;
  float place = 7;
  for (size_t i = 0; i < 3; ++i) {
    const Owned<eddy_run> run = run_of(session.get());
    bind(run.get(), 0, &number);
    const eddy_tensor to = tensor(&place, {});
    ASSERT_EQ(said([&](auto e) { return api().run_bind_output_device(run.get(), i, &to, e); }),
              "ok");
    EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
                HasSubstr("the memory bound for an output is not the GPU's"))
        << i;
    EXPECT_EQ(place, 7) << i;
  }
}

TEST_F(CGpu, AValueOfTheHostSaysSo) {
  const float x = 1;
  const eddy_tensor of = tensor(&x, {});
  Owned<eddy_value> value;
  ASSERT_EQ(api().value_copy(&of, value.out(), nullptr), EDDY_OK);
  int32_t type = 0, id = -1;
  ASSERT_EQ(api().value_device(value.get(), &type, &id, nullptr), EDDY_OK);
  EXPECT_EQ(type, 1);
  EXPECT_EQ(id, 0);
}

TEST_F(CGpu, WhatIsNotThereIsRefused) {
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", op(graph.get(), "Abs", {input(graph.get(), "x", {})}));
  const auto refusal = [&](const std::vector<eddy_option>& options) {
    Owned<eddy_session> session;
    return said([&](auto e) {
      return api().session_create(graph.get(), options.data(), options.size(), session.out(), e);
    });
  };
  EXPECT_THAT(refusal({{"device", "cuda:7"}}),
              AllOf(HasSubstr("device lost"), HasSubstr("'cuda:7'"), HasSubstr("only GPU 0")));
  EXPECT_THAT(refusal({{"device", "tpu"}}),
              AllOf(HasSubstr("invalid argument"), HasSubstr("cuda:N")));
  EXPECT_THAT(refusal({{"tf32", "true"}}), HasSubstr("are for a GPU; give 'device'"));
  EXPECT_EQ(refusal({{"device", "cpu"}}), "ok");
  EXPECT_EQ(refusal({kCuda, {"tf32", "true"}, {"channels_last", "false"}}), "ok");
  // A plan is of a processor.
  EXPECT_THAT(said([&](auto e) {
                return api().graph_save_plan(graph.get(), &kCuda, 1, "/tmp/never.plan", e);
              }),
              HasSubstr("unsupported"));
  Owned<eddy_session> here = session_of(graph.get());
  Owned<eddy_run> run = run_of(here.get());
  const eddy_tensor to = tensor(nullptr, {});
  EXPECT_THAT(said([&](auto e) { return api().run_bind_output_device(run.get(), 0, &to, e); }),
              testing::Not("ok"));
}

}  // namespace
}  // namespace eddy::c
