// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/section.h"

class QComboBox;

namespace meshwright::ui {

class Field;
class ValueEdit;

/// Over which axis the layers lie in stages, how many microbatches pass them, and in which order. Hidden for program files, which have no pipeline.
class PipelineSection : public Section {
    Q_OBJECT

public:
    explicit PipelineSection(QWidget* parent = nullptr);

    void show(const std::shared_ptr<const StudyFacts>& facts) override;
    bool focusField(const QString& path) override;

private:
    void chooseAxis();

    std::shared_ptr<const StudyFacts> m_facts;
    QComboBox* m_axis;
    ValueEdit* m_microbatches;
    QComboBox* m_schedule;
    Field* m_axisField;
    Field* m_microbatchesField;
    Field* m_scheduleField;
};

} // namespace meshwright::ui
