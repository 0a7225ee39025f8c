// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/pipeline_section.h"

#include "core/study/pipeline_choice.h"
#include "core/study/study_parts.h"
#include "core/support/quantity.h"
#include "core/support/text.h"
#include "ui/study/field.h"
#include "ui/study/value_edit.h"

#include <QComboBox>
#include <QSignalBlocker>

namespace meshwright::ui {

namespace {

/// With so many for each stage, at most a fifth of the time is bubble.
constexpr std::int64_t kMicrobatchesPerStage = 4;

std::int64_t largestDivisor(std::int64_t number, std::int64_t most)
{
    std::int64_t divisor = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(1, number));
    while (number % divisor != 0)
        --divisor;
    return divisor;
}

/// One stage is not a pipeline, whatever axis it is on.
bool isCutIntoStages(const PipelineChoice& pipeline)
{
    return !pipeline.axis.empty() && pipeline.stages != 1;
}

QString microbatchesProblem(const QString& text)
{
    const auto count = parseCount(trimmed(text.toStdString()));
    return count && *count >= 1 ? QString() : PipelineSection::tr("A whole number that divides the batch");
}

} // namespace

PipelineSection::PipelineSection(QWidget* parent)
    : Section(tr("Pipeline"), parent)
    , m_axis(new QComboBox)
    , m_microbatches(new ValueEdit)
    , m_schedule(new QComboBox)
    , m_axisField(new Field(tr("Stages over"), m_axis))
    , m_microbatchesField(new Field(tr("Microbatches"), m_microbatches))
    , m_scheduleField(new Field(tr("Schedule"), m_schedule))
{
    for (const auto& [name, order] : scheduleWords())
        m_schedule->addItem(QString::fromLatin1(name));
    for (QComboBox* box : {m_axis, m_schedule})
        keepWheelForFocus(box);
    m_axis->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_axis->setMinimumContentsLength(8);
    m_axis->setToolTip(tr("The mesh axis along which the layers lie, a stage for each of its devices"));
    m_microbatches->setCheck(microbatchesProblem);
    for (QWidget* field : {m_axisField, m_microbatchesField, m_scheduleField})
        body().addWidget(field);
    connect(m_axis, &QComboBox::activated, this, &PipelineSection::chooseAxis);
    connect(m_microbatches, &ValueEdit::problemChanged, m_microbatchesField, &Field::setTyped);
    connect(m_microbatches, &ValueEdit::committed, this, [this](const QString& text) {
        Q_EMIT edited(
            {setting(QStringLiteral("pipeline.microbatches"), QString::number(*parseCount(trimmed(text.toStdString()))))});
    });
    connect(m_schedule, &QComboBox::textActivated, this,
        [this](const QString& word) { Q_EMIT edited({setting(QStringLiteral("pipeline.schedule"), word)}); });
}

void PipelineSection::show(const std::shared_ptr<const StudyFacts>& facts)
{
    m_facts = facts;
    const PipelineChoice& pipeline = facts->study.pipeline;
    const bool isCut = isPipelined(pipeline);
    setVisible(facts->study.trains());
    const QSignalBlocker quietAxis(m_axis);
    const QSignalBlocker quietSchedule(m_schedule);
    m_axis->clear();
    m_axis->addItem(tr("no pipeline"));
    for (const MeshAxis& axis : facts->shown.mesh)
        m_axis->addItem(QString::fromStdString(axis.name), QString::fromStdString(axis.name));
    const bool isStaged = isCutIntoStages(pipeline); // else the microbatches of one stage add up their gradients
    m_axis->setCurrentIndex(isStaged ? m_axis->findData(QString::fromStdString(pipeline.axis)) : 0);
    m_microbatches->setValue(QString::number(pipeline.microbatches));
    m_schedule->setCurrentIndex(m_schedule->findText(QString::fromLatin1(scheduleName(pipeline.schedule))));
    m_microbatchesField->setVisible(isCut);
    m_scheduleField->setVisible(isStaged);
    const auto problemOf = [&](const char* path) {
        const Problem* problem = facts->findProblem(path);
        return problem != nullptr ? QString::fromStdString(problem->message) : QString();
    };
    const QString ofMicrobatches = problemOf("pipeline.microbatches");
    const QString ofSchedule = problemOf("pipeline.schedule");
    const QString any = problemOf("pipeline");
    m_microbatchesField->setProblem(ofMicrobatches);
    m_scheduleField->setProblem(ofSchedule);
    m_axisField->setProblem(any == ofMicrobatches || any == ofSchedule ? QString() : any);
    setEnabled(facts->readable);
}

/// As many stages as the axis has devices. What else there is of a pipeline stays.
void PipelineSection::chooseAxis()
{
    const std::string name = m_axis->currentData().toString().toStdString();
    const PipelineChoice& before = m_facts->study.pipeline;
    if (name.empty()) {
        if (isCutIntoStages(before))
            Q_EMIT edited({setting(QStringLiteral("pipeline"), QString())});
        return;
    }
    const auto& mesh = m_facts->shown.mesh;
    const auto axis = std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis& one) { return one.name == name; });
    const std::int64_t microbatches = isPipelined(before) && before.microbatches > 1
        ? before.microbatches
        : largestDivisor(m_facts->study.batch, kMicrobatchesPerStage * axis->size);
    const std::string settings[] = {"pipeline.axis=" + name, fmt::format("pipeline.stages={}", axis->size),
        fmt::format("pipeline.microbatches={}", microbatches)};
    Q_EMIT edited(settingList({std::begin(settings), std::end(settings)}));
}

bool PipelineSection::focusField(const QString& path)
{
    if (!path.startsWith(QLatin1String("pipeline")) || isHidden())
        return false;
    const bool isCut = isPipelined(m_facts->study.pipeline);
    QWidget* editor = isCut && path.endsWith(QLatin1String("microbatches")) ? static_cast<QWidget*>(m_microbatches)
        : isCut && path.endsWith(QLatin1String("schedule"))                 ? static_cast<QWidget*>(m_schedule)
                                                                            : m_axis;
    editor->setFocus();
    return true;
}

} // namespace meshwright::ui

#include "moc_pipeline_section.cpp"
