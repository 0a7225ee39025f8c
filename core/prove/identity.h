// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/prove/walk.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace meshwright {

/// What a device's value is, where the lemmas do not say it: both functions are run on elements at a random point, twice (`Algebra`), and values that are
/// equal there are the same polynomials of the inputs. What is said so is right but for a chance of less than 1 in 2^40. For programs that are small, as
/// they are drawn or written by hand: functions with more than a million elements on all devices are left alone.
class Identities {
public:
    /// What the lemmas say of the device's values is taken from `device`, as far as it is known when it is asked for.
    /// Precondition: the arguments lie as the source declares them, in pieces of the sizes that their layouts say.
    Identities(const Walk& source, const Walk& device, std::stop_token stop);
    ~Identities();

    /// The device's value is the value of the source that stands so, laid out by `layout`; of the outermost blocks' values only.
    bool stands(ValueId value, const Standing& wanted, const TensorSharding& layout);

    /// All devices take the same branches and turns in a loop or branch of the outermost block, and come to its end.
    bool takesOneWay(OpId op);

private:
    class Trial;

    template <typename Holds>
    bool inAllTrials(const Holds& holds);

    const Walk& m_source;
    const Walk& m_device;
    std::stop_token m_stop;
    bool m_isMade = false;
    std::vector<std::unique_ptr<Trial>> m_trials; ///< none: the functions are too large
};

} // namespace meshwright
