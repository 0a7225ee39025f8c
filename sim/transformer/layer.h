// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/cost/device_cost.h"
#include "sim/cost/stack.h"
#include "sim/transformer/cluster.h"
#include "sim/transformer/plan.h"

namespace meshwright::sim {

/// Parameters of one rank (after tp, and ep for experts), before any sharding over data ranks.
struct RankParameters {
    double layer = 0.0; ///< mean over the layers, routed experts left out
    double experts = 0.0; ///< routed experts of a layer, mean over the layers
    double embedding = 0.0; ///< token and position tables
    double head = 0.0; ///< tied ones are counted here too where first and last stage differ
    double layerMatrices = 0.0; ///< that `layer` is made of, but for norms and biases
    double expertMatrices = 0.0; ///< that `experts` is made of: those of all experts of a rank are one
};
RankParameters rankParameters(const TrainingPlan& plan);

/// What one pass over one layer (or the head) takes on one device, by what it is spent on. Seconds, but for the counts.
struct PassCost {
    double products = 0.0;
    double attention = 0.0;
    double elementwise = 0.0;
    double tensor = 0.0; ///< collectives over tp
    double context = 0.0; ///< over cp, beyond what attention hides
    double expert = 0.0; ///< over ep
    double kernels = 0.0; ///< started

    PassCost& operator+=(const PassCost& other);
    friend PassCost operator*(double factor, const PassCost& pass);
    void scaleComputing(double factor); ///< and the number of kernels
    double computing() const { return products + attention + elementwise; }
    double communicating() const { return tensor + context + expert; }
};

/// Of a pass on its own: the device waits where the host is slower to start its kernels.
double passSeconds(const PassCost& pass, const DeviceCost& curve);

struct LayerCost {
    PassCost forward;
    PassCost again; ///< of the forward pass, what the backward pass computes again
    PassCost backward; ///< without `again`
    PassCost weights; ///< of `backward`: the gradients of weights
    double keptBytes = 0.0; ///< from forward to backward, on the device
    double hostBytes = 0.0; ///< sent to the host's memory meanwhile, and fetched again
    double fullBytes = 0.0; ///< the same when nothing is computed again: what lives while one layer is
    double workingBytes = 0.0; ///< largest temporaries besides
};

/// One layer and one microbatch; the mean over the kinds of layers that the model has (windowed or not, dense or experts).
LayerCost layerCost(const TrainingPlan& plan, const DeviceCost& curve, const Cluster& cluster, const StackConstants& constants);

/// Of a pipeline's ends.
struct EndCost {
    PassCost embeddingForward;
    PassCost embeddingBackward;
    PassCost headForward;
    PassCost headBackward;
    PassCost headWeights; ///< of `headBackward`: the gradient of the head
    double logitBytes = 0.0; ///< the logits, their 32-bit copy and their gradient
};
EndCost endCost(const TrainingPlan& plan, const DeviceCost& curve, const Cluster& cluster, const StackTraits& traits);

} // namespace meshwright::sim
