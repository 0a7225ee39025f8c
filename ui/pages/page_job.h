// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/pages/page_process.h"

#include <QObject>
#include <QThread>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

namespace meshwright::ui {

/// A page that is open, the machine that it believes it runs on, and what it may do.
struct OpenPage {
    std::string file;
    pages::Page page;
    pages::PageMachine machine;
    pages::PageChoices choices;
    std::string asked; ///< the machine, as its reader named it; empty: as the page says
};

/// What is wrong with a page as a whole, by cell.
using PageFindings = std::vector<std::pair<std::size_t, pages::PageFinding>>;

/// The process of a page, whose cells run off the UI thread, one run after the other. Everything is said on the thread of this object, and nothing of a
/// page that another one has replaced.
class PageJob : public QObject {
    Q_OBJECT

public:
    explicit PageJob(QObject* parent = nullptr);

    /// Ends the process; waits for that at most a moment.
    ~PageJob() override;

    /// Takes a page; the process of the one before is ended. Nothing runs yet.
    void open(std::shared_ptr<const OpenPage> page);

    /// Runs the cells from `first` up to `last` in the names that the process has; in a new process, where there is none. `sources`: those of cells that
    /// were edited. Preconditions: a page is open, and !isBusy().
    void run(std::size_t first, std::size_t last, const std::map<std::size_t, std::string>& sources = {});

    /// Compares an answer to the question of a cell. Preconditions: hasProcess() and !isBusy().
    void judge(std::size_t cell, const std::string& answer);

    /// Ends what runs, and the process with it.
    void stop();

    /// Something runs.
    bool isBusy() const { return m_isBusy; }

    /// There is a process with the names of the cells that ran.
    bool hasProcess() const { return m_hasProcess; }

Q_SIGNALS:
    void began(std::size_t cell);
    void ran(std::size_t cell, const std::shared_ptr<const meshwright::pages::CellResult>& result);
    void judged(std::size_t cell, const meshwright::pages::Judgement& judgement);
    void found(const meshwright::ui::PageFindings& findings); ///< after the last cell

    /// A run or a judgement is over. With problems, the process ended, or none could be started.
    void ended(const meshwright::Problems& problems);

private:
    struct Process;
    using Work = std::function<Problems(Process&, const std::stop_token&)>;

    void start(Work work);
    void post(std::uint64_t generation, std::function<void()> what);

    QThread m_thread;
    QObject* m_onThread; ///< lives on it
    std::shared_ptr<Process> m_process; ///< used on the thread alone
    std::shared_ptr<const OpenPage> m_page;
    std::stop_source m_stop; ///< of what runs
    std::uint64_t m_generation = 0; ///< of the page
    bool m_isBusy = false;
    bool m_hasProcess = false;
};

} // namespace meshwright::ui
