// Networks of the literature as their exports have them, normalizations folded into biases, for
// counting launches: published depth and widths, weights each unlike the others; of images'
// networks nearly zero.
#pragma once

#include "graph/ir/builder.h"

namespace eddy::testing {

// Images of 224 x 224 (He et al., "Deep Residual Learning for Image Recognition", CVPR 2016).
void resnet50(GraphBuilder& b);
// Images of 299 x 299 (Szegedy et al., "Rethinking the Inception Architecture", CVPR 2016), without
// the auxiliary classifier, as torchvision has it.
void inception_v3(GraphBuilder& b);
// 12 layers over 128 tokens already embedded, `hidden` wide with 12 heads, as PyTorch's encoder is
// exported: scores divided by a root, GELU by Erf. Counts do not depend on the width.
void bert_like(GraphBuilder& b);
// The same of torch.nn.TransformerEncoder, batch first, whose queries, keys and values are one
// product: as PyTorch 2 exports it, entries of a turned copy, both sides scaled; as 1.13 does,
// slices.
void packed_encoder(GraphBuilder& b, int num_layers);
void sliced_encoder(GraphBuilder& b, int num_layers);

}  // namespace eddy::testing
