// Claim: operators and host functions of a C caller work in graphs and loops: shapes, state, tiles,
// failures with their text, answers that come later from another thread, and their end.
#include <atomic>
#include <thread>

#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

int64_t count_of(const eddy_tensor& view) {
  int64_t count = 1;
  for (int32_t i = 0; i < view.rank; ++i) count *= view.dims[i];
  return count;
}

class COperators : public CApi {
 protected:
  Owned<eddy_run> run_one(const std::vector<int64_t>& dims, const float* x) {
    Owned<eddy_graph> graph = new_graph();
    output(graph.get(), "y", own_op(graph.get(), "Scale", input(graph.get(), "x", dims)));
    Owned<eddy_session> session = session_of(graph.get());
    Owned<eddy_run> run = run_of(session.get());
    const eddy_tensor of = tensor(x, dims);
    EXPECT_EQ(said([&](auto e) { return api().run_bind_input_memory(run.get(), 0, &of, e); }),
              "ok");
    return run;
  }
};

TEST_F(COperators, PassSymbolsOfTheirInputsOnAndMakeUpNone) {
  eddy_operator op = operator_of("Scale", nullptr);
  op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  op.name = "Invent";
  op.shapes = [](void*, const eddy_shapes* shapes) -> eddy_code {
    shapes->outputs[0] = shapes->inputs[0];
    shapes->outputs[0].dims[0] -= 1;
    return EDDY_OK;
  };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  Owned<eddy_graph> graph = new_graph();
  int64_t n = 0;
  ASSERT_EQ(api().graph_symbol(graph.get(), "n", &n, nullptr), EDDY_OK);
  const eddy_value_id x = input(graph.get(), "x", {n, 3});
  const eddy_value_id y = own_op(graph.get(), "Scale", x);
  eddy_type type = {};
  type.struct_size = sizeof(type);
  ASSERT_EQ(said([&](auto e) { return api().graph_type(graph.get(), y, &type, e); }), "ok");
  EXPECT_EQ(type.dims[0], n);
  eddy_node node = {};
  node.struct_size = sizeof(node);
  node.op = "Invent";
  node.domain = "test";
  node.num_outputs = 1;
  node.inputs = &x;
  node.num_inputs = 1;
  eddy_value_id made = 0;
  EXPECT_THAT(said([&](auto e) { return api().graph_node(graph.get(), &node, &made, e); }),
              HasSubstr("which graph_symbol did not give"));
}

TEST_F(COperators, AreRefusedForStringsWhichTheyCannotSee) {
  eddy_operator op = operator_of("Scale", nullptr);
  op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Scale", input(graph.get(), "x", {2}, EDDY_STRING)));
  Owned<eddy_session> session;
  EXPECT_THAT(
      said([&](auto e) { return api().session_create(graph.get(), nullptr, 0, session.out(), e); }),
      AllOf(HasSubstr("unsupported"), HasSubstr("'test.Scale'"), HasSubstr("strings")));
}

