#include "graph/simulate/task_file.h"

#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "graph/simulate/json_fields.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 100;
constexpr const char* kEditNames[] = {"set_exe",    "set_device", "add_dep",
                                      "remove_dep", "add_task",   "remove_task"};
static_assert(std::size(kEditNames) == static_cast<size_t>(FileEdit::Op::kRemoveTask) + 1,
              "each edit has a name");

class TaskFileReader {
 public:
  Result<TaskFile> read(const Json& document);

 private:
  Result<int64_t> read_id(const JsonFields& fields, const char* key);
  Status read_time(const JsonFields& fields, FileTime& time);
  Status read_device(const JsonFields& fields, uint32_t& device);
  Result<FileTask> read_task(const Json& entry, const std::string& where);
  Result<FileEdit> read_change(const JsonFields& fields, const std::string& op);
  Status read_edit(const Json& entry, const std::string& where, int depth, TaskFile::Batch& batch);

  TaskFile file_;
  std::unordered_map<std::string, uint32_t> devices_;
};

Result<int64_t> TaskFileReader::read_id(const JsonFields& fields, const char* key) {
  if (fields.find_or_null(key) == nullptr) {
    return fields.fail("needs the integer \"" + std::string(key) + "\"");
  }
  return fields.integer_or(key, 0);
}

Status TaskFileReader::read_time(const JsonFields& fields, FileTime& time) {
  const Json* value = fields.find_or_null("exe_time");
  if (value == nullptr || !value->is_number()) return fields.fail("needs the number \"exe_time\"");
  time.number = value->get<double>();
  time.is_integer = value->is_number_integer();
  if (!time.is_integer) {
    file_.is_exact = false;
    return Status::ok();
  }
  auto integer = fields.integer_or("exe_time", 0);
  if (!integer.is_ok()) return fields.fail("\"exe_time\" does not fit a signed 64-bit integer");
  time.integer = *integer;
  return Status::ok();
}

Status TaskFileReader::read_device(const JsonFields& fields, uint32_t& device) {
  const Json* value = fields.find_or_null("device");
  if (value == nullptr) return fields.fail("needs a \"device\", a string or an integer");
  EDDY_ASSIGN_OR_RETURN(std::string name,
                        JsonFields::name_of(*value, fields.where() + ": \"device\""));
  const auto [place, is_new] = devices_.try_emplace(
      (value->is_string() ? "s" : "i") + name, static_cast<uint32_t>(file_.device_names.size()));
  if (is_new) file_.device_names.push_back(std::move(name));
  device = place->second;
  return Status::ok();
}

Result<FileTask> TaskFileReader::read_task(const Json& entry, const std::string& where) {
  FileTask task;
  const JsonFields unnamed(entry, where);
  EDDY_RETURN_IF_ERROR(unnamed.check_object());
  EDDY_ASSIGN_OR_RETURN(task.id, read_id(unnamed, "id"));
  const JsonFields fields(entry, "task " + std::to_string(task.id));
  EDDY_RETURN_IF_ERROR(read_time(fields, task.exe_time));
  EDDY_RETURN_IF_ERROR(read_device(fields, task.device));
  EDDY_ASSIGN_OR_RETURN(task.deps, fields.integers("deps"));
  return task;
}

Result<FileEdit> TaskFileReader::read_change(const JsonFields& fields, const std::string& op) {
  FileEdit edit;
  int index = 0;
  while (index < 6 && op != kEditNames[index]) ++index;
  if (index == 6) {
    return fields.fail("there is no \"op\" \"" + op +
                       "\"; there are set_exe, set_device, add_dep, remove_dep, add_task, "
                       "remove_task, batch and undo");
  }
  edit.op = static_cast<FileEdit::Op>(index);
  if (edit.op == FileEdit::Op::kAddTask) {
    const Json* task = fields.find_or_null("task");
    if (task == nullptr) return fields.fail("needs the object \"task\"");
    EDDY_ASSIGN_OR_RETURN(edit.task, read_task(*task, fields.where() + ": \"task\""));
    return edit;
  }
  if (edit.op == FileEdit::Op::kAddDep || edit.op == FileEdit::Op::kRemoveDep) {
    EDDY_ASSIGN_OR_RETURN(edit.task.id, read_id(fields, "from"));
    EDDY_ASSIGN_OR_RETURN(edit.to, read_id(fields, "to"));
    return edit;
  }
  EDDY_ASSIGN_OR_RETURN(edit.task.id, read_id(fields, "id"));
  if (edit.op == FileEdit::Op::kSetExe) {
    EDDY_RETURN_IF_ERROR(read_time(fields, edit.task.exe_time));
  }
  if (edit.op == FileEdit::Op::kSetDevice) {
    EDDY_RETURN_IF_ERROR(read_device(fields, edit.task.device));
  }
  return edit;
}

Status TaskFileReader::read_edit(const Json& entry, const std::string& where, int depth,
                                 TaskFile::Batch& batch) {
  const JsonFields fields(entry, where);
  EDDY_RETURN_IF_ERROR(fields.check_object());
  EDDY_ASSIGN_OR_RETURN(const std::string op, fields.text("op"));
  if (op == "undo") {
    if (depth > 0) return fields.fail("\"undo\" takes back a whole edit: it stands in no batch");
    batch.is_undo = true;
    return Status::ok();
  }
  if (op != "batch") {
    EDDY_ASSIGN_OR_RETURN(FileEdit edit, read_change(fields, op));
    batch.edits.push_back(std::move(edit));
    return Status::ok();
  }
  if (depth == kMaxDepth) {
    return fields.fail("batches are nested more than " + std::to_string(kMaxDepth) + " deep");
  }
  batch.is_batch = true;
  EDDY_ASSIGN_OR_RETURN(const Json* ops, fields.list("ops", true));
  for (size_t i = 0; i < ops->size(); ++i) {
    EDDY_RETURN_IF_ERROR(
        read_edit((*ops)[i], where + ": op " + std::to_string(i), depth + 1, batch));
  }
  return Status::ok();
}

Result<TaskFile> TaskFileReader::read(const Json& document) {
  const JsonFields fields(document, "a task file");
  EDDY_RETURN_IF_ERROR(fields.check_object());
  EDDY_ASSIGN_OR_RETURN(const Json* tasks, fields.list("tasks", true));
  EDDY_ASSIGN_OR_RETURN(const Json* edits, fields.list("edits", false));
  file_.tasks.reserve(tasks->size());
  for (size_t i = 0; i < tasks->size(); ++i) {
    EDDY_ASSIGN_OR_RETURN(FileTask task,
                          read_task((*tasks)[i], "entry " + std::to_string(i) + " of \"tasks\""));
    file_.tasks.push_back(std::move(task));
  }
  for (size_t i = 0; i < edits->size(); ++i) {
    TaskFile::Batch batch;
    EDDY_RETURN_IF_ERROR(read_edit((*edits)[i], "edit " + std::to_string(i), 0, batch));
    file_.edits.push_back(std::move(batch));
  }
  return std::move(file_);
}

}  // namespace

const char* edit_name(FileEdit::Op op) { return kEditNames[static_cast<int>(op)]; }

Result<TaskFile> read_task_file(const Json& document) { return TaskFileReader().read(document); }

}  // namespace eddy
