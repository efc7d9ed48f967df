// TaskState: what a task is doing, for reports.
#pragma once

namespace eddy {

// ready ──▶ running ──▶ waiting ──▶ ready, or running ──▶ ready (yield)
enum class TaskState : unsigned char { kReady, kRunning, kWaiting };

}  // namespace eddy