// Each kind of attribute, as it is and where it is not there.
TEST_F(COperators, ReadAttributesOfAllKinds) {
  static const char* const names[] = {"i", "f", "s", "is", "fs", "ss", "t", "of"};
  static const int32_t kinds[] = {0, 1, 2, 3, 4, 5, 6, 7};
  eddy_operator op = operator_of("Scale", nullptr);
  op.attribute_names = names;
  op.attribute_kinds = kinds;
  op.num_attributes = 8;
  op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  op.bind = [](void*, const eddy_shapes* node, void**) -> eddy_code {
    eddy_attribute read = {};
    read.struct_size = sizeof(read);
    const auto has = [&](const char* name) {
      const eddy_code code = node->attribute(node->impl, name, &read);
      EXPECT_EQ(code, EDDY_OK) << name;
      EXPECT_STREQ(read.name, name);
      return code == EDDY_OK;
    };
    EXPECT_TRUE(has("i") && read.kind == EDDY_ATTRIBUTE_INT && read.i == 7);
    EXPECT_TRUE(has("f") && read.kind == EDDY_ATTRIBUTE_FLOAT && read.f == 0.5f);
    EXPECT_TRUE(has("s") && std::string_view(read.s) == "text");
    EXPECT_TRUE(has("is") && read.count == 2 && read.ints[1] == -2);
    EXPECT_TRUE(has("fs") && read.count == 1 && read.floats[0] == 1.5f);
    EXPECT_TRUE(has("ss") && read.count == 2 && std::string_view(read.strings[1]) == "b");
    EXPECT_TRUE(has("t") && read.tensor->rank == 1 && read.tensor->dims[0] == 2 &&
                static_cast<const float*>(read.tensor->data)[1] == 4);
    EXPECT_TRUE(has("of") && read.type->element == EDDY_INT64 && read.type->rank == 0);
    EXPECT_EQ(node->attribute(node->impl, "none", &read), EDDY_NOT_FOUND);
    EXPECT_EQ(node->attribute(node->impl, nullptr, &read), EDDY_INVALID_ARGUMENT);
    EXPECT_STREQ(node->attribute_string(node->impl, "is", "other"), "other") << "of another kind";
    return EDDY_OK;
  };
  add(op);
  const int64_t ints[] = {1, -2};
  const float floats[] = {1.5f};
  const char* const strings[] = {"a", "b"};
  const float four[] = {3, 4};
  const std::vector<int64_t> dims = {2};
  const eddy_tensor constant = tensor(four, dims);
  const eddy_type of = type(EDDY_INT64, {});
  std::vector<eddy_attribute> all(8);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].struct_size = sizeof(eddy_attribute);
    all[i].name = names[i];
    all[i].kind = kinds[i];
  }
  all[0].i = 7;
  all[1].f = 0.5f;
  all[2].s = "text";
  all[3].ints = ints;
  all[4].floats = floats;
  all[5].strings = strings;
  all[3].count = all[5].count = 2;
  all[4].count = 1;
  all[6].tensor = &constant;
  all[7].type = &of;
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Scale", input(graph.get(), "x", {}), all));
  const Owned<eddy_session> session = session_of(graph.get());
}

struct Counts {
  std::atomic<int> bound{0}, unbound{0}, destroyed{0}, tiles{0};
};

TEST_F(COperators, HaveAttributesAndAStateForEachNodeThatGoesWithIt) {
  Counts counts;
  eddy_operator op = operator_of("Scale", &counts);
  const char* const names[] = {"factor"};
  const int32_t kinds[] = {EDDY_ATTRIBUTE_FLOAT};
  op.attribute_names = names;
  op.attribute_kinds = kinds;
  op.num_attributes = 1;
  op.destroy = [](void* user) { ++static_cast<Counts*>(user)->destroyed; };
  op.bind = [](void* user, const eddy_shapes* node, void** state) -> eddy_code {
    ++static_cast<Counts*>(user)->bound;
    *state = new float(node->attribute_float(node->impl, "factor", 2.0f));
    return EDDY_OK;
  };
  op.unbind = [](void* user, void* state) {
    ++static_cast<Counts*>(user)->unbound;
    delete static_cast<float*>(state);
  };
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    const auto* x = static_cast<const float*>(call->inputs[0].data);
    auto* y = static_cast<float*>(call->outputs[0].data);
    for (int64_t i = 0; i < count_of(call->outputs[0]); ++i) {
      y[i] = *static_cast<float*>(call->state) * x[i];
    }
    return EDDY_OK;
  };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  {
    Owned<eddy_graph> graph = new_graph();
    eddy_attribute factor = {};
    factor.struct_size = sizeof(factor);
    factor.name = "factor";
    factor.kind = EDDY_ATTRIBUTE_FLOAT;
    factor.f = 5;
    const eddy_value_id x = input(graph.get(), "x", {2});
    output(graph.get(), "y",
           own_op(graph.get(), "Scale", own_op(graph.get(), "Scale", x), {factor}));
    Owned<eddy_session> session = session_of(graph.get());
    Owned<eddy_run> run = run_of(session.get());
    const float numbers[] = {1, 2};
    const std::vector<int64_t> dims = {2};
    const eddy_tensor of = tensor(numbers, dims);
    ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(10, 20));
  }
  EXPECT_GE(counts.bound, 2);
  EXPECT_EQ(counts.unbound, counts.bound);
  EXPECT_EQ(counts.destroyed, 0);
  library.reset();
  EXPECT_EQ(counts.destroyed, 1);
}

