// Claim: through the C interface and eddy.hpp a plan is saved, told from a model, and loaded from
// its path and its bytes, with the results and the caller's places of the graph that it was saved
// of; what is refused is refused with a code and the reason, and no handle comes of it.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/api/c/eddy.hpp"
#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using ::testing::HasSubstr;

class PlansTest : public CApi {
 protected:
  void TearDown() override {
    for (const std::string& each : {path_, path_ + ".onnx"}) std::remove(each.c_str());
  }

  std::string save(eddy_graph graph, const std::vector<eddy_option>& options = {}) {
    return said([&](auto e) {
      return api().graph_save_plan(graph, options.data(), options.size(), path_.c_str(), e);
    });
  }
  std::string load(Owned<eddy_session>& session, const std::vector<eddy_option>& options = {}) {
    return said([&](auto e) {
      return api().session_load(library.get(), path_.c_str(), options.data(), options.size(),
                                session.out(), e);
    });
  }
  std::string load_bytes(Owned<eddy_session>& session, const std::string& bytes) {
    return said([&](auto e) {
      return api().session_load_bytes(library.get(), bytes.data(), bytes.size(), nullptr, 0,
                                      session.out(), e);
    });
  }
  static std::vector<float> rows_of(eddy_session session) {
    const float x = 1, limit = 9;
    Owned<eddy_run> run = run_of(session);
    bind(run.get(), 0, &x);
    bind(run.get(), 1, &limit);
    EXPECT_EQ(said([&](auto e) { return api().run_execute(run.get(), nullptr, e); }), "ok");
    return output_of(run.get(), 1);
  }
  static int32_t is_plan(const std::string& path) {
    int32_t is = -1;
    EXPECT_EQ(said([&](auto e) { return api().is_plan(path.c_str(), &is, e); }), "ok");
    return is;
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string path_ = ::testing::TempDir() + "c_" + std::to_string(getpid()) + ".plan";
};

TEST_F(PlansTest, APlanIsLoadedFromItsPathAndItsBytes) {
  Owned<eddy_graph> graph = doubling();
  EXPECT_EQ(is_plan(path_), 0) << "there is no file yet";
  ASSERT_EQ(save(graph.get()), "ok");
  EXPECT_EQ(is_plan(path_), 1);
  const std::vector<float> expected = rows_of(session_of(graph.get()).get());
  ASSERT_EQ(expected, (std::vector<float>{1, 2, 4, 8}));
  Owned<eddy_session> of_path, of_bytes;
  ASSERT_EQ(load(of_path, {{"threads", "2"}}), "ok");
  EXPECT_EQ(rows_of(of_path.get()), expected);
  {
    const std::string bytes = read(path_);
    ASSERT_EQ(load_bytes(of_bytes, bytes), "ok");
  }
  std::remove(path_.c_str());
  EXPECT_EQ(rows_of(of_bytes.get()), expected) << "the bytes were copied";
}

TEST_F(PlansTest, AModelIsLoadedFromItsBytesAndIsNoPlan) {
  Owned<eddy_graph> graph = doubling();
  const std::string path = path_ + ".onnx";
  ASSERT_EQ(said([&](auto e) { return api().graph_export_file(graph.get(), path.c_str(), e); }),
            "ok");
  EXPECT_EQ(is_plan(path), 0);
  Owned<eddy_session> session;
  ASSERT_EQ(load_bytes(session, read(path)), "ok");
  EXPECT_EQ(rows_of(session.get()), (std::vector<float>{1, 2, 4, 8}));
}

TEST_F(PlansTest, ErrorsOfRunsNameThePlacesOfTheProgramThatSavedIt) {
  Owned<eddy_graph> graph = new_graph();
  eddy_graph g = graph.get();
  const eddy_value_id x = input(g, "x", {-1});
  const eddy_value_id y = input(g, "y", {-1});
  const eddy_location at = {sizeof(at), "prog.edy", 12, 5, "x + y"};
  output(g, "z", op(g, "Add", {x, y}, &at));
  ASSERT_EQ(save(g), "ok");
  Owned<eddy_session> session;
  ASSERT_EQ(load(session), "ok");
  const float two[2] = {1, 2}, three[3] = {1, 2, 3};
  const std::vector<int64_t> dims_a = {2}, dims_b = {3};
  Owned<eddy_run> run = run_of(session.get());
  const eddy_tensor first = tensor(two, dims_a), second = tensor(three, dims_b);
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 0, &first, nullptr), EDDY_OK);
  ASSERT_EQ(api().run_bind_input_memory(run.get(), 1, &second, nullptr), EDDY_OK);
  const std::string why = said([&](auto e) { return api().run_execute(run.get(), nullptr, e); });
  EXPECT_THAT(why, HasSubstr("prog.edy:12:5: "));
}

