// Like gpu_report it names the kernels that it holds, and needs more libraries than those of C.
#include <cstdlib>
#include <iostream>

int main() {
  const char* const kernels = std::getenv("KERNELS");
  std::cout << "kernels " << (kernels != nullptr ? kernels : "yes") << ": of a fake\n";
}
