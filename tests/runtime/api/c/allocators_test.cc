// Claim: tensors of a context's sessions stand in its caller's memory, all of which comes back, and
// what the caller refuses or misaligns fails the run; outputs whose shape is found in the run go
// where the caller says, once a run, however it is awaited.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Memory that knows what is out.
struct Arena {
  std::mutex mutex;
  std::map<void*, size_t> blocks;
  size_t num_given = 0, num_wrong = 0, num_destroyed = 0;
  size_t limit_bytes = SIZE_MAX;
  size_t shift = 0;  // of misaligned blocks

  eddy_allocator allocator() {
    eddy_allocator made = {};
    made.struct_size = sizeof(made);
    made.user = this;
    made.allocate = [](void* user, size_t size_bytes, size_t alignment) -> void* {
      auto& arena = *static_cast<Arena*>(user);
      const std::lock_guard lock(arena.mutex);
      if (size_bytes > arena.limit_bytes) return nullptr;
      auto* const block = static_cast<char*>(std::aligned_alloc(alignment, size_bytes + alignment));
      arena.blocks[block + arena.shift] = size_bytes;
      ++arena.num_given;
      return block + arena.shift;
    };
    made.release = [](void* user, void* memory, size_t size_bytes) {
      auto& arena = *static_cast<Arena*>(user);
      const std::lock_guard lock(arena.mutex);
      const auto found = arena.blocks.find(memory);
      arena.num_wrong += found == arena.blocks.end() || found->second != size_bytes ? 1 : 0;
      arena.blocks.erase(memory);
      std::free(static_cast<char*>(memory) - arena.shift);
    };
    made.destroy = [](void* user) { ++static_cast<Arena*>(user)->num_destroyed; };
    return made;
  }
};

// Places of outputs: one buffer, made as large as is asked for.
struct Places {
  std::vector<float> memory;
  std::vector<int64_t> dims;
  std::atomic<int> num_calls{0};
  bool refuses = false;
  size_t shift_bytes = 0;

  static void* place(void* user, size_t index, const eddy_tensor* shape, size_t size_bytes) {
    auto& places = *static_cast<Places*>(user);
    ++places.num_calls;
    EXPECT_EQ(index, 1u);
    EXPECT_EQ(shape->data, nullptr);
    if (places.refuses) return nullptr;
    places.dims.assign(shape->dims, shape->dims + shape->rank);
    places.memory.assign(size_bytes / sizeof(float) + 1, 0.0f);
    return reinterpret_cast<char*>(places.memory.data()) + places.shift_bytes;
  }
};

class CAllocators : public CApi {
 protected:
  std::string set(const eddy_allocator* allocator) {
    return said([&](auto e) { return api().context_set_allocator(context.get(), allocator, e); });
  }
  static std::string execute(eddy_run run) {
    return said([&](auto e) { return api().run_execute(run, nullptr, e); });
  }
  static std::string place(eddy_run run, size_t index, eddy_output_place place, void* user) {
    return said([&](auto e) { return api().run_place_output(run, index, place, user, e); });
  }
  void bind_both(eddy_run run) {
    bind(run, 0, &x_);
    bind(run, 1, &limit_);
  }

  float x_ = 1, limit_ = 10;
};

