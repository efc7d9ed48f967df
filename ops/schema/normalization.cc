#include "ops/schema/families.h"

namespace eddy {

Status add_normalization_schemas(OpTable&) { return Status::ok(); }

}  // namespace eddy
