#include "ops/schema/families.h"

namespace eddy {

Status add_indexing_schemas(OpTable&) { return Status::ok(); }

}  // namespace eddy
