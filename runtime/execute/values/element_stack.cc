#include "runtime/execute/values/element_stack.h"

#include <limits>
#include <new>

#include "graph/base/check.h"

namespace eddy {

const SequenceElement& ElementStack::operator[](size_t position) const {
  EDDY_CHECK(position < size()) << "element " << position << " of " << size();
  const Link* link = last_;
  while (link->size > position + 1) {
    const bool may_skip = link->skip != nullptr && link->skip->size > position;
    link = may_skip ? link->skip : link->before;
  }
  return link->element;
}

std::vector<const SequenceElement*> ElementStack::in_order() const {
  std::vector<const SequenceElement*> all(size());
  size_t place = size();
  for (const Link* link = last_; link != nullptr; link = link->before) {
    all[--place] = &link->element;
  }
  EDDY_DCHECK(place == 0) << "a chain lacks " << place << " of " << all.size() << " elements";
  return all;
}

// Skips reach as far as two equal ones below do together, so their lengths are those of a skew
// binary number.
Status ElementStack::push_back(SequenceElement element, Allocator& allocator) {
  static_assert(sizeof(Link) <= 128);
  if (size() == std::numeric_limits<uint32_t>::max()) [[unlikely]]
    return resource_exhausted("a sequence has no more than 2^32 - 1 elements");
  EDDY_ASSIGN_OR_RETURN(BufferRef memory, allocator.allocate(sizeof(Link)));
  const Link* const before = last_;
  const Link* skip = before;
  if (before != nullptr && before->skip != nullptr) {
    const Link* const next = before->skip;
    const size_t next_skips_to = next->skip == nullptr ? 0 : next->skip->size;
    if (before->size - next->size == next->size - next_skips_to) skip = next->skip;
  }
  EDDY_DCHECK(before == nullptr || skip == nullptr || skip->size <= before->size)
      << "a link skips upwards";
  void* const place = memory.data();
  last_ = new (place) Link{.references = 1,
                           .size = static_cast<uint32_t>(size() + 1),
                           .before = last_,  // whose reference moves to the new one
                           .skip = skip,
                           .element = std::move(element),
                           .memory = std::move(memory)};
  return Status::ok();
}

void ElementStack::pop_back() {
  EDDY_CHECK(last_ != nullptr) << "an empty sequence has no last element";
  Link* const gone = last_;
  last_ = gone->before;
  hold(last_);
  let_go(gone);
}

// A loop, since a chain may be long.
void ElementStack::let_go(Link* link) {
  while (link != nullptr && link->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    Link* const before = link->before;
    const BufferRef memory = std::move(link->memory);
    link->~Link();
    link = before;
  }
}

}  // namespace eddy
