// SessionUse: what is done with one session to see that it gives what the oracle gives.
//
//   in turn       inputs 0, 1, 0 on one session, with digests of every step where nodes keep their
//                 ids, and trip counts
//   at once       up to four runs in flight on one session
//   bound         one call; outputs bound or not, each in one place or in either of two, side by
//                 side in a block of their own, aligned to their elements only; inputs must stay as
//                 they are
//   fed back      one call; outputs of a run are bound as the next run's inputs
//   ended early   runs cancelled or past their deadline at any moment; each is right or says that
//                 it was ended, its neighbour and its successor are right
//   round trip    written as ONNX, read back, and run
//   fixed shapes  of inputs 0, known when the session is made; runs with others are refused
//   on a stream   runs in the order of a stream, and one beside it
//
// Errors: what a session reports is a difference, in one line. Threads: one; the session's work
// beside it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/session.h"
#include "tools/check/step_digests.h"
#include "tools/check/subject.h"

namespace eddy::check {

enum class SessionUse : uint8_t {
  kInTurn,
  kAtOnce,
  kBound,
  kFedBack,
  kEndedEarly,
  kRoundTrip,
  kFixedShapes,
  kOnStream,
};
inline constexpr size_t kNumSessionUses = 8;
const char* session_use_name(SessionUse use);

struct SessionUsage {
  SessionUse use = SessionUse::kInTurn;
  uint64_t seed = 0;                       // for what is drawn: moments, numbers of runs, bindings
  StepDigests* digests_or_null = nullptr;  // the session's observer; of runs in turn
  const OracleResult& second;              // of the run with fed_back() inputs; where they are
};

// The subject's graph is the session's by now; what to expect has been asked for before. Empty, or
// what differs.
std::string use_session(Session& session, Subject& subject, const SessionUsage& usage);

bool are_all_tensors(const NamedTensors& values);
// The inputs, some of them taken from outputs of the same type.
NamedTensors fed_back(NamedTensors inputs, const NamedTensors& outputs);
// The shapes of the inputs that are declared as tensors.
std::vector<std::pair<std::string, Dims>> shapes_of(const Recipe& recipe,
                                                    const NamedTensors& inputs);

}  // namespace eddy::check
