// Clients of a server in the same process: so many threads, each of which sends a request, waits
// for its answer, and sends the next (a closed loop).
//
// measure_clients() gives each contender a window of time in turn, A B A B, so that whatever
// disturbs the machine disturbs all of them. Requests of the first tenth of a window are not
// counted.
//
// Errors: the first failed request ends the measurement; kCancelled once `should_stop` says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "tools/command/console.h"

namespace eddy {

// Sends one request and waits for its answer. One thread's.
using Request = std::function<Status()>;

struct ServeContender {
  std::string name;
  // What one client does; called once for each client before the first window.
  std::function<Result<Request>()> make_client;
};

struct Latencies {
  std::string name;
  std::vector<double> ns;          // of each request, of all windows, sorted
  std::vector<double> per_second;  // requests, by window, sorted

  double quantile(double q) const;
  double median_per_second() const { return per_second[per_second.size() / 2]; }
  double best_per_second() const { return per_second.back(); }
};

struct ClientsOptions {
  int num_clients = 1;
  int rounds = 9;
  double window_s = 0.2;
  double pause_s = 0;  // of a client between an answer and its next request: everything sleeps
};

Result<std::vector<Latencies>> measure_clients(const std::vector<ServeContender>& contenders,
                                               const ClientsOptions& options,
                                               const std::function<bool()>& should_stop);

// A thread that sleeps on a condition variable: the time from the call that wakes it to its first
// instruction, once for each request.
ServeContender wake_of_a_thread();

Json latencies_json(const Latencies& latencies);

}  // namespace eddy
