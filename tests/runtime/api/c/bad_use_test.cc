// Claim: whatever a program does wrong with handles, structs, options, states and order is refused
// by a code and a line that says what was wrong; nothing is read through a handle that is none.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "graph/base/sanitizers.h"
#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BadUse : public CApi {};

template <typename T>
T handle_of(uintptr_t bits) {
  return reinterpret_cast<T>(bits);
}

TEST_F(BadUse, OtherVersionsHaveNoTable) {
  EXPECT_EQ(eddy_get_api(0), nullptr);
  EXPECT_EQ(eddy_get_api(EDDY_API_VERSION + 1), nullptr);
  EXPECT_EQ(api().struct_size, sizeof(eddy_api));
  EXPECT_EQ(api().version, EDDY_API_VERSION);
  const void* const* entries = reinterpret_cast<const void* const*>(&api().version_text);
  const void* const* end = reinterpret_cast<const void* const*>(&api() + 1);
  for (; entries < end; ++entries) EXPECT_NE(*entries, nullptr);
}

TEST_F(BadUse, HandlesThatAreNullForeignReleasedOrOfAnotherKindAreNamed) {
  EXPECT_THAT(said([](auto e) { return api().session_close(nullptr, e); }),
              "invalid handle: the handle of the session is null");
  EXPECT_THAT(
      said([](auto e) { return api().session_close(handle_of<eddy_session>(0xdeadbeef), e); }),
      HasSubstr("was released, or is none of Eddy's"));
  int local = 0;
  EXPECT_THAT(
      said([&](auto e) { return api().session_close(reinterpret_cast<eddy_session>(&local), e); }),
      HasSubstr("none of Eddy's"));
  EXPECT_THAT(said([&](auto e) {
                return api().session_close(reinterpret_cast<eddy_session>(context.get()), e);
              }),
              "invalid handle: the handle is that of a context, not of a session");
  Owned<eddy_value> value;
  ASSERT_EQ(api().value_none(value.out(), nullptr), EDDY_OK);
  const eddy_value stale = value.get();
  value.reset();
  EXPECT_EQ(api().release(stale), EDDY_INVALID_HANDLE);
  EXPECT_EQ(api().retain(stale), EDDY_INVALID_HANDLE);
  Owned<eddy_value> next;  // most likely in the same cell
  ASSERT_EQ(api().value_none(next.out(), nullptr), EDDY_OK);
  int32_t kind = -1;
  EXPECT_EQ(api().value_kind(stale, &kind, nullptr), EDDY_INVALID_HANDLE);
  EXPECT_EQ(api().value_kind(next.get(), &kind, nullptr), EDDY_OK);
  EXPECT_EQ(api().release(nullptr), EDDY_INVALID_HANDLE);
  EXPECT_STREQ(api().error_message(nullptr), "");
  EXPECT_STREQ(api().error_message(reinterpret_cast<eddy_error>(context.get())), "");
}

TEST_F(BadUse, RandomBitsAreNoHandle) {
  const uint32_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100'000; ++i) {
    // Generations near those in use, and any bits at all.
    const uintptr_t bits =
        i % 2 == 0 ? random() : (random() % 4096 | uintptr_t{random() % 2} << 63);
    EXPECT_EQ(api().run_cancel(handle_of<eddy_run>(bits), nullptr), EDDY_INVALID_HANDLE) << bits;
  }
}

TEST_F(BadUse, AMillionHandlesComeAndGo) {
  std::vector<eddy_value> values(1'000'000);
  for (eddy_value& each : values) ASSERT_EQ(api().value_none(&each, nullptr), EDDY_OK);
  for (eddy_value each : values) ASSERT_EQ(api().release(each), EDDY_OK);
  for (size_t i = 0; i < values.size(); i += 9973) {
    ASSERT_EQ(api().release(values[i]), EDDY_INVALID_HANDLE);
  }
}

TEST_F(BadUse, ReferencesAreCounted) {
  Owned<eddy_value> value;
  ASSERT_EQ(api().value_none(value.out(), nullptr), EDDY_OK);
  ASSERT_EQ(api().retain(value.get()), EDDY_OK);
  ASSERT_EQ(api().release(value.get()), EDDY_OK);
  int32_t kind = -1;
  EXPECT_EQ(api().value_kind(value.get(), &kind, nullptr), EDDY_OK);
  EXPECT_EQ(kind, 0);
}

