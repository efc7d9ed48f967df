// SessionWay: one way of making a session on the CPU and of using it, drawn from a seed.
//
//   const SessionWay way = SessionWay::draw(seed, use);
//   std::string what = difference(subject, way, threads);  // empty: equal to the oracle's result
//
// How the session is used (session_uses.h) is the caller's choice, so that each use occurs equally
// often; everything else (streams and their cap, the driver of loops, memory, threads,
// simplification) is drawn at random, so that all combinations occur. The same seed and use give
// the same way.
//
// Errors: what a session reports is a difference. Threads: the session's, of `threads`.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>

#include "runtime/api/session.h"
#include "tools/check/session_uses.h"
#include "tools/check/subject.h"

namespace eddy::check {

// Pools of 1, 2, 3, 8 and 64 workers with a device each, which all sessions share.
class CheckThreads {
 public:
  CheckThreads();
  struct Pool {
    std::shared_ptr<SharedThreads> threads;
    std::shared_ptr<Device> device;
  };
  const Pool& with(int num_workers) const;

 private:
  static constexpr int kNumWorkers[] = {1, 2, 3, 8, 64};
  Pool pools_[std::size(kNumWorkers)];
};

struct SessionWay {
  SessionUse use = SessionUse::kInTurn;
  SessionOptions options;  // without threads and device
  int num_workers = 1;
  uint64_t seed = 0;  // for what the use draws

  static SessionWay draw(uint64_t seed, SessionUse use);
  // "bound, rank, at most 2 streams, loops on the host, no arenas, 4 workers"
  std::string text() const;
};

std::string difference(Subject& subject, const SessionWay& way, const CheckThreads& threads);

// Runs the session with inputs 0, 1 and 0; as `in turn`, and bound.
std::string run_in_turn(Subject& subject, SessionOptions options);

}  // namespace eddy::check
