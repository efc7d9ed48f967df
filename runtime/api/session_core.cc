#include "runtime/api/session_core.h"

#include <deque>
#include <exception>
#include <system_error>

#include "runtime/cpu/worker_pool.h"
#include "runtime/device/no_thread.h"
#include "runtime/execute/host/device_pollers.h"

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

SessionCore::~SessionCore() {
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

void SessionCore::cancel_all(bool is_closing) {
  RunList ended = runs->stop_all(is_closing);
  while (RunEntry* const run = ended.pop_front()) static_cast<Run*>(run)->end(stop_status(*run));
  runs->let_go();
}

void SessionCore::call_user(const std::function<void()>& function) const try {
  function();
} catch (const std::exception& error) {
  if (options.log) options.log(std::string("a run's callback threw: ") + error.what());
} catch (...) {
  if (options.log) options.log("a run's callback threw something");
}

void SessionCore::note_refusal(const Status& why) {
  if (!loop_reports.note_refusal(why.message()) || !options.log) return;
  options.log("issued node by node, not recorded: " + why.message());
}

namespace {

// Runs that end as they start start the next: behind each other, not inside each other.
template <typename Launch>
void launch_in_a_row(Run& run, const Launch& launch) {
  thread_local std::deque<Run*>* row_or_null = nullptr;
  if (row_or_null != nullptr) return row_or_null->push_back(&run);
  std::deque<Run*> row = {&run};
  row_or_null = &row;
  for (; !row.empty(); row.pop_front()) launch(*row.front());
  row_or_null = nullptr;
}

}  // namespace

void SessionCore::start(Run& run) {
  if (run.is_waited_for) return run.signal_.set();
  const auto launch = [](Run& next) { next.launch(); };
  if (run.values_.has_state() || run_pool->has_free_state()) return launch_in_a_row(run, launch);
  call_on_worker([&run, launch] { launch_in_a_row(run, launch); });
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
