#include "tools/check/rank_runner.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "runtime/net/rank_session.h"

namespace eddy::check {

RankRunner::RankRunner(const Options& options)
    : options_(options),
      net_(VirtualNet::create({.num_ranks = options.num_ranks, .seed = options.seed})),
      threads_(std::make_shared<SharedThreads>(options.num_threads)) {
  for (uint32_t r = 0; r < options.num_ranks; ++r) {
    std::unique_ptr<Transport> transport = net_->transport(r);
    if (options.wrap) transport = options.wrap(std::move(transport), r);
    worlds_.push_back(World::open(std::move(transport), options.world));
  }
}

RankRunner::~RankRunner() { drop(); }

std::vector<Status> RankRunner::try_make(const Build& build, const Change& change) {
  drop();
  std::vector<Status> statuses(num_ranks());
  sessions_.resize(num_ranks());
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < num_ranks(); ++r) {
    threads.emplace_back([&, r] {
      Result<Graph> graph = build(library_, r);
      if (!graph.is_ok()) {
        statuses[r] = graph.take_status();
        RankSession::create({.world = worlds_[r]})->refuse(statuses[r]);
        return;
      }
      SessionOptions options;
      options.threads = threads_;
      options.loops = options_.loops;
      options.ranks.world = worlds_[r];
      if (change) change(options, r);
      auto session = Session::create(library_, std::move(*graph), options);
      statuses[r] = session.is_ok() ? Status::ok() : session.status();
      if (session.is_ok()) sessions_[r] = std::move(*session);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

std::string RankRunner::make(const Build& build, const Change& change) {
  for (const Status& status : try_make(build, change)) {
    if (!status.is_ok()) return status.to_string();
  }
  return {};
}

std::vector<RunHandle> RankRunner::submit(const Inputs& inputs,
                                          std::vector<Result<NamedTensors>>& results,
                                          const std::function<RunOptions(uint32_t)>& run_options) {
  results.clear();
  for (uint32_t r = 0; r < num_ranks(); ++r) results.push_back(internal_error("no callback"));
  std::vector<RunHandle> handles;
  for (uint32_t r = 0; r < num_ranks(); ++r) {
    RunOptions options;
    options.timeout = std::chrono::seconds(20);
    if (run_options) options = run_options(r);
    handles.push_back(sessions_[r]->run_async(
        inputs(r), [&results, r](Result<NamedTensors> result) { results[r] = std::move(result); },
        options));
  }
  return handles;
}

std::vector<Result<NamedTensors>> RankRunner::run(const Inputs& inputs) {
  std::vector<Result<NamedTensors>> results;
  for (RunHandle& handle : submit(inputs, results)) (void)handle.wait();
  return results;
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.is_tensor() && b.is_tensor() && a.element_type() == b.element_type() &&
         std::ranges::equal(a.dims(), b.dims()) &&
         (a.view().size_bytes() == 0 ||
          std::memcmp(a.view().data, b.view().data, a.view().size_bytes()) == 0);
}

}  // namespace eddy::check
