// The functions behind the table of eddy.h, one for each of its members, with the types of those.
//
// Internal to runtime/api/c. Each is defined beside its object: context.cc, executor.cc, graph.cc,
// operators.cc, pending.cc, plans.cc, run.cc, rows.cc, session.cc, stream.cc, value.cc, and
// errors.cc for errors and what all objects have.
#pragma once

#include <type_traits>

#include "runtime/api/c/eddy.h"

// In the order of the table.
#define EDDY_C_FUNCTIONS(X)                                                                        \
  X(version_text)                                                                                  \
  X(retain)                                                                                        \
  X(release)                                                                                       \
  X(error_code)                                                                                    \
  X(error_message)                                                                                 \
  X(error_reason)                                                                                  \
  X(error_num_parts)                                                                               \
  X(error_part)                                                                                    \
  X(error_location)                                                                                \
  X(code_name)                                                                                     \
  X(context_create)                                                                                \
  X(context_set_log) X(executor_create) X(executor_fd) X(executor_run) X(library_create) X(        \
      library_add_operator) X(library_add_host_function) X(graph_create) X(graph_symbol)           \
      X(graph_input) X(graph_output) X(graph_constant) X(graph_borrow_constant) X(graph_node) X(   \
          graph_begin_while) X(graph_begin_after) X(graph_end_while) X(graph_begin_case)           \
          X(graph_begin_branch) X(graph_end_branch) X(graph_end_case) X(graph_type) X(             \
              graph_finish) X(graph_import_file) X(graph_import_bytes) X(graph_export_file)        \
              X(graph_export_bytes) X(graph_print) X(session_create) X(session_load) X(            \
                  session_num_inputs) X(session_num_outputs) X(session_input) X(session_output)    \
                  X(session_find_input) X(session_find_output) X(session_run) X(                   \
                      session_cancel_all) X(session_close) X(session_trim) X(session_metrics)      \
                      X(session_metrics_text) X(session_plan_text) X(run_create) X(                \
                          run_bind_input) X(run_bind_input_memory) X(run_bind_output_memory)       \
                          X(run_stream_output) X(run_execute) X(run_submit) X(run_wait) X(         \
                              run_poll) X(run_fd) X(run_cancel) X(run_output) X(run_output_memory) \
                              X(rows_create) X(rows_next) X(rows_fd) X(rows_close) X(value_copy)   \
                                  X(value_borrow) X(value_from_strings) X(value_sequence) X(       \
                                      value_none) X(value_kind) X(value_tensor) X(value_strings)   \
                                      X(value_length) X(value_at) X(value_from_dlpack)             \
                                          X(value_from_dlpack_versioned) X(value_to_dlpack) X(     \
                                              value_to_dlpack_versioned) X(pending_complete)       \
                                              X(pending_on_stop) X(graph_set_location) X(          \
                                                  session_plan_svg) X(session_can_stream)          \
                                                  X(session_create_stream) X(session_adopt_stream) \
                                                      X(run_submit_on) X(run_start_trace) X(       \
                                                          run_stop_trace) X(rows_create_with)      \
                                                          X(graph_save_plan) X(is_plan) X(         \
                                                              session_load_bytes)                  \
                                                              X(context_set_allocator) X(          \
                                                                  run_place_output)                \
                                                                  X(session_num_operators) X(      \
                                                                      session_operator_metrics)    \
                                                                      X(value_device) X(           \
                                                                          run_bind_output_device)

namespace eddy::c {

#define EDDY_C_DECLARE(name) std::remove_pointer_t<decltype(eddy_api::name)> name;
EDDY_C_FUNCTIONS(EDDY_C_DECLARE)
#undef EDDY_C_DECLARE

}  // namespace eddy::c