TEST_F(COperators, RunInTilesWithoutLosingOne) {
  Counts counts;
  eddy_operator op = operator_of("Scale", &counts);
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    call->fail(call->impl, "not in tiles");
    return EDDY_RUN_FAILED;
  };
  op.count_tiles = [](void*, const eddy_call* call) {
    return static_cast<uint32_t>(call->inputs[0].dims[0]);
  };
  op.run_tile = [](void* user, const eddy_call* call, uint32_t tile) -> eddy_code {
    const int64_t row = call->inputs[0].dims[1];
    const auto* x = static_cast<const float*>(call->inputs[0].data) + tile * row;
    auto* y = static_cast<float*>(call->outputs[0].data) + tile * row;
    for (int64_t i = 0; i < row; ++i) y[i] = x[i] + static_cast<float>(tile);
    ++static_cast<Counts*>(user)->tiles;
    return EDDY_OK;
  };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  const std::vector<float> x(64 * 100, 1.0f);
  Owned<eddy_run> run = run_one({64, 100}, x.data());
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  const std::vector<float> y = output_of(run.get(), 0);
  ASSERT_EQ(y.size(), x.size());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 1.0f + static_cast<float>(i / 100)) << i;
  EXPECT_EQ(counts.tiles, 64);
}

TEST_F(COperators, FailWithTheirOwnText) {
  eddy_operator op = operator_of("Scale", nullptr);
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    call->fail(call->impl, "the lamp\nis out");
    return EDDY_RUN_FAILED;
  };
  ASSERT_EQ(api().library_add_operator(library.get(), &op, nullptr), EDDY_OK);
  const float x = 1;
  Owned<eddy_run> run = run_one({}, &x);
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              AllOf(HasSubstr("Scale"), HasSubstr("the lamp?is out")));
}

TEST_F(COperators, ThatContradictThemselvesAreRefused) {
  const auto refused = [&](auto change) {
    eddy_operator op = operator_of("Scale", nullptr);
    op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
    change(op);
    return said([&](auto e) { return api().library_add_operator(library.get(), &op, e); });
  };
  EXPECT_THAT(refused([](auto& op) { op.domain = ""; }), HasSubstr("give it a domain of yours"));
  EXPECT_THAT(refused([](auto& op) { op.run = nullptr; }), HasSubstr("no function `run`"));
  EXPECT_THAT(refused([](auto& op) { op.num_outputs = 0; }), HasSubstr("1 to 64 outputs"));
  EXPECT_THAT(refused([](auto& op) { op.min_inputs = 2; }), HasSubstr("min_inputs above"));
  EXPECT_THAT(
      refused([](auto& op) { op.count_tiles = [](void*, const eddy_call*) { return 1u; }; }),
      HasSubstr("give both or neither"));
  EXPECT_THAT(refused([](auto& op) { op.struct_size = 16; }), HasSubstr("struct_size 16"));
  EXPECT_EQ(refused([](auto&) {}), "ok");
  EXPECT_THAT(refused([](auto&) {}), HasSubstr("Scale")) << "twice";
}

TEST_F(COperators, AnAnswerMayComeLaterFromAnotherThreadAndOnlyOnce) {
  struct Later {
    std::thread thread;
    std::atomic<eddy_code> second{-1};
  } later;
  eddy_operator op = operator_of("Scale", &later);
  op.flags = EDDY_ANSWERS_LATER;
  op.run = [](void* user, const eddy_call* call) -> eddy_code {
    auto& mine = *static_cast<Later*>(user);
    const eddy_pending pending = call->defer(call->impl);
    auto* y = static_cast<float*>(call->outputs[0].data);
    const float x = *static_cast<const float*>(call->inputs[0].data);
    if (mine.thread.joinable()) mine.thread.join();
    mine.thread = std::thread([&mine, pending, y, x] {
      *y = 10 * x;
      EXPECT_EQ(api().pending_complete(pending, EDDY_OK, 0, nullptr, nullptr), EDDY_OK);
      mine.second = api().pending_complete(pending, EDDY_OK, 0, nullptr, nullptr);
    });
    return EDDY_LATER;
  };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  float x = 4;
  Owned<eddy_run> run = run_one({}, &x);
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  later.thread.join();
  EXPECT_THAT(output_of(run.get(), 0), ElementsAre(40));
  EXPECT_EQ(later.second, EDDY_INVALID_HANDLE);
}

