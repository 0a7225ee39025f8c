// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/why/causes_view.h"

#include "sim/session/analysis_state.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QLabel>
#include <QSignalBlocker>

namespace meshwright::ui {

namespace {

QString amountText(double amount, Quantity quantity)
{
    return QString::fromStdString(quantityText(amount, quantity));
}

} // namespace

CausesView::CausesView(Selection& selection, QWidget* parent)
    : View(parent)
    , m_selection(selection)
    , m_status(new QLabel(this))
    , m_table(new Table({tr("Cause"), tr("Amount"), tr("Share"), tr("Spec")}, tr("Causes of the figures"), this))
{
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("What is shown"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_status);
    layout->addWidget(m_table, 1);
    connect(m_table, &QTreeWidget::currentItemChanged, this, &CausesView::select);
    connect(m_table, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* row) {
        if (const sim::FigureCause* cause = causeOf(row); cause != nullptr && !writtenCause(cause->annotation).isEmpty())
            Q_EMIT specRequested(writtenCause(cause->annotation));
    });
    setFocusProxy(m_table);
}

void CausesView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_table->setEnabled(analysis->simulated != nullptr);
    if (!analysis->simulated) {
        const Problem* why = sim::whyNotBuilt(*analysis);
        m_status->setText(m_analysis ? tr("The study has problems; these are the causes of its last good state.")
                : why != nullptr     ? QString::fromStdString(why->message)
                                     : tr("The study has no hardware: choose a chip to see what its step is made of."));
        return;
    }
    m_status->setText(tr("The causes of a figure add up to it. Select one to see it in all views; Enter goes to its spec."));
    m_analysis = std::move(analysis);
    m_generation = m_selection.generation();
    m_figures = sim::explainFigures(m_analysis->simulated->simulation, m_analysis->simulated->liveAtPeak);
    std::vector<bool> open;
    for (int i = 0; i < m_table->topLevelItemCount(); ++i)
        open.push_back(m_table->topLevelItem(i)->isExpanded());
    const QSignalBlocker blocker(m_table);
    m_table->clear();
    for (std::size_t i = 0; i < m_figures.size(); ++i) {
        const sim::ExplainedFigure& figure = m_figures[i];
        QTreeWidgetItem* group
            = m_table->addGroup({QString::fromStdString(figure.name), amountText(figure.value, figure.quantity), {}, {}});
        for (const sim::FigureCause& cause : figure.causes) {
            auto* row = new QTreeWidgetItem(group,
                {QString::fromStdString(cause.what), amountText(cause.amount, figure.quantity),
                    QStringLiteral("%1 %").arg(100.0 * cause.amount / figure.value, 0, 'f', 1), writtenCause(cause.annotation)});
            for (int column = 1; column < m_table->columnCount(); ++column)
                row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
            row->setToolTip(0, row->text(0));
        }
        group->setExpanded(i >= open.size() || open[i]);
    }
    m_table->fitColumns();
}

void CausesView::forgetStudy()
{
    m_analysis.reset();
    m_figures.clear();
    const QSignalBlocker blocker(m_table);
    m_table->clear();
    m_status->setText(tr("The study is being simulated…"));
}

const sim::FigureCause* CausesView::causeOf(const QTreeWidgetItem* row) const
{
    if (row == nullptr || row->parent() == nullptr)
        return nullptr;
    const auto figure = static_cast<std::size_t>(m_table->indexOfTopLevelItem(row->parent()));
    return &m_figures[figure].causes[static_cast<std::size_t>(row->parent()->indexOfChild(const_cast<QTreeWidgetItem*>(row)))];
}

void CausesView::select(const QTreeWidgetItem* row)
{
    const sim::FigureCause* cause = causeOf(row);
    if (cause == nullptr)
        return;
    if (cause->collective) {
        m_selection.setCollective(CollectiveId{*cause->collective, m_generation});
        m_selection.setOperation(QString::fromStdString(m_analysis->simulated->simulation.collectives[*cause->collective].label));
    }
    if (m_analysis->findArray(cause->array) != nullptr)
        m_selection.setArray(QString::fromStdString(cause->array));
}

void CausesView::showFigure(const QString& name)
{
    for (int i = 0; i < m_table->topLevelItemCount(); ++i) {
        QTreeWidgetItem* group = m_table->topLevelItem(i);
        group->setExpanded(group->text(0) == name);
        if (group->text(0) == name)
            m_table->setCurrentItem(group);
    }
}

DisplayList CausesView::picture() const
{
    return tablePicture(*m_table, "causes of the figures", "nothing was simulated");
}

QString CausesView::command() const
{
    return QStringLiteral("meshwright report ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{})
        + QStringLiteral(" --format md");
}

} // namespace meshwright::ui

#include "moc_causes_view.cpp"
