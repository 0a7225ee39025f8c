// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/study_panel.h"

#include "core/study/edit_text.h"
#include "ui/models/selection.h"
#include "ui/study/hardware_section.h"
#include "ui/study/mesh_section.h"
#include "ui/study/model_section.h"
#include "ui/study/pipeline_section.h"
#include "ui/study/problems_section.h"
#include "ui/study/sharding_section.h"
#include "ui/study/value_edit.h"

#include <QApplication>
#include <QScrollArea>

namespace meshwright::ui {

namespace {

constexpr int kMargin = 8;
constexpr int kSectionGap = 16;

/// What Tab reaches in a layout, in the order in which it is laid out.
void collectFocus(const QLayout& layout, std::vector<QWidget*>& order)
{
    for (int i = 0; i < layout.count(); ++i) {
        const QLayoutItem* item = layout.itemAt(i);
        QWidget* widget = item->widget();
        if (widget != nullptr && (widget->focusPolicy() & Qt::TabFocus) != 0)
            order.push_back(widget);
        const QLayout* inside = widget != nullptr ? widget->layout() : const_cast<QLayoutItem*>(item)->layout();
        if (inside != nullptr)
            collectFocus(*inside, order);
    }
}

} // namespace

StudyPanel::StudyPanel(Selection& selection, const sim::Catalogue& catalogue, QWidget* parent)
    : QWidget(parent)
    , m_catalogue(catalogue)
    , m_name(new ValueEdit)
    , m_scroll(new QScrollArea(this))
    , m_problems(new ProblemsSection)
{
    setMinimumWidth(300);
    m_sections = {new MeshSection(selection), new HardwareSection(catalogue), new ModelSection, new PipelineSection,
        new ShardingSection(selection), m_problems};

    m_name->setAccessibleName(tr("Name of the study"));
    m_name->setPlaceholderText(tr("a study without a name"));
    QFont font = m_name->font();
    font.setBold(true);
    m_name->setFont(font);

    auto* content = new QWidget;
    content->setSizePolicy(
        QSizePolicy::Ignored, QSizePolicy::Preferred); // as wide as the panel: there is no scrolling to the side
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(kMargin, kMargin, kMargin, kMargin);
    column->setSpacing(kSectionGap);
    column->addWidget(m_name);
    for (Section* section : m_sections)
        column->addWidget(section);
    column->addStretch(1);
    m_scroll->setWidget(content);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    auto* around = new QVBoxLayout(this);
    around->setContentsMargins(0, 0, 0, 0);
    around->addWidget(m_scroll);

    connect(m_name, &ValueEdit::committed, this, [this](const QString& name) {
        Q_EMIT settingsChanged({setting(
            QStringLiteral("name"), name.isEmpty() ? QString() : QString::fromStdString(settingText(name.toStdString())))});
    });
    for (Section* section : m_sections)
        connect(section, &Section::edited, this, &StudyPanel::settingsChanged);
    connect(m_problems, &ProblemsSection::jumpRequested, this, &StudyPanel::showField);
}

/// What is being typed is lost with the panel: losing the keyboard must not commit it while the parts go one by one.
StudyPanel::~StudyPanel()
{
    blockSignals(true);
    if (QWidget* popup = QApplication::activePopupWidget())
        popup->hide();
    if (QWidget* focused = QApplication::focusWidget(); focused != nullptr && isAncestorOf(focused))
        focused->clearFocus();
}

void StudyPanel::setSource(const sim::StudySource& source)
{
    if (m_hasOwnSource && m_source == source)
        return;
    m_hasOwnSource = true;
    m_source = source;
    refresh();
}

void StudyPanel::setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis)
{
    if (analysis == m_latest)
        return;
    m_latest = analysis;
    if (analysis->built)
        m_built = analysis;
    if (!m_hasOwnSource)
        m_source = analysis->source;
    refresh();
}

void StudyPanel::refresh()
{
    if (!m_source)
        return;
    m_facts = std::make_shared<const StudyFacts>(factsOf(*m_source, m_latest, m_built, m_catalogue));
    m_name->setValue(QString::fromStdString(m_facts->study.name));
    m_name->setEnabled(m_facts->readable);
    for (Section* section : m_sections)
        section->show(m_facts);
    orderKeyboard();
}

/// Rows come and go: Tab goes from the top to the bottom all the same.
void StudyPanel::orderKeyboard()
{
    std::vector<QWidget*> order;
    collectFocus(*m_scroll->widget()->layout(), order);
    if (std::equal(order.begin(), order.end(), m_order.begin(), m_order.end()))
        return;
    for (std::size_t i = 1; i < order.size(); ++i)
        setTabOrder(order[i - 1], order[i]);
    m_order.assign(order.begin(), order.end());
}

bool StudyPanel::showField(const QString& path)
{
    for (Section* section : m_sections) {
        if (!section->focusField(path))
            continue;
        if (QWidget* focused = QApplication::focusWidget(); focused != nullptr && isAncestorOf(focused))
            m_scroll->ensureWidgetVisible(focused, kMargin, kSectionGap);
        return true;
    }
    return false;
}

void StudyPanel::showProblems()
{
    m_problems->focusFirst();
    m_scroll->ensureWidgetVisible(m_problems);
}

} // namespace meshwright::ui

#include "moc_study_panel.cpp"
