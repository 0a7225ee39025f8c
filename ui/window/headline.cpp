// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/headline.h"

#include "core/support/text.h"
#include "sim/compare/step_change.h"
#include "sim/report/results.h"
#include "ui/theme/theme.h"

#include <QBoxLayout>
#include <QEvent>
#include <QLabel>

namespace meshwright::ui {

namespace {

QString seconds(double value)
{
    return QString::fromStdString(formatSeconds(value));
}

QString bytes(std::int64_t value)
{
    return QString::fromStdString(formatBytes(static_cast<double>(value)));
}

QString percent(double share)
{
    return QStringLiteral("%1 %").arg(100.0 * share, 0, 'f', 0);
}

/// A label whose text has the colour of a role, in either theme.
void colourText(QLabel* label, ColourRole role)
{
    QPalette palette = label->parentWidget()->palette();
    palette.setColor(QPalette::WindowText, qtColour(role, themeOf(palette)));
    label->setPalette(palette);
}

} // namespace

Headline::Headline(QWidget* parent)
    : QWidget(parent)
    , m_change(new QLabel(this))
    , m_proof(new QLabel(this))
    , m_problems(new QLabel(this))
{
    auto* figures = new QHBoxLayout;
    figures->setSpacing(28);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(14, 8, 14, 8);
    all->setSpacing(6);
    all->addLayout(figures);
    auto* sentences = new QHBoxLayout;
    sentences->setSpacing(14);
    sentences->addWidget(m_change, 1);
    sentences->addWidget(m_proof);
    sentences->addWidget(m_problems);
    all->addLayout(sentences);

    m_step = addFigure(tr("Predicted step"));
    m_compute = addFigure(tr("Computing"));
    m_waiting = addFigure(tr("Waiting for collectives"));
    m_memory = addFigure(tr("Memory of a device"));
    figures->addStretch();

    m_change->setTextFormat(Qt::PlainText);
    m_change->setAccessibleName(tr("Why the step time changed"));
    m_change->setMinimumWidth(1);
    m_change->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_proof->setTextFormat(Qt::PlainText);
    m_proof->setAccessibleName(tr("Whether the device program is proved"));
    m_problems->setTextFormat(Qt::RichText);
    m_problems->setAccessibleName(tr("Problems of the study"));
    connect(m_problems, &QLabel::linkActivated, this, &Headline::problemsRequested);
    forget();
}

Headline::Figure Headline::addFigure(const QString& caption)
{
    Figure figure{new QLabel(QStringLiteral("–"), this), new QLabel(this)};
    auto* head = new QLabel(caption, this);
    head->setForegroundRole(QPalette::PlaceholderText);
    figure.note->setForegroundRole(QPalette::PlaceholderText);
    QFont large = tabularFont(font());
    large.setPointSizeF(font().pointSizeF() * 1.5);
    large.setBold(true);
    figure.value->setFont(large);
    figure.value->setAccessibleName(caption);
    auto* column = new QVBoxLayout;
    column->setSpacing(1);
    column->addWidget(head);
    column->addWidget(figure.value);
    column->addWidget(figure.note);
    static_cast<QHBoxLayout*>(layout()->itemAt(0)->layout())->addLayout(column);
    return figure;
}

void Headline::forget()
{
    m_last.reset();
    setChange(tr("Change the mesh or a spec: this line shows the effect on the step."));
}

QString Headline::changeText() const
{
    return m_sentence;
}

void Headline::setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis)
{
    const auto errors = std::count_if(analysis->problems.begin(), analysis->problems.end(),
        [](const Problem& problem) { return problem.severity == Severity::Error; });
    const auto others = static_cast<std::ptrdiff_t>(analysis->problems.size()) - errors;
    const auto counted
        = [](std::ptrdiff_t count, const QString& one, const QString& many) { return count == 1 ? one : many.arg(count); };
    QStringList found;
    if (errors > 0)
        found << counted(errors, tr("1 error"), tr("%1 errors"));
    if (others > 0)
        found << counted(others, tr("1 warning"), tr("%1 warnings"));
    m_problems->setText(
        found.isEmpty() ? QString() : QStringLiteral("<a href=\"problems\">%1</a>").arg(found.join(QStringLiteral(", "))));

    showProof(*analysis);
    for (const Figure& figure : {m_step, m_compute, m_waiting, m_memory}) {
        figure.value->setEnabled(analysis->simulated != nullptr);
        figure.note->setEnabled(analysis->simulated != nullptr);
    }
    if (analysis->simulated) {
        showSimulation(analysis->simulated->simulation);
        showChange(*analysis);
        m_last = analysis;
        return;
    }
    const auto why = std::find_if(analysis->problems.begin(), analysis->problems.end(),
        [](const Problem& problem) { return problem.severity == Severity::Error; });
    if (why != analysis->problems.end())
        setChange(QString::fromStdString(why->message));
    else
        setChange(tr("No hardware is chosen, so no times are predicted."));
}