TEST_F(CAllocators, TensorsStandInTheCallersMemoryWhichAllComesBack) {
  Arena arena;
  const eddy_allocator allocator = arena.allocator();
  ASSERT_EQ(set(&allocator), "ok");
  Owned<eddy_session> session = session_of(doubling().get());
  ASSERT_EQ(set(nullptr), "ok");
  EXPECT_EQ(arena.num_destroyed, 0u) << "the session still has it";
  Owned<eddy_run> run = run_of(session.get());
  bind_both(run.get());
  ASSERT_EQ(execute(run.get()), "ok");
  Owned<eddy_value> rows;
  ASSERT_EQ(said([&](auto e) { return api().run_output(run.get(), 1, rows.out(), e); }), "ok");
  eddy_tensor view = {};
  ASSERT_EQ(said([&](auto e) { return api().value_tensor(rows.get(), &view, e); }), "ok");
  {
    const std::lock_guard lock(arena.mutex);
    auto block = arena.blocks.upper_bound(view.data);
    ASSERT_NE(block, arena.blocks.begin());
    --block;
    EXPECT_LT(static_cast<char*>(view.data), static_cast<char*>(block->first) + block->second);
  }
  const size_t num_given = arena.num_given;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(execute(run.get()), "ok");
  EXPECT_LE(arena.num_given, num_given + 4) << "blocks are used again";
  run.reset();
  session.reset();
  EXPECT_EQ(arena.num_destroyed, 0u) << "the value still has it";
  EXPECT_THAT(floats(rows.get()), ElementsAre(1, 2, 4, 8));
  rows.reset();
  EXPECT_EQ(arena.num_destroyed, 1u);
  EXPECT_EQ(arena.num_wrong, 0u);
  EXPECT_TRUE(arena.blocks.empty()) << arena.blocks.size() << " blocks did not come back";
}

TEST_F(CAllocators, WhatTheCallerRefusesOrMisalignsFails) {
  for (const bool misaligns : {false, true}) {
    SCOPED_TRACE(misaligns);
    Arena arena;
    const eddy_allocator allocator = arena.allocator();
    ASSERT_EQ(set(&allocator), "ok");
    Owned<eddy_graph> graph = new_graph();
    output(graph.get(), "y", op(graph.get(), "Exp", {input(graph.get(), "x", {64, 1024})}));
    Owned<eddy_session> session = session_of(graph.get());
    ASSERT_EQ(set(nullptr), "ok");
    Owned<eddy_run> run = run_of(session.get());
    const std::vector<float> x(64 * 1024, 0.0f);
    const std::vector<int64_t> dims = {64, 1024};
    const eddy_tensor of = tensor(x.data(), dims);
    ASSERT_EQ(said([&](auto e) { return api().run_bind_input_memory(run.get(), 0, &of, e); }),
              "ok");
    {
      const std::lock_guard lock(arena.mutex);
      (misaligns ? arena.shift : arena.limit_bytes) = 8;
    }
    EXPECT_THAT(execute(run.get()), HasSubstr("resource exhausted"));
    {
      const std::lock_guard lock(arena.mutex);
      arena.shift = 0;
      arena.limit_bytes = SIZE_MAX;
    }
    EXPECT_EQ(execute(run.get()), "ok") << "and the next run goes on";
    EXPECT_EQ(output_of(run.get(), 0).at(0), 1.0f);
    run.reset();
    session.reset();
    EXPECT_EQ(arena.num_wrong, 0u);
    EXPECT_TRUE(arena.blocks.empty());
  }
}

TEST_F(CAllocators, AnAllocatorThatLacksAFunctionIsNamed) {
  Arena arena;
  eddy_allocator allocator = arena.allocator();
  allocator.struct_size = 8;
  EXPECT_THAT(set(&allocator), HasSubstr("struct_size 8"));
  allocator = arena.allocator();
  allocator.allocate = nullptr;
  EXPECT_THAT(set(&allocator), HasSubstr("there is no allocate of the allocator"));
  allocator = arena.allocator();
  allocator.release = nullptr;
  EXPECT_THAT(set(&allocator), HasSubstr("there is no release of the allocator"));
  EXPECT_EQ(arena.num_destroyed, 0u);
}

