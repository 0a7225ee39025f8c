// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/calibrate/host_probes.h"

#include <memory>
#include <stop_token>

namespace meshwright::sim {

/// A small training that is always the same: what it takes says how quick the computer is just now, beside what it took when the profile was made.
class HostReference {
public:
    /// Problems: those of the runtime.
    static Result<std::unique_ptr<HostReference>> create(int permits);

    /// A few steps. Best called now and then while the other thing is measured. Problems: those of the runtime; MW1507 `stop` was asked for.
    Result<Done> run(const std::stop_token& stop);

    /// Of a typical step so far; nothing before the first run.
    HostSpeed speed() const;

private:
    explicit HostReference(int permits)
        : m_prober(permits)
    {
    }

    Prober m_prober;
    std::unique_ptr<Probe> m_probe;
    bool m_hasRun = false;
};

/// The profile of the computer as quick as it is `now`. Where nothing is known of now, the profile itself.
HostProfile atSpeed(HostProfile profile, const HostSpeed& now);

} // namespace meshwright::sim