void Headline::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_last) {
        showSimulation(m_last->simulated->simulation);
        showProof(*m_last);
    }
}

void Headline::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fitChange();
}

void Headline::setChange(const QString& sentence)
{
    m_sentence = sentence;
    m_change->setToolTip(sentence);
    m_change->setAccessibleDescription(sentence);
    fitChange();
}

void Headline::fitChange()
{
    layout()->activate();
    m_change->setText(m_change->fontMetrics().elidedText(m_sentence, Qt::ElideRight, std::max(1, m_change->width())));
}

void Headline::showSimulation(const sim::Simulation& simulation)
{
    const std::int64_t usable = simulation.capacityBytes - simulation.reserveBytes;
    m_step.value->setText(seconds(simulation.stepSeconds));
    m_step.note->setText(
        tr("bound by %1").arg(QString::fromStdString(simulation.boundBy).replace(QLatin1Char('_'), QLatin1Char('-'))));
    m_compute.value->setText(seconds(simulation.computeSeconds));
    m_compute.note->setText(
        tr("%1 of the step, MFU %2").arg(percent(simulation.computeSeconds / simulation.stepSeconds), percent(simulation.mfu)));
    m_waiting.value->setText(seconds(simulation.exposedSeconds));
    const QString waits = percent(simulation.exposedSeconds / simulation.stepSeconds);
    m_waiting.note->setText(simulation.bubbleSeconds > 0.0
            ? tr("%1 of the step; bubble %2").arg(waits, seconds(simulation.bubbleSeconds))
            : tr("%1 of the step; %2 in all").arg(waits, seconds(simulation.collectiveSeconds)));
    m_memory.value->setText(bytes(simulation.peakBytes));
    m_memory.note->setText(
        simulation.fits ? tr("fits: %1 usable").arg(bytes(usable)) : tr("does not fit: only %1 usable").arg(bytes(usable)));
    colourText(m_memory.note, simulation.fits ? ColourRole::MutedText : ColourRole::Error);
}

void Headline::showProof(const sim::Analysis& analysis)
{
    m_proof->setVisible(analysis.proof != nullptr);
    if (!analysis.proof)
        return;
    const QString text = QString::fromStdString(sim::proofText(*analysis.proof));
    m_proof->setText(analysis.proof->isProved() ? tr("\u2713 proved") : tr("not proved"));
    m_proof->setToolTip(text);
    m_proof->setAccessibleDescription(text);
    colourText(m_proof, analysis.proof->isProved() ? ColourRole::MutedText : ColourRole::Warning);
}

void Headline::showChange(const sim::Analysis& analysis)
{
    if (m_last && m_last->source != analysis.source)
        setChange(QString::fromStdString(
            sim::explainStepChange(m_last->simulated->simulation, analysis.simulated->simulation).sentence));
}

} // namespace meshwright::ui
