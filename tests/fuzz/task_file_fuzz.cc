// A task file to a timeline and its edits, or to an error of one line; and delta simulation gives
// what simulating anew gives.
#include "graph/base/json_document.h"
#include "graph/simulate/task_file.h"
#include "graph/simulate/task_session.h"
#include "tests/fuzz/fuzz_input.h"

namespace eddy {
namespace {

constexpr size_t kMaxTasks = 2000;

template <typename Time>
Status simulate(const TaskFile& file, DeltaMode mode) {
  TaskSession<Time> session(mode);
  EDDY_RETURN_IF_ERROR(session.start(file));
  for (const TaskFile::Batch& batch : file.edits) {
    EDDY_RETURN_IF_ERROR(session.apply(batch, "edit"));
  }
  return Status::ok();
}

template <typename Time>
void check(const TaskFile& file) {
  const Status delta = simulate<Time>(file, DeltaMode::kAuto);
  const Status full = simulate<Time>(file, DeltaMode::kFull);
  EDDY_CHECK(delta.to_string() == full.to_string())
      << "by delta: " << delta.to_string() << "; anew: " << full.to_string();
  if (!delta.is_ok()) fuzz::expect_one_line(delta);
}

}  // namespace
}  // namespace eddy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace eddy;
  const auto document = parse_json_document(fuzz::as_text(data, size));
  if (!document.is_ok()) {
    fuzz::expect_one_line(document.status());
    return 0;
  }
  const Result<TaskFile> file = read_task_file(*document);
  if (!file.is_ok()) {
    fuzz::expect_one_line(file.status());
    return 0;
  }
  if (file->tasks.size() > kMaxTasks || file->edits.size() > 200) return 0;
  file->is_exact ? check<int64_t>(*file) : check<double>(*file);
  return 0;
}
