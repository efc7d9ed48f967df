// Claim: an operator with `run_values` sees strings, sequences and optionals and makes them, and
// tensors whose shapes it finds itself, at top level, in loops and with a state of a run.
#include <string_view>

#include "tests/runtime/api/c/operator_values_fixture.h"

namespace eddy::c {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const float* floats_in(const eddy_value_call& call, uint32_t input, size_t position,
                       size_t& count) {
  eddy_tensor view = {};
  EXPECT_EQ(call.tensor(call.impl, input, position, &view), EDDY_OK);
  count = view.rank == 0 ? 1 : static_cast<size_t>(view.dims[0]);
  return static_cast<const float*>(view.data);
}

TEST_F(COperatorValues, ATextFallsIntoASequenceOfWordsAndBack) {
  add_values("Words", 1, {sequence_of(type(EDDY_STRING, {}))}, [](const eddy_value_call& call) {
    size_t size = 0;
    const char* const text = call.string(call.impl, 0, 0, 0, &size);
    EXPECT_EQ(call.string(call.impl, 0, 0, 1, &size), nullptr) << "it has one string";
    EXPECT_EQ(call.string(call.impl, 0, 1, 0, &size), nullptr) << "and is one tensor";
    EXPECT_EQ(call.string(call.impl, 0, 0, 0, &size), text);
    call.make_sequence(call.impl, 0);
    for (size_t at = 0; at <= size;) {
      const size_t end = std::min(std::string_view(text, size).find(' ', at), size);
      const int64_t offsets[] = {static_cast<int64_t>(at), static_cast<int64_t>(end)};
      EXPECT_EQ(call.make_strings(call.impl, 0, nullptr, 0, offsets, text), EDDY_OK);
      at = end + 1;
    }
    return EDDY_OK;
  });
  add_values("Backwards", 1, {type(EDDY_STRING, {}), type(EDDY_STRING, {2, EDDY_UNKNOWN_DIM})},
             [](const eddy_value_call& call) {
               EXPECT_EQ(call.kind(call.impl, 0), 2);
               std::string text;
               for (size_t i = call.length(call.impl, 0); i-- > 0;) {
                 size_t size = 0;
                 const char* const word = call.string(call.impl, 0, i, 0, &size);
                 text += std::string(word, size) + (i > 0 ? " " : "");
               }
               const int64_t offsets[] = {0, static_cast<int64_t>(text.size())};
               call.make_strings(call.impl, 0, nullptr, 0, offsets, text.data());
               const int64_t dims[] = {2, 0};  // no strings at all
               return call.make_strings(call.impl, 1, dims, 2, offsets, nullptr);
             });
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id text = input_of(g, "text", type(EDDY_STRING, {}));
  const eddy_value_id words = values_op(g, "Words", {text})[0];
  const auto both = values_op(g, "Backwards", {words}, 2);
  output(g, "backwards", both[0]);
  output(g, "words", words);
  output(g, "none", both[1]);
  const Owned<eddy_session> session = session_of(g);
  const Owned<eddy_run> run = run_of(session.get());
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"one two", "two one"},
      {"", ""},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"a word that no small string holds:incomprehensibilities",
       "holds:incomprehensibilities string small no that word a"}};
  for (const auto& [line, backwards] : lines) {
    ASSERT_EQ(execute(run.get(), {text_value(line).get()}), "ok");
    const Owned<eddy_value> words_made = result(run.get(), 1);
    size_t length = 0;
    ASSERT_EQ(api().value_length(words_made.get(), &length, nullptr), EDDY_OK);
    EXPECT_EQ(length, static_cast<size_t>(std::count(line.begin(), line.end(), ' ') + 1));
    Owned<eddy_value> first;
    ASSERT_EQ(api().value_at(words_made.get(), 0, first.out(), nullptr), EDDY_OK);
    EXPECT_EQ(text_of(first.get()), line.substr(0, line.find(' ')));
    EXPECT_EQ(text_of(result(run.get(), 0).get()), backwards);
    const Owned<eddy_value> none = result(run.get(), 2);
    eddy_tensor shape = {};
    ASSERT_EQ(api().value_tensor(none.get(), &shape, nullptr), EDDY_OK);
    ASSERT_EQ(shape.rank, 2);
    EXPECT_EQ(shape.dims[0], 2);
    EXPECT_EQ(shape.dims[1], 0);
  }
}

