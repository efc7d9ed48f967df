#include "runtime/api/c/errors.h"

#include <exception>

#include "graph/io/text.h"
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/version.h"

namespace eddy::c {

Refusal caught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {EDDY_RESOURCE_EXHAUSTED, "no memory"};
  } catch (const std::exception& error) {
    return {EDDY_INTERNAL, std::string("a defect of Eddy: ") + error.what()};
  } catch (...) {
    return {EDDY_INTERNAL, "a defect of Eddy: something was thrown"};
  }
}

eddy_code report(const Refusal& refusal, const Locations* locations_or_null, const Location* at,
                 eddy_error* error) noexcept {
  // Answers, not failures.
  const bool is_answer = refusal.code() == EDDY_NOT_DONE || refusal.code() == EDDY_END;
  if (error == nullptr || is_answer) return refusal.code();
  try {
    static const Locations none;
    const Locations& locations = locations_or_null == nullptr ? none : *locations_or_null;
    auto made = std::make_shared<ErrorObject>();
    made->code = refusal.code();
    // Names, paths and options of a caller are of any bytes.
    made->reason = as_clean_utf8(one_line(refusal.reason()));
    made->parts = split_path(refusal.path());
    const Location* found = locations.find_or_null(made->parts);
    made->line = as_clean_utf8(one_line(locations.line(made->parts, refusal.reason())));
    if (found == nullptr && at != nullptr && !at->file.empty()) {
      found = at;
      made->line = at->start_of_line() + made->line;
    }
    if (found != nullptr) made->location = *found;
    *error = make_handle<eddy_error>(std::move(made));
  } catch (...) {
    *error = nullptr;  // no memory for it; the code says what can be said
  }
  return refusal.code();
}

const char* version_text() { return kVersion; }

eddy_code retain(void* handle) {
  return enter(nullptr, [&] { return HandleTable::get().retain(handle); });
}
eddy_code release(void* handle) {
  return enter(nullptr, [&] { return HandleTable::get().release(handle); });
}

namespace {

// The strings live as long as the error does, whose handle the caller holds.
template <typename T, typename Read>
T read_error(eddy_error error, T without, Read read) {
  Refusal why;
  const Pin<ErrorObject> object(error, why);
  return object ? read(*object) : without;
}

}  // namespace

eddy_code error_code(eddy_error error) {
  return read_error(error, eddy_code{EDDY_INVALID_HANDLE},
                    [](const ErrorObject& e) { return e.code; });
}
const char* error_message(eddy_error error) {
  return read_error<const char*>(error, "", [](const ErrorObject& e) { return e.line.c_str(); });
}
const char* error_reason(eddy_error error) {
  return read_error<const char*>(error, "", [](const ErrorObject& e) { return e.reason.c_str(); });
}
size_t error_num_parts(eddy_error error) {
  return read_error(error, size_t{0}, [](const ErrorObject& e) { return e.parts.size(); });
}

eddy_code error_part(eddy_error error, size_t index, eddy_path_part* part) {
  return enter_with<ErrorObject>(error, nullptr, [&](const Pin<ErrorObject>& e) -> Refusal {
    if (index >= e->parts.size()) return {EDDY_INVALID_ARGUMENT, "the path has no such part"};
    const PathPart& from = e->parts[index];
    const bool is_last = index + 1 == e->parts.size();
    eddy_path_part made = {};
    made.kind = from.iteration >= 0 ? EDDY_PART_LOOP : is_last ? EDDY_PART_NODE : EDDY_PART_REGION;
    made.name = from.name.c_str();
    made.iteration = from.iteration;
    return write_struct(made, "the part", part);
  });
}

eddy_code error_location(eddy_error error, eddy_location* location) {
  return enter_with<ErrorObject>(error, nullptr, [&](const Pin<ErrorObject>& e) -> Refusal {
    if (!e->location) return {EDDY_NOT_FOUND, "the error has no location"};
    eddy_location made = {};
    made.file = e->location->file.c_str();
    made.line = e->location->line;
    made.column = e->location->column;
    made.text = e->location->text.c_str();
    return write_struct(made, "the location", location);
  });
}

const char* code_name(eddy_code code) {
  switch (code) {
    case EDDY_INVALID_HANDLE:
      return "invalid handle";
    case EDDY_INVALID_STATE:
      return "invalid state";
    case EDDY_NOT_DONE:
      return "not done";
    case EDDY_END:
      return "end";
    case EDDY_LATER:
      return "later";
    default:
      break;
  }
  if (code < 0 || code > EDDY_INTERNAL) return "unknown code";
  return status_code_name(static_cast<StatusCode>(code)).data();
}

}  // namespace eddy::c
