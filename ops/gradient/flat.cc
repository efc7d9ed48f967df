// Operators without a derivative: their outputs count as constants. Everything else that has no
// rule and lies between a parameter and the loss is an error.
#include "ops/gradient/families.h"
#include "ops/gradient/parts.h"

namespace eddy {

Status add_flat_operators(GradientTable& table) {
  struct Flat {
    const char* op;
    const char* reason;
  };
  constexpr const char* kSteps = "constant between its steps";
  constexpr const char* kPlaces = "gives places, not values";
  constexpr const char* kShapes = "reads shapes only";
  constexpr const char* kTruths = "gives truth values";
  constexpr const char* kRandom = "draws values that do not follow its input";
  constexpr Flat kFlat[] = {
      {"Ceil", kSteps},
      {"Floor", kSteps},
      {"Round", kSteps},
      {"Sign", kSteps},
      {"Hardmax", kSteps},
      {"ArgMax", kPlaces},
      {"ArgMin", kPlaces},
      {"NonZero", kPlaces},
      {"NonMaxSuppression", kPlaces},
      {"Shape", kShapes},
      {"Size", kShapes},
      {"SequenceLength", kShapes},
      {"ConstantOfShape", kShapes},
      {"EyeLike", kShapes},
      {"Equal", kTruths},
      {"Greater", kTruths},
      {"GreaterOrEqual", kTruths},
      {"Less", kTruths},
      {"LessOrEqual", kTruths},
      {"IsNaN", kTruths},
      {"IsInf", kTruths},
      {"OptionalHasElement", kTruths},
      {"RandomNormalLike", kRandom},
      {"RandomUniformLike", kRandom},
      {"Bernoulli", kRandom},
      {"Multinomial", kRandom},
  };
  for (const Flat& flat : kFlat) {
    EDDY_RETURN_IF_ERROR(table.add({.op = flat.op, .reason = flat.reason}));
  }
  // By key: of its input the shape is read.
  return table.add({.op = "KeyedUniform", .domain = "eddy", .reason = kRandom});
}

}  // namespace eddy
