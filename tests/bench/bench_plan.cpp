// SPDX-License-Identifier: GPL-3.0-or-later
// How many layouts of a training step the closed form predicts in a second, on one thread.
#include "core/support/resources.h"
#include "sim/hardware/catalogue.h"
#include "sim/transformer/step.h"
#include "tests/bench/gpt3.h"

#include <chrono>
#include <cstdio>

int main()
{
    using namespace meshwright;
    using namespace meshwright::sim;
    const auto catalogue = Catalogue::load(resourcesDirectory() / "hardware/catalogue.json");
    const auto calibration = Calibration::load(resourcesDirectory() / "hardware/calibration.json");
    if (!catalogue || !calibration)
        return 3;
    const Chip& chip = *catalogue->find("h100")->chip;
    TrainingPlan plan;
    plan.model = gpt3();
    plan.work.sequence = 2048;
    plan.work.globalBatch = 1536;
    constexpr std::int64_t kDevices = 1024;
    ClusterChoice cluster;
    cluster.devices = kDevices;
    StepModel model(chip, cluster, calibration->constants("", chip), calibration->traits(""));
    std::size_t tried = 0;
    double best = 0.0;
    const auto start = std::chrono::steady_clock::now();
    double seconds = 0.0;
    while (seconds < 2.0) {
        for (const std::int64_t tp : {1, 2, 4, 8}) {
            for (const std::int64_t pp : {1, 2, 4, 8, 16, 32}) {
                for (const std::int64_t chunks : {1, 3}) {
                    for (const double microbatch : {1.0, 2.0, 4.0}) {
                        for (const char* policy : {"none", "selective", "full"}) {
                            for (const int zero : {0, 1, 3}) {
                                plan.layout = {};
                                plan.layout.dp = kDevices / tp / pp;
                                plan.layout.tp = tp;
                                plan.layout.pp = pp;
                                plan.layout.virtualStages = chunks;
                                plan.layout.sequenceParallel = tp > 1;
                                plan.layout.zeroStage = zero;
                                plan.layout.schedule
                                    = chunks > 1 ? PipelineOrder::Interleaved : PipelineOrder::OneForwardOneBackward;
                                plan.work.microbatch = microbatch;
                                plan.work.recompute = *recomputationOf(policy);
                                const StepEstimate step = model.estimate(plan);
                                if (step.fits && (best == 0.0 || step.seconds < best))
                                    best = step.seconds;
                                ++tried;
                            }
                        }
                    }
                }
            }
        }
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    std::printf("GPT 175B on 1,024 H100: %.0f layouts a second, %.1f us each; the best takes %.2f s\n",
        static_cast<double>(tried) / seconds, 1e6 * seconds / static_cast<double>(tried), best);
}
