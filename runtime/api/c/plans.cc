// Sessions of files and bytes, be they models or saved plans, and what saves those.
#include "graph/io/import.h"
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/graph.h"
#include "runtime/api/c/session.h"
#include "runtime/api/plan_file.h"
#include "runtime/api/saved_plan.h"

namespace eddy::c {
namespace {

// Of a saved plan, a path or bytes. Places are those of the program that it was saved by.
template <typename Plan>
Refusal load_plan(const Pin<LibraryObject>& library, const Plan& plan, const eddy_option* given,
                  size_t count, eddy_session* session) {
  EDDY_C_TRY(need(session, "place for the session"));
  SessionOptions options;
  auto made = std::make_shared<SessionObject>();
  EDDY_C_TRY(read_options(*library, given, count, options, made->own));
  made->library = library.share();
  if constexpr (std::is_same_v<Plan, std::string>) {
    EDDY_C_ASSIGN(made->session, Session::load(made->library->use(), plan, options));
  } else {
    EDDY_C_ASSIGN(made->session, Session::load_bytes(made->library->use(), plan, options));
  }
  made->find_owing_nodes();
  EDDY_C_ASSIGN(const std::string notes, read_plan_notes(plan));
  made->locations = std::make_shared<Locations>(Locations::of_text(notes));
  *session = make_handle<eddy_session>(std::move(made));
  return {};
}

// Of the graph that `import` makes.
template <typename Import>
eddy_code load_model(const Import& import, const eddy_option* options, size_t num_options,
                     eddy_session* session, eddy_error* error) {
  eddy_graph graph = nullptr;
  eddy_code code = import(&graph);
  if (code != EDDY_OK) return code;
  code = session_create(graph, options, num_options, session, error);
  release(graph);
  return code;
}

}  // namespace

eddy_code session_load(eddy_library library, const char* path, const eddy_option* options,
                       size_t num_options, eddy_session* session, eddy_error* error) {
  if (path == nullptr || !is_plan_file(path)) {
    return load_model(
        [&](eddy_graph* graph) { return graph_import_file(library, path, graph, error); }, options,
        num_options, session, error);
  }
  return enter_with<LibraryObject>(library, error, [&](const auto& l) {
    return load_plan(l, std::string(path), options, num_options, session);
  });
}

eddy_code session_load_bytes(eddy_library library, const void* bytes, size_t num_bytes,
                             const eddy_option* options, size_t num_options, eddy_session* session,
                             eddy_error* error) {
  const std::span given(static_cast<const std::byte*>(bytes), bytes == nullptr ? 0 : num_bytes);
  if (!is_plan_bytes(given)) {
    return load_model(
        [&](eddy_graph* graph) {
          return graph_import_bytes(library, bytes, num_bytes, graph, error);
        },
        options, num_options, session, error);
  }
  return enter_with<LibraryObject>(library, error, [&](const auto& l) {
    return load_plan(l, given, options, num_options, session);
  });
}

eddy_code graph_save_plan(eddy_graph graph, const eddy_option* options, size_t num_options,
                          const char* path, eddy_error* error) {
  return with_finished(graph, error, [&](const auto& g) -> Refusal {
    EDDY_C_TRY(need(path, "path of the plan"));
    SessionOptions read;
    CallerOptions own;
    EDDY_C_TRY(read_options(*g->library, options, num_options, read, own));
    EDDY_C_TRY(check_dims(*g->finished, read));
    return save_plan(g->library->use(), g->finished->copy(), read, path, g->locations->as_text());
  });
}

eddy_code is_plan(const char* path, int32_t* is, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(path, "path"));
    EDDY_C_TRY(need(is, "place for the answer"));
    *is = is_plan_file(path) ? 1 : 0;
    return {};
  });
}

}  // namespace eddy::c
