// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/device_engine.h"

#include <fmt/format.h>
#include <pthread.h>

#include <thread>
#include <vector>

namespace meshwright {

namespace {

/// Gives the core away a few times, and then sleeps.
template <typename Base>
class OnThreads : public Base {
public:
    bool linger(const std::atomic<std::uint32_t>& word, std::uint32_t value) override
    {
        constexpr int kYields = 8;
        for (int i = 0; i < kYields && word.load(std::memory_order_acquire) == value; ++i)
            std::this_thread::yield();
        return word.load(std::memory_order_acquire) != value;
    }

    void await(const std::atomic<std::uint32_t>& word, std::uint32_t value) override
    {
        while (word.load(std::memory_order_acquire) == value)
            word.wait(value, std::memory_order_acquire);
    }

    void changed(std::atomic<std::uint32_t>& word) override { word.notify_all(); }
};

class ThreadEngine final : public OnThreads<DeviceEngine> {
public:
    ~ThreadEngine() override { join(); }

    void join() override
    {
        for (const auto& thread : m_threads)
            pthread_join(thread->handle, nullptr);
        m_threads.clear();
    }

    EngineKind kind() const override { return EngineKind::Threads; }

    Result<Done> start(std::int64_t first, std::int64_t count, Serve serve) override
    {
        m_serve = std::move(serve);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, kStackBytes);
        int error = 0;
        for (std::int64_t device = first; device < first + count && error == 0; ++device) {
            auto thread = std::make_unique<Thread>(Thread{this, device, {}});
            error = pthread_create(&thread->handle, &attributes, threadMain, thread.get());
            if (error == 0)
                m_threads.push_back(std::move(thread));
        }
        pthread_attr_destroy(&attributes);
        if (error != 0) {
            return Problem{"MW1509",
                fmt::format("the host refused thread {} of {} virtual devices (error {})", m_threads.size() + 1, count, error),
                "use a smaller mesh, or raise the limits on processes and memory"};
        }
        return Done{};
    }

private:
    struct Thread {
        ThreadEngine* owner = nullptr;
        std::int64_t device = 0;
        pthread_t handle{};
    };

    static void* threadMain(void* start)
    {
        const auto* thread = static_cast<const Thread*>(start);
        thread->owner->m_serve(thread->device);
        return nullptr;
    }

    Serve m_serve;
    std::vector<std::unique_ptr<Thread>> m_threads;
};

} // namespace

Parking& threadParking()
{
    static OnThreads<Parking> parking;
    return parking;
}

std::unique_ptr<DeviceEngine> makeThreadEngine()
{
    return std::make_unique<ThreadEngine>();
}

} // namespace meshwright
