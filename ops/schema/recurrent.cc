#include "ops/schema/families.h"

namespace eddy {

Status add_recurrent_schemas(OpTable&) { return Status::ok(); }

}  // namespace eddy
