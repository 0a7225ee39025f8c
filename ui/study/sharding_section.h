// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/section.h"

namespace meshwright::ui {

class SpecModel;
class SpecTree;
class Selection;
class ToneLabel;

/// The arrays with their specs, and in words what the spec of the selected one means.
class ShardingSection : public Section {
    Q_OBJECT

public:
    explicit ShardingSection(Selection& selection, QWidget* parent = nullptr);

    void show(const std::shared_ptr<const StudyFacts>& facts) override;
    bool focusField(const QString& path) override;

private:
    void showDetails();

    Selection& m_selection;
    std::shared_ptr<const StudyFacts> m_facts;
    SpecModel* m_model;
    SpecTree* m_tree;
    ToneLabel* m_meaning;
    ToneLabel* m_reason;
};

} // namespace meshwright::ui
