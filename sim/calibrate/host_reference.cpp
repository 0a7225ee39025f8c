// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_reference.h"

#include <algorithm>

namespace meshwright::sim {

namespace {

constexpr const char* kReference = R"yaml(meshwright: 1
name: reference
mesh: {data: 4}
model:
  mlp: {layers: [80, 144, 144, 144, 12], activation: relu, bias: true, loss: cross_entropy}
batch: 112
sharding:
  x: P('data', None)
  y: P('data', None)
  match: [{path: "*", spec: []}]
optimizer: {adam: {learning_rate: 1.0e-3}}
train: {steps: 1, seed: 0, data: random}
)yaml";

} // namespace

Result<std::unique_ptr<HostReference>> HostReference::create(int permits)
{
    std::unique_ptr<HostReference> reference(new HostReference(permits));
    auto probe = reference->m_prober.training(kReference);
    if (!probe)
        return probe.error();
    reference->m_probe = *std::move(probe);
    return reference;
}

Result<Done> HostReference::run(const std::stop_token& stop)
{
    constexpr int kSteps = 2;
    auto done = m_probe->run({kSteps, kSteps, 0.0}, stop);
    m_hasRun = m_hasRun || done;
    return done;
}

HostSpeed HostReference::speed() const
{
    HostSpeed speed;
    if (!m_hasRun)
        return speed;
    for (const HostSample& sample : samplesOf(m_probe->result(), HostProfile{})) {
        const auto has = [&](HostCost cost) { return sample.amounts[static_cast<std::size_t>(cost)] > 0.0; };
        if (!has(HostCost::WaitMeeting))
            (has(HostCost::ProductStart) ? speed.productSeconds : speed.otherSeconds) += sample.seconds;
    }
    return speed;
}

HostProfile atSpeed(HostProfile profile, const HostSpeed& now)
{
    if (now.productSeconds <= 0.0 || now.otherSeconds <= 0.0)
        return profile;
    const double products = now.productSeconds / profile.reference.productSeconds;
    const double others = now.otherSeconds / profile.reference.otherSeconds;
    for (std::size_t i = 0; i < kHostCosts; ++i) {
        const auto cost = static_cast<HostCost>(i);
        if (cost == HostCost::WaitShare) // of seconds
            continue;
        profile.costs[i] *= cost >= HostCost::ProductStart && cost <= HostCost::NarrowMemory ? products : others;
    }
    profile.reference = now;
    return profile;
}

} // namespace meshwright::sim
