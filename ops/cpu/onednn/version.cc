#include "ops/cpu/onednn/version.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdio>

namespace eddy::onednn {

std::string version_text() {
  const dnnl_version_t* version = dnnl_version();
  char text[160];
  std::snprintf(text, sizeof(text), "oneDNN %d.%d.%d %.40s (isa %#x)", version->major,
                version->minor, version->patch, version->hash,
                static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
  return text;
}

}  // namespace eddy::onednn