TEST_F(CAllocators, AnOutputWhoseShapeIsFoundInTheRunGoesWhereItsCallerSays) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  bind_both(run.get());
  Places places;
  ASSERT_EQ(place(run.get(), 1, Places::place, &places), "ok");
  for (const float limit : {10.0f, 3.0f, 1.0f}) {
    limit_ = limit;
    ASSERT_EQ(execute(run.get()), "ok");
    eddy_tensor made = {};
    ASSERT_EQ(said([&](auto e) { return api().run_output_memory(run.get(), 1, &made, e); }), "ok");
    EXPECT_EQ(made.data, places.memory.data());
    ASSERT_EQ(places.dims, std::vector<int64_t>(made.dims, made.dims + made.rank));
    const std::vector<float> rows(places.memory.begin(), places.memory.begin() + places.dims[0]);
    EXPECT_EQ(rows, output_of(run.get(), 1));
    EXPECT_EQ(rows.size(), limit == 10.0f ? 4u : limit == 3.0f ? 2u : 0u);
  }
  EXPECT_EQ(places.num_calls, 3);
  ASSERT_EQ(place(run.get(), 1, nullptr, nullptr), "ok");
  ASSERT_EQ(execute(run.get()), "ok");
  EXPECT_EQ(places.num_calls, 3) << "no more";
}

TEST_F(CAllocators, ItIsThereWhenTheCallbackComesAndFoundOnceByWaiting) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  bind_both(run.get());
  Places places;
  ASSERT_EQ(place(run.get(), 1, Places::place, &places), "ok");
  std::atomic<eddy_code> ended{-1};
  const eddy_run_callback callback = [](void* user, eddy_run, eddy_code code) {
    static_cast<std::atomic<eddy_code>*>(user)->store(code);
  };
  for (int i = 1; i <= 50; ++i) {
    ended = -1;
    const bool calls_back = i % 2 == 0;
    ASSERT_EQ(said([&](auto e) {
                return api().run_submit(run.get(), nullptr, nullptr,
                                        calls_back ? callback : nullptr, &ended, e);
              }),
              "ok");
    while (calls_back && ended == -1) std::this_thread::yield();
    if (calls_back) {
      EXPECT_EQ(ended, EDDY_OK);
      EXPECT_EQ(places.num_calls, i);
    }
    ASSERT_EQ(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), "ok");
    ASSERT_EQ(places.num_calls, i);
    EXPECT_EQ(places.memory.at(3), 8.0f);
  }
}

TEST_F(CAllocators, WithoutAPlaceTheRunFailsAndSaysSo) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  bind_both(run.get());
  Places places;
  places.refuses = true;
  ASSERT_EQ(place(run.get(), 1, Places::place, &places), "ok");
  EXPECT_THAT(execute(run.get()), HasSubstr("output 'rows': its caller has no place for 16 bytes"));
  eddy_tensor made = {};
  EXPECT_THAT(said([&](auto e) { return api().run_output_memory(run.get(), 0, &made, e); }),
              HasSubstr("there are no outputs"));
  places.refuses = false;
  places.shift_bytes = 1;
  EXPECT_THAT(execute(run.get()), HasSubstr("is not aligned to 4 bytes"));
  places.shift_bytes = 0;
  EXPECT_EQ(execute(run.get()), "ok");
  places.refuses = true;
  EXPECT_NE(execute(run.get()), "ok");
  ASSERT_EQ(place(run.get(), 1, nullptr, nullptr), "ok");
  EXPECT_EQ(execute(run.get()), "ok") << "the failure was the last run's";
  eddy_metrics metrics = {};
  metrics.struct_size = sizeof(metrics);
  ASSERT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  EXPECT_EQ(metrics.runs_failed, 3u);
  EXPECT_EQ(metrics.runs_succeeded, 2u);
}

TEST_F(CAllocators, PlacesAreRefusedWhereTheyHaveNoSense) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  Places places;
  EXPECT_THAT(place(run.get(), 2, Places::place, &places), HasSubstr("there is no output 2"));
  float y = 0;
  const eddy_tensor memory = tensor(&y, {});
  const auto bind_output = [&](size_t index) {
    return said([&](auto e) { return api().run_bind_output_memory(run.get(), index, &memory, e); });
  };
  ASSERT_EQ(bind_output(0), "ok");
  EXPECT_THAT(place(run.get(), 0, Places::place, &places),
              HasSubstr("output 'y' has memory bound"));
  ASSERT_EQ(place(run.get(), 1, Places::place, &places), "ok");
  EXPECT_THAT(bind_output(1), HasSubstr("output 1 is placed by its caller"));
}

}  // namespace
}  // namespace eddy::c
