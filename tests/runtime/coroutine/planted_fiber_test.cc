// Claim: a fiber that leaves the thread's exception state where it is, is noticed by the check that
// fiber_test.cc makes of every fiber.
#include <gtest/gtest.h>
#include <boost/context/detail/fcontext.hpp>

#include <array>
#include <exception>
#include <functional>
#include <memory>

namespace eddy {
namespace {

namespace context = boost::context::detail;

// Switches stacks as a fiber does, but leaves the thread's exception state where it is.
class CarelessFiber {
 public:
  explicit CarelessFiber(std::function<void(CarelessFiber&)> body) : body_(std::move(body)) {
    inside_ = context::make_fcontext(stack_.data() + stack_.size(), stack_.size(),
                                     [](context::transfer_t from) {
                                       auto& self = *static_cast<CarelessFiber*>(from.data);
                                       self.outside_ = from.fctx;
                                       self.body_(self);
                                       self.suspend();
                                     });
  }
  void resume() { inside_ = context::jump_fcontext(inside_, this).fctx; }
  void suspend() { outside_ = context::jump_fcontext(outside_, nullptr).fctx; }

 private:
  std::function<void(CarelessFiber&)> body_;
  alignas(64) std::array<char, 128 * 1024> stack_;
  context::fcontext_t inside_ = nullptr;
  context::fcontext_t outside_ = nullptr;
};

int current_number() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (int number) {
    return number;
  }
}

// The check is that of tests/runtime/coroutine/fiber_test.cc: inside a handler the current
// exception is one's own.
TEST(PlantedFiber, AnExceptionStateThatIsNotSwappedIsNoticed) {
#ifdef EDDY_SANITIZER
  GTEST_SKIP() << "sanitizers want to be told of every switch of stacks";
#endif
  auto fiber = std::make_unique<CarelessFiber>([](CarelessFiber& self) {
    try {
      throw 2;
    } catch (int) {
      self.suspend();
    }
  });
  try {
    throw 1;
  } catch (int) {
    EXPECT_EQ(current_number(), 1);
    fiber->resume();
    EXPECT_EQ(current_number(), 2) << "the fiber's exception shows through: noticed";
    fiber->resume();
    EXPECT_EQ(current_number(), 1);
  }
}

}  // namespace
}  // namespace eddy
