// SPDX-License-Identifier: GPL-3.0-or-later

// In the place of fiber_engine.cpp where there is no Boost.Context.
#include "core/devices/device_engine.h"

namespace meshwright {

bool hasFibers()
{
    return false;
}

std::unique_ptr<DeviceEngine> makeFiberEngine(int)
{
    return nullptr;
}

} // namespace meshwright
