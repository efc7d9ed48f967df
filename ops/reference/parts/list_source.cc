#include "ops/reference/parts/list_source.h"

#include "graph/base/check.h"

namespace eddy {

Result<ListSource> ListSource::make(const KernelInit& init, size_t input, std::string_view name) {
  ListSource source;
  source.input_ = static_cast<uint32_t>(input);
  if (init.attributes.has(name)) {
    source.kind_ = Kind::kFixed;
    EDDY_RETURN_IF_ERROR(read_ints(init.attributes.get_ints(name), name, source.fixed_));
  } else if (input < init.constants.size() && !init.constants[input].is_omitted()) {
    source.kind_ = Kind::kFixed;
    EDDY_RETURN_IF_ERROR(read_ints(init.constants[input], name, source.fixed_));
  } else if (input < init.inputs.size() &&
             init.inputs[input].tensor.element != ElementType::kUndefined) {
    source.kind_ = Kind::kInput;
  }
  return source;
}

const IntList* ListSource::read_input_or_null(const KernelArgs& args, IntList& buffer) const {
  EDDY_DCHECK(input_ < args.num_inputs) << "input " << input_ << " of " << args.num_inputs;
  Status status = read_ints(args.inputs[input_], "a list of integers", buffer);
  if (status.is_ok()) return &buffer;
  args.fail(std::move(status));
  return nullptr;
}

}  // namespace eddy
