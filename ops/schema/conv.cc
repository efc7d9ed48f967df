#include "ops/schema/families.h"

namespace eddy {

Status add_conv_schemas(OpTable&) { return Status::ok(); }

}  // namespace eddy
