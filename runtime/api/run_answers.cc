// Of a Run: what it says where it was stopped and waits for an answer that is owed.
#include <new>
#include <string>
#include <utility>

#include "graph/ir/node_facts.h"
#include "runtime/api/run.h"
#include "runtime/api/session_core.h"
#include "runtime/api/session_scope.h"

namespace eddy {
namespace {

// Of a run that was stopped and waits for an answer of the node: how a node has failed or, where
// none has, why it was stopped.
Status overdue_status(const BoundRun& state, NodeId id) {
  const Node& node = state.graph().node(id);
  std::string who = node.op->name;
  if (calls_host_function(node)) {
    who = "host function '" + std::string(node.attributes.get_string("name", "")) + "'";
  }
  const std::string path = state.iteration_path(id);
  const std::string rest =
      " owes: complete it, or let go of it; until then the run keeps what it uses";
  if (Status failed = state.first_error(); !failed.is_ok()) {
    return failed.append_message("the run waits for the answer that " + who + " at " + path + rest);
  }
  const std::string waits = " and waits for the answer that " + who + rest;
  const StopReason reason = state.control.stop.load();
  Status status =
      reason == StopReason::kDeadline    ? deadline_exceeded("the run passed its deadline" + waits)
      : reason == StopReason::kCancelled ? cancelled("the run was cancelled" + waits)
                                         : run_failed("the run has failed elsewhere" + waits);
  return status.prepend_path(path);
}

}  // namespace

Status Run::watch_answers() try {
  state_or_null->control.add_listener(answer_watch_);
  return Status::ok();
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for what a run needs");
}

// Before anything of the run is set back.
void Run::end_answer_watch() {
  if (answer_watch_ == nullptr) return;
  answer_watch_->end();
  values_.state().control.remove_listener(*answer_watch_);
  answer_watch_ = nullptr;
}

bool Run::tell_overdue(const std::function<void(const Status&)>& on_overdue) try {
  BoundRun& state = values_.state();
  const std::vector<NodeId> nodes = state.owing_nodes();
  if (nodes.empty()) return false;
  Status status = overdue_status(state, nodes.front());
  values_.leave_streams(status);
  std::function<void()> call = [&core = core_, on_overdue, status = std::move(status)] {
    {
      const SessionScope scope(&core, nullptr);
      core.call_user([&] { on_overdue(status); });
    }
    core.runs->let_go();
  };
  runs_->note_overdue(*this);
  core_.callbacks.post(std::move(call));
  return true;
} catch (const std::bad_alloc&) {
  return false;  // it looks again
}

}  // namespace eddy
