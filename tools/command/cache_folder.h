// cache_folder: where models and libraries that were fetched lie: "/home/me/.cache/eddy".
#pragma once

#include <string>

namespace eddy {

std::string cache_folder();

}  // namespace eddy
