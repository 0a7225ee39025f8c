// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/search.h"
#include "sim/session/session.h"
#include "ui/jobs/latest_worker.h"

#include <QObject>

#include <memory>

namespace meshwright::ui {

/// The plans of a search for a study, those that are told of and those of the front, without repetition.
struct FoundPlans {
    std::shared_ptr<const Study> study; ///< that was searched
    sim::SearchResult result;
    std::vector<sim::FoundPlan> plans; ///< result.plans, then those of result.front that are not among them
    Problems problems; ///< why there is no result
};

/// Whether both lay the training out in the same way, whatever is known of their times.
bool isSamePlan(const sim::FoundPlan& a, const sim::FoundPlan& b);

/// Searches the best plans of a study on a thread of its own: first by the estimate, at once, then with the simulator, plan by plan.
class SearchJob : public QObject {
    Q_OBJECT

public:
    explicit SearchJob(std::shared_ptr<const sim::Catalogue> catalogue, QObject* parent = nullptr);

    /// Stops the search before. Of a study of a transformer `found` comes with the estimates, again with each plan that was simulated,
    /// and with the result.
    void start(std::shared_ptr<const Study> study);

    /// What was found so far stays.
    void cancel() { m_worker.cancel(); }
    bool isBusy() const { return m_worker.isBusy(); }

    /// The plan as a study. Problems: those of `studyText`; MW1754 of a plan whose program is in no file.
    static Result<std::string> studyOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue);

Q_SIGNALS:
    void progressed(const meshwright::sim::SearchProgress& progress);
    /// Never null. `isLast`: nothing more comes.
    void found(std::shared_ptr<const meshwright::ui::FoundPlans> plans, bool isLast);

private:
    std::shared_ptr<const sim::Catalogue> m_catalogue; ///< shared: searches may outlive whoever else has it
    LatestWorker m_worker; ///< last: its jobs use all of the above
};

} // namespace meshwright::ui
