// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/headline.h"

#include "core/support/text.h"
#include "sim/compare/step_change.h"
#include "sim/report/results.h"
#include "ui/theme/theme.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/link_colours.h"
#include "ui/widgets/view.h"

#include <QBoxLayout>
#include <QEvent>
#include <QLabel>
#include <QPainter>

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
    return QStringLiteral("%1 %").arg(100.0 * share, 0, 'f', share > 0.0 && share < 0.01 ? 1 : 0);
}

constexpr int kHeight = 44;
constexpr char kWhy[] = "why"; ///< property of a figure's labels

/// A label whose text has the colour of a role, in either theme.
void colourText(QLabel* label, ColourRole role)
{
    QPalette palette = label->parentWidget()->palette();
    for (const QPalette::ColorGroup group : {QPalette::Active, QPalette::Inactive}) // what is disabled is as pale as all that is
        palette.setColor(group, QPalette::WindowText, qtColour(role, themeOf(palette)));
    label->setPalette(palette);
    label->setForegroundRole(QPalette::WindowText);
}

} // namespace

Headline::Headline(QWidget* parent)
    : QWidget(parent)
    , m_change(new ElidedLabel(this))
    , m_bound(new ElidedLabel(this))
    , m_proof(new QLabel(this))
    , m_problems(new QLabel(this))
{
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(20);
    m_step = addFigure(*row, tr("Predicted step"), "step time");
    m_compute = addFigure(*row, tr("Computing"), "step time");
    m_waiting = addFigure(*row, tr("Waiting for collectives"), "exposed communication");
    m_memory = addFigure(*row, tr("Memory of a device"), "peak memory");
    const auto addColumn = [&](QWidget* upper, QWidget* lower, int stretch) {
        auto* column = new QVBoxLayout;
        column->setSpacing(1);
        column->addStretch();
        column->addWidget(upper);
        column->addWidget(lower);
        column->addStretch();
        row->addLayout(column, stretch);
    };
    addColumn(m_change, m_bound, 1);
    addColumn(m_proof, m_problems, 0);

    m_change->setAccessibleName(tr("Why the step time changed"));
    m_bound->setAccessibleName(tr("What bounds the step"));
    m_bound->setForegroundRole(QPalette::PlaceholderText);
    m_proof->setTextFormat(Qt::PlainText);
    m_proof->setAccessibleName(tr("Whether the device program is proved"));
    m_problems->setTextFormat(Qt::RichText);
    m_problems->setAccessibleName(tr("Problems of the study"));
    connect(m_problems, &QLabel::linkActivated, this, &Headline::problemsRequested);
    setFixedHeight(std::max(kHeight, m_step.value->sizeHint().height() + m_step.note->sizeHint().height() + 9));
    forget();
}

Headline::Figure Headline::addFigure(QHBoxLayout& row, const QString& name, const char* why)
{
    Figure figure{new QLabel(QStringLiteral("–"), this), new QLabel(this)};
    figure.note->setForegroundRole(QPalette::PlaceholderText);
    QFont large = tabularFont(font());
    large.setPointSizeF(font().pointSizeF() * 1.2);
    large.setBold(true);
    figure.value->setFont(large);
    figure.value->setAccessibleName(name);
    QFont small = font();
    small.setPointSizeF(font().pointSizeF() * 0.92);
    figure.note->setFont(small);
    for (QLabel* label : {figure.value, figure.note}) {
        label->setTextFormat(Qt::PlainText);
        label->setToolTip(tr("Click to see why"));
        label->setCursor(Qt::PointingHandCursor);
        label->setProperty(kWhy, QString::fromLatin1(why));
        label->installEventFilter(this);
    }
    auto* column = new QVBoxLayout;
    column->setSpacing(0);
    column->addStretch();
    column->addWidget(figure.value);
    column->addWidget(figure.note);
    column->addStretch();
    row.addLayout(column);
    return figure;
}

void Headline::forget()
{
    m_last.reset();
    m_effect = tr("Change the mesh or a spec: this line shows the effect on the step.");
    m_hasSimulation = false;
    m_hasErrors = false;
    for (const auto& [figure, name] : {std::pair{m_step, tr("predicted step")}, std::pair{m_compute, tr("computing")},
             std::pair{m_waiting, tr("waiting")}, std::pair{m_memory, tr("memory")}}) {
        figure.value->setText(QStringLiteral("–"));
        figure.note->setText(name);
    }
    m_change->setWhole(m_effect);
    m_bound->setWhole({});
    m_proof->hide();
    m_problems->hide();
    enableFigures();
}

QString Headline::changeText() const
{
    return m_change->whole();
}

void Headline::setAnalysis(const std::shared_ptr<const sim::Analysis>& analysis)
{
    m_isStale = false;
    update(); // the line goes
    m_hasErrors = hasErrors(analysis->problems);
    m_hasSimulation = analysis->simulated != nullptr;
    showProblems(analysis->problems);
    showProof(*analysis, true);
    enableFigures();
    if (analysis->simulated) {
        showSimulation(analysis->simulated->simulation);
        showChange(analysis);
        return;
    }
    const auto why = std::find_if(analysis->problems.begin(), analysis->problems.end(),
        [](const Problem& problem) { return problem.severity == Severity::Error; });
    m_change->setWhole(why != analysis->problems.end() ? QString::fromStdString(why->message)
                                                       : tr("No hardware is chosen, so no times are predicted."));
    m_bound->setWhole(
        why != analysis->problems.end() && m_last ? tr("The figures are those of the last state without errors.") : QString());
}

