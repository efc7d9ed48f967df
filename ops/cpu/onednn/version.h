// version_text: which oneDNN runs and with which vector instructions, "oneDNN 2.6.3 (isa 0x1ff)":
// both decide which of its implementations is taken, and so the bits of its results.
#pragma once

#include <string>

namespace eddy::onednn {

std::string version_text();

}  // namespace eddy::onednn
