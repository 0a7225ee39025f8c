// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/schedule/schedule.h"
#include "sim/cost/device_cost.h"
#include "sim/simulate/instruction_work.h"
#include "sim/simulate/network_sites.h"
#include "sim/simulate/simulation.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// Numbers of moves over the host's link begin here, where those of collectives are meant too.
inline constexpr std::uint32_t kFirstMove = 1U << 30;

/// What an op of a step stands for.
struct StepOpNote {
    enum class Kind : std::uint8_t {
        Compute, ///< `index` is a work of the writer's
        Wait, ///< computing goes on when the collective `index` (of the caller's numbers), or from kFirstMove on a move of the writer's, is over, or with
        ///< kNothing when the host has started what comes; takes no time
        Launch, ///< the host starts kernels
        Collective, ///< `index` is the caller's number
        Move, ///< to the host's memory or back: `index` is kFirstMove and the number of a move of the writer's
        Relay, ///< hands on what an earlier part of the program did
        Function, ///< `index` is a whole function of the writer's
    };
    Kind kind = Kind::Relay;
    std::uint32_t index = 0;
    std::uint32_t task = kNothing; ///< of Compute and Function: the caller's number of what it is part of
};

/// A computing instruction, as often as it comes.
struct KernelWork {
    std::string label;
    std::string formula;
    std::int64_t turns = 1; ///< of loops around it that only compute: each op of it stands for all
    OpTime time; ///< of one turn
    std::int64_t bytes = 0; ///< of all turns
    double flops = 0.0; ///< of a product, of all turns
    bool isProduct = false;
    bool isUpdate = false; ///< of the optimizer
};

/// A function that takes its course whenever it begins: nothing else is on the links of its collectives, and no kernel waits for the host.
struct WholeFunction {
    struct Part {
        Ticks begin = 0; ///< from the function's beginning
        Ticks end = 0;
        StepOpNote note;
    };
    std::vector<Part> parts; ///< by their ends
    Ticks ticks = 0;
    Ticks launching = 0; ///< of the host, for all kernels
    Ticks lead = 0; ///< that the host gains before the device, at least
    Ticks leastLead = 0; ///< that it has lost at most by any kernel: <= 0
    double computeSeconds = 0.0;
};

/// A part of a program: its ops, a number of times.
struct StageLoop {
    StepProgram program;
    std::int64_t repeat = 1;
    std::vector<StepOpNote> notes; ///< for each op
};

/// Writes what the devices of one stage do as a step for the network: a stream that computes in order, and streams that carry collectives
/// in order. A collective starts when its stream and everything before it in the schedule is ready; its CollectiveDone waits for it. Moves over the
/// host's link do the same on a stream for each direction.
///
/// The host starts one kernel after the other and waits for nothing; a kernel begins when the host has started it. That is written only where the device
/// may have to wait: where kernels so far take less time than the host needs for them.
///
/// Loops of instructions stay loops where the caller says so and they stand in a function's own list; others are written out.
class StepWriter {
public:
    /// Sites and cost must outlive the writer. `unstated`: see `workOf`. `hostLinkBytesPerSecond`: of a device, one way; > 0 where something is moved.
    StepWriter(
        NetworkSites& sites, const DeviceCost& cost, MatmulPrecision unstated, bool keepLoops, double hostLinkBytesPerSecond);

    /// Gives the collectives of a function sites. They get the caller's numbers from `firstUse` on, in the order of `collectivesOf`.
    void announce(const DeviceFunction& function, const Mesh& mesh, std::uint32_t firstUse);

    /// What is to be known of each instruction of the function's own list: the last computing op before it.
    using Moments = std::vector<std::pair<std::uint32_t, std::uint32_t>>; ///< loop and op; kNothing: none

    /// All instructions of an announced function. The moments have one entry more than there are instructions.
    Moments execute(const ScheduledFunction& function);

    /// Learns how an announced function goes by itself, where that is all there is to know of it. To be called when all sites were added and before
    /// anything is written.
    void learnWhole(const ScheduledFunction& function);

    /// As `execute`, from the function's beginning to its end: as one op where it was learnt and the host is far enough ahead.
    Moments executeWhole(const ScheduledFunction& function);

    /// What is written from here on is part of the caller's task of this number.
    void beginTask(std::uint32_t task)
    {
        settle();
        m_task = task;
    }

    /// Part of a transfer between stages; `use` is the caller's number. A sender has computed what it sends; a receiver takes it as soon as
    /// it comes.
    void send(std::uint32_t site, std::uint32_t meeting, std::uint32_t use);
    void receive(std::uint32_t site, std::uint32_t meeting, std::uint32_t use);
    void waitForReceived(std::uint32_t use);

    /// Ends the program. Nothing can be added after it.
    std::vector<StageLoop> finish();

    const std::vector<KernelWork>& works() const { return m_works; }
    const std::vector<WholeFunction>& wholes() const { return m_wholes; }

