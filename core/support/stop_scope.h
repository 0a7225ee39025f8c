// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <stop_token>
#include <utility>

namespace meshwright {

/// Thrown by `heedStop`. Beside the standard library's it is the one exception that crosses folders, as building a program goes through many of them: from
/// any piece of long work to the `unlessStopped` that began it, and no further.
struct Stopped { };

/// While it lives, work on this thread ends where it heeds a stop. Scopes nest: the innermost one counts.
class StopScope {
public:
    explicit StopScope(std::stop_token stop);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

    const std::stop_token& token() const { return m_stop; }

private:
    std::stop_token m_stop;
    const StopScope* m_outer;
};

/// Throws `Stopped` where the scope's token asks for it; does nothing outside of scopes. Whoever computes long calls it between pieces of bounded size.
void heedStop();

/// What `work` gives, or nothing if `stop` asked for its end before. A thread that `work` starts needs a scope of its own, and hands on what is thrown.
template <typename Work>
auto unlessStopped(std::stop_token stop, const Work& work) -> std::optional<decltype(work())>
{
    const StopScope scope(std::move(stop));
    try {
        return work();
    } catch (const Stopped&) {
        return std::nullopt;
    }
}

} // namespace meshwright