void Headline::showProblems(const Problems& problems)
{
    const auto errors = std::count_if(
        problems.begin(), problems.end(), [](const Problem& problem) { return problem.severity == Severity::Error; });
    const auto others = static_cast<std::ptrdiff_t>(problems.size()) - errors;
    const auto counted
        = [](std::ptrdiff_t count, const QString& one, const QString& many) { return count == 1 ? one : many.arg(count); };
    QStringList found;
    if (errors > 0)
        found << counted(errors, tr("1 error"), tr("%1 errors"));
    if (others > 0)
        found << counted(others, tr("1 warning"), tr("%1 warnings"));
    m_problems->setVisible(!found.isEmpty());
    m_problems->setText(
        found.isEmpty() ? QString() : QStringLiteral("<a href=\"problems\">%1</a>").arg(found.join(QStringLiteral(", "))));
}

void Headline::setProof(const std::shared_ptr<const sim::Analysis>& analysis)
{
    showProof(*analysis, false);
    if (m_last && m_last->source == analysis->source)
        m_last = analysis;
}

void Headline::setStale(bool isStale)
{
    m_isStale = isStale;
    enableFigures();
    if (isStale && !m_last)
        m_change->setWhole(tr("The study is being simulated…"));
    update();
}

void Headline::enableFigures()
{
    for (const Figure& figure : {m_step, m_compute, m_waiting, m_memory}) {
        figure.value->setEnabled(m_hasSimulation && !m_isStale);
        figure.note->setEnabled(m_hasSimulation && !m_isStale);
    }
    m_proof->setEnabled(!m_hasErrors && !m_isStale);
}

bool Headline::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::MouseButtonRelease && m_hasSimulation)
        Q_EMIT whyRequested(watched->property(kWhy).toString());
    return QWidget::eventFilter(watched, event);
}

void Headline::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        recolourLinks(*m_problems);
    if (event->type() == QEvent::PaletteChange && m_last) {
        showSimulation(m_last->simulated->simulation);
        showProof(*m_last, m_proof->isVisibleTo(this));
    }
}

void Headline::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme theme = themeOf(palette());
    painter.fillRect(0, height() - 1, width(), 1, qtColour(ColourRole::Grid, theme));
    if (m_isStale)
        painter.fillRect(0, height() - 2, width(), 2, qtColour(ColourRole::Accent, theme));
}

void Headline::showSimulation(const sim::Simulation& simulation)
{
    const std::int64_t usable = simulation.capacityBytes - simulation.reserveBytes;
    m_step.value->setText(seconds(simulation.stepSeconds));
    m_compute.value->setText(seconds(simulation.computeSeconds));
    m_compute.note->setText(tr("computing, %1").arg(percent(simulation.computeSeconds / simulation.stepSeconds)));
    m_waiting.value->setText(seconds(simulation.exposedSeconds));
    m_waiting.note->setText(tr("waiting, %1").arg(percent(simulation.exposedSeconds / simulation.stepSeconds)));
    m_memory.value->setText(bytes(simulation.peakBytes));
    m_memory.note->setText((simulation.fits ? tr("of %1: fits") : tr("of %1: too much")).arg(bytes(usable)));
    colourText(m_memory.note, simulation.fits ? ColourRole::MutedText : ColourRole::Error);
    const std::string peak = simulation.peakHow.substr(0, simulation.peakHow.find(':')); // without how it comes about
    QStringList bound = {tr("bound by %1").arg(shownSentence(simulation.boundBy.text())),
        tr("MFU %1 of %2").arg(percent(simulation.mfu), QString::fromStdString(peak))};
    if (simulation.bubbleSeconds > 0.0)
        bound << tr("bubble %1").arg(seconds(simulation.bubbleSeconds));
    m_bound->setWhole(bound.join(QStringLiteral("  ·  ")));
}

void Headline::showProof(const sim::Analysis& analysis, bool isUnderWay)
{
    m_proof->setVisible(analysis.proof != nullptr || (isUnderWay && analysis.built));
    if (!m_proof->isVisibleTo(this))
        return;
    if (!analysis.proof) {
        const QString meaning = tr("Checking that the devices' program computes what the study says");
        m_proof->setText(tr("proving…"));
        m_proof->setToolTip(meaning);
        m_proof->setAccessibleDescription(meaning);
        colourText(m_proof, ColourRole::MutedText);
        return;
    }
    const QString text = QString::fromStdString(sim::proofText(*analysis.proof));
    m_proof->setText(analysis.proof->isProved() ? tr("\u2713 proved") : tr("not proved"));
    m_proof->setToolTip(text);
    m_proof->setAccessibleDescription(text);
    colourText(m_proof, analysis.proof->isProved() ? ColourRole::MutedText : ColourRole::Warning);
}

/// An error leaves with its cause: a study that is as it was before has the sentence that it had.
void Headline::showChange(const std::shared_ptr<const sim::Analysis>& analysis)
{
    if (m_last && m_last->source != analysis->source)
        m_effect = shownSentence(sim::explainStepChange(m_last->simulated->simulation, analysis->simulated->simulation).sentence);
    m_last = analysis;
    m_change->setWhole(changeSentence());
}

void Headline::setBaseline(const std::shared_ptr<const sim::Analysis>& baseline)
{
    if (baseline == m_baseline)
        return;
    m_baseline = baseline;
    if (m_hasSimulation) // else the line says what is wrong
        m_change->setWhole(changeSentence());
}

/// What is pinned comes before what was edited last.
QString Headline::changeSentence() const
{
    if (!m_baseline)
        return m_effect;
    if (m_baseline->source == m_last->source)
        return tr("This state is the baseline.");
    return tr("Against the baseline: %1")
        .arg(shownSentence(sim::explainStepChange(m_baseline->simulated->simulation, m_last->simulated->simulation).sentence));
}

} // namespace meshwright::ui

#include "moc_headline.cpp"
