// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/sharding_section.h"

#include "core/study/edit_text.h"
#include "core/support/text.h"
#include "ui/models/selection.h"
#include "ui/study/spec_model.h"
#include "ui/study/spec_tree.h"
#include "ui/study/tone_label.h"

namespace meshwright::ui {

namespace {

/// `f32[8192,8192]: every device holds a piece of 8192x4096, 128 MiB. Each piece is on 4 devices.`
QString meaningOf(const ArrayFacts& array, std::int64_t devices)
{
    const StageShare& share = array.share;
    const std::string type = typeText({array.dtype, array.array.shape});
    const auto bytes = array.shardBytes();
    if (!bytes)
        return QString::fromStdString(type);
    const std::string piece
        = *array.shard == array.array.shape ? std::string("all of it") : "a piece of " + shapeText(*array.shard);
    const std::string copies = array.copies == 1 || array.copies == devices
        ? std::string()
        : fmt::format(" Each piece is on {} devices.", array.copies);
    const std::string part = share.layers > 0 ? fmt::format(" ({} of {} layers)", share.layersOfStage, share.layers)
        : share.microbatches > 1              ? fmt::format(" (1 of {} microbatches)", share.microbatches)
                                              : std::string();
    return QString::fromStdString(fmt::format("{}: every device{} holds {}{}, {}.{}", type,
        share.stages > 1 && share.layers == 0 && !share.isOfEachStage ? " of a stage that has it" : "", piece, part,
        formatBytes(static_cast<double>(*bytes)), copies));
}

} // namespace

ShardingSection::ShardingSection(Selection& selection, QWidget* parent)
    : Section(tr("Sharding"), parent)
    , m_selection(selection)
    , m_model(new SpecModel(this))
    , m_tree(new SpecTree(*m_model, this))
    , m_meaning(new ToneLabel(ColourRole::Text))
    , m_reason(new ToneLabel(ColourRole::MutedText))
{
    body().addWidget(m_tree);
    body().addWidget(m_meaning);
    body().addWidget(m_reason);
    m_reason->setTextInteractionFlags(Qt::TextSelectableByMouse);

    connect(m_model, &SpecModel::specEdited, this, [this](const QString& path, const QString& text) {
        Q_EMIT edited({setting(path, text.isEmpty() ? QString() : QString::fromStdString(settingText(text.toStdString())))});
    });
    connect(m_tree, &SpecTree::currentArrayChanged, this, [this](const QString& name) {
        if (!name.isEmpty())
            m_selection.setArray(name);
        showDetails();
    });
    connect(&m_selection, &Selection::arrayChanged, this, [this](const QString& name) {
        const ArrayFacts* current = m_model->arrayAt(m_tree->currentIndex());
        if (current == nullptr || QString::fromStdString(current->array.name) != name)
            m_tree->showArray(name);
        showDetails();
    });
}

void ShardingSection::show(const std::shared_ptr<const StudyFacts>& facts)
{
    m_facts = facts;
    const bool first = m_model->facts() == nullptr;
    m_model->setFacts(facts);
    if (m_tree->currentIndex().row() < 0 || first)
        m_tree->showArray(m_selection.array());
    setVisible(!facts->arrays.empty());
    m_tree->setEnabled(facts->readable);
    showDetails();
}

void ShardingSection::showDetails()
{
    const ArrayFacts* array = m_model->arrayAt(m_tree->currentIndex());
    if (array == nullptr) {
        m_meaning->setNote({}, ColourRole::Text);
        m_reason->setNote(tr("Specs in grey follow from the others. Click one to set it."), ColourRole::MutedText);
        return;
    }
    if (!array->problems.empty()) {
        const Problem& problem = array->problems.front().problem;
        m_meaning->setNote(QString::fromStdString(problem.message), ColourRole::Error);
        m_reason->setNote(QString::fromStdString(problem.fix), ColourRole::MutedText);
        return;
    }
    const QString whole = m_tree->showsWholeSpec(*array) ? QString() : QString::fromStdString(array->spec + "\n");
    m_meaning->setNote(whole + meaningOf(*array, m_facts->meshDevices()), ColourRole::Text);
    m_reason->setNote(QString::fromStdString(m_facts->reasonOf(*array)), ColourRole::MutedText);
}

bool ShardingSection::focusField(const QString& path)
{
    if (!path.startsWith(QLatin1String("sharding")) || !m_facts)
        return false;
    const auto& arrays = m_facts->arrays;
    const auto array = std::find_if(
        arrays.begin(), arrays.end(), [&](const ArrayFacts& one) { return QString::fromStdString(one.path) == path; });
    if (array == arrays.end()) // a rule, or a spec of several
        m_tree->setFocus();
    else
        m_tree->editSpec(QString::fromStdString(array->array.name));
    return true;
}

} // namespace meshwright::ui

#include "moc_sharding_section.cpp"
