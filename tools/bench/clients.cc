#include "tools/bench/clients.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "graph/base/check.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

struct Window {
  std::vector<double> ns;
  Status status;
};

int64_t to_ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// One client's part of a window. The last request may end after it.
void run_client(const Request& request, int64_t start_ns, const ClientsOptions& options,
                std::atomic<bool>& has_failed, Window& window) {
  const int64_t counted_ns = start_ns + to_ns(options.window_s / 10);
  const int64_t end_ns = start_ns + to_ns(options.window_s);
  for (int64_t sent_ns = now_ns(); sent_ns < end_ns && !has_failed; sent_ns = now_ns()) {
    window.status = request();
    if (!window.status.is_ok()) {
      has_failed = true;
      return;
    }
    if (sent_ns >= counted_ns) window.ns.push_back(static_cast<double>(now_ns() - sent_ns));
    if (options.pause_s > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(options.pause_s));
  }
}

Status run_window(const std::vector<Request>& clients, const ClientsOptions& options,
                  Latencies& latencies) {
  std::vector<Window> windows(clients.size());
  std::atomic<bool> has_failed{false};
  std::barrier ready(static_cast<std::ptrdiff_t>(clients.size()));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back([&, i] {
        ready.arrive_and_wait();
        run_client(clients[i], now_ns(), options, has_failed, windows[i]);
      });
    }
  }
  size_t count = 0;
  for (Window& window : windows) {
    EDDY_RETURN_IF_ERROR(window.status);
    count += window.ns.size();
    latencies.ns.insert(latencies.ns.end(), window.ns.begin(), window.ns.end());
  }
  latencies.per_second.push_back(static_cast<double>(count) / (options.window_s * 0.9));
  return Status::ok();
}

// Wakes its thread and waits, awake, until that has run.
class Sleeper {
 public:
  Sleeper()
      : thread_([this](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (changed_.wait(lock, stop, [this] { return is_asked_; })) {
            is_asked_ = false;
            has_woken_.store(true, std::memory_order_release);
          }
        }) {}

  void wake() {
    has_woken_.store(false, std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      is_asked_ = true;
    }
    changed_.notify_one();
    while (!has_woken_.load(std::memory_order_acquire)) {
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_asked_ = false;               // under the mutex
  std::atomic<bool> has_woken_{false};  // released by the thread, acquired by wake()
  std::jthread thread_;                 // last: it uses all of the above
};

}  // namespace

double Latencies::quantile(double q) const {
  EDDY_CHECK(!ns.empty() && q >= 0 && q < 1) << "quantile " << q << " of " << ns.size();
  return ns[static_cast<size_t>(q * static_cast<double>(ns.size()))];
}

Result<std::vector<Latencies>> measure_clients(const std::vector<ServeContender>& contenders,
                                               const ClientsOptions& options,
                                               const std::function<bool()>& should_stop) {
  EDDY_CHECK(options.num_clients > 0 && options.rounds > 0) << "nothing to measure";
  std::vector<Latencies> all;
  std::vector<std::vector<Request>> clients(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    all.push_back({contenders[i].name, {}, {}});
    for (int c = 0; c < options.num_clients; ++c) {
      EDDY_ASSIGN_OR_RETURN(clients[i].emplace_back(), contenders[i].make_client());
      EDDY_RETURN_IF_ERROR(clients[i].back()());
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (should_stop()) return cancelled("interrupted");
      EDDY_RETURN_IF_ERROR(run_window(clients[i], options, all[i]));
    }
  }
  for (Latencies& latencies : all) {
    if (latencies.ns.empty()) {
      return deadline_exceeded(latencies.name +
                               " answers no request within a window; raise --budget");
    }
    std::ranges::sort(latencies.ns);
    std::ranges::sort(latencies.per_second);
  }
  return all;
}

ServeContender wake_of_a_thread() {
  return {"a sleeping thread's wake", []() -> Result<Request> {
            return Request([sleeper = std::make_shared<Sleeper>()] {
              sleeper->wake();
              return Status::ok();
            });
          }};
}

Json latencies_json(const Latencies& latencies) {
  return {{"p50_ns", latencies.quantile(0.5)},
          {"p99_ns", latencies.quantile(0.99)},
          {"requests_per_s", latencies.median_per_second()},
          {"best_requests_per_s", latencies.best_per_second()},
          {"lowest_requests_per_s", latencies.per_second.front()},
          {"requests", latencies.ns.size()}};
}

}  // namespace eddy
