// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/devices/parking.h"
#include "core/support/result.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace meshwright {

/// What virtual devices are.
enum class EngineKind : std::uint8_t {
    Auto, ///< fibers where many devices share a process, else threads
    Threads, ///< one for each device: the system shares the cores among them
    Fibers, ///< one for each device, on one thread for each core: waiting costs a jump instead of a visit to the system
};

/// With more devices than this in one process, `EngineKind::Auto` means fibers, in a build that has them.
constexpr std::int64_t kMostThreadDevices = 32;

std::string engineName(EngineKind kind); ///< "auto", "threads", "fibers"

/// The inverse. Problems: MW1526 there is no such engine.
Result<EngineKind> parseEngine(const std::string& name);

/// The environment variable that names an engine for all devices whose engine is left open, as benchmarks and tests want it.
inline constexpr const char* kEngineVariable = "MESHWRIGHT_ENGINE";

/// What the variable says; Auto when it is not set. Problems: MW1526.
Result<EngineKind> engineFromEnvironment();

/// Threads or fibers, for so many devices in this process. Problems, with fibers asked for by name: MW1524 this build has none,
/// MW1525 several processes share the devices: who waits for messages of the others keeps a whole core's fibers waiting.
Result<EngineKind> chooseEngine(EngineKind wanted, std::int64_t devicesHere, bool severalProcesses, bool buildHasFibers);

/// Carries the devices of one process. Every device is a sequence of steps of its own, with a stack of its own, that runs until it
/// waits at the engine. While a device waits, others run.
class DeviceEngine : public Parking {
public:
    using Serve = std::function<void(std::int64_t device)>;

    /// Calls `serve` once for each of `count` devices from `first` on, on the device itself. Once only. After a problem, some devices may
    /// have been started. Problems: MW1509 the host refuses a thread or a stack.
    virtual Result<Done> start(std::int64_t first, std::int64_t count, Serve serve) = 0;

    /// Waits until all calls of `serve` have returned.
    virtual void join() = 0;

    virtual EngineKind kind() const = 0;

    /// Enough for the libraries of products, which keep small panels on the stack (Eigen up to 128 KiB; our own code is 44 KiB deep at most).
    /// Memory is taken as it is used.
    static constexpr std::size_t kStackBytes = std::size_t{1} << 20;
};

std::unique_ptr<DeviceEngine> makeThreadEngine();

/// `workers` threads (not more than there are devices) share the devices in contiguous blocks, whose neighbours thus share a core. Null in
/// a build without fibers.
std::unique_ptr<DeviceEngine> makeFiberEngine(int workers);

/// True when Boost.Context was there when Meshwright was built.
bool hasFibers();

} // namespace meshwright