// A release beside calls: each call finds the object or is refused.
TEST_F(BadUse, AHandleMayBeReleasedBesideCalls) {
  for (int round = 0; round < 200; ++round) {
    const float number = 1;
    const eddy_tensor of = tensor(&number, {});
    eddy_value value = nullptr;
    ASSERT_EQ(api().value_copy(&of, &value, nullptr), EDDY_OK);
    std::atomic<bool> refused = false;
    std::thread reader([&] {
      while (!refused) {
        eddy_tensor view = {};
        const eddy_code code = api().value_tensor(value, &view, nullptr);
        if (code != EDDY_OK) refused = code == EDDY_INVALID_HANDLE;
      }
    });
    EXPECT_EQ(api().release(value), EDDY_OK);
    reader.join();
  }
}

TEST_F(BadUse, PlacesAndStructsThatAreMissingOrTooShortAreNamed) {
  EXPECT_THAT(said([&](auto e) { return api().library_create(context.get(), nullptr, e); }),
              HasSubstr("place for the library: it is null"));
  Owned<eddy_graph> graph = new_graph();
  eddy_value_id value = 0;
  eddy_type of = type(EDDY_FLOAT, {2});
  of.struct_size = 4;
  EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), "x", &of, &value, e); }),
              HasSubstr("the input's type has struct_size 4; set it to sizeof"));
  EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), "x", nullptr, &value, e); }),
              HasSubstr("there is no input's type: it is null"));
  of = type(EDDY_FLOAT, {-2});
  EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), "x", &of, &value, e); }),
              HasSubstr("which graph_symbol did not give"));
  of = type(99, {2});
  EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), "x", &of, &value, e); }),
              HasSubstr("element type 99, which is none"));
  of = type(EDDY_FLOAT, {2});
  of.rank = 9;
  EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), "x", &of, &value, e); }),
              HasSubstr("has rank 9"));
  of = type(EDDY_FLOAT, {2});
  of.wrappers[0] = 7;
  EXPECT_THAT(said([&](auto e) { return api().graph_input(graph.get(), "x", &of, &value, e); }),
              HasSubstr("has the wrapper 7"));
}

TEST_F(BadUse, TensorsThatContradictThemselvesAreNamed) {
  const float number = 1;
  const std::vector<int64_t> dims = {2};
  const auto refused = [&](auto change) {
    eddy_tensor of = tensor(&number, dims);
    change(of);
    return said([&](auto e) {
      Owned<eddy_value> value;
      return api().value_copy(&of, value.out(), e);
    });
  };
  EXPECT_THAT(refused([](auto& of) { of.rank = -1; }), HasSubstr("has rank -1"));
  EXPECT_THAT(refused([](auto& of) { of.rank = 9; }), HasSubstr("has rank 9"));
  EXPECT_THAT(refused([](auto& of) { of.dims = nullptr; }), HasSubstr("dims is null"));
  EXPECT_THAT(refused([](auto& of) { of.data = nullptr; }), HasSubstr("data is null"));
  EXPECT_THAT(refused([](auto& of) { of.element = 0; }), HasSubstr("which is none"));
  EXPECT_THAT(refused([](auto& of) { of.element = EDDY_STRING; }),
              HasSubstr("make a value by value_from_strings"));
  const std::vector<int64_t> negative = {-1};
  EXPECT_THAT(refused([&](auto& of) { of.dims = negative.data(); }),
              HasSubstr("a dimension of -1"));
  const std::vector<int64_t> huge = {int64_t{1} << 62, 8};
  EXPECT_THAT(refused([&](auto& of) {
                of.dims = huge.data();
                of.rank = 2;
              }),
              HasSubstr("more elements than can be counted"));
}

