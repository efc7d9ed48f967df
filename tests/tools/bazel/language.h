#pragma once

namespace eddy::build {

// The value of __cplusplus that a library of ours is compiled with.
long language_version();

}  // namespace eddy::build
