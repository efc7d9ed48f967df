#include "tests/tools/bazel/language.h"

namespace eddy::build {

long language_version() { return __cplusplus; }

}  // namespace eddy::build
