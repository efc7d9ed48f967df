#include "ops/schema/families.h"

namespace eddy {

Status add_movement_schemas(OpTable&) { return Status::ok(); }

}  // namespace eddy
