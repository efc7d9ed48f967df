// Task files: tasks with their dependencies, and edits of them, as JSON.
//
//   {"tasks": [{"id": int, "exe_time": number, "device": string or int, "deps": [id...]?}...],
//    "edits": [edit...]?}
//
// An edit is one of
//   {"op": "set_exe", "id", "exe_time"}       {"op": "set_device", "id", "device"}
//   {"op": "add_dep", "from", "to"}           {"op": "remove_dep", "from", "to"}
//   {"op": "add_task", "task": {...}}         {"op": "remove_task", "id"}
//   {"op": "batch", "ops": [edit...]}         (done together; batches in batches are flattened)
//   {"op": "undo"}                            (takes back the last edit that still stands: two of
//                                              them the last two; not in a batch)
//
// Unknown keys are ignored. Naming a device creates it; the string "1" and the integer 1 are two.
// Where every time of the file is an integer, all stay integers and exact; one fraction makes all
// of them doubles, and an integer that no double holds is then an error.
//
// This is the content of the file; the session that applies it (task_session.h) checks that ids
// exist, edits apply and times are valid.
// Errors (invalid argument, one line, naming task or edit): missing or misshapen keys, an unknown
// "op", batches nested more than 100 deep, an undo in a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "graph/base/status.h"

namespace eddy {

// As written: an integer, or a number with a fraction or exponent.
struct FileTime {
  bool is_integer = true;
  int64_t integer = 0;
  double number = 0;  // of integers too, rounded
};

struct FileTask {
  int64_t id = 0;
  FileTime exe_time;
  uint32_t device = 0;  // index into device_names
  std::vector<int64_t> deps;
};

struct FileEdit {
  enum class Op { kSetExe, kSetDevice, kAddDep, kRemoveDep, kAddTask, kRemoveTask };
  Op op = Op::kSetExe;
  FileTask task;   // of kAddTask; elsewhere those fields that the edit names
  int64_t to = 0;  // of kAddDep and kRemoveDep, which go from task.id
};

struct TaskFile {
  std::vector<FileTask> tasks;
  // Each is one edit of the file: several entries where it is a batch.
  struct Batch {
    bool is_batch = false;
    bool is_undo = false;  // then there are no entries
    std::vector<FileEdit> edits;
  };
  std::vector<Batch> edits;
  std::vector<std::string> device_names;
  bool is_exact = true;  // every time is an integer
};

Result<TaskFile> read_task_file(const nlohmann::json& document);

// "set_exe", ...
const char* edit_name(FileEdit::Op op);

}  // namespace eddy
