// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/stop_scope.h"

namespace meshwright {

namespace {

thread_local const StopScope* t_innermost = nullptr;

} // namespace

StopScope::StopScope(std::stop_token stop)
    : m_stop(std::move(stop))
    , m_outer(std::exchange(t_innermost, this))
{
}

StopScope::~StopScope()
{
    t_innermost = m_outer;
}

void heedStop()
{
    if (t_innermost != nullptr && t_innermost->token().stop_requested())
        throw Stopped{};
}

} // namespace meshwright