TEST_F(COperators, AnAnswerMayComeWhileItsKernelAsksForStops) {
  std::thread answering;
  eddy_operator op = operator_of("Scale", &answering);
  op.flags = EDDY_ANSWERS_LATER;
  op.run = [](void* user, const eddy_call* call) -> eddy_code {
    auto& thread = *static_cast<std::thread*>(user);
    const eddy_pending pending = call->defer(call->impl);
    if (thread.joinable()) thread.join();
    auto* y = static_cast<float*>(call->outputs[0].data);
    thread = std::thread([pending, y] {
      *y = 1;
      EXPECT_EQ(api().pending_complete(pending, EDDY_OK, 0, nullptr, nullptr), EDDY_OK);
    });
    const eddy_code asked = api().pending_on_stop(
        pending, [](void*) {}, nullptr, nullptr);
    EXPECT_THAT(asked, testing::AnyOf(EDDY_OK, EDDY_INVALID_STATE, EDDY_INVALID_HANDLE));
    return EDDY_LATER;
  };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  const float x = 4;
  const Owned<eddy_run> run = run_one({}, &x);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  }
  answering.join();
}

TEST_F(COperators, AnAnswerThatIsOwedMayFailTheRunAndAReleasedOneDoes) {
  static std::atomic<bool> releases;
  eddy_operator op = operator_of("Scale", nullptr);
  op.flags = EDDY_ANSWERS_LATER;
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    const bool says_first = static_cast<const float*>(call->inputs[0].data)[0] == 1;
    if (says_first) call->fail(call->impl, "said before");
    const eddy_pending pending = call->defer(call->impl);
    if (static_cast<const float*>(call->inputs[0].data)[0] == 2) {
      call->fail(call->impl, "said behind");
    }
    if (releases) {
      EXPECT_EQ(api().release(pending), EDDY_OK);
    } else {
      EXPECT_EQ(api().pending_complete(pending, EDDY_RUN_FAILED, 0, "no answer today", nullptr),
                EDDY_OK);
    }
    return EDDY_LATER;
  };
  ASSERT_EQ(api().library_add_operator(library.get(), &op, nullptr), EDDY_OK);
  const float x = 4;
  Owned<eddy_run> run = run_one({}, &x);
  releases = false;
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              HasSubstr("no answer today"));
  releases = true;
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              HasSubstr("dropped without an answer"));
  for (const auto& [number, words] : {std::pair(1.0f, "said before"), {2.0f, "said behind"}}) {
    Owned<eddy_run> other = run_one({}, &number);
    EXPECT_THAT(said([&](auto e) { return api().run_execute(other.get(), nullptr, e); }),
                HasSubstr(words));
  }
}

// A stop does not free what an owed answer may still write: the run waits for the answer, which
// on_stop may bring early.
TEST_F(COperators, AnAnswerThatIsOwedHearsOfACancelOrDeadlineAndMayStillCome) {
  struct Owed {
    std::atomic<eddy_pending> pending{nullptr};
    std::atomic<int> stops{0};
  } owed;
  eddy_operator op = operator_of("Scale", &owed);
  op.flags = EDDY_ANSWERS_LATER;
  op.run = [](void* user, const eddy_call* call) -> eddy_code {
    auto& mine = *static_cast<Owed*>(user);
    const eddy_pending pending = call->defer(call->impl);
    const eddy_function stopped = [](void* from) {
      auto& of = *static_cast<Owed*>(from);
      ++of.stops;
      EXPECT_EQ(api().pending_complete(of.pending, EDDY_CANCELLED, 0, "stopped", nullptr), EDDY_OK);
    };
    mine.pending = pending;
    EXPECT_EQ(api().pending_on_stop(pending, stopped, user, nullptr), EDDY_OK);
    return EDDY_LATER;
  };
  ASSERT_EQ(api().library_add_operator(library.get(), &op, nullptr), EDDY_OK);
  const float x = 4;
  Owned<eddy_run> run = run_one({}, &x);
  const eddy_run_options options = {sizeof(options), 20'000'000, 0};
  EXPECT_EQ(api().run_execute(run.get(), &options, nullptr), EDDY_DEADLINE_EXCEEDED);
  EXPECT_EQ(owed.stops, 1);
  owed.pending = nullptr;
  ASSERT_EQ(api().run_submit(run.get(), nullptr, nullptr, nullptr, nullptr, nullptr), EDDY_OK);
  while (owed.pending == nullptr) std::this_thread::yield();
  EXPECT_EQ(api().run_cancel(run.get(), nullptr), EDDY_OK);
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_CANCELLED);
  EXPECT_EQ(owed.stops, 2);
  EXPECT_EQ(api().pending_complete(owed.pending, EDDY_OK, 0, nullptr, nullptr), EDDY_INVALID_HANDLE)
      << "after the end there is nothing to answer";
}

