#include "tests/ops/cuda/fakes/fake_nvrtc.h"

#include <cstring>
#include <set>

namespace eddy::testing {
namespace {

constexpr int kInvalidInput = 3;
constexpr int kInvalidProgram = 4;
constexpr int kCompilationFailed = 6;

}  // namespace

FakeNvrtc::FakeNvrtc(std::string image, Defined defined)
    : image_(std::move(image)), defined_(std::move(defined)) {
  fill();
}

std::vector<std::string> FakeNvrtc::violations() const {
  std::vector<std::string> all = violations_;
  if (!programs_.empty()) all.push_back("programs that are not destroyed");
  return all;
}

int FakeNvrtc::compile(Program& program, int num_options, const char* const* options) {
  const std::set<std::string> given(options, options + num_options);
  if (given.count("--fmad=false") == 0) violation("contraction is on");
  const bool has_architecture = std::any_of(given.begin(), given.end(), [](const auto& option) {
    return option.starts_with("--gpu-architecture=");
  });
  const bool decides = program.source.starts_with("// loop copy\n");
  if (decides != (given.count("--relocatable-device-code=true") != 0)) {
    violation("code that decides loops is relocatable, and no other");
  }
  if (!has_architecture) violation("no architecture");
  if (num_refusals_ > 0) {
    --num_refusals_;
    program.log = refusal_log_;
    return kCompilationFailed;
  }
  Result<HostKernel> kernel = host_kernel_of(program.source);
  if (!kernel.is_ok()) {
    violation(kernel.status().message());
    return kCompilationFailed;
  }
  program.is_compiled = true;
  ++num_compiled_;
  defined_(program.name.substr(0, program.name.find('.')), std::move(*kernel));
  return kNvrtcSuccess;
}

void FakeNvrtc::fill() {
  NvrtcApi& api = *api_;
  api.version = [](int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return kNvrtcSuccess;
  };
  api.error_text = [](int result) {
    return result == kCompilationFailed ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
  };
  api.create = [this](NvrtcProgram* program, const char* source, const char* name, int num_headers,
                      const char* const* headers, const char* const* names) {
    if (program == nullptr || source == nullptr || name == nullptr) return kInvalidInput;
    std::set<std::string> given;
    for (int i = 0; i < num_headers; ++i) {
      given.insert(names[i]);
      if (std::strlen(headers[i]) == 0) violation(std::string("an empty header ") + names[i]);
    }
    for (const char* wanted :
         {"ops/cuda/elementwise/fused_inl.h", "ops/cuda/device/params.h", "cstdint", "cmath"}) {
      if (given.count(wanted) == 0) violation(std::string("no header ") + wanted);
    }
    *program = reinterpret_cast<NvrtcProgram>(next_++);
    programs_[*program] = {source, name, "", false};
    return kNvrtcSuccess;
  };
  api.destroy = [this](NvrtcProgram* program) {
    const bool is_known = programs_.erase(*program) == 1;
    *program = nullptr;
    return is_known ? kNvrtcSuccess : kInvalidProgram;
  };
  api.compile = [this](NvrtcProgram program, int num_options, const char* const* options) {
    const auto found = programs_.find(program);
    return found == programs_.end() ? kInvalidProgram
                                    : compile(found->second, num_options, options);
  };
  const auto code_of = [this](NvrtcProgram program) -> std::string {
    const auto found = programs_.find(program);
    if (found == programs_.end() || !found->second.is_compiled) return "";
    return image_ + " of " + found->second.name;
  };
  api.text_bytes = [code_of](NvrtcProgram program, size_t* bytes) {
    *bytes = code_of(program).size() + 1;
    return *bytes > 1 ? kNvrtcSuccess : kInvalidProgram;
  };
  api.text = [code_of](NvrtcProgram program, char* code) {
    std::strcpy(code, code_of(program).c_str());
    return kNvrtcSuccess;
  };
  api.code_bytes = [code_of](NvrtcProgram program, size_t* bytes) {
    *bytes = code_of(program).size();
    return *bytes > 0 ? kNvrtcSuccess : kInvalidProgram;
  };
  api.code = [code_of](NvrtcProgram program, char* code) {
    const std::string text = code_of(program);
    std::memcpy(code, text.data(), text.size());
    return text.empty() ? kInvalidProgram : kNvrtcSuccess;
  };
  api.log_bytes = [this](NvrtcProgram program, size_t* bytes) {
    *bytes = programs_.at(program).log.size() + 1;
    return kNvrtcSuccess;
  };
  api.log = [this](NvrtcProgram program, char* log) {
    std::strcpy(log, programs_.at(program).log.c_str());
    return kNvrtcSuccess;
  };
}

}  // namespace eddy::testing
