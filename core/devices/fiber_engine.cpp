// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/device_engine.h"

#include "core/devices/clocks.h"
#include "core/devices/fiber_stack.h"

#include <boost/context/detail/fcontext.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace meshwright {

namespace {

namespace context = boost::context::detail;

/// What code runs on: a stack, and where on it the code stands while other stacks run. Sanitizers are told of every jump.
struct Runner {
    context::fcontext_t at = nullptr;
#if defined(__SANITIZE_ADDRESS__)
    void* fakeStack = nullptr;
    const void* bottom = nullptr;
    std::size_t bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
    void* fiber = nullptr;
#endif
};

void noteDeparture([[maybe_unused]] Runner& from, [[maybe_unused]] Runner& to, [[maybe_unused]] bool forGood)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(forGood ? nullptr : &from.fakeStack, to.bottom, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to.fiber, 0);
#endif
}

/// On `here`, after a jump from another one.
void noteArrival([[maybe_unused]] Runner& here, context::transfer_t jump)
{
    Runner& from = *static_cast<Runner*>(jump.data);
    from.at = jump.fctx;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(here.fakeStack, &from.bottom, &from.bytes);
#endif
}

/// Goes on with `to`; returns when somebody goes on with `from`.
void jump(Runner& from, Runner& to, bool forGood = false)
{
    noteDeparture(from, to, forGood);
    noteArrival(from, context::jump_fcontext(to.at, &from));
}

/// A thread that carries some of the devices, each of which runs until it waits. Devices never go to another worker, so that what is
/// local to a thread stays what it was for them, too.
class Worker {
public:
    /// `events` counts the changes of all words; `serve` outlives this.
    Worker(std::atomic<std::uint32_t>& events, const DeviceEngine::Serve& serve, std::int64_t first, std::int64_t count)
        : m_events(events)
        , m_serve(serve)
        , m_first(first)
        , m_fibers(static_cast<std::size_t>(count))
        , m_turns(m_fibers.size(), kNow)
        , m_left(m_fibers.size())
    {
    }

    ~Worker()
    {
        join();
#if defined(__SANITIZE_THREAD__)
        for (const Fiber& fiber : m_fibers) {
            if (fiber.fiber != nullptr)
                __tsan_destroy_fiber(fiber.fiber);
        }
#endif
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// The number of stacks that the host gave. Less than all: `start` may not be called.
    std::size_t allocateStacks()
    {
        for (std::size_t i = 0; i < m_fibers.size(); ++i) {
            Fiber& fiber = m_fibers[i];
            if (!fiber.stack.allocate(DeviceEngine::kStackBytes))
                return i;
            // Stacks lie whole pages apart. Beginning at the same place in a page, all would want the same few lines of a cache.
            const std::size_t shift = i % kStackColours * kStackColourBytes;
            fiber.at = context::make_fcontext(fiber.stack.top() - shift, fiber.stack.bytes() - shift, enter);
#if defined(__SANITIZE_ADDRESS__)
            fiber.bottom = fiber.stack.bottom();
            fiber.bytes = fiber.stack.bytes();
#endif
#if defined(__SANITIZE_THREAD__)
            fiber.fiber = __tsan_create_fiber(0);
#endif
        }
        return m_fibers.size();
    }

    /// Throws when the host refuses the thread.
    void start()
    {
        m_thread.emplace([this] { run(); });
    }

    void join()
    {
        if (m_thread)
            m_thread->join();
        m_thread.reset();
    }

    static Worker* current()
    {
        return s_current;
    }

    // On one of the devices: as `Parking` has them.
    void await(const std::atomic<std::uint32_t>& word, std::uint32_t value)
    {
        while (word.load(std::memory_order_acquire) == value)
            giveWay({&word, value, false});
    }

    bool linger(const std::atomic<std::uint32_t>& word, std::uint32_t value)
    {
        giveWay({&word, value, true});
        return word.load(std::memory_order_acquire) != value;
    }

private:
    struct Fiber : Runner {
        FiberStack stack;
    };

    /// What a device that does not run waits for.
    struct Turn {
        const std::atomic<std::uint32_t>* word;
        std::uint32_t value;
        bool isBrief; ///< it goes on before the thread sleeps, whatever has come

        bool hasCome() const { return word->load(std::memory_order_acquire) != value; }
    };

    /// The thread: lets the devices run, in their order, and again, as long as there is one that can.
    void run()
    {
        s_current = this;
#if defined(__SANITIZE_THREAD__)
        m_self.fiber = __tsan_get_current_fiber();
#endif
        while (m_left > 0) {
            const std::uint32_t seen = m_events.load(std::memory_order_acquire); // what changes from now on wakes us
            if (!goOn(m_self, 0) && !changesSoon(seen) && !rouse())
                m_events.wait(seen, std::memory_order_acquire);
        }
    }

    /// Other workers are about as far as we are: giving the core away again and again for as long as it takes to be woken is better than to
    /// sleep. Where others want the core, the first time takes longer than that.
    bool changesSoon(std::uint32_t seen) const
    {
        constexpr double kWakingSeconds = 30e-6;
        for (const double end = wallSeconds() + kWakingSeconds; m_events.load(std::memory_order_acquire) == seen;) {
            if (wallSeconds() >= end)
                return false;
            std::this_thread::yield();
        }
        return true;
    }

    /// Makes those go on that wait only briefly. False when there are none.
    bool rouse()
    {
        bool any = false;
        for (Turn& turn : m_turns) {
            any = any || turn.isBrief;
            if (turn.isBrief)
                turn = kNow;
        }
        return any;
    }

    /// From the device that runs, which waits from now on.
    void giveWay(const Turn& turn)
    {
        const std::size_t self = m_running;
        m_turns[self] = turn;
        goOn(m_fibers[self], self + 1);
    }

    /// From `from` to the first device at or after `first` that need not wait, or else back to the thread. False when that is where we are.
    bool goOn(Runner& from, std::size_t first, bool forGood = false)
    {
        const auto next = std::find_if(
            m_turns.begin() + static_cast<std::ptrdiff_t>(first), m_turns.end(), [](const Turn& turn) { return turn.hasCome(); });
        m_running = static_cast<std::size_t>(next - m_turns.begin());
        Runner& to = next == m_turns.end() ? m_self : m_fibers[m_running];
        if (&to == &from)
            return false;
        jump(from, to, forGood);
        return true;
    }

    static void enter(context::transfer_t jump)
    {
        s_current->serve(jump);
    }

    /// All that happens on a device. Nobody ever goes on with it after that.
    void serve(context::transfer_t jump)
    {
        const std::size_t self = m_running;
        noteArrival(m_fibers[self], jump);
        m_serve(m_first + static_cast<std::int64_t>(self));
        m_turns[self] = {&s_zero, 0, false}; // never
        --m_left;
        goOn(m_fibers[self], self + 1, true);
    }

    static constexpr std::size_t kStackColours = 61;
    static constexpr std::size_t kStackColourBytes = 64;
    inline static const std::atomic<std::uint32_t> s_zero{0};
    static constexpr Turn kNow{&s_zero, 1, false};
    inline static thread_local Worker* s_current = nullptr;

    std::atomic<std::uint32_t>& m_events;
    const DeviceEngine::Serve& m_serve;
    std::int64_t m_first;
    std::vector<Fiber> m_fibers; ///< by device
    std::vector<Turn> m_turns; ///< by device
    std::size_t m_running = 0; ///< device; the number of them: none
    std::size_t m_left; ///< devices that have not ended
    Runner m_self; ///< the thread
    std::optional<std::thread> m_thread;
};

class FiberEngine final : public DeviceEngine {
public:
    explicit FiberEngine(int workers)
        : m_workerCount(workers)
    {
    }

