// A sudden end: what the command does where the system gives no more memory or threads.
//
// A run can be neither finished nor waited for then, so the command ends at once with
// ExitCode::kRunFailed, after one line (and, asked for JSON, one document). Nothing here takes
// memory. Threads: any, several at once, too: the first one tells and ends the process, the others
// stay where they are until it has.
#pragma once

#include <string_view>

namespace eddy {

// Before the first end, on one thread.
void sudden_ends_say_json(bool says_json);

// "eddy: WHAT WHY"; the document has only WHAT, which needs no escapes.
[[noreturn]] void end_suddenly(std::string_view what, std::string_view why);

[[noreturn]] void end_without_memory();  // a new-handler

}  // namespace eddy
