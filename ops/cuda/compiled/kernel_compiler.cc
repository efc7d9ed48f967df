#include "ops/cuda/compiled/kernel_compiler.h"

#include <vector>

#include "ops/cuda/compiled/kernel_headers.h"

namespace eddy {
namespace {

// Nothing contracted, as in the images (fused_text.h).
constexpr const char* kOptions[] = {"--std=c++20", "--fmad=false",
                                    "--device-as-default-execution-space"};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

KernelCompiler::KernelCompiler(std::shared_ptr<const NvrtcApi> api, std::string cache_folder)
    : api_(std::move(api)), cache_(std::move(cache_folder)) {
  int major = 0, minor = 0;
  api_->version(&major, &minor);
  made_with_ = "NVRTC " + std::to_string(major) + "." + std::to_string(minor) + "\n";
  for (const char* option : kOptions) made_with_ += std::string(option) + "\n";
  for (const KernelHeader& header : kernel_headers()) {
    made_with_ += std::string(header.name) + "\n" + header.text;
  }
}

Result<std::string> KernelCompiler::compile(const cuda::KernelSource& source,
                                            int compute_capability) {
  const std::string architecture = std::string("--gpu-architecture=") +
                                   (source.decides ? "compute_" : "sm_") +
                                   std::to_string(compute_capability);
  const std::string key = architecture + "\n" + source.text + "\n" + made_with_;
  if (std::optional<std::string> found = cache_.find(key)) {
    ++num_found_;
    return std::move(*found);
  }
  EDDY_ASSIGN_OR_RETURN(std::string code, ask_nvrtc(source, architecture));
  ++num_compiled_;
  cache_.store(key, code);
  return code;
}

Result<std::string> KernelCompiler::ask_nvrtc(const cuda::KernelSource& source,
                                              const std::string& architecture) {
  std::vector<const char*> texts;
  std::vector<const char*> names;
  for (const KernelHeader& header : kernel_headers()) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  NvrtcProgram program = nullptr;
  const auto refusal = [&](const char* call, int result) {
    return unsupported(std::string(call) + " refuses a kernel: " + api_->error_text(result));
  };
  int result = api_->create(&program, source.text.c_str(), (source.name + ".cu").c_str(),
                            static_cast<int>(names.size()), texts.data(), names.data());
  if (result != kNvrtcSuccess) return refusal("nvrtcCreateProgram", result);
  struct Destroy {
    const NvrtcApi& api;
    NvrtcProgram* program;
    ~Destroy() { api.destroy(program); }
  };
  const Destroy destroy{*api_, &program};
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(architecture.c_str());
  if (source.decides) options.push_back("--relocatable-device-code=true");
  result = api_->compile(program, static_cast<int>(options.size()), options.data());
  if (result != kNvrtcSuccess) {
    size_t bytes = 0;
    std::string log;
    if (api_->log_bytes(program, &bytes) == kNvrtcSuccess && bytes > 1) {
      log.resize(bytes);
      if (api_->log(program, log.data()) != kNvrtcSuccess) log.clear();
    }
    Status status = refusal("nvrtcCompileProgram", result);
    if (!log.empty()) status = unsupported(status.message() + ": " + first_line(log));
    return status;
  }
  const auto& code_bytes = source.decides ? api_->text_bytes : api_->code_bytes;
  const auto& code_of = source.decides ? api_->text : api_->code;
  size_t bytes = 0;
  result = code_bytes(program, &bytes);
  if (result != kNvrtcSuccess || bytes == 0) return refusal("asked for its code, NVRTC", result);
  std::string code(bytes, '\0');
  result = code_of(program, code.data());
  if (result != kNvrtcSuccess) return refusal("asked for its code, NVRTC", result);
  return code;
}

}  // namespace eddy
