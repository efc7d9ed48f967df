// What a recording moves: rows to their stacks and these to the host, values of one iteration to
// where the next one reads them.
#include <algorithm>
#include <utility>

#include "graph/ir/aliases.h"
#include "graph/loops/device_loops.h"
#include "runtime/execute/control/control_recording.h"

namespace eddy {

// Room for as many rows as the loop may make this time.
Status ControlRecording::make_rows() {
  const LoopView loop(graph(), top_);
  if (loop.rows().empty()) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int64_t limit, state_.trip_limit(top_));
  most_rows_ = std::max<int64_t>(limit, 1);
  for (size_t s = 0; s < loop.rows().size(); ++s) {
    if (uses_[loop.stacked()[s].index()] == 0) continue;
    const Node* const copy = row_copy_or_null(graph(), loop.rows()[s]);
    if (copy == nullptr) return internal_error("a row is not the device's");
    Rows rows{s, copy->inputs[0], nullptr, bytes_of(copy->inputs[0]), nullptr};
    if (rows.row_bytes == 0) continue;
    EDDY_ASSIGN_OR_RETURN(rows.home,
                          device_memory(static_cast<size_t>(most_rows_) * rows.row_bytes));
    EDDY_ASSIGN_OR_RETURN(int64_t* const word, host_words(1));
    rows.to = reinterpret_cast<void**>(word);
    rows_.push_back(rows);
  }
  return Status::ok();
}

Status ControlRecording::copy_rows_out(const LoopWords& words) {
  std::vector<MemoryCopy> copies;
  for (const Rows& rows : rows_) {
    copies.push_back({rows.to, rows.home, static_cast<size_t>(most_rows_) * rows.row_bytes,
                      MemoryCopy::Kind::kRows, words.counter, rows.row_bytes});
  }
  return copies.empty() ? Status::ok() : capture_.copy_all(copies);
}

Status ControlRecording::copy_next(const LoopView& loop, const LoopWords& words) {
  std::vector<MemoryCopy> copies;
  for (const Rows& rows : rows_) {
    if (&loop.node() != &graph().node(top_)) break;
    copies.push_back({rows.home, state_.slot(resolve_forwarded(graph(), rows.made)).view.data,
                      rows.row_bytes, MemoryCopy::Kind::kToRow, words.counter, rows.row_bytes});
  }
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueId parameter = loop.carried()[k];
    const ValueId next = loop.next()[k];
    if (is_carried_idly(loop, k, uses_)) continue;
    if (const auto kept = kept_decisions_.find(parameter.index()); kept != kept_decisions_.end()) {
      EDDY_ASSIGN_OR_RETURN(const void* const address, decision_address(next));
      copies.push_back({kept->second, address, sizeof(uint8_t)});
      continue;
    }
    copies.push_back({homes_.at(parameter.index()).data(),
                      state_.slot_for(next, parameter).view.data, bytes_of(parameter)});
  }
  return copy_all(std::move(copies));
}

// All at once: what one copy writes and another one reads is read first.
Status ControlRecording::copy_all(std::vector<MemoryCopy> copies) {
  std::erase_if(
      copies, [](const MemoryCopy& copy) { return copy.to == copy.from || copy.size_bytes == 0; });
  const auto is_written = [&](const MemoryCopy& read) {
    const auto begin = reinterpret_cast<uintptr_t>(read.from);
    return std::ranges::any_of(copies, [&](const MemoryCopy& write) {
      if (write.kind == MemoryCopy::Kind::kToRow) return false;
      const auto at = reinterpret_cast<uintptr_t>(write.to);
      return begin < at + write.size_bytes && at < begin + read.size_bytes;
    });
  };
  std::vector<bool> goes_round;
  for (const MemoryCopy& copy : copies) goes_round.push_back(is_written(copy));
  std::vector<MemoryCopy> aside;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!goes_round[i]) continue;
    if (copies[i].kind == MemoryCopy::Kind::kToRow) {  // no other copy reads it there
      aside.push_back(copies[i]);
      copies[i].size_bytes = 0;
      continue;
    }
    void*& between = between_[copies[i].to];
    if (between == nullptr) {
      EDDY_ASSIGN_OR_RETURN(between, device_memory(copies[i].size_bytes));
    }
    aside.push_back({between, copies[i].from, copies[i].size_bytes});
    copies[i].from = between;
  }
  std::erase_if(copies, [](const MemoryCopy& copy) { return copy.size_bytes == 0; });
  EDDY_RETURN_IF_ERROR(capture_.copy_all(aside));
  return capture_.copy_all(copies);
}

}  // namespace eddy