TEST_F(BadUse, OptionsThatAreUnknownOrMeanNothingAreNamedWithWhatIsMeant) {
  Owned<eddy_graph> graph = doubling();
  const auto refused = [&](const char* key, const char* value) {
    const eddy_option option = {key, value};
    return said([&](auto e) {
      Owned<eddy_session> session;
      return api().session_create(graph.get(), &option, 1, session.out(), e);
    });
  };
  EXPECT_THAT(refused("memory-limit", "1"),
              HasSubstr("there is no option 'memory-limit'; the nearest is 'memory_limit'"));
  EXPECT_THAT(refused("device", "cuda"),
              AllOf(HasSubstr("unsupported"), HasSubstr("for the CPU alone; give 'cpu'")));
  EXPECT_THAT(refused("memory_limit", "lots"), HasSubstr("bytes, or a number with kb, mb or gb"));
  EXPECT_THAT(refused("memory_limit", "99999999999gb"), HasSubstr("give bytes"));
  EXPECT_THAT(refused("threads", "-1"), HasSubstr("a number from 0 to 4096"));
  EXPECT_THAT(refused("exact", "yes"), HasSubstr("true or false"));
  EXPECT_THAT(refused("loops", "gpu"), HasSubstr("one of auto, host, device"));
  EXPECT_THAT(refused("shape.x", "3x"), HasSubstr("sizes with x between them"));
  EXPECT_THAT(refused("dim.batch", "-3"), HasSubstr("a size of 0 or more"));
  EXPECT_THAT(refused("dim.batch", "3"), HasSubstr("the graph has no symbolic dimension"));
  EXPECT_THAT(refused(nullptr, "3"), HasSubstr("key of an option"));
  EXPECT_THAT(refused("threads", nullptr), HasSubstr("value of option 'threads'"));
  const eddy_option option = {"thread", "2"};
  EXPECT_THAT(said([&](auto e) {
                Owned<eddy_context> made;
                return api().context_create(&option, 1, made.out(), e);
              }),
              HasSubstr("the nearest is 'threads'"));
}

TEST_F(BadUse, ASuccessHasNoError) {
  Owned<eddy_session> session = session_of(doubling().get());
  eddy_error error = nullptr;
  EXPECT_EQ(api().session_close(session.get(), &error), EDDY_OK);
  EXPECT_EQ(error, nullptr);
}

TEST_F(BadUse, AStructThatEndsInsideAMemberIsRefused) {
  eddy_operator op = operator_of("Own", nullptr);
  op.run = [](void*, const eddy_call*) -> eddy_code { return EDDY_OK; };
  op.struct_size = offsetof(eddy_operator, begin_run) + 4;
  EXPECT_THAT(said([&](auto e) { return api().library_add_operator(library.get(), &op, e); }),
              HasSubstr("ends inside a member"));
}

TEST_F(BadUse, NamesThatNoFileMayHaveAreRefused) {
  Owned<eddy_graph> graph = new_graph();
  const eddy_type of = type(EDDY_FLOAT, {});
  eddy_value_id x = 0;
  const auto refused = [&](const std::string& name) {
    return said([&](auto e) { return api().graph_input(graph.get(), name.c_str(), &of, &x, e); });
  };
  EXPECT_EQ(refused(std::string(16384, 'x')), "ok");
  EXPECT_THAT(refused(std::string(16385, 'y')),
              AllOf(HasSubstr("yyy...'"), HasSubstr("longer than 16384 bytes")));
  EXPECT_THAT(refused("two\nlines"), HasSubstr("control characters"));
}

TEST_F(BadUse, PiecesOutOfOrderAreNamed) {
  Owned<eddy_graph> graph = new_graph();
  eddy_value_id none = 0;
  EXPECT_THAT(
      said([&](auto e) { return api().graph_end_while(graph.get(), nullptr, 0, &none, 1, e); }),
      HasSubstr("end_while does not fit here: no loop or case is open"));
  EXPECT_THAT(said([&](auto e) { return api().graph_output(graph.get(), "y", 12345, e); }),
              HasSubstr("value 12345, which this graph has not given"));
}

TEST_F(BadUse, ALibraryInUseTakesNothingMore) {
  Owned<eddy_graph> graph = new_graph();
  const eddy_decide decide = [](void*, const eddy_call*, int64_t*) -> eddy_code { return EDDY_OK; };
  EXPECT_THAT(said([&](auto e) {
                return api().library_add_host_function(library.get(), "p", 0, decide, nullptr,
                                                       nullptr, e);
              }),
              HasSubstr("invalid state: a graph or session was made with this library"));
}

