// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/search/search_job.h"

#include <QString>

#include <functional>
#include <vector>

class QMenu;

namespace meshwright::ui {

/// A plan in the words of another program, to be pasted there.
struct PlanCopy {
    QString title; ///< "MaxText"
    QString text; ///< empty: that program has no such plan
    QString whyNot;
    bool isCommand = false; ///< of a framework's launcher
};

/// A plan as a study, as JAX's mesh and specs, and as the command that starts it in each framework.
std::vector<PlanCopy> copiesOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue);

/// A study as it stands, in the same words (`exportsOf`). Precondition: analysis.study.
std::vector<PlanCopy> copiesOf(const sim::Analysis& analysis, const sim::Catalogue& catalogue);

/// Fills a menu with them; what cannot be copied is grey and says why. `copied` is told what was.
void fillCopies(QMenu& menu, const std::vector<PlanCopy>& copies, const std::function<void(const PlanCopy&)>& copied);

} // namespace meshwright::ui