// The elements above 0, less one: how many there are only the call knows. So in a loop, too, until
// none is left, with a row of how many there were.
TEST_F(COperatorValues, ShapesMayBeFoundByTheCallInALoopToo) {
  const eddy_type open = type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM});
  add_values("Shrink", 1, {open}, [](const eddy_value_call& call) {
    size_t count = 0;
    const float* const x = floats_in(call, 0, 0, count);
    const int64_t dims[] = {std::count_if(x, x + count, [](float each) { return each > 0; })};
    void* data = nullptr;
    EXPECT_EQ(call.make_tensor(call.impl, 0, dims, 1, &data), EDDY_OK);
    auto* y = static_cast<float*>(data);
    for (size_t i = 0; i < count; ++i) {
      if (x[i] > 0) *y++ = x[i] - 1;
    }
    return EDDY_OK;
  });
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input_of(g, "x", open);
  eddy_while loop = {};
  loop.struct_size = sizeof(loop);
  loop.initial = &x;
  loop.num_carried = 1;
  loop.types = &open;
  loop.num_rows = 1;
  eddy_value_id before[2] = {}, after[2] = {}, outputs[2] = {};
  ASSERT_EQ(api().graph_begin_while(g, &loop, before, nullptr), EDDY_OK);
  const eddy_value_id size = op(g, "Size", {before[1]});
  const eddy_value_id goes_on = op(g, "Greater", {size, int_constant(g, 0)});
  ASSERT_EQ(api().graph_begin_after(g, goes_on, &before[1], 1, after, nullptr), EDDY_OK);
  const eddy_value_id next[2] = {values_op(g, "Shrink", {after[1]})[0], op(g, "Size", {after[1]})};
  ASSERT_EQ(said([&](auto e) { return api().graph_end_while(g, next, 2, outputs, 2, e); }), "ok");
  output(g, "sizes", outputs[1]);
  output(g, "shrunk", values_op(g, "Shrink", {x})[0]);
  for (const char* threads : {"1", "2"}) {
    const Owned<eddy_session> session = session_of(g, {{"threads", threads}});
    const Owned<eddy_run> run = run_of(session.get());
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(execute(run.get(), {floats_value({3, -1, 1, 0}).get()}), "ok");
      EXPECT_THAT(ints(result(run.get(), 0).get()), ElementsAre(4, 2, 1, 1));
      EXPECT_THAT(floats(result(run.get(), 1).get()), ElementsAre(2, 0));
      ASSERT_EQ(execute(run.get(), {floats_value({}).get()}), "ok");
      EXPECT_THAT(ints(result(run.get(), 0).get()), ElementsAre());
      EXPECT_THAT(floats(result(run.get(), 1).get()), ElementsAre());
    }
  }
}