TEST_F(PlansTest, RefusalsComeThroughWithTheirReasons) {
  Owned<eddy_graph> graph = doubling();
  ASSERT_EQ(save(graph.get()), "ok");
  Owned<eddy_session> session;
  EXPECT_THAT(load(session, {{"simplify", "false"}}), HasSubstr("another simplify"));
  EXPECT_THAT(load(session, {{"exakt", "true"}}), HasSubstr("the nearest is 'exact'"));
  EXPECT_THAT(load(session, {{"dim.n", "4"}}), HasSubstr("size of dimension 'n'"));
  const std::string bytes = read(path_);
  std::string spoilt = bytes;
  spoilt[60] = static_cast<char>(spoilt[60] ^ 1);
  EXPECT_THAT(load_bytes(session, spoilt), HasSubstr("spoilt"));
  EXPECT_THAT(load_bytes(session, bytes.substr(0, bytes.size() / 2)), HasSubstr("spoilt"));
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << spoilt;
  EXPECT_THAT(load(session), HasSubstr(path_));
  EXPECT_EQ(session.get(), nullptr);
}

TEST_F(PlansTest, MisuseIsAStatus) {
  Owned<eddy_graph> graph = doubling();
  eddy_session session = nullptr;
  int32_t is = 0;
  EXPECT_EQ(api().graph_save_plan(graph.get(), nullptr, 0, nullptr, nullptr),
            EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(api().graph_save_plan(graph.get(), nullptr, 1, path_.c_str(), nullptr),
            EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(api().graph_save_plan(nullptr, nullptr, 0, path_.c_str(), nullptr),
            EDDY_INVALID_HANDLE);
  EXPECT_EQ(api().graph_save_plan(graph.get(), nullptr, 0, "/no/such/folder/plan", nullptr),
            EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(api().is_plan(nullptr, &is, nullptr), EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(api().is_plan("x", nullptr, nullptr), EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(api().session_load_bytes(library.get(), nullptr, 7, nullptr, 0, &session, nullptr),
            EDDY_INVALID_ARGUMENT);
  ASSERT_EQ(save(graph.get()), "ok");
  const std::string bytes = read(path_);
  EXPECT_EQ(api().session_load_bytes(library.get(), bytes.data(), bytes.size(), nullptr, 0, nullptr,
                                     nullptr),
            EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(api().session_load_bytes(reinterpret_cast<eddy_library>(graph.get()), bytes.data(),
                                     bytes.size(), nullptr, 0, &session, nullptr),
            EDDY_INVALID_HANDLE);
  EXPECT_EQ(session, nullptr);
}

TEST_F(PlansTest, TheHeaderForCppSaysTheSame) {
  const eddy::Context context;
  const eddy::Library of(context);
  eddy::Graph graph(of);
  const eddy::ValueId x = graph.input("x", eddy::type(EDDY_FLOAT, {graph.symbol("n")}));
  graph.output("y", graph.op("Add", {x, x}));
  graph.save_plan(path_, {{"dim.n", "2"}});
  EXPECT_TRUE(eddy::is_plan(path_));
  EXPECT_FALSE(eddy::is_plan(path_ + ".onnx"));
  const std::string bytes = read(path_);
  const float xs[2] = {1, 2};
  const std::vector<int64_t> two = {2};
  for (const eddy::Session& session : {eddy::Session::load(of, path_),
                                       eddy::Session::load_bytes(of, bytes.data(), bytes.size())}) {
    eddy::Run run(session);
    run.bind_input(0, eddy::tensor(xs, two));
    run.execute();
    EXPECT_EQ(run.output(0).values<float>(), (std::vector<float>{2, 4}));
  }
  try {
    eddy::Session::load(of, path_, {{"dim.n", "3"}});
    FAIL() << "the plan is of two elements";
  } catch (const eddy::Error& error) {
    EXPECT_EQ(error.code(), EDDY_UNSUPPORTED);
    EXPECT_THAT(error.what(), HasSubstr("save a plan with it"));
  }
  EXPECT_THROW(graph.save_plan(path_, {{"dim.m", "3"}}), eddy::Error);
}

TEST_F(PlansTest, SeveralMaySaveOnePlanWhileOthersLoadIt) {
  const Owned<eddy_graph> graph = doubling();
  ASSERT_EQ(api().graph_finish(graph.get(), nullptr), EDDY_OK);
  ASSERT_EQ(save(graph.get()), "ok");
  std::atomic<bool> is_over{false};
  std::atomic<int> num_failed{0};
  std::vector<std::thread> saving;
  for (int t = 0; t < 2; ++t) {
    saving.emplace_back([&] {
      while (!is_over) num_failed += save(graph.get()) != "ok";
    });
  }
  for (int i = 0; i < 50; ++i) {
    Owned<eddy_session> session;
    EXPECT_EQ(load(session), "ok");
  }
  is_over = true;
  for (std::thread& each : saving) each.join();
  EXPECT_EQ(num_failed, 0);
}

}  // namespace
}  // namespace eddy::c
