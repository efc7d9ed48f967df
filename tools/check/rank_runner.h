// RankRunner: sessions on all ranks of a virtual world, in one process, and runs of all of them.
//
//   RankRunner ranks({.num_ranks = 3, .seed = 7});
//   ASSERT_EQ(ranks.make(build), "");                     // build(library, rank) gives a graph
//   const auto results = ranks.run([](uint32_t rank) { return NamedTensors{…}; });
//
// A run has a time-out, so that what hangs is an error. Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "runtime/net/virtual_net.h"
#include "runtime/net/world.h"

namespace eddy::check {

class RankRunner {
 public:
  struct Options {
    uint32_t num_ranks = 2;
    uint64_t seed = 1;
    Loops loops = Loops::kAuto;
    int num_threads = 2;  // shared by all ranks
    WorldOptions world = {.spin = std::chrono::microseconds(5)};
    // What stands between a rank and the net; empty: nothing.
    std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>, uint32_t rank)> wrap = {};
  };
  using Build = std::function<Result<Graph>(const Library&, uint32_t rank)>;
  using Inputs = std::function<NamedTensors(uint32_t rank)>;
  using Change = std::function<void(SessionOptions&, uint32_t rank)>;

  explicit RankRunner(const Options& options);
  ~RankRunner();

  uint32_t num_ranks() const { return options_.num_ranks; }
  VirtualNet& net() { return *net_; }
  Library& library() { return library_; }
  World& world(uint32_t rank) { return *worlds_[rank]; }
  Session& session(uint32_t rank) { return *sessions_[rank]; }

  // All at once, a thread each; in place of those before. By rank.
  std::vector<Status> try_make(const Build& build, const Change& change = {});
  // The first error as text; else empty.
  std::string make(const Build& build, const Change& change = {});
  void drop() { sessions_.clear(); }

  std::vector<RunHandle> submit(const Inputs& inputs, std::vector<Result<NamedTensors>>& results,
                                const std::function<RunOptions(uint32_t)>& run_options = {});
  std::vector<Result<NamedTensors>> run(const Inputs& inputs);

 private:
  const Options options_;
  Library library_;
  const std::shared_ptr<VirtualNet> net_;
  std::shared_ptr<SharedThreads> threads_;
  std::vector<std::shared_ptr<World>> worlds_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

// Equal type, shape and bytes.
bool is_same(const Tensor& a, const Tensor& b);

}  // namespace eddy::check
