#include "ops/schema/families.h"

namespace eddy {

Status add_sequence_schemas(OpTable&) { return Status::ok(); }

}  // namespace eddy
