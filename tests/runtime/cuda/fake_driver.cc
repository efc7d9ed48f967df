// The fake driver as a library, libcuda.so.1, for programs that look for NVIDIA's: every call of
// CudaApi under the driver's own name, on one FakeCuda with the kernels of ops/cuda on the host.
//
// Any image of kernels loads, so a program runs with those it was built with, by the host's code.
// A call that no driver may get is a violation; the process tells of them on standard error when
// it ends. Processes share nothing. x86-64 only: each name is a jump to the entry of its call.
#include <iostream>

#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

struct HostCall {
  void (*function)(void*);
  void* data;
};

class Driver {
 public:
  Driver() {
    cuda_.define_kernel("host function", sizeof(HostCall), [](const FakeKernelCall& kernel) {
      const auto& call = kernel.params_as<HostCall>();
      call.function(call.data);
    });
    host_function_ = cuda_.library_function("host function");
    define_host_kernels(cuda_, random_);
    define_loop_kernels(cuda_);
  }
  ~Driver() {
    for (const std::string& violation : cuda_.violations()) {
      std::cerr << "fake driver: " << violation << "\n";
    }
  }
  const CudaApi& api() const { return *cuda_.api(); }
  CuResult launch(CuStream stream, HostCall call) const {
    void* params[] = {&call};
    return api().launch_kernel(host_function_, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }

 private:
  CuFunction host_function_ = nullptr;
  FakeCuda cuda_{{.takes_any_image = true}};
  Random random_{1};
  FakeEngine engine_{cuda_};
};

// What a driver is: state of the process, made by its first call.
const Driver& driver() {
  static const Driver driver;
  return driver;
}

template <typename Entry, Entry CudaApi::*kEntry>
struct Forward;
template <typename... Args, std::function<CuResult(Args...)> CudaApi::*kEntry>
struct Forward<std::function<CuResult(Args...)>, kEntry> {
  static CuResult call(Args... args) { return (driver().api().*kEntry)(args...); }
};

}  // namespace

// The one call of tests that Eddy itself does without. It runs as a kernel does, in its stream's
// order; the fake's own calls are shut to it meanwhile, as the driver's are.
extern "C" CuResult cuLaunchHostFunc(CuStream stream, void (*function)(void*), void* data) {
  return driver().launch(stream, {function, data});
}

// What NVRTC asks a driver that it finds: it takes for granted that every one has this call.
extern "C" CuResult cuGetExportTable(const void** table, const void*) {
  constexpr auto kNotFound = static_cast<CuResult>(500);
  *table = nullptr;
  return kNotFound;
}

}  // namespace eddy::testing

// The signatures are types, and a function of a named type cannot be defined: so each symbol jumps.
#define EDDY_FAKE_EXPORT(entry, symbol, is_required, ...)                                      \
  extern "C" __attribute__((used, visibility("hidden"))) const void* const eddy_fake_##entry = \
      reinterpret_cast<const void*>(                                                           \
          &eddy::testing::Forward<std::function<__VA_ARGS__>, &eddy::CudaApi::entry>::call);   \
  __asm__(".text\n.globl " symbol "\n.type " symbol ",@function\n" symbol                      \
          ":\n\tjmp *eddy_fake_" #entry "(%rip)\n");
namespace eddy {
EDDY_CUDA_CALLS(EDDY_FAKE_EXPORT)
}  // namespace eddy
#undef EDDY_FAKE_EXPORT