// while go_on(x): x = x + x, decided by a host function of the given flags.
class CHostFunctions : public CApi, public testing::WithParamInterface<uint32_t> {};

TEST_P(CHostFunctions, DecideALoop) {
  const eddy_decide decide = [](void* user, const eddy_call* call, int64_t* decision) -> eddy_code {
    ++*static_cast<int*>(user);
    const int64_t more = *static_cast<const float*>(call->inputs[0].data) < 50 ? 1 : 0;
    const eddy_pending pending = call->defer(call->impl);
    if (pending == nullptr) {
      *decision = more;
      return EDDY_OK;
    }
    std::thread([pending, more] {
      EXPECT_EQ(api().pending_complete(pending, EDDY_OK, more, nullptr, nullptr), EDDY_OK);
    }).detach();
    return EDDY_LATER;
  };
  int asked = 0;
  ASSERT_EQ(said([&](auto e) {
              return api().library_add_host_function(library.get(), "go_on", GetParam(), decide,
                                                     &asked, nullptr, e);
            }),
            "ok");
  Owned<eddy_graph> graph = doubling_while("go_on");
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float one = 1;
  bind(run.get(), 0, &one);
  ASSERT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
  EXPECT_THAT(output_of(run.get(), 0), ElementsAre(64));
  EXPECT_EQ(asked, 7);
}

TEST_P(CHostFunctions, ThatAnswersAPredicateOtherwiseThanWith0Or1Fails) {
  const eddy_decide decide = [](void*, const eddy_call* call, int64_t* decision) -> eddy_code {
    const eddy_pending pending = call->defer(call->impl);
    *decision = 7;
    if (pending == nullptr) return EDDY_OK;
    EXPECT_EQ(api().pending_complete(pending, EDDY_OK, 7, nullptr, nullptr), EDDY_OK);
    return EDDY_LATER;
  };
  ASSERT_EQ(api().library_add_host_function(library.get(), "go_on", GetParam(), decide, nullptr,
                                            nullptr, nullptr),
            EDDY_OK);
  Owned<eddy_graph> graph = doubling_while("go_on");
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float one = 1;
  bind(run.get(), 0, &one);
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              HasSubstr("host function 'go_on' decided 7, but its output is a bool: 0 or 1"));
}

INSTANTIATE_TEST_SUITE_P(Flags, CHostFunctions,
                         testing::Values(0u, EDDY_ANSWERS_LATER, EDDY_NON_BLOCKING));

TEST_F(COperators, WhatWasNotBoundIsNotUnbound) {
  Counts counts;
  eddy_operator op = operator_of("Scale", &counts);
  op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  op.bind = [](void*, const eddy_shapes*, void**) -> eddy_code { return EDDY_UNSUPPORTED; };
  op.unbind = [](void* user, void*) { ++static_cast<Counts*>(user)->unbound; };
  ASSERT_EQ(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }), "ok");
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Scale", input(graph.get(), "x", {2})));
  Owned<eddy_session> session;
  EXPECT_NE(
      said([&](auto e) { return api().session_create(graph.get(), nullptr, 0, session.out(), e); }),
      "ok");
  EXPECT_EQ(counts.unbound, 0);
}

}  // namespace
}  // namespace eddy::c