TEST_F(BadUse, BindingsThatDoNotFitAreNamed) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  const float numbers[] = {1, 2};
  const std::vector<int64_t> dims = {2};
  const eddy_tensor of = tensor(numbers, dims);
  EXPECT_EQ(api().run_wait(run.get(), -1, nullptr), EDDY_INVALID_STATE) << "there was none";
  EXPECT_THAT(said([&](auto e) { return api().run_poll(run.get(), e); }),
              HasSubstr("no run was submitted yet"));
  EXPECT_THAT(said([&](auto e) { return api().run_bind_input_memory(run.get(), 0, &of, e); }),
              AllOf(HasSubstr("float[2]"), HasSubstr("'x'")));
  EXPECT_THAT(said([&](auto e) { return api().run_bind_input_memory(run.get(), 9, &of, e); }),
              HasSubstr("there is no input 9; the graph has 2"));
  EXPECT_THAT(said([&](auto e) {
                eddy_value none = nullptr;
                return api().run_bind_input(run.get(), 0, none, e);
              }),
              HasSubstr("the handle of the value is null"));
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              HasSubstr("'x'"))
      << "inputs are missing";
  EXPECT_THAT(said([&](auto e) { return api().run_wait(run.get(), -1, e); }), HasSubstr("'x'"));
  eddy_run_options options = {sizeof(options), -5, 0};
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), &options, e); }),
              HasSubstr("timeout_ns is -5"));
  options = {sizeof(options), 0, 3};
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), &options, e); }),
              HasSubstr("priority is 3; give -1, 0 or 1"));
}

// An operator that lets the test hold a run open, inside a call of run_execute.
TEST_F(BadUse, ARunThatAnotherThreadIsInsideOfIsRefused) {
  static std::atomic<bool> is_inside, may_go;
  is_inside = may_go = false;
  eddy_operator op = operator_of("Hold", nullptr);
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    is_inside = true;
    while (!may_go) std::this_thread::yield();
    *static_cast<float*>(call->outputs[0].data) = 1;
    return EDDY_OK;
  };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  output(graph.get(), "y", own_op(graph.get(), "Hold", input(graph.get(), "x", {})));
  Owned<eddy_session> session = session_of(graph.get());
  Owned<eddy_run> run = run_of(session.get());
  const float one = 1;
  bind(run.get(), 0, &one);
  std::thread other([&] { EXPECT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_OK); });
  while (!is_inside) std::this_thread::yield();
  EXPECT_THAT(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }),
              HasSubstr("invalid state: another thread is inside a call with this run"));
  eddy_metrics metrics = {};
  metrics.struct_size = sizeof(metrics);
  EXPECT_EQ(api().session_metrics(session.get(), &metrics, nullptr), EDDY_OK);
  may_go = true;
  other.join();
}

TEST_F(BadUse, AForkedChildIsToldToMakeItsOwn) {
  Owned<eddy_session> session = session_of(doubling().get());
  Owned<eddy_run> run = run_of(session.get());
  const float one = 1;
  bind(run.get(), 0, &one);
  bind(run.get(), 1, &one);
  ASSERT_EQ(api().run_execute(run.get(), nullptr, nullptr), EDDY_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string why = said([&](auto e) { return api().run_execute(run.get(), nullptr, e); });
    _exit(why.find("made before fork()") == std::string::npos ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Whatever locks of the interface other threads hold at that moment.
TEST_F(BadUse, AForkedChildMakesAndReleasesHandles) {
  const float number = 2;
  const eddy_tensor of = tensor(&number, {});
  const auto make_one = [&] {
    Owned<eddy_value> made;
    return api().value_copy(&of, made.out(), nullptr) == EDDY_OK;
  };
  std::atomic<bool> is_over{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!is_over) make_one();
    });
  }
  constexpr int kForks = 200;
  constexpr unsigned kLimitSeconds = 20;  // of a child that hangs
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kLimitSeconds);
      _exit(make_one() ? 0 : 1);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      ADD_FAILURE() << "child " << i << ": " << status;
      break;
    }
  }
  is_over = true;
  for (std::thread& other : others) other.join();
}

