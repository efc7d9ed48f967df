#include "runtime/api/c/context.h"

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/options.h"

namespace eddy::c {

eddy_code context_create(const eddy_option* options, size_t num_options, eddy_context* context,
                         eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(context, "place for the context"));
    int num_threads = 0;
    EDDY_C_TRY(read_context_options(options, num_options, num_threads));
    *context = make_handle<eddy_context>(std::make_shared<ContextObject>(num_threads));
    return {};
  });
}

eddy_code context_set_log(eddy_context context, eddy_log log, void* user, eddy_error* error) {
  return enter_with<ContextObject>(context, error, [&](const auto& c) -> Refusal {
    c->set_log(log, user);
    return {};
  });
}

eddy_code library_create(eddy_context context, eddy_library* library, eddy_error* error) {
  return enter_with<ContextObject>(context, error, [&](const auto& c) -> Refusal {
    EDDY_C_TRY(need(library, "place for the library"));
    *library = make_handle<eddy_library>(std::make_shared<LibraryObject>(c.share()));
    return {};
  });
}

}  // namespace eddy::c
