#include "runtime/api/c/stream.h"

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"

namespace eddy::c {

eddy_code session_create_stream(eddy_session session, eddy_stream* stream, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    EDDY_C_TRY(need(stream, "place for the stream"));
    EDDY_C_ASSIGN(std::unique_ptr<Stream> made, s->session->create_stream());
    *stream = make_handle<eddy_stream>(std::make_shared<StreamObject>(s.share(), std::move(made)));
    return {};
  });
}

eddy_code session_adopt_stream(eddy_session session, void* native, eddy_stream* stream,
                               eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    EDDY_C_TRY(need(stream, "place for the stream"));
    EDDY_C_ASSIGN(std::unique_ptr<Stream> made, s->session->adopt_stream(native));
    *stream = make_handle<eddy_stream>(std::make_shared<StreamObject>(s.share(), std::move(made)));
    return {};
  });
}

}  // namespace eddy::c