// A list that a loop carries: each iteration shares what is there and puts one more at its end.
TEST_F(COperatorValues, ASequenceGrowsInALoopAndIsReadThere) {
  const eddy_type list = sequence_of(type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM}));
  add_values("Start", 0, {list},
             [](const eddy_value_call& call) { return call.make_sequence(call.impl, 0); });
  // Its new element is the sum of the last two, and has one number more than the list elements.
  add_values("Grow", 1, {list}, [](const eddy_value_call& call) {
    const size_t length = call.length(call.impl, 0);
    float next = 1;
    if (length > 1) {
      size_t count = 0;
      next = *floats_in(call, 0, length - 1, count) + *floats_in(call, 0, length - 2, count);
    }
    EXPECT_EQ(call.share(call.impl, 0, 0), EDDY_OK);
    const int64_t dims[] = {static_cast<int64_t>(length) + 1};
    void* data = nullptr;
    EXPECT_EQ(call.make_tensor(call.impl, 0, dims, 1, &data), EDDY_OK);
    std::fill_n(static_cast<float*>(data), dims[0], next);
    return EDDY_OK;
  });
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id start = values_op(g, "Start", {})[0];
  eddy_while loop = {};
  loop.struct_size = sizeof(loop);
  loop.initial = &start;
  loop.num_carried = 1;
  loop.trip_limit = input_of(g, "trips", type(EDDY_INT64, {}));
  const bool yes = true;
  const eddy_tensor always = {const_cast<bool*>(&yes), nullptr, 0, EDDY_BOOL, {}};
  eddy_value_id before[2] = {}, after[2] = {}, goes_on = 0, grown = 0;
  ASSERT_EQ(api().graph_constant(g, &always, "", &goes_on, nullptr), EDDY_OK);
  ASSERT_EQ(api().graph_begin_while(g, &loop, before, nullptr), EDDY_OK);
  ASSERT_EQ(api().graph_begin_after(g, goes_on, &before[1], 1, after, nullptr), EDDY_OK);
  const eddy_value_id next = values_op(g, "Grow", {after[1]})[0];
  ASSERT_EQ(said([&](auto e) { return api().graph_end_while(g, &next, 1, &grown, 1, e); }), "ok");
  output(g, "list", grown);
  const Owned<eddy_session> session = session_of(g);
  const Owned<eddy_run> run = run_of(session.get());
  for (const int64_t trips : {0, 1, 20, 1000}) {
    const eddy_tensor of = {const_cast<int64_t*>(&trips), nullptr, 0, EDDY_INT64, {}};
    ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &of, nullptr), EDDY_OK);
    ASSERT_EQ(execute(run.get(), {}), "ok");
    const Owned<eddy_value> made = result(run.get());
    size_t length = 0;
    ASSERT_EQ(api().value_length(made.get(), &length, nullptr), EDDY_OK);
    EXPECT_EQ(length, static_cast<size_t>(trips));
    if (trips != 20) continue;
    Owned<eddy_value> last;
    ASSERT_EQ(api().value_at(made.get(), 19, last.out(), nullptr), EDDY_OK);
    EXPECT_EQ(floats(last.get()), std::vector<float>(20, 6765));  // Fibonacci's
  }
}

TEST_F(COperatorValues, AnOptionalIsNothingOrAValueAndElementsAreShared) {
  const eddy_type maybe = optional_of(type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM}));
  const eddy_type list = sequence_of(type(EDDY_FLOAT, {EDDY_UNKNOWN_DIM}));
  // Element 0 of a list, if there is one.
  add_values("First", 1, {maybe}, [](const eddy_value_call& call) {
    if (call.length(call.impl, 0) == 0) return call.make_none(call.impl, 0);
    return call.share_tensor(call.impl, 0, 0, 0);
  });
  // The list of what is there: of a value once, of a tensor twice.
  add_values("Both", 2, {list, type(EDDY_INT64, {2})}, [](const eddy_value_call& call) {
    void* data = nullptr;
    const int64_t two = 2;
    call.make_tensor(call.impl, 1, &two, 1, &data);
    call.make_sequence(call.impl, 0);
    for (uint32_t i = 0; i < 2; ++i) {
      static_cast<int64_t*>(data)[i] = call.kind(call.impl, i);
      if (call.length(call.impl, i) == 1) call.share_tensor(call.impl, 0, i, 0);
    }
    return EDDY_OK;
  });
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id all = input_of(g, "all", list);
  const eddy_value_id first = values_op(g, "First", {all})[0];
  const auto two = values_op(g, "Both", {first, 0}, 2);
  const auto more = values_op(g, "Both", {first, input_of(g, "x", type(EDDY_FLOAT, {1}))}, 2);
  output(g, "first", first);
  output(g, "list", more[0]);
  output(g, "kinds", two[1]);
  const Owned<eddy_session> session = session_of(g);
  const Owned<eddy_run> run = run_of(session.get());
  const Owned<eddy_value> x = floats_value({7});
  for (const size_t count : {size_t{0}, size_t{2}}) {
    const Owned<eddy_value> a = floats_value({1, 2, 3}), b = floats_value({4});
    const eddy_value elements[] = {a.get(), b.get()};
    Owned<eddy_value> given;
    ASSERT_EQ(api().value_sequence(EDDY_FLOAT, elements, count, given.out(), nullptr), EDDY_OK);
    ASSERT_EQ(execute(run.get(), {given.get(), x.get()}), "ok");
    int32_t kind = -1;
    const Owned<eddy_value> first_made = result(run.get(), 0);
    ASSERT_EQ(api().value_kind(first_made.get(), &kind, nullptr), EDDY_OK);
    EXPECT_EQ(kind, count > 0);
    if (count > 0) {
      EXPECT_THAT(floats(first_made.get()), ElementsAre(1, 2, 3));
    }
    size_t length = 0;
    ASSERT_EQ(api().value_length(result(run.get(), 1).get(), &length, nullptr), EDDY_OK);
    EXPECT_EQ(length, count > 0 ? 2U : 1U);
    eddy_tensor kinds = {};
    const Owned<eddy_value> kept = result(run.get(), 2);
    ASSERT_EQ(api().value_tensor(kept.get(), &kinds, nullptr), EDDY_OK);
    EXPECT_EQ(static_cast<const int64_t*>(kinds.data)[0], count > 0);
    EXPECT_EQ(static_cast<const int64_t*>(kinds.data)[1], -1) << "omitted";
  }
}

