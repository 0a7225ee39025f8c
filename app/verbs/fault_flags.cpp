// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/fault_flags.h"

namespace meshwright::cli {

Result<FaultOptions> faultOptions(const FaultFlags& flags)
{
    FaultOptions options;
    options.checkNumerics = flags.checkNumerics;
    Problems problems;
    for (const std::string& text : flags.inject) {
        auto fault = parseInjectedFault(text);
        if (fault)
            options.injected.push_back(*fault);
        else
            append(problems, fault.error());
    }
    if (!problems.empty())
        return problems;
    return options;
}

} // namespace meshwright::cli
