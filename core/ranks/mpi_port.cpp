// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ranks/rank_port.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

namespace {

/// Messages by MPI. One call at a time goes to the library, which then needs no more than MPI_THREAD_SERIALIZED.
class MpiPort final : public meshwright::RankPort {
public:
    MpiPort()
    {
        MPI_Comm_rank(MPI_COMM_WORLD, &m_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &m_size);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int isFound = 0;
        const int* limit = nullptr;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&limit), &isFound);
        if (isFound != 0 && limit != nullptr)
            m_largestTag = *limit;
    }

    int rank() const override { return m_rank; }
    int size() const override { return m_size; }
    int largestTag() const override { return m_largestTag; }

    std::size_t send(int to, int tag, const std::byte* data, std::int64_t bytes) override
    {
        const std::lock_guard lock(m_mutex);
        const std::size_t slot = freeSlot();
        m_failed[slot]
            = MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &m_requests[slot]) != MPI_SUCCESS;
        return slot;
    }

    std::size_t receive(int from, int tag, std::byte* data, std::int64_t bytes) override
    {
        const std::lock_guard lock(m_mutex);
        const std::size_t slot = freeSlot();
        m_failed[slot]
            = MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, &m_requests[slot]) != MPI_SUCCESS;
        return slot;
    }

    State stateOf(std::size_t message) override
    {
        const std::lock_guard lock(m_mutex);
        int isDone = 0;
        const bool failed = m_failed[message] || MPI_Test(&m_requests[message], &isDone, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        if (!failed && isDone == 0)
            return State::UnderWay;
        m_free.push_back(message);
        return failed ? State::Failed : State::Done;
    }

    void leave() override { MPI_Finalize(); }

private:
    std::size_t freeSlot()
    {
        if (m_free.empty()) {
            m_requests.push_back(MPI_REQUEST_NULL);
            m_failed.push_back(false);
            return m_requests.size() - 1;
        }
        const std::size_t slot = m_free.back();
        m_free.pop_back();
        return slot;
    }

    int m_rank = 0;
    int m_size = 1;
    int m_largestTag = 32767;
    std::mutex m_mutex;
    std::vector<MPI_Request> m_requests;
    std::vector<bool> m_failed;
    std::vector<std::size_t> m_free;
};

} // namespace

extern "C" meshwright::RankPort* meshwrightOpenRankPort(char* why, std::size_t whyBytes)
{
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
        std::snprintf(why, whyBytes, "MPI_Init_thread failed");
        return nullptr;
    }
    if (provided < MPI_THREAD_SERIALIZED) {
        std::snprintf(why, whyBytes, "this MPI cannot be called from several threads");
        return nullptr;
    }
    return new MpiPort;
}
