// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/search/search_job.h"

#include <QString>

#include <vector>

namespace meshwright::ui {

/// A plan in the words of another program, to be pasted there.
struct PlanCopy {
    QString title; ///< "MaxText"
    QString text; ///< empty: that program has no such plan
    QString whyNot;
};

/// A plan as a study, as JAX's mesh and specs, and as the command that starts it in each framework.
std::vector<PlanCopy> copiesOf(const FoundPlans& found, const sim::FoundPlan& plan, const sim::Catalogue& catalogue);

} // namespace meshwright::ui
