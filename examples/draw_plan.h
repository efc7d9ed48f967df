// drawn_plan, write_plan: a session's plan as a drawing, and as a picture (SVG) in a file.
//
// Errors: kInvalidArgument when the file cannot be written.
#pragma once

#include <fstream>
#include <string>

#include "graph/compile/plan_drawing.h"
#include "graph/compile/plan_svg.h"
#include "runtime/api/session.h"

namespace eddy {

inline DrawnRegion drawn_plan(const Session& session) {
  return draw_plan(session.graph(), session.plan(), [](NodeId) { return std::string(); });
}

inline Status write_plan(const Session& session, const std::string& title,
                         const std::string& path) {
  std::ofstream file(path);
  file << plan_svg(drawn_plan(session), title);
  return file.flush() ? Status::ok() : invalid_argument("cannot write " + path);
}

}  // namespace eddy
