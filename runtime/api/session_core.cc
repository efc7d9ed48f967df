#include "runtime/api/session_core.h"

#include <exception>
#include <system_error>

#include "runtime/cpu/worker_pool.h"
#include "runtime/device/no_thread.h"
#include "runtime/execute/host/device_pollers.h"
#include "runtime/net/rank_session.h"

namespace eddy {

// Some 20 µs of spinning, which helps only where the thread that is waited for can run meanwhile.
std::shared_ptr<SessionRuns> SessionCore::make_runs() const {
  return std::make_shared<SessionRuns>(
      options.max_runs_in_flight, options.max_runs_waiting,
      SessionRuns::Waits{.session = this,
                         .threads = threads.get(),
                         .fork_guard = fork_guard,
                         .num_spins = threads->num_processors() > 1 ? 2000 : 0});
}

Result<size_t> SessionCore::find_input(std::string_view name) const {
  if (const auto it = input_places.find(name); it != input_places.end()) return it->second;
  std::string known;
  for (const ValueDescription& input : inputs) known += (known.empty() ? "" : ", ") + input.name;
  return not_found("there is no input '" + std::string(name) +
                   "'; the graph's inputs are: " + (known.empty() ? "none" : known));
}

void SessionCore::poll_ranks() {
  World& world = ranks->world();
  Scheduler& scheduler = this->scheduler();
  const std::shared_ptr<const WorkerPool> workers =
      host().needs_polling() ? nullptr : threads->workers();
  ranks_poller = scheduler.add_poller(
      [&world] { return world.poll(); },
      [&world, workers] { return world.slack(workers != nullptr && workers->num_idle() <= 0); });
  world.add_waker(this, [&scheduler] { scheduler.poke(); });
  scheduler.poke();
}

SessionCore::~SessionCore() {
  if (ranks_poller) {
    scheduler().remove_poller(*ranks_poller);
    ranks->world().remove_waker(this);
  }
  for (Device* const polled : polled_devices) threads->device_pollers().remove(*polled);
}

Status SessionCore::prepare_threads(const Needs& needs) {
  try {
    if (needs.callback) callbacks.prepare();
    if (needs.timer) (void)scheduler();
    if (needs.workers && !host().needs_polling()) threads->workers()->prepare();
  } catch (const std::system_error& error) {
    return no_thread(error);
  }
  return Status::ok();
}

void SessionCore::log_thrown(const char* what_or_null) const {
  if (!options.log) return;
  options.log(what_or_null == nullptr ? std::string("a run's callback threw something")
                                      : std::string("a run's callback threw: ") + what_or_null);
}

void SessionCore::note_refusal(const Status& why) {
  if (!loop_reports.note_refusal(why.message()) || !options.log) return;
  options.log("issued node by node, not recorded: " + why.message());
}

void SessionCore::tell_notices() {
  if (!options.log || has_one_device()) return;
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(notices_mutex);
    num_notices_told.resize(devices.size(), 0);
    for (size_t d = 1; d < devices.size(); ++d) {
      const std::vector<std::string> notices = devices[d].device->notices();
      size_t& num_told = num_notices_told[d];
      for (; num_told < notices.size(); ++num_told) lines.push_back(notices[num_told]);
    }
  }
  for (const std::string& line : lines) options.log(line);
}

void SessionCore::call_on_worker(std::function<void()> function) {
  if (host().needs_polling()) return function();
  auto call = std::make_unique<std::function<void()>>(std::move(function));
  threads->workers()->enqueue(
      [](void* context) {
        const std::unique_ptr<std::function<void()>> own(
            static_cast<std::function<void()>*>(context));
        (*own)();
      },
      call.get());
  [[maybe_unused]] const auto* of_the_worker = call.release();
}

}  // namespace eddy
