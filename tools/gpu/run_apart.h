// run_apart: work in a process of its own, which may hang or die without its maker.
//
//   Result<std::string> answer = run_apart([] { return ask(); }, std::chrono::seconds{8});
//
// The process is a copy of this one (fork), so what it begins with must hold no driver and no
// second thread. Its standard streams are this one's. Errors: kRunFailed, naming the signal that
// ended it, or its exit code; kDeadlineExceeded where it was not over in time, and was killed.
// Cost: a fork.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "graph/base/status.h"

namespace eddy {

Result<std::string> run_apart(const std::function<std::string()>& work, std::chrono::seconds most);

}  // namespace eddy
