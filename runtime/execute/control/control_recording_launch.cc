// ControlRecording, once it is made: launched, left, asked.
#include <algorithm>
#include <atomic>

#include "graph/base/check.h"
#include "runtime/execute/control/control_recording.h"

namespace eddy {

bool ControlRecording::has_room(int64_t num_iterations) const {
  return rows_.empty() || num_iterations <= most_rows_;
}

Status ControlRecording::write_words() {
  EDDY_DCHECK(rows_.empty() || state_.loop(top_).has_rows()) << "rows of a loop without any";
  for (const Rows& rows : rows_) *rows.to = state_.loop(top_).room(rows.stack);
  for (const Loop& loop : loops_) {
    EDDY_ASSIGN_OR_RETURN(*loop.limit_word, state_.trip_limit(loop.id));
    // Inner ones may not be entered this time.
    loop.words.progress[0] = loop.id == top_ ? 0 : state_.loop(loop.id).iteration();
    loop.words.progress[1] = loop.id == top_ ? 0 : 1;
  }
  for (const CarriedIn& decision : carried_in_) {
    *decision.word = *decision.from->view.as<uint8_t>() != 0 ? 1 : 0;
  }
  return Status::ok();
}

Status ControlRecording::launch(void* native_stream) {
  for (const Entry& entry : entries_) {
    const size_t size_bytes = entry.from->view.size_bytes();
    if (size_bytes == 0) continue;
    EDDY_RETURN_IF_ERROR(
        capture_.copy_now(native_stream, entry.home, entry.from->view.data, size_bytes));
  }
  EDDY_DCHECK(graph_ != nullptr) << "a recording that was not finished is launched";
  return graph_->launch(native_stream);
}

Status ControlRecording::leave() {
  for (const Loop& loop : loops_) state_.loop(loop.id).drive_from(loop.words.progress);
  for (const Output& output : outputs_) {
    if (output.from != nullptr) {
      EDDY_RETURN_IF_ERROR(output.slot->share(*output.from, state_.allocator()));
      continue;
    }
    output.slot->buffer = output.buffer;
    output.slot->view.data = output.data;
  }
  return Status::ok();
}

NodeId ControlRecording::innermost_running() const {
  NodeId innermost;
  for (const Loop& loop : loops_) {  // outer ones come first
    const auto is_over = std::atomic_ref<int64_t>(loop.words.progress[1]);
    if (is_over.load(std::memory_order_acquire) == 0) innermost = loop.id;
  }
  return innermost;
}

void ControlRecording::forget() {
  // A device that is lost may still write there.
  for (const Loop& loop : loops_) std::atomic_ref<int64_t>(loop.words.progress[1]).store(1);
}

int32_t ControlRecording::check() {
  for (const Case& each : cases_) {
    if (std::atomic_ref<int64_t>(each.failure[0]).load(std::memory_order_acquire) == 0) continue;
    const Node& node = graph().node(each.id);
    state_.fail(each.id, run_failed("the selector is " + std::to_string(each.failure[1]) +
                                    ", but there are branches 0 to " +
                                    std::to_string(node.regions.size() - 1) +
                                    ", no default and nothing to pass through"));
    each.failure[0] = 0;
    return -1;
  }
  return 0;
}

std::string ControlRecording::text() const {
  if (!unrolls_) return notice_;
  return "unrolled: up to " + std::to_string(most_iterations_) + " iterations a round" +
         (notice_.empty() ? "" : "; " + notice_);
}

bool ControlRecording::is_free() const {
  const auto is_ours = [](const BufferRef& buffer, uint32_t ours) {
    return buffer.get()->references.load(std::memory_order_acquire) == ours;
  };
  return std::ranges::all_of(outputs_, [&](const Output& output) {
    if (!output.buffer) return true;
    const auto is_same = [&](const Output& other) {
      return other.buffer.get() == output.buffer.get();
    };
    // Ours: in homes_ or made_, and as outputs.
    return is_ours(output.buffer,
                   1 + static_cast<uint32_t>(std::ranges::count_if(outputs_, is_same)));
  });
}

}  // namespace eddy
