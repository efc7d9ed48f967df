// FakeNvrtc: NVRTC's table, without NVRTC: it takes what kernel_compiler.h gives it, strictly, and
// for "machine code" answers an image that the fake driver loads.
//
//   FakeNvrtc nvrtc([&](const std::string& name, HostKernel kernel) { … });
//
// `defined` receives each compiled kernel in the form that the interpreter runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda/compiled/nvrtc.h"
#include "tests/ops/cuda/host/host_launcher.h"

namespace eddy::testing {

class FakeNvrtc {
 public:
  using Defined = std::function<void(const std::string& name, HostKernel kernel)>;
  // `image`: what the driver takes for one.
  FakeNvrtc(std::string image, Defined defined);

  std::shared_ptr<const NvrtcApi> api() const { return api_; }
  // The next `count` compilations are refused, with this log.
  void refuse(int count, std::string log) {
    num_refusals_ = count;
    refusal_log_ = std::move(log);
  }
  int num_refusals_left() const { return num_refusals_; }
  int num_compiled() const { return num_compiled_; }
  std::vector<std::string> violations() const;  // with programs that are alive

 private:
  struct Program {
    std::string source;
    std::string name;
    std::string log;
    bool is_compiled = false;
  };
  void fill();
  int compile(Program& program, int num_options, const char* const* options);
  void violation(std::string text) { violations_.push_back(std::move(text)); }

  const std::string image_;
  const Defined defined_;
  std::shared_ptr<NvrtcApi> api_ = std::make_shared<NvrtcApi>();
  std::map<NvrtcProgram, Program> programs_;
  uintptr_t next_ = 16;
  int num_refusals_ = 0;
  std::string refusal_log_;
  int num_compiled_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace eddy::testing
