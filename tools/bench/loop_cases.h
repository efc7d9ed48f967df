// The cases of `eddy bench loops`: models with their feeds, and what one run of them counts as.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/io/host_value.h"
#include "runtime/api/session.h"
#include "tools/command/measure_runs.h"

namespace eddy {

struct LoopCase {
  const char* name;
  const char* model;  // file name without ".onnx"
  int64_t trip;
  int64_t inner_trip;
  double units;  // iterations, nodes or runs in one run
  const char* unit;
  double target_ns;  // for one unit; 0: none
};

// Models that run on one thread beside ONNX Runtime.
const std::vector<LoopCase>& loop_cases();

// What the models take, by the names of their inputs: counts, limits, zeros, or random values from
// a fixed seed.
Result<std::vector<HostValue>> loop_feed(const std::vector<ValueDescription>& inputs,
                                         const LoopCase& loop_case);

// A session with one prepared run; keeps everything that the run needs.
class EddyRun {
 public:
  static Result<std::unique_ptr<EddyRun>> make(std::unique_ptr<Session> session,
                                               std::vector<HostValue> feed);

  Session& session() { return *session_; }
  const std::vector<HostValue>& feed() const { return feed_; }
  Contender contender(std::string name);
  // The outputs of the last run.
  std::vector<HostValue> outputs() const;

 private:
  EddyRun() = default;
  std::vector<HostValue> feed_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Call> call_;
};

// A library with an operator of its own: the least that a kernel can do.
std::unique_ptr<Library> library_with_step();
// A while loop whose body is that operator, alone; its input "n" is the trip limit.
Result<Graph> step_loop(const Library& library);

}  // namespace eddy
