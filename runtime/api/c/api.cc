// The table of the C interface, and the one symbol that a program finds.
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/handles.h"

namespace eddy::c {
namespace {

#define EDDY_C_ENTRY(name) .name = name,
// Members that stand out of the header's order do not compile.
constexpr eddy_api kApi = {
    .struct_size = sizeof(eddy_api), .version = EDDY_API_VERSION, EDDY_C_FUNCTIONS(EDDY_C_ENTRY)};
#undef EDDY_C_ENTRY

}  // namespace
}  // namespace eddy::c

extern "C" const eddy_api* eddy_get_api(uint32_t version) {
  eddy::c::HandleTable::guard_forks();
  return version == EDDY_API_VERSION ? &eddy::c::kApi : nullptr;
}
