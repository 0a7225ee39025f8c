// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/section.h"

namespace meshwright::ui {

class ProblemRow;
class ToneLabel;

/// All that is wrong: a click leads to the field, and a button fixes what can be fixed without a decision.
class ProblemsSection : public Section {
    Q_OBJECT

public:
    explicit ProblemsSection(QWidget* parent = nullptr);

    void show(const std::shared_ptr<const StudyFacts>& facts) override;

    /// Puts the keyboard on the first problem.
    void focusFirst();

Q_SIGNALS:
    /// The user wants to see where it is: "sharding.x".
    void jumpRequested(const QString& path);

private:
    std::vector<ProblemRow*> m_rows;
    ToneLabel* m_more;
};

} // namespace meshwright::ui
