// TaskFunction: a move-only void() callable, so that a task may own what cannot be copied.
//
// Contract: called at most once by the scheduler and destroyed on its thread, on the task's
// own stack. Closures of up to 48 bytes that move without throwing cost no allocation.
// Errors: calling an empty one is a CHECK. Threads: as std::function.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

class TaskFunction {
 public:
  TaskFunction() = default;
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TaskFunction> && std::is_invocable_v<F&>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint keeps moves apart
      TaskFunction(F&& function) {  // implicit, as for std::function
    using Held = std::decay_t<F>;
    if constexpr (kFitsInline<Held>) {
      new (storage_) Held(std::forward<F>(function));
      table_ = &kInline<Held>;
    } else {
      new (storage_) Held*(new Held(std::forward<F>(function)));
      table_ = &kBoxed<Held>;
    }
  }
  TaskFunction(TaskFunction&& other) noexcept { take(other); }
  TaskFunction& operator=(TaskFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~TaskFunction() { reset(); }

  explicit operator bool() const { return table_ != nullptr; }
  void operator()() {
    EDDY_CHECK(table_ != nullptr) << "an empty TaskFunction was called";
    table_->call(storage_);
  }
  void reset() {
    if (table_ != nullptr) std::exchange(table_, nullptr)->destroy(storage_);
  }

 private:
  static constexpr std::size_t kInlineBytes = 48;
  static_assert(kInlineBytes >= sizeof(void*), "a boxed closure is held by its pointer");
  struct Table {
    void (*call)(void* storage);
    void (*move)(void* from, void* to);  // and destroys what is left in `from`
    void (*destroy)(void* storage);
  };

  template <typename Held>
  static constexpr bool kFitsInline =
      sizeof(Held) <= kInlineBytes &&  // NOLINT(misc-redundant-expression): so for some Held
      alignof(Held) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Held>;
  template <typename T>
  static T& as(void* storage) {
    return *std::launder(static_cast<T*>(storage));
  }
  template <typename Held>
  static constexpr Table kInline = {[](void* storage) { as<Held>(storage)(); },
                                    [](void* from, void* to) {
                                      new (to) Held(std::move(as<Held>(from)));
                                      as<Held>(from).~Held();
                                    },
                                    [](void* storage) { as<Held>(storage).~Held(); }};
  template <typename Held>
  static constexpr Table kBoxed = {[](void* storage) { (*as<Held*>(storage))(); },
                                   [](void* from, void* to) { new (to) Held*(as<Held*>(from)); },
                                   [](void* storage) { delete as<Held*>(storage); }};

  void take(TaskFunction& other) {
    EDDY_DCHECK(table_ == nullptr) << "what it holds would be lost";
    table_ = std::exchange(other.table_, nullptr);
    if (table_ != nullptr) table_->move(other.storage_, storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
  const Table* table_ = nullptr;
};

}  // namespace eddy
