// The part "driver": questions to a driver, each of which decides something that Eddy takes for
// granted, or could do another way: what is captured as what, what spoils a capture, what a call
// and a word cost, what waits for what.
//
//   {"question": "decided_twice", "asks": …, "rounds": 5, "status": "passed"}
//
// "passed": it is answered, and Eddy's rule holds where it has one; "failed": it breaks a rule
// (the reason says which), or the driver refuses, or dies; "skipped": it cannot be asked here.
//
// A question may hang, or cost its process the device or its life. So the whole part is asked in a
// process for each (run_apart.h): by a process that has no driver open. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "tools/gpu/driver_lab.h"

namespace eddy {

struct DriverQuestion {
  const char* name;
  const char* asks;
  Status (*ask)(DriverLab& lab, nlohmann::json& row);
  bool may_die = false;  // a process that dies is an answer, too
};

std::vector<DriverQuestion> driver_questions();

// One question's row. `image_or_null`: probe_image().
nlohmann::json ask_driver(const DriverQuestion& question, const GpuUnderReport& gpu,
                          const DriverExtras& extras, const void* image_or_null);

// All of them, or the one of that name: `ask` answers with a row, in a process of its own for each.
// A row with "no_gpu", and why, ends the part.
nlohmann::json report_driver(const ReportPace& pace, const std::string& only_or_empty,
                             const std::function<nlohmann::json(const DriverQuestion&)>& ask);

// Of driver_captures.cc and driver_times.cc, in order.
void add_capture_questions(std::vector<DriverQuestion>& questions);
void add_time_questions(std::vector<DriverQuestion>& questions);

}  // namespace eddy