    /// Without what they were like.
    const std::vector<SimulatedMove>& moves() const { return m_moves; }

    /// Ops that a device runs, each loop once.
    std::int64_t opsWritten() const { return m_opsWritten; }

    /// How long a device computes at full speed, its loops as often as they run.
    double computeSeconds() const { return m_computeSeconds; }

private:
    /// Something that ops wait for in turn: a stream, or the end of a collective.
    struct Resource {
        std::uint32_t before = kNothing; ///< its last op in the loop before
        std::uint32_t now = kNothing; ///< in the loop at hand
        bool isLive = true; ///< something may still wait for it
    };
    struct PendingOp {
        Ticks ticks = 0;
        std::uint32_t site = kNothing;
        std::uint32_t meeting = 0;
        std::vector<std::uint32_t> ops; ///< of the loop at hand
        std::vector<std::uint32_t> earlier; ///< resources as the loop at hand finds them
        StepOpNote note;
    };
    struct Announced {
        std::uint32_t site = 0;
        std::uint32_t use = 0;
        std::uint32_t resource = kNothing; ///< its end
        std::int64_t members = 1;
    };
    /// What of a product that is taken part by part is still to be written.
    struct Rest {
        std::uint32_t work = kNothing; ///< none
        double share = 0.0; ///< of its time
        const Announced* gather = nullptr; ///< that its last part waits for
        double last = 0.0; ///< the share of that part
        ValueId result = {};
    };

    std::uint32_t add(
        PendingOp pending, std::initializer_list<std::uint32_t> waits, std::initializer_list<std::uint32_t> becomes);
    std::uint32_t newResource();
    void startKernels(std::uint32_t work, double share);
    void noteLaunches();
    void waitWhereHostIsLate();
    void waitForHost();
    std::pair<std::uint32_t, std::uint32_t> moment() const;
    void writeTurns(std::int64_t turns, const std::function<void()>& writeOne);
    std::uint32_t streamResource(std::uint32_t site);
    void startMove(const Function& function, const Instruction& instruction);
    const Announced& moveOf(const Function& function, const Instruction& instruction);
    bool stopsDevice(const Function& function, const Op& op) const;
    void write(const ScheduledFunction& function, const Instruction& instruction, bool isTop);
    void writeLoop(const ScheduledFunction& function, const Instruction& loop, bool isTop);
    void compute(const ScheduledFunction& function, const Instruction& instruction);
    void computeShare(std::uint32_t work, double share);
    bool beginsInParts(const ScheduledFunction& scheduled, const Instruction& instruction);
    void finishProduct();
    void settle();
    void take(const Announced& collective);
    void waitFor(const Announced& collective);
    std::uint32_t workOfInstruction(const ScheduledFunction& scheduled, const Instruction& instruction);
    void begin(std::int64_t repeat) { m_repeat = repeat; }
    void end();

    NetworkSites& m_sites;
    const DeviceCost& m_cost;
    MatmulPrecision m_unstated;
    bool m_keepLoops;
    std::map<const ScheduledFunction*, InstructionTimes> m_times;
    std::vector<Resource> m_resources; ///< the first is the computing stream, the second the host that starts kernels
    std::map<std::uint32_t, std::uint32_t> m_streams; ///< of the sites' streams: resource
    std::map<std::pair<const Function*, OpId>, Announced> m_announced; ///< collectives, and moves as they come
    double m_hostLink;
    std::map<Stream, std::uint32_t> m_hostStreams; ///< resources
    std::vector<SimulatedMove> m_moves;
    std::map<std::uint32_t, std::uint32_t> m_received; ///< by use: resource
    std::map<const Instruction*, std::uint32_t> m_workOf;
    std::vector<KernelWork> m_works;
    std::vector<WholeFunction> m_wholes;
    std::map<const ScheduledFunction*, std::uint32_t> m_wholeOf; ///< of those that were learnt
    std::vector<StageLoop> m_loops;
    std::vector<PendingOp> m_pending;
    std::map<std::uint32_t, std::uint32_t> m_meetings; ///< of the loop at hand, by site
    std::int64_t m_repeat = 1;
    std::int64_t m_turns = 1;
    std::uint32_t m_task = kNothing;
    const Announced* m_arriving = nullptr; ///< a gather that the next product may take part by part, and what it gives
    ValueId m_arrived = {};
    Rest m_rest;
    Ticks m_launching = 0; ///< of the host, for kernels whose start is not written yet
    Ticks m_gained = 0; ///< by the host, were nobody waiting: what kernels so far take less what their starts take
    Ticks m_lead = 0; ///< of the host before the device, at least
    Ticks m_leastLead = 0; ///< since it was last set
    bool m_hostDecides = false; ///< in a loop whose turns take the host longer than the device
    std::int64_t m_opsWritten = 0;
    double m_computeSeconds = 0.0;
};

} // namespace meshwright::sim
