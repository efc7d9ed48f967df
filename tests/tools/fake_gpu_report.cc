// Like gpu_report, it lists the kernels it holds, and needs more libraries than the C library's.
#include <cstdlib>
#include <iostream>

int main() {
  const char* const kernels = std::getenv("KERNELS");
  std::cout << "kernels " << (kernels != nullptr ? kernels : "yes") << ": of a fake\n";
}
