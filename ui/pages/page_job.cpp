// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/page_job.h"

#include <QMetaObject>

namespace meshwright::ui {

struct PageJob::Process {
    std::shared_ptr<const OpenPage> page; ///< outlives the session
    std::unique_ptr<pages::PageSession> session; ///< null: none was started, or it ended
};

PageJob::PageJob(QObject* parent)
    : QObject(parent)
    , m_onThread(new QObject)
{
    m_onThread->moveToThread(&m_thread);
    connect(&m_thread, &QThread::finished, m_onThread, &QObject::deleteLater);
    m_thread.start();
}

PageJob::~PageJob()
{
    m_stop.request_stop();
    m_thread.quit();
    m_thread.wait();
}

void PageJob::open(std::shared_ptr<const OpenPage> page)
{
    m_stop.request_stop();
    ++m_generation;
    m_isBusy = false;
    m_hasProcess = false;
    m_page = std::move(page);
    const auto before = std::exchange(m_process, std::make_shared<Process>());
    m_process->page = m_page;
    if (before) // it ends where nobody waits for it
        QMetaObject::invokeMethod(
            m_onThread, [before] { before->session.reset(); }, Qt::QueuedConnection);
}

void PageJob::post(std::uint64_t generation, std::function<void()> what)
{
    QMetaObject::invokeMethod(
        this,
        [this, generation, what = std::move(what)] {
            if (generation == m_generation)
                what();
        },
        Qt::QueuedConnection);
}

void PageJob::start(Work work)
{
    m_isBusy = true;
    m_stop = std::stop_source();
    QMetaObject::invokeMethod(
        m_onThread,
        [this, process = m_process, generation = m_generation, stop = m_stop.get_token(), work = std::move(work)] {
            const Problems problems = work(*process, stop);
            if (!problems.empty())
                process->session.reset();
            post(generation, [this, problems] {
                m_isBusy = false;
                m_hasProcess = problems.empty();
                Q_EMIT ended(problems);
            });
        },
        Qt::QueuedConnection);
}

void PageJob::run(std::size_t first, std::size_t last, const std::map<std::size_t, std::string>& sources)
{
    start([this, first, last, sources, generation = m_generation](Process& process, const std::stop_token& stop) -> Problems {
        const OpenPage& open = *process.page;
        if (!process.session) {
            auto session = pages::PageSession::start(open.page, open.machine, open.choices);
            if (!session)
                return session.error();
            process.session = *std::move(session);
        }
        for (const auto& [cell, source] : sources) {
            if (const auto changed = process.session->change(cell, source, stop); !changed)
                return changed.error();
        }
        for (std::size_t cell = first; cell <= last; ++cell) {
            post(generation, [this, cell] { Q_EMIT began(cell); });
            auto result = process.session->run(cell, stop);
            if (!result)
                return result.error();
            post(generation, [this, cell, shared = std::make_shared<const pages::CellResult>(*std::move(result))] {
                Q_EMIT ran(cell, shared);
            });
        }
        if (last + 1 == open.page.cells.size()) {
            auto findings = process.session->findings(stop);
            if (!findings)
                return findings.error();
            post(generation, [this, all = *std::move(findings)] { Q_EMIT found(all); });
        }
        return {};
    });
}

void PageJob::judge(std::size_t cell, const std::string& answer)
{
    start([this, cell, answer, generation = m_generation](Process& process, const std::stop_token& stop) -> Problems {
        const auto judgement = process.session->judge(cell, answer, stop);
        if (!judgement)
            return judgement.error();
        post(generation, [this, cell, said = *judgement] { Q_EMIT judged(cell, said); });
        return {};
    });
}

void PageJob::stop()
{
    m_stop.request_stop();
}

} // namespace meshwright::ui

#include "moc_page_job.cpp"