// A callback may neither wait for its own run's session, nor does releasing everything there hang.
TEST_F(BadUse, CallbacksThatWaitAreRefusedAndMayReleaseTheirSession) {
  struct Everything {
    Owned<eddy_session> session;
    Owned<eddy_run> other;
    std::string said_to_wait;
    std::atomic<bool> is_done = false;
  } all;
  all.session = session_of(doubling().get());
  all.other = run_of(all.session.get());
  Owned<eddy_run> run = run_of(all.session.get());
  const float zero = 0;
  const float one = 1;
  bind(all.other.get(), 0, &zero);  // endless
  bind(all.other.get(), 1, &one);
  ASSERT_EQ(said([&](auto e) {
              return api().run_submit(all.other.get(), nullptr, nullptr, nullptr, nullptr, e);
            }),
            "ok");
  bind(run.get(), 0, &one);
  bind(run.get(), 1, &one);
  const eddy_run_callback callback = [](void* user, eddy_run, eddy_code) {
    auto& mine = *static_cast<Everything*>(user);
    mine.said_to_wait = said([&](auto e) { return api().run_wait(mine.other.get(), -1, e); });
    EXPECT_EQ(api().run_cancel(mine.other.get(), nullptr), EDDY_OK);
    mine.other.reset();
    mine.session.reset();
    mine.is_done = true;
  };
  ASSERT_EQ(said([&](auto e) {
              return api().run_submit(run.get(), nullptr, nullptr, callback, &all, e);
            }),
            "ok");
  run.reset();
  while (!all.is_done) std::this_thread::yield();
  EXPECT_THAT(all.said_to_wait, HasSubstr("would deadlock"));
}

TEST_F(BadUse, ASessionMayBeReleasedInsideItsOwnKernel) {
  static eddy_session session = nullptr;
  eddy_operator op = {};
  op.struct_size = sizeof(op);
  op.name = "Release";
  op.domain = "test";
  op.since_version = 1;
  op.min_inputs = op.max_inputs = op.num_outputs = 1;
  op.shapes = [](void*, const eddy_shapes* shapes) -> eddy_code {
    shapes->outputs[0] = shapes->inputs[0];
    return EDDY_OK;
  };
  op.run = [](void*, const eddy_call* call) -> eddy_code {
    *static_cast<float*>(call->outputs[0].data) = 7;
    EXPECT_EQ(api().release(session), EDDY_OK);
    session = nullptr;
    return EDDY_OK;
  };
  ASSERT_EQ(api().library_add_operator(library.get(), &op, nullptr), EDDY_OK);
  Owned<eddy_graph> graph = new_graph();
  const eddy_value_id x = input(graph.get(), "x", {});
  eddy_node node = {};
  node.struct_size = sizeof(node);
  node.op = "Release";
  node.domain = "test";
  node.num_outputs = 1;
  node.inputs = &x;
  node.num_inputs = 1;
  eddy_value_id y = 0;
  ASSERT_EQ(api().graph_node(graph.get(), &node, &y, nullptr), EDDY_OK);
  output(graph.get(), "y", y);
  ASSERT_EQ(api().session_create(graph.get(), nullptr, 0, &session, nullptr), EDDY_OK);
  const float number = 1;
  const eddy_tensor of = tensor(&number, {});
  Owned<eddy_value> value;
  ASSERT_EQ(api().value_copy(&of, value.out(), nullptr), EDDY_OK);
  const char* const in = "x";
  const char* const out = "y";
  const eddy_value given = value.get();
  eddy_value made = nullptr;
  ASSERT_EQ(said([&](auto e) {
              return api().session_run(session, &in, &given, 1, &out, &made, 1, nullptr, e);
            }),
            "ok");
  EXPECT_THAT(floats(made), testing::ElementsAre(7));
  EXPECT_EQ(api().release(made), EDDY_OK);
  EXPECT_EQ(session, nullptr);
}

// A cell has 2^24 handles; then it is used no more.
TEST_F(BadUse, AHandleThatWasReleasedStaysOneHoweverManyAreMade) {
  if (EDDY_HAS_ASAN || EDDY_HAS_TSAN) GTEST_SKIP() << "16 million handles take minutes there";
  const float number = 1;
  const eddy_tensor of = tensor(&number, {});
  eddy_value old = nullptr;
  ASSERT_EQ(api().value_copy(&of, &old, nullptr), EDDY_OK);
  ASSERT_EQ(api().release(old), EDDY_OK);
  for (int i = 0; i < (1 << 24) + 16; ++i) {
    eddy_value value = nullptr;
    ASSERT_EQ(api().value_copy(&of, &value, nullptr), EDDY_OK);
    ASSERT_NE(value, old) << i;
    ASSERT_EQ(api().release(value), EDDY_OK);
  }
  EXPECT_EQ(api().release(old), EDDY_INVALID_HANDLE);
}

}  // namespace
}  // namespace eddy::c