    EngineKind kind() const override { return EngineKind::Fibers; }

    void join() override
    {
        for (const auto& worker : m_workers)
            worker->join();
    }

    Result<Done> start(std::int64_t first, std::int64_t count, Serve serve) override
    {
        m_serve = std::move(serve);
        const auto refused = [&](const std::string& what) {
            return Problem{"MW1509", fmt::format("the host refused {} of {} virtual devices", what, count),
                "use a smaller mesh, or raise the limits on processes and memory"};
        };
        const std::int64_t workers = std::min<std::int64_t>(m_workerCount, count);
        std::vector<std::unique_ptr<Worker>> made;
        for (std::int64_t i = 0; i < workers; ++i) {
            const std::int64_t begin = i * count / workers;
            const std::int64_t mine = (i + 1) * count / workers - begin;
            made.push_back(std::make_unique<Worker>(m_events, m_serve, first + begin, mine));
            const auto stacks = static_cast<std::int64_t>(made.back()->allocateStacks());
            if (stacks < mine)
                return refused(fmt::format("stack {}", begin + stacks + 1));
        }
        m_workers = std::move(made);
        try {
            for (const auto& worker : m_workers)
                worker->start();
        } catch (const std::system_error&) {
            return refused("a thread");
        }
        return Done{};
    }

    void await(const std::atomic<std::uint32_t>& word, std::uint32_t value) override
    {
        assert(Worker::current() != nullptr);
        Worker::current()->await(word, value);
    }

    bool linger(const std::atomic<std::uint32_t>& word, std::uint32_t value) override
    {
        assert(Worker::current() != nullptr);
        return Worker::current()->linger(word, value);
    }

    void changed(std::atomic<std::uint32_t>&) override
    {
        m_events.fetch_add(1, std::memory_order_acq_rel);
        m_events.notify_all();
    }

private:
    int m_workerCount;
    Serve m_serve;
    std::atomic<std::uint32_t> m_events{0};
    std::vector<std::unique_ptr<Worker>> m_workers;
};

} // namespace

bool hasFibers()
{
    return true;
}

std::unique_ptr<DeviceEngine> makeFiberEngine(int workers)
{
    return std::make_unique<FiberEngine>(workers);
}

} // namespace meshwright