TEST_F(COperatorValues, StringsCountAsMemory) {
  add_values("Double", 1, {type(EDDY_STRING, {})}, [](const eddy_value_call& call) {
    size_t size = 0;
    const char* const text = call.string(call.impl, 0, 0, 0, &size);
    const std::string twice = std::string(text, size) + std::string(text, size);
    const int64_t offsets[] = {0, static_cast<int64_t>(twice.size())};
    return call.make_strings(call.impl, 0, nullptr, 0, offsets, twice.data());
  });
  add_values("List", 1, {sequence_of(type(EDDY_STRING, {}))}, [](const eddy_value_call& call) {
    size_t size = 0;
    const char* const text = call.string(call.impl, 0, 0, 0, &size);
    const int64_t offsets[] = {0, static_cast<int64_t>(size)};
    eddy_code code = call.make_sequence(call.impl, 0);
    for (int i = 0; i < 64 && code == EDDY_OK; ++i) {
      code = call.make_strings(call.impl, 0, nullptr, 0, offsets, text);
    }
    return code;
  });
  for (const char* const name : {"Double", "List"}) {
    Owned<eddy_graph> graph = new_graph();
    const eddy_value_id x = input_of(graph.get(), "x", type(EDDY_STRING, {}));
    output(graph.get(), "y", values_op(graph.get(), name, {x})[0]);
    const Owned<eddy_session> session = session_of(graph.get(), {{"memory_limit", "1mb"}});
    const Owned<eddy_run> run = run_of(session.get());
    ASSERT_EQ(execute(run.get(), {text_value(std::string(1000, 'x')).get()}), "ok");
    EXPECT_THAT(execute(run.get(), {text_value(std::string(600'000, 'x')).get()}),
                AllOf(HasSubstr("resource exhausted"), HasSubstr("within the limit")))
        << name;
    ASSERT_EQ(execute(run.get(), {text_value(std::string(1000, 'x')).get()}), "ok")
        << "what was charged is given back: " << name;
  }
}

TEST_F(COperatorValues, AStateOfARunIsThatOfTheRun) {
  eddy_operator op = operator_of("Count", nullptr);
  op.begin_run = [](void*, void*, void** run_state) -> eddy_code {
    *run_state = new float(0);
    return EDDY_OK;
  };
  op.end_run = [](void*, void*, void* run_state) { delete static_cast<float*>(run_state); };
  op.run_values = [](void*, const eddy_value_call* call) -> eddy_code {
    EXPECT_NE(call->reserve(call->impl, 1000), nullptr);
    void* data = nullptr;
    const eddy_code code = call->make_tensor(call->impl, 0, nullptr, 0, &data);
    if (code == EDDY_OK) *static_cast<float*>(data) = ++*static_cast<float*>(call->run_state);
    return code;
  };
  add(op);
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {});
  double_while(g, x, "five", [&](eddy_value_id) {
    return this->op(g, "Less", {own_op(g, "Count", x), scalar(g, 6)});
  });
  const Owned<eddy_session> session = session_of(g);
  const Owned<eddy_run> run = run_of(session.get());
  const float one = 1;
  bind(run.get(), 0, &one);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(execute(run.get(), {}), "ok");
    EXPECT_THAT(output_of(run.get(), 0), ElementsAre(32));
  }
}

}  // namespace
}  // namespace eddy::c
